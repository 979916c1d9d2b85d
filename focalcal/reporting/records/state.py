"""What is said of results where Snakemake has nothing to do.

Snakemake compares files with its own notes in `.snakemake`. If these are lost, or results of another
configuration were put in their place, it leaves everything as it is.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from focalcal.common.checksums import faults_behind
from focalcal.common.errors import USER_ERROR_EXIT_CODE, UserError
from focalcal.common.io import read_json
from focalcal.config.grid import Grid
from focalcal.reporting.records import stale

PLUMBING = True
_OTHER_RULES = {"theory": ("theory_tables", "theory_checks"), "simulation": ("simulate",)}
"""What reads a section of the configuration, where the rule `collect` does not."""
SECONDS_TO_READ = 1.0
"""Reading every file of a large study would take minutes; `focalcal verify` does."""


def tell(*arguments: Any) -> tuple[int, str]:
    """Return what `describe` says, and the exit code that goes with it."""
    try:
        return 0, describe(*arguments)
    except UserError as error:
        return USER_ERROR_EXIT_CODE, f"error: {error}"


def describe(
    config: Mapping[str, Any],
    grid: Grid,
    results: Path,
    final: Mapping[str, Collection[str]],
    asked: Collection[str],
) -> str:
    """Return a line that says that results belong to a configuration; raise a UserError if they do not.

    Only what the rules that were asked for make is looked at: `final` are the last files that are made where
    a rule is asked for.
    """
    # As a module, the workflow has a prefix before the names of its rules.
    rules = {name for name in (*stale.RECORDS, *final) if any(rule.endswith(name) for rule in asked)}
    products = stale.refuse(grid, results, rules)
    products += [Path(path) for rule in rules & final.keys() for path in final[rule]]
    recorded = results / "config.json"
    if "report" in rules and recorded.exists():
        _refuse_another(config, recorded)
    count, read, faults = faults_behind(products, SECONDS_TO_READ)
    if faults:
        raise UserError(
            f"{stale.first_of(faults, '; ')}; `focalcal verify` lists all faults, if there are more"
        )
    rest = "" if read == count else f" {count - read} more were not read; `focalcal verify` reads them."
    return f"{results} belongs to this configuration: {read} files are what their steps wrote.{rest}"


def _refuse_another(config: Mapping[str, Any], recorded: Path) -> None:
    """Raise a UserError if the report was made with other settings."""
    before = read_json(recorded)
    sections = stale.differing(before, config)
    keys = [key for section in sections for key in _keys(section, before.get(section), config.get(section))]
    if keys:
        again = ["collect", *(rule for section in sections for rule in _OTHER_RULES.get(section, ()))]
        raise UserError(
            f"{recorded} and the report beside it were made with other settings, which differ in "
            f"{stale.first_of(keys, ', ')}; allowed: those of the configuration; add "
            f"`--forcerun {' '.join(again)}` to the same command to make them again"
        )


def _keys(section: str, before: Any, now: Any) -> list[str]:
    """Return the keys of a section whose values differ, or the section if it has none."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        return [f"{section}.{key}" for key in stale.differing(before, now)]
    return [section]
