"""Preparation of a dataset from its spec."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from focalcal.common.checksums import checksum
from focalcal.common.errors import UserError
from focalcal.common.samples import SPLITS
from focalcal.data import parsers, prepared, registry, splits, text_datasets, user_data
from focalcal.data.digits import prepare_digits
from focalcal.data.errors import SourceError
from focalcal.data.fetch import Obtained, obtain
from focalcal.data.prepared import Preparation
from focalcal.data.synthetic import prepare_gaussian
from focalcal.data.tabular import prepare_table


def prepare_dataset(spec: Mapping[str, Any], cache: Path) -> Preparation:
    """Return the dataset that `spec` (see `registry.job_spec`) describes; downloads go to `cache`."""
    try:
        preparation = _prepare(spec, cache)
        prepared.validate(preparation.data)
    except (ValueError, SourceError) as error:
        raise UserError(f"dataset {spec['name']}: {error}") from None
    return preparation


def dataset_record(spec: Mapping[str, Any], preparation: Preparation, path: Path) -> dict[str, Any]:
    """Return the record kept beside the prepared file at `path`: identity, sizes, class counts, source."""
    data = preparation.data
    return {
        "dataset": spec["name"],
        "checksum": checksum(path),
        "split_checksum": prepared.split_checksum(data),
        "sizes": {split: len(data.indices(split)) for split in SPLITS},
        "classes": data.classes,
        "class_names": preparation.class_names or [str(k) for k in range(data.classes)],
        "class_counts": prepared.class_counts(data),
        "input_shape": list(data.inputs.shape[1:]),
        "posterior_known": data.posterior is not None,
        "source": preparation.source,
        **({} if preparation.text is None else {"text": preparation.text}),
        **({} if preparation.encoding is None else {"encoding": preparation.encoding}),
        "spec": dict(spec),
    }


def _prepare(spec: Mapping[str, Any], cache: Path) -> Preparation:
    entry, parameters = spec["entry"], dict(spec["parameters"])
    class_names = entry.get("class_names")
    match entry["kind"]:
        case "table":
            return prepare_table(entry, parameters["sizes"], cache)
        case "download":
            return _prepare_download(spec, cache)
        case "newsgroups" | "treebank" | "texts":
            return _prepare_text(spec, cache)
        case "synthetic":
            data, source = prepare_gaussian(entry.get("base", spec["name"]), **parameters), "generated"
        case "bundled":
            data = prepare_digits(**parameters, normalisation=entry["normalisation"])
            source = "bundled with scikit-learn"
        case "folder":
            folder = Path(parameters.pop("folder"))
            data, class_names = user_data.from_folder(folder, **parameters)
            source = f"folder {folder}"
        case "npz":
            path = Path(parameters.pop("npz"))
            data, source = user_data.from_npz(path, **parameters), f"file {path}"
        case "extension":
            data = user_data.from_extension(spec["name"], parameters["options"], registry.PROJECT_ROOT)
            source = f"Python file {entry['file']}"
    return Preparation(data, source, class_names)


def _prepare_text(spec: Mapping[str, Any], cache: Path) -> Preparation:
    """Return a dataset of texts, official or the user's own, with word vectors."""
    entry, parameters = spec["entry"], spec["parameters"]
    vectors = _vectors_file(parameters["vectors"], cache)
    if entry["kind"] == "texts":
        path = Path(parameters["texts"])
        own = text_datasets.own_texts(spec["name"], path, parameters, vectors)
        return replace(own, source=f"texts {path}")
    obtained = _obtain_files(spec, cache)
    make = {"newsgroups": text_datasets.newsgroups, "treebank": text_datasets.treebank}[entry["kind"]]
    paths = [obtained.folder / file["name"] for file in entry["files"]]
    official = make(spec["name"], paths, entry, parameters, vectors)
    return replace(official, source=f"{obtained.source}; word vectors: {vectors.source}")


def _obtain_files(spec: Mapping[str, Any], cache: Path) -> Obtained:
    """Return the files of an official dataset; a job's spec omits the sources, which the registry knows."""
    entry = spec["entry"]
    files_of = entry.get("base", spec["name"])
    sources = {} if "sources" in entry else registry.load_entry(files_of)
    return obtain(files_of, {**sources, **entry}, cache)


def _vectors_file(name: str | None, cache: Path) -> text_datasets.VectorsFile:
    """Return the file of word vectors `name`, fetched if need be; None stands for random vectors."""
    if name is None:
        return text_datasets.VectorsFile(None, "drawn at random")
    obtained = obtain(name, registry.load_vectors_entry(name), cache)
    (file,) = registry.load_vectors_entry(name)["files"]
    return text_datasets.VectorsFile(obtained.folder / file["name"], f"{name}, {obtained.source}")


def _prepare_download(spec: Mapping[str, Any], cache: Path) -> Preparation:
    """Return an official dataset with validation held out of its training set."""
    entry, parameters = spec["entry"], spec["parameters"]
    obtained = _obtain_files(spec, cache)
    samples = parsers.parse(entry, obtained.folder)
    train, val = splits.shuffled_validation(
        samples.train_count, parameters["validation"], parameters["split_seed"]
    )
    if "fraction" in parameters:
        seed = parameters["split_seed"]
        train = splits.per_class_fraction(samples.labels, train, parameters["fraction"], seed)
    indices = {"train": train, "val": val, "test": np.arange(samples.train_count, len(samples.labels))}
    data = prepared.assembled(
        samples.images, samples.labels, indices, entry["classes"], entry["normalisation"]
    )
    return Preparation(data, obtained.source, samples.class_names or entry["class_names"])
