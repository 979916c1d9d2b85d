"""Registry entries and files for tests of fetching."""

import numpy as np

from tests.unit.data.conftest import file_entry

CONTENT = np.random.RandomState(0).bytes(200_000)


def entry_of(*sources, files=None, archives=None):
    """Return an entry with the given files, by default one file "data.bin" of CONTENT."""
    entry = {"files": files or [file_entry("data.bin", CONTENT)], "sources": list(sources)}
    if archives is not None:
        entry["archives"] = archives
    return entry


def http(base, **more):
    return {"kind": "http", "base": base, **more}


def visible_files(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
