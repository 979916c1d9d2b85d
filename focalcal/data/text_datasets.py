"""Datasets of texts in the prepared form: 20 Newsgroups, the Stanford Sentiment Treebank, the user's own."""

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from focalcal.common.csv_rows import uneven_row
from focalcal.common.errors import UserError
from focalcal.common.io import refusing_damage
from focalcal.common.samples import SPLITS
from focalcal.data import treebank as trees
from focalcal.data.prepared import Preparation, assembled
from focalcal.data.splits import consecutive
from focalcal.data.text_sources import read_newsgroups
from focalcal.data.texts import (
    TOKENISATION,
    WordVectors,
    read_vectors,
    shared_texts,
    tokens,
    vocabulary,
    warn_about_missing,
    warn_about_texts,
    without_header,
    word_numbers,
)
from focalcal.data.user_data import (
    labelled_files,
    refuse_empty_classes,
    split_folders,
    split_indices,
    sub_folders,
)

TEXT_SUFFIXES = (".txt",)
CSV_COLUMNS = ("text", "label", "split")
_OWN_SPREAD = 0.05
"""Words that GloVe lacks start small, as in the treebank."""
NEUTRAL = 2
"""The middle of the treebank's five labels, 0 (very negative) to 4 (very positive)."""
_BINARY_LABELS = (0, 0, 2, 1, 1)
"""Negative, positive and, after the classes of sentences, neutral for each of the five labels."""


@dataclass(frozen=True)
class VectorsFile:
    """A file of word vectors, None for random ones, and where it came from."""

    path: Path | None
    source: str


def newsgroups(
    name: str,
    paths: Sequence[Path],
    entry: Mapping[str, Any],
    parameters: Mapping[str, Any],
    vectors: VectorsFile,
) -> Preparation:
    """Return 20 Newsgroups: postings without headers, split at random as in M20.

    All postings of the by-date archive are shuffled; the first are the test set, the next validation.
    """
    label_of = {group: label for label, group in enumerate(entry["class_names"])}
    with refusing_damage(paths[0]):
        postings = list(read_newsgroups(paths[0]))
        if len(postings) != entry["counts"]["all"]:
            raise ValueError(f"it has {len(postings)} postings instead of {entry['counts']['all']}")
        labels = np.array([label_of[posting["group"]] for posting in postings], dtype=np.int64)
    order = np.arange(len(postings), dtype=np.int64)
    np.random.RandomState(parameters["split_seed"]).shuffle(order)
    bounds = np.cumsum([parameters["test"], parameters["validation"]])
    indices = dict(zip(("test", "val", "train"), np.split(order, bounds), strict=True))
    texts = [without_header(posting["text"]) for posting in postings]
    settings = {**parameters, "vocabulary": entry["vocabulary"], "length": entry["shape"][0]}
    settings |= {"dimensions": entry["dimensions"], "spread": entry["spread"]}
    return _documents(name, texts, labels, indices, entry["class_names"], settings, vectors)


def treebank(
    name: str,
    paths: Sequence[Path],
    entry: Mapping[str, Any],
    _parameters: Mapping[str, Any],
    vectors: VectorsFile,
) -> Preparation:
    """Return the binary Stanford Sentiment Treebank: sentences that are not neutral, every phrase labelled.

    `paths` are the trees of the three splits. Phrases are negative, positive or neutral (Tai et al. 2015).
    """
    parts = {
        split: [trees.parse_tree(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        for split, path in zip(SPLITS, paths, strict=True)
    }
    kept = {split: [tree for tree in part if tree[-1].label != NEUTRAL] for split, part in parts.items()}
    counts = {split: len(part) for split, part in kept.items()}
    if counts != entry["counts"]:
        raise ValueError(f"has {counts} sentences that are not neutral instead of {entry['counts']}")
    everything = [tree for split in SPLITS for tree in kept[split]]
    # The words of all three splits, as in Tai et al.: looking up their vectors needs no labels.
    words = vocabulary([node.word for node in tree if node.word is not None] for tree in everything)
    found = _word_vectors(name, words, entry, vectors)
    rows = trees.node_rows(everything, words, _BINARY_LABELS)
    roots = np.array([_BINARY_LABELS[tree[-1].label] for tree in everything], dtype=np.int64)
    record = _record(trees.TREE_TOKENISATION, words, len(found.missing), vectors, entry["dimensions"])
    record["longest"] = max(sum(node.word is not None for node in tree) for tree in everything)
    data = assembled(
        rows,
        roots,
        consecutive(counts),
        len(entry["class_names"]),
        words=np.array(words),
        vectors=found.values,
    )
    return Preparation(data, vectors.source, entry["class_names"], record)


def own_texts(name: str, path: Path, parameters: Mapping[str, Any], vectors: VectorsFile) -> Preparation:
    """Return the user's own labelled texts, from a folder of class folders or a CSV file.

    A folder is laid out like a folder of images, with .txt files. A CSV file has the columns text, label and
    optionally split (train, val or test).
    """
    read = _texts_of_folder if path.is_dir() else _texts_of_csv
    texts, names, class_names, counts = read(path)
    if len(class_names) < 2:
        raise UserError(f"{path} has only the class {class_names[0]!r}; allowed: 2 or more; label the texts")
    label_of = {name: label for label, name in enumerate(class_names)}
    labels = np.array([label_of[name] for name in names], dtype=np.int64)
    indices = split_indices(labels, counts, parameters["validation"], parameters["test"], parameters["seed"])
    refuse_empty_classes(path, labels[indices["train"]], class_names, "add texts or remove the class")
    settings = {**parameters, "spread": _OWN_SPREAD}
    return _documents(name, texts, labels, indices, class_names, settings, vectors)


def _documents(
    name: str,
    texts: Sequence[str],
    labels: np.ndarray,
    indices: Mapping[str, np.ndarray],
    class_names: list[str],
    settings: Mapping[str, Any],
    vectors: VectorsFile,
) -> Preparation:
    """Return texts as the numbers of their last words."""
    split_texts = [tokens(text) for text in texts]
    words = vocabulary(split_texts, settings["vocabulary"])
    if len(words) == 1:
        raise ValueError(f"none of its {len(texts)} texts has a word; allowed: {TOKENISATION}; correct them")
    found = _word_vectors(name, words, settings, vectors)
    numbers = word_numbers(split_texts, words, settings["length"])
    record = _record(TOKENISATION, words, len(found.missing), vectors, settings["dimensions"])
    record["longest"] = max(map(len, split_texts))
    record["cut to"] = settings["length"]
    record["texts without words"] = int((~numbers.any(axis=1)).sum())
    record["texts in several splits"] = shared_texts(numbers, indices)
    warn_about_texts(name, record["texts without words"], record["texts in several splits"])
    data = assembled(numbers, labels, indices, len(class_names), words=np.array(words), vectors=found.values)
    return Preparation(data, vectors.source, class_names, record)


def _word_vectors(
    name: str, words: Sequence[str], settings: Mapping[str, Any], vectors: VectorsFile
) -> WordVectors:
    """Return the vectors of words, with a warning about those that a file lacks."""
    found = read_vectors(vectors.path, words, settings["dimensions"], settings["spread"])
    if vectors.path is not None:
        warn_about_missing(name, vectors.source, found)
    return found


def _record(
    tokenisation: str, words: Sequence[str], missing: int, vectors: VectorsFile, dimensions: int
) -> dict[str, Any]:
    return {
        "tokenisation": tokenisation,
        "words": len(words) - 1,
        "words without vectors": missing,
        "vectors": vectors.source,
        "dimensions": dimensions,
    }


def _texts_of_folder(folder: Path) -> tuple[list[str], list[str], list[str], dict[str, int]]:
    """Return the texts of a folder, the class of each, all classes and the number of texts in each part."""
    parents = split_folders(folder)
    class_names = sub_folders(next(iter(parents.values())))
    files = {split: labelled_files(parent, class_names, TEXT_SUFFIXES) for split, parent in parents.items()}
    everything = [pair for pairs in files.values() for pair in pairs]
    texts = [_read_text(file) for file, _ in everything]
    counts = {split: len(pairs) for split, pairs in files.items()}
    return texts, [class_names[label] for _, label in everything], class_names, counts


def _texts_of_csv(path: Path) -> tuple[list[str], list[str], list[str], dict[str, int]]:
    """Return the texts of a CSV file, the class of each, all classes and the number of texts in each part."""
    rows = _csv_rows(path)
    counts = {"": len(rows)}
    if "split" in rows[0]:
        counts = _sort_by_split(path, rows)
    names = [row["label"] for row in rows]
    return [row["text"] for row in rows], names, sorted(set(names)), counts


def _csv_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file of texts, each with a text and a label."""
    csv.field_size_limit(sys.maxsize)  # else a text has at most 131,072 characters
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = tuple(reader.fieldnames or ())
            rows = list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} cannot be read as CSV in UTF-8 ({error}); convert it") from None
    needed = CSV_COLUMNS[:2]
    if sorted(columns) not in (sorted(needed), sorted(CSV_COLUMNS)):
        raise UserError(
            f"{path} has the columns {', '.join(map(repr, columns)) or 'none'}; allowed: {', '.join(needed)} "
            f"and optionally {CSV_COLUMNS[2]}, separated by commas; rename, add or remove columns"
        )
    if not rows:
        raise UserError(f"{path} has no rows below its header; add one per text")
    if number := uneven_row(rows):
        raise UserError(
            f"{path}: row {number} does not have {len(columns)} cells; allowed: one per column; put a "
            f"text with commas in double quotes"
        )
    for number, row in enumerate(rows, start=1):
        row |= {column: row[column].strip() for column in columns if column != "text"}
        if not row["label"]:
            raise UserError(f"{path}: row {number} has no label; allowed: any text; label it or remove it")
    return rows


def _sort_by_split(path: Path, rows: list[dict[str, str]]) -> dict[str, int]:
    """Sort rows by their split, and return the number of rows in each."""
    if unknown := sorted({row["split"] for row in rows} - set(SPLITS)):
        raise UserError(f"{path} has the split {unknown[0]!r}; allowed: {', '.join(SPLITS)}; correct it")
    rows.sort(key=lambda row: SPLITS.index(row["split"]))
    counts = {split: sum(row["split"] == split for row in rows) for split in SPLITS}
    counts = {split: count for split, count in counts.items() if count}
    if not {"train", "test"} <= counts.keys():
        missing = "train" if "train" not in counts else "test"
        raise UserError(
            f"{path} has no {missing} split; add it, or remove the column split to have one drawn at random"
        )
    return counts


def _read_text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 ({error.reason} at byte {error.start}); convert it") from None
    except OSError as error:
        raise UserError(f"{file} cannot be read ({error.strerror}); correct or remove it") from None
