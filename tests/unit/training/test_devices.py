import platform
import subprocess
import sys

import pytest
import torch

from focalcal.common.errors import UserError
from focalcal.training.devices import choose_device
from focalcal.training.recipes import Recipe

FAULTS_OF_REUSE = """
import resource, sys, torch
from focalcal.training.devices import configure_torch
from focalcal.training.recipes import Recipe

recipe = Recipe(epochs=1, batch_size=1, learning_rate=0.1)
if sys.argv[1] == "configured":
    configure_torch(recipe, torch.device("cpu"))
page_faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for batch in range(8):
    before = page_faults()
    activations = [torch.ones(2**24) for layer in range(4)]
    del activations
print(page_faults() - before)
"""

DETERMINISM = """
import torch
from focalcal.training.devices import configure_torch
from focalcal.training.recipes import Recipe

configure_torch(Recipe(epochs=1, batch_size=1, learning_rate=0.1), torch.device("cpu"))
print(torch.get_deterministic_debug_mode(), torch.utils.deterministic.fill_uninitialized_memory)
"""


def recipe(**changes):
    return Recipe(epochs=1, batch_size=1, learning_rate=0.1, **changes)


def test_a_gpu_is_used_if_there_is_one(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device(recipe(device="auto")) == torch.device("cuda")
    assert choose_device(recipe(device="cpu")) == torch.device("cpu")


def test_auto_falls_back_to_the_cpu_and_cuda_does_not(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device(recipe(device="auto", precision="bf16")) == torch.device("cpu")
    with pytest.raises(
        UserError, match=r'recipe.device is "cuda", but torch sees no GPU; allowed here: auto'
    ):
        choose_device(recipe(device="cuda"))


def faults_of_reuse(setting):
    command = [sys.executable, "-c", FAULTS_OF_REUSE, setting]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep memory")
def test_freed_memory_is_kept_for_the_next_batch():
    assert faults_of_reuse("ordinary") > 50_000
    assert faults_of_reuse("configured") < 20_000


def test_kernels_are_deterministic_and_no_tensor_is_filled_twice():
    command = [sys.executable, "-c", DETERMINISM]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "2 False\n"
