import platform
import subprocess
import sys

import pytest

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


def faults_of_reuse(setting):
    command = [sys.executable, "-c", FAULTS_OF_REUSE, setting]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to keep memory")
def test_freed_memory_is_kept_for_the_next_batch():
    assert faults_of_reuse("ordinary") > 50_000
    assert faults_of_reuse("configured") < 20_000
