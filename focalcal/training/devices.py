"""Device choice and the global numerical settings of torch."""

import ctypes
import os

import torch

from focalcal.common.errors import UserError
from focalcal.training.recipes import Recipe

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Constants of glibc's malloc.h."""


def choose_device(recipe: Recipe) -> torch.device:
    """Return the recipe's device; `auto` is the GPU if there is one."""
    has_cuda = torch.cuda.is_available()
    if recipe.device == "cuda" and not has_cuda:
        raise UserError('recipe.device is "cuda", but torch sees no GPU; allowed here: auto, cpu')
    return torch.device("cuda" if has_cuda and recipe.device != "cpu" else "cpu")


def configure_torch(recipe: Recipe, device: torch.device) -> None:
    """Set the memory, thread count, TF32 and determinism of this process."""
    if device.type == "cpu":
        _keep_freed_memory()
    torch.set_num_threads(recipe.threads)
    torch.set_float32_matmul_precision("high" if recipe.tf32 else "highest")
    if device.type == "cuda":
        torch.backends.cudnn.allow_tf32 = recipe.tf32
        torch.backends.cudnn.deterministic = recipe.deterministic
        torch.backends.cudnn.benchmark = not recipe.deterministic
    if recipe.deterministic or device.type == "cpu":
        # cuBLAS reads this on its first call.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        # The same flag as `use_deterministic_algorithms`, which would import the compiler. A layer of a timm
        # model may have no deterministic CUDA kernel; torch then logs a warning and training continues.
        torch.set_deterministic_debug_mode("warn" if device.type == "cuda" else "error")
        # Filling new tensors only helps code that reads uninitialised memory, and takes a tenth of the time.
        torch.utils.deterministic.fill_uninitialized_memory = False


def _keep_freed_memory() -> None:
    """Let each batch reuse the memory of the previous one.

    By default the C library returns each large tensor to the system and then requests the same pages again,
    ten thousand per batch of ResNet-8: a tenth of the time. Only glibc has this switch.
    """
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        largest = 2**31 - 1
        mallopt(M_TRIM_THRESHOLD, largest)
        mallopt(M_MMAP_THRESHOLD, largest)
