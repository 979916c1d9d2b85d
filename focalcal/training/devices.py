"""Device choice and the global numerical settings of torch."""

import ctypes
import os

import torch

from focalcal.common.errors import UserError
from focalcal.training.recipes import Recipe

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Names of glibc's malloc.h."""


def choose_device(recipe: Recipe) -> torch.device:
    """Return the recipe's device; `auto` is the GPU where there is one."""
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
        # cuBLAS needs this before its first call.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        # The same flag as `use_deterministic_algorithms`, which would import the compiler. A layer of a timm
        # model may have no deterministic CUDA kernel: that is said in the log, and the training goes on.
        torch.set_deterministic_debug_mode("warn" if device.type == "cuda" else "error")
        # Filling every new tensor before a kernel writes it is for code that reads what it did not write; it
        # takes a tenth of the time.
        torch.utils.deterministic.fill_uninitialized_memory = False


def _keep_freed_memory() -> None:
    """Let the next batch reuse the memory of the last one.

    The C library would return each large tensor to the system and fetch the same pages again, ten thousand of
    them in a batch of ResNet-8: a tenth of the time. Libraries other than glibc have no such switch.
    """
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        largest = 2**31 - 1
        mallopt(M_TRIM_THRESHOLD, largest)
        mallopt(M_MMAP_THRESHOLD, largest)
