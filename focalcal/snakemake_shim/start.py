"""What happens before the first job: the configuration is read, and what would go wrong is refused.

Of Snakemake's parts without documentation, the Snakefile hands over two, `workflow.overwrite_configfiles` and
`workflow.is_main_process`; `copied_results.py` knows a third, where Snakemake keeps its records.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from focalcal.common.errors import USER_ERROR_EXIT_CODE, UserError
from focalcal.config import accepted, titles
from focalcal.config.command_line import restore_types
from focalcal.config.grid import Grid, build_grid
from focalcal.config.validation import SCHEMA_FILE
from focalcal.config.yaml_files import check_yaml_files
from focalcal.snakemake_shim import copied_results, environment, orphaned_jobs


def read_configuration(
    config: dict[str, Any],
    root: Path,
    overlays: Sequence[str | Path],
    *,
    is_main_process: bool,
    is_module: bool,
) -> Grid:
    """Return the grid of Snakemake's configuration, completed in place; a mistake ends the process.

    `overlays` are the files of --configfile. On a cluster each job reads the Snakefile again and leaves the
    user's files of logits alone. A workflow that uses this one as a module keeps its environment.
    """
    with _ending_with_one_line():
        environment.refuse_windows()
        schema = json.loads((root / SCHEMA_FILE).read_text(encoding="utf-8"))
        with contextlib.suppress(
            RecursionError
        ):  # a configuration that contains itself is left to the checks
            config.update(restore_types(config, schema))
        if is_main_process:
            check_yaml_files([root / "config.yaml", *overlays])
        titles.fill_in(config, overlays)
        grid = build_grid(config, root, read_own_files=is_main_process)
        if is_main_process:
            copied_results.refuse_without_records(Path.cwd())
            if is_module:
                environment.refuse_without_checkout(root)
        if not is_module:
            environment.set_for_jobs(root)
        if config["cache"] is not None:
            os.environ["FOCALCAL_CACHE"] = config["cache"]
    return grid


def read_accepted() -> accepted.Accepted:
    """Return the accepted changes of the results here; a damaged file ends the process."""
    with _ending_with_one_line():
        return accepted.read(Path("results"))


def before_jobs(config: dict[str, Any], report: Path) -> None:
    """Refuse to do what jobs of a killed Snakemake still do; announce that a report would be replaced."""
    with _ending_with_one_line():
        orphaned_jobs.refuse(Path.cwd())
        sys.stderr.write(titles.replacement(report, config))


@contextlib.contextmanager
def _ending_with_one_line() -> Iterator[None]:
    """End the process with one line for a user's mistake: a traceback would bury it."""
    try:
        yield
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(USER_ERROR_EXIT_CODE)
