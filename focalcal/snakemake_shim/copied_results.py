"""Results that were copied without Snakemake's records of how they were made.

Without these records Snakemake compares only the times of files, so a change of code or settings since then
would pass unnoticed. Where it keeps them is not documented; if it moves them, every finished folder is
refused, and `RECORDS` needs the new place.
"""

from pathlib import Path

from focalcal.common.errors import UserError

TABLE = Path("results/tables/metrics.csv")
RECORDS = [Path(".snakemake", name) for name in ("metadata", "incomplete", "metadata.db")]


def refuse_without_records(folder: Path) -> None:
    """Raise a UserError if `folder` has a table of all runs but no records of Snakemake."""
    records = [folder / path for path in RECORDS]
    recorded = any(path.is_file() or (path.is_dir() and any(path.iterdir())) for path in records)
    if (folder / TABLE).exists() and not recorded:
        raise UserError(
            f"{TABLE} is here, but .snakemake, where Snakemake records how files were made, is not, so a "
            f"change of code or settings would pass unnoticed; copy .snakemake along with results, or delete "
            f"{TABLE}: settings and code of all runs are then checked, and tables and report made again"
        )
