"""Describe a finished results folder as an RO-Crate: python -m tools.crate [results].

An archive then shows what each file is, without the workflow. The format is that of
https://www.researchobject.org/ro-crate/specification/1.1.
"""

import datetime as dt
import mimetypes
import sys
from pathlib import Path
from typing import Any

from focalcal import __version__
from focalcal.common import checksums
from focalcal.common.io import read_json, write_json

METADATA = "ro-crate-metadata.json"
CONTEXT = [
    "https://w3id.org/ro/crate/1.1/context",
    {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"},
]


def main(results: Path) -> None:
    """Write the metadata into the results folder, with a record like that of any product."""
    with checksums.recording("crate"):
        write_json(results / METADATA, {"@context": CONTEXT, "@graph": graph(results)})


def graph(results: Path) -> list[dict[str, Any]]:
    """Return what is known of a results folder, its files, and the step that made them."""
    config = read_json(results / "config.json")
    report = (results / "report.html").stat()
    made = dt.datetime.fromtimestamp(report.st_mtime, dt.UTC).isoformat()
    files = [_file(path, results) for path in checksums.products(results) if path.name != METADATA]
    parts = [_reference(file["@id"]) for file in files]
    title = config["report"]["title"]
    return [
        {
            "@id": METADATA,
            "@type": "CreativeWork",
            "conformsTo": _reference("https://w3id.org/ro/crate/1.1"),
            "about": _reference("./"),
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "name": title,
            "description": f"Results of focalcal {__version__}: {title}. Start with report.html.",
            "datePublished": made,
            "license": "The person who publishes this folder states its licence.",
            "hasPart": parts,
            "mentions": _reference("#run"),
        },
        {
            "@id": "#run",
            "@type": "CreateAction",
            "name": "The workflow",
            "instrument": _reference("#focalcal"),
            "object": _reference("config.json"),
            "result": parts,
            "endTime": made,
        },
        {"@id": "#focalcal", "@type": "SoftwareApplication", "name": "focalcal", "version": __version__},
        *files,
    ]


def _file(path: Path, results: Path) -> dict[str, Any]:
    record = checksums.read_record(path)
    return {
        "@id": path.relative_to(results).as_posix(),
        "@type": "File",
        "description": f"Written by {record.step}" if record else "Without a record",
        "encodingFormat": mimetypes.guess_type(path.name)[0] or "application/octet-stream",
        "contentSize": str(path.stat().st_size),
        "sha256": checksums.checksum(path),
    }


def _reference(identifier: str) -> dict[str, str]:
    return {"@id": identifier}


if __name__ == "__main__":
    main(Path(*(sys.argv[1:] or ["results"])))
