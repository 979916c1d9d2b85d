"""Results that were copied without Snakemake's records of how they were made.

Without these records Snakemake compares only the times of files, so a change of code or settings since then
would pass unnoticed.
"""

from collections.abc import Collection
from pathlib import Path

from focalcal.common.errors import UserError

VERIFY = "verify"
"""In another workflow, the name of the rule has a prefix."""
TABLE = Path("results/tables/metrics.csv")
RECORDS = [Path(".snakemake", name) for name in ("metadata", "incomplete", "metadata.db")]


def refuse_without_records(folder: Path, arguments: Collection[str]) -> None:
    """Raise a UserError if `folder` has a table of all runs but no records of Snakemake.

    `arguments` are those of Snakemake's command line; its target `verify` makes nothing and needs no records.
    """
    if any(argument == VERIFY or argument.endswith(f"_{VERIFY}") for argument in arguments):
        return
    records = [folder / path for path in RECORDS]
    recorded = any(path.is_file() or (path.is_dir() and any(path.iterdir())) for path in records)
    if (folder / TABLE).exists() and not recorded:
        raise UserError(
            f"{TABLE} is here, but .snakemake, where Snakemake records how files were made, is not, so a "
            f"change of code or settings would pass unnoticed; copy .snakemake along with results, or delete "
            f"{TABLE}: settings and code of all runs are then checked, and tables and report made again"
        )
