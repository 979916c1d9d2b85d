"""One dataset, fetched or generated, in its prepared form."""

from workflow_scripts.entry import Spec, command, start

from pathlib import Path

from focalcal.common.io import write_json
from focalcal.config.provenance import made_by
from focalcal.data import prepared
from focalcal.data.fetch import cache_folder
from focalcal.data.prepare import dataset_record, prepare_dataset


@command
def main(spec: Spec, output: Path, record: Path, cache: Path | None = None) -> None:
    """Write the prepared dataset and its record; downloads go to $FOCALCAL_CACHE or ~/.cache/focalcal."""
    preparation = prepare_dataset(spec, cache_folder(cache))
    prepared.write_dataset(output, preparation.data)
    origin = made_by(spec, "workflow_scripts/fetch_data.py")
    write_json(record, {**dataset_record(spec, preparation, output), **origin})


if __name__ == "__main__":
    start(main)
