"""Tables, figures or charts, built from the files that they declare."""

from workflow_scripts.entry import Spec, command, start

from pathlib import Path

from focalcal.reporting.write import build_products


@command
def main(spec: Spec, results: Path, dataset_model: str = "") -> None:
    """Write each table as CSV, Markdown, LaTeX and HTML, each figure as PNG and PDF, each chart as JSON."""
    build_products(results, spec["names"], spec["kind"], spec["settings"], dataset_model)


if __name__ == "__main__":
    start(main)
