"""Device choice and the global numerical settings of torch."""

import os

import torch

from focalcal.training.recipes import Recipe
from focalcal.workflow.errors import UserError


def choose_device(recipe: Recipe) -> torch.device:
    """Return the recipe's device; `auto` is the GPU where there is one."""
    has_cuda = torch.cuda.is_available()
    if recipe.device == "cuda" and not has_cuda:
        raise UserError("recipe.device: 'cuda', but torch sees no GPU; use auto or cpu")
    device = torch.device("cuda" if has_cuda and recipe.device != "cpu" else "cpu")
    if device.type == "cpu" and recipe.device == "cpu" and (recipe.precision != "fp32" or recipe.compile):
        raise UserError(
            "recipe.precision and recipe.compile: bf16 and compile are for CUDA; on cpu use fp32, false"
        )
    return device


def configure_torch(recipe: Recipe, device: torch.device) -> None:
    """Set the thread count, TF32 and determinism of this process."""
    torch.set_num_threads(recipe.threads)
    torch.set_float32_matmul_precision("high" if recipe.tf32 else "highest")
    if device.type == "cuda":
        torch.backends.cudnn.allow_tf32 = recipe.tf32
        torch.backends.cudnn.deterministic = recipe.deterministic
        torch.backends.cudnn.benchmark = not recipe.deterministic
    if recipe.deterministic or device.type == "cpu":
        # cuBLAS needs this before its first call.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        # The same flag as `use_deterministic_algorithms`, which would import the compiler. A layer of a timm
        # model may have no deterministic CUDA kernel: that is said in the log, and the training goes on.
        torch.set_deterministic_debug_mode("warn" if device.type == "cuda" else "error")
