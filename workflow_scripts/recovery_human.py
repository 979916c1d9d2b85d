"""How people labelled the test samples of one dataset, fetched or read, and checked."""

from workflow_scripts.entry import Spec, command, start

from pathlib import Path

from focalcal.common.npz import write_npz
from focalcal.data.fetch import cache_folder
from focalcal.data.human_labels import obtain_human_labels
from focalcal.data.registry import DOWNLOAD, load_entry
from focalcal.recovery.human import read_distributions


@command
def main(spec: Spec, output: Path, cache: Path | None = None) -> None:
    """Write one dataset's distributions of human labels."""
    base, source = spec["base"], spec["source"]
    if source == DOWNLOAD:
        probs = obtain_human_labels(base, load_entry(base), cache_folder(cache), read_distributions)
    else:
        probs = read_distributions(source)
    write_npz(output, {"probs": probs})


if __name__ == "__main__":
    start(main)
