"""The user's own data in the prepared form: a folder of images, an .npz of arrays, or a Python file."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from focalcal.common import npz
from focalcal.common.errors import UserError
from focalcal.common.extensions import extension_file, load_extension
from focalcal.common.samples import FEWEST_SAMPLES, SPLITS
from focalcal.data.prepared import PreparedData, assembled
from focalcal.data.progress import followed
from focalcal.data.splits import consecutive, stratified

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")
IMAGE_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "PPM", "TIFF")
"""What Pillow may take a file for, whatever it is called; some of its other readers start programs."""
_PART_ARRAYS = {split: (f"x_{split}", f"y_{split}") for split in SPLITS}
_WHOLE_ARRAYS = ("inputs", "labels", *(f"{split}_indices" for split in SPLITS), "posterior")
_NEEDED_ARRAYS = {"inputs", "labels", "x_train", "y_train", "x_test", "y_test"}
_CHANNEL_COUNTS = (1, 3, 4)
_DEEP_MODES = ("I", "I;16", "I;16B", "I;16L", "I;16N", "F")
"""Pillow's modes with more than 8 bits per channel, which it would clip to 255."""
_SHOWN_CLASSES = 5


def from_folder(
    folder: Path, image_size: int | None, greyscale: bool, validation: float, test: float, seed: int
) -> tuple[PreparedData, list[str]]:
    """Return the data of a folder of images and its class names, the sub-folders in alphabetical order.

    `folder` has either one sub-folder per class, and is split at random, stratified by class; or folders
    "train", "test" and optionally "val" that hold the class folders. Without "val", it is taken from "train".
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; give one with a sub-folder for each class")
    parents = split_folders(folder)
    first = next(iter(parents.values()))
    class_names = sub_folders(first)
    if len(class_names) < 2:
        raise UserError(
            f"{first} has {len(class_names)} sub-folders; allowed: one for each of 2 or more classes"
        )
    files = {split: labelled_files(parent, class_names, IMAGE_SUFFIXES) for split, parent in parents.items()}
    everything = [pair for pairs in files.values() for pair in pairs]
    labels = np.array([label for _, label in everything], dtype=np.int64)
    counts = {split: len(pairs) for split, pairs in files.items()}
    indices = split_indices(labels, counts, validation, test, seed)
    refuse_empty_classes(folder, labels[indices["train"]], class_names, "add images or remove the folder")
    inputs = _read_images([file for file, _ in everything], image_size, greyscale)
    return assembled(inputs, labels, indices, len(class_names)), class_names


def from_npz(path: Path, validation: float, test: float, seed: int) -> PreparedData:
    """Return the arrays of an .npz: `inputs, labels` or `x_train, y_train, x_test, y_test[, x_val, y_val]`.

    With `inputs`, the optional arrays `train_indices, val_indices, test_indices` give the split; without them
    it is drawn at random, stratified by class. The optional `posterior` (n, K) is the true class posterior.
    Images are uint8 (n, H, W), (n, H, W, C) or (n, C, H, W); features are numbers (n, d); labels are 0..K-1.
    """
    arrays = _load_arrays(path)
    names = {"": ("inputs", "labels")} if "inputs" in arrays else _PART_ARRAYS
    parts = {
        part: _as_samples(path, *pair, arrays)
        for part, pair in names.items()
        if not arrays.keys().isdisjoint(pair)
    }
    inputs, labels = (np.concatenate(values) for values in zip(*parts.values(), strict=True))
    given = [split for split in SPLITS if f"{split}_indices" in arrays]
    if given and len(given) != len(SPLITS):
        raise UserError(
            f"{path} has indices for {', '.join(given)} only; allowed: train, val and test, or none"
        )
    if given:
        indices = {
            split: _as_indices(f"{path}: {split}_indices", arrays[f"{split}_indices"], len(labels))
            for split in given
        }
    else:
        counts = {part: len(part_labels) for part, (_, part_labels) in parts.items()}
        indices = split_indices(labels, counts, validation, test, seed)
    classes = int(labels.max()) + 1
    repair = "number labels 0 to K - 1 without gaps, or add training samples of these classes"
    refuse_empty_classes(path, labels[indices["train"]], range(classes), repair)
    posterior = arrays["posterior"].astype(np.float64) if "posterior" in arrays else None
    return assembled(inputs, labels, indices, classes, posterior=posterior)


def from_extension(name: str, options: Mapping[str, Any], root: Path) -> PreparedData:
    """Return the PreparedData that `load(options)` of extensions/datasets/NAME.py below `root` returns."""
    data = load_extension("datasets", name, root)(dict(options))
    if not isinstance(data, PreparedData):
        raise UserError(
            f"load of {extension_file('datasets', name)} returned {type(data).__name__}; allowed: "
            f"PreparedData"
        )
    return data


def split_indices(
    labels: np.ndarray, counts: Mapping[str, int], validation: float, test: float, seed: int
) -> dict[str, np.ndarray]:
    """Return the indices of each split; `counts` are the sizes of the consecutive parts of `labels`.

    A part named "" is the whole dataset, to be split here; without "val", it is taken from "train". An
    integer size counts samples; any other is a share.
    """
    parts = consecutive(counts)
    if "val" in parts:
        return parts
    wanted = {"val": validation} if "test" in parts else {"val": validation, "test": test}
    pool = parts.pop("train" if "train" in parts else "")
    sizes = [
        size if isinstance(size, int) else max(FEWEST_SAMPLES["val"], round(size * len(pool)))
        for size in wanted.values()
    ]
    rest = len(pool) - sum(sizes)
    if rest < 1:
        raise UserError(
            f"validation {validation} and test {test} leave no training samples out of {len(pool)}; lower "
            f"them or add samples"
        )
    chosen = stratified(labels[pool], [*sizes, rest], seed)
    drawn = {name: pool[positions] for name, positions in zip([*wanted, "train"], chosen, strict=True)}
    return {**parts, **drawn}


def sub_folders(folder: Path) -> list[str]:
    """Return the names of the visible folders in a folder, in alphabetical order."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def split_folders(folder: Path) -> dict[str, Path]:
    """Return the folders of the splits by name, or {"": folder} if there are none."""
    found = {split: folder / split for split in SPLITS if (folder / split).is_dir()}
    if not {"train", "test"} <= set(found):
        return {"": folder}
    if unknown := [name for name in sub_folders(folder) if name not in found]:
        raise UserError(
            f"{folder} has the folder {unknown[0]!r} beside train and test; allowed there: "
            f"{', '.join(SPLITS)}; rename it or move it away"
        )
    return found


def refuse_empty_classes(
    source: Path, train_labels: np.ndarray, class_names: Sequence[object], repair: str
) -> None:
    """Raise UserError if a class has no training sample, naming those classes."""
    trained = set(np.unique(train_labels).tolist())
    missing = len(class_names) - len(trained)
    if missing:
        names = (str(name) for label, name in enumerate(class_names) if label not in trained)
        shown = ", ".join(islice(names, _SHOWN_CLASSES)) + (", ..." if missing > _SHOWN_CLASSES else "")
        raise UserError(
            f"{source} has no training sample of {missing} of its {len(class_names)} classes: {shown}; "
            f"allowed: at least one per class; {repair}"
        )


def labelled_files(parent: Path, class_names: list[str], suffixes: tuple[str, ...]) -> list[tuple[Path, int]]:
    """Return the files below a folder of class folders, each with its label, in alphabetical order."""
    folders = sub_folders(parent)
    if unknown := sorted(set(folders) - set(class_names)):
        raise UserError(f"{parent} has the class {unknown[0]!r}, which has no training samples")
    files = [
        (file, class_names.index(name)) for name in folders for file in _files_in(parent / name, suffixes)
    ]
    if not files:
        raise UserError(f"{parent} has no files in its class folders; allowed: {', '.join(suffixes)}")
    return files


def _files_in(class_folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    if nested := sub_folders(class_folder):
        raise UserError(
            f"{class_folder} is read as a class but has the folder {nested[0]!r}; allowed: files "
            f"in class folders, which are at the top level or all in train and test; move it"
        )
    return sorted(
        path
        for path in class_folder.iterdir()
        if path.suffix.lower() in suffixes and not path.name.startswith(".")
    )


def _read_images(files: list[Path], image_size: int | None, greyscale: bool) -> np.ndarray:
    """Return the images as uint8 (n, C, H, W); raise UserError if their sizes differ."""
    first = _read_image(files[0], image_size, greyscale)
    images = np.empty((len(files), *first.shape), dtype=np.uint8)
    for i, file in enumerate(followed(files, "reading images")):
        pixels = _read_image(file, image_size, greyscale)
        if pixels.shape != first.shape:
            raise UserError(
                f"{file} has {pixels.shape[1:]} pixels but {files[0]} has {first.shape[1:]}; "
                f"set image_size to scale them"
            )
        images[i] = pixels
    return images


def _read_image(file: Path, image_size: int | None, greyscale: bool) -> np.ndarray:
    """Return an image as uint8 (C, H, W), scaled to cover the square `image_size` and centre-cropped."""
    from PIL import Image, ImageOps  # noqa: PLC0415  only folders of images need it

    try:
        with Image.open(file, formats=IMAGE_FORMATS) as image:
            if image.mode in _DEEP_MODES:
                raise UserError(
                    f"{file} has the mode {image.mode!r}, more than 8 bits per channel; allowed: 8 bits; "
                    f"convert it to 8 bits per channel first"
                )
            converted = ImageOps.exif_transpose(image).convert("L" if greyscale else "RGB")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise UserError(f"{file} cannot be read as an image ({error}); repair or remove it") from None
    if image_size is not None:
        converted = ImageOps.fit(converted, (image_size, image_size), method=Image.Resampling.BILINEAR)
    pixels = np.asarray(converted)
    return pixels[None] if greyscale else pixels.transpose(2, 0, 1)


def _load_arrays(path: Path) -> dict[str, np.ndarray]:
    arrays = npz.read_npz(path)
    parts = [name for pair in _PART_ARRAYS.values() for name in pair]
    allowed = _WHOLE_ARRAYS if "inputs" in arrays else parts
    needed = [name for name in allowed if name in _NEEDED_ARRAYS]
    if missing := [name for name in needed if name not in arrays]:
        raise UserError(
            f"{path} lacks the array {missing[0]!r}; allowed: inputs, labels or x_train, y_train, x_test, "
            f"y_test and optionally x_val, y_val; it has: {', '.join(sorted(arrays)) or 'none'}"
        )
    if unknown := sorted(set(arrays) - set(allowed)):
        raise UserError(f"{path} has the unknown array {unknown[0]!r}; allowed: {', '.join(allowed)}")
    return arrays


def _as_samples(
    path: Path, inputs_name: str, labels_name: str, arrays: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and labels of equal length."""
    for name, allowed in ((labels_name, "whole numbers (n,)"), (inputs_name, "images or features")):
        if name not in arrays:
            raise UserError(f"{path}: {name} is missing; allowed: {allowed}; add it")
    labels = _as_labels(f"{path}: {labels_name}", arrays[labels_name])
    inputs = _as_inputs(f"{path}: {inputs_name}", arrays[inputs_name])
    if len(inputs) != len(labels):
        raise UserError(
            f"{path}: {inputs_name} has {len(inputs)} samples but {labels_name} has {len(labels)}; "
            f"allowed: equal numbers; correct the arrays"
        )
    return inputs, labels


def _as_inputs(name: str, values: np.ndarray) -> np.ndarray:
    """Return images as uint8 (n, C, H, W), or features as float32 (n, d)."""
    if values.dtype == np.uint8 and values.ndim == 3:
        return values[:, None]
    if values.dtype == np.uint8 and values.ndim == 4:
        first, last = (values.shape[axis] in _CHANNEL_COUNTS for axis in (1, 3))
        if first and last:
            raise UserError(
                f"{name} is {values.shape}, which may be (n, C, H, W) or (n, H, W, C); allowed: images at "
                f"least 5 pixels high and wide, or grey ones as (n, H, W); pad or crop them"
            )
        if first:
            return values
        if last:
            return np.ascontiguousarray(values.transpose(0, 3, 1, 2))
    if values.ndim == 2 and values.dtype.kind in "fiu":
        return values.astype(np.float32)
    raise UserError(
        f"{name} is {values.dtype} {values.shape}; allowed: images as uint8 (n, H, W), (n, H, W, C) "
        f"or (n, C, H, W) with C one of {_CHANNEL_COUNTS}, or features as numbers (n, d)"
    )


def _as_labels(name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "iu" or values.shape[:1] != (values.size,):
        raise UserError(f"{name} is {values.dtype} {values.shape}; allowed: whole numbers (n,)")
    labels = values.reshape(-1).astype(np.int64)
    if labels.size == 0 or labels.min() < 0:
        raise UserError(f"{name} must hold classes 0, 1, ..., and at least one sample")
    return labels


def _as_indices(name: str, values: np.ndarray, count: int) -> np.ndarray:
    if values.dtype.kind not in "iu" or values.ndim != 1 or values.size == 0:
        raise UserError(f"{name} is {values.dtype} {values.shape}; allowed: whole numbers (m,), m >= 1")
    if values.min() < 0 or values.max() >= count:
        raise UserError(
            f"{name} goes from {values.min()} to {values.max()}; allowed: 0 to {count - 1}; correct it"
        )
    return values.astype(np.int64)
