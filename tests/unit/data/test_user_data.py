import numpy as np
import pytest
from PIL import Image

from focalcal.common.errors import UserError
from focalcal.data import prepared, user_data

OPTIONS = {"image_size": None, "greyscale": False, "validation": 0.1, "test": 0.2, "seed": 0}


def write_images(folder, name, count, colour, size=(6, 4)):
    (folder / name).mkdir(parents=True)
    for i in range(count):
        Image.new("RGB", size, (colour, i, 0)).save(folder / name / f"{i:03}.png")


@pytest.fixture
def pictures(tmp_path):
    for label, name in enumerate(["ant", "bee", "cow"]):
        write_images(tmp_path / "pictures", name, 20, 10 * (label + 1))
    return tmp_path / "pictures"


def test_a_folder_of_class_folders(pictures):
    (pictures / "readme.txt").write_text("not an image")
    (pictures / ".hidden").mkdir()
    (pictures / "ant" / "notes.txt").write_text("nor this")
    data, names = user_data.from_folder(pictures, **OPTIONS)
    prepared.validate(data)
    assert names == ["ant", "bee", "cow"]
    assert data.inputs.shape == (60, 3, 4, 6)
    # The red channel encodes the class, the green channel the number of the file.
    np.testing.assert_array_equal(data.inputs[:, 0, 0, 0], 10 * (data.labels + 1))
    np.testing.assert_array_equal(data.inputs[:, 1, 0, 0], np.tile(np.arange(20), 3))
    assert prepared.class_counts(data) == {"train": [14] * 3, "val": [2] * 3, "test": [4] * 3}


def test_normalisation_is_that_of_the_training_images(pictures):
    data, _ = user_data.from_folder(pictures, **OPTIONS)
    train = data.inputs[data.train_indices] / 255
    np.testing.assert_allclose(data.mean, train.mean(axis=(0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(data.std[:2], train.std(axis=(0, 2, 3))[:2], rtol=1e-6)
    assert data.std[2] == 1  # the blue channel is constant


def test_split_folders(tmp_path):
    for split, count in {"train": 10, "val": 3, "test": 4}.items():
        for label, name in enumerate(["ant", "bee"]):
            write_images(tmp_path / split, name, count, 100 * label)
    data, names = user_data.from_folder(tmp_path, **OPTIONS)
    assert names == ["ant", "bee"]
    assert prepared.class_counts(data) == {"train": [10, 10], "val": [3, 3], "test": [4, 4]}
    np.testing.assert_array_equal(data.train_indices, np.arange(20))


def test_images_are_scaled_and_cropped(tmp_path):
    for name in ("ant", "bee"):
        (tmp_path / name).mkdir()
        for i, size in enumerate([(30, 10), (10, 30), (20, 20)] * 4):
            Image.new("RGB", size, (200, 100, 50)).save(tmp_path / name / f"{i}.png")
    data, _ = user_data.from_folder(tmp_path, **{**OPTIONS, "image_size": 8})
    assert data.inputs.shape == (24, 3, 8, 8)
    np.testing.assert_array_equal(data.inputs[0, :, 4, 4], [200, 100, 50])


def test_folder_mistakes_are_reported(tmp_path, pictures):
    with pytest.raises(UserError, match="nowhere is not a folder; give one with a sub-folder for each class"):
        user_data.from_folder(tmp_path / "nowhere", **OPTIONS)
    with pytest.raises(UserError, match="ant has 0 sub-folders; allowed: one for each of 2 or more classes"):
        user_data.from_folder(pictures / "ant", **OPTIONS)
    with pytest.raises(UserError, match="leave no training samples out of 60; lower them or add"):
        user_data.from_folder(pictures, **{**OPTIONS, "validation": 30, "test": 30})
    write_images(pictures, "dog", 1, 5, size=(7, 4))
    with pytest.raises(UserError, match=r"dog/000\.png has \(4, 7\) pixels but .*ant/000\.png has \(4, 6\)"):
        user_data.from_folder(pictures, **OPTIONS)
    (pictures / "dog" / "000.png").write_bytes(b"no image")
    with pytest.raises(UserError, match=r"dog/000\.png cannot be read as an image .*repair or remove it"):
        user_data.from_folder(pictures, **OPTIONS)


def test_a_class_folder_without_images_is_reported(pictures):
    (pictures / "dog").mkdir()
    with pytest.raises(
        UserError, match=r"no training sample of 1 of its 4 classes: dog; .*add images or remove the folder"
    ):
        user_data.from_folder(pictures, **OPTIONS)


def test_an_unknown_split_folder_is_reported(tmp_path):
    for split in ("train", "test", "valid"):
        for name in ("ant", "bee"):
            write_images(tmp_path / split, name, 5, 1)
    with pytest.raises(UserError, match=r"has the folder 'valid' beside train and test; .*rename it"):
        user_data.from_folder(tmp_path, **OPTIONS)


@pytest.mark.parametrize(
    ("name", "dtype", "mode"),
    [("x.png", np.uint16, "I;16"), ("x.tif", np.int32, "I"), ("x.tif", np.float32, "F")],
)
def test_images_of_more_than_8_bits_are_reported(pictures, name, dtype, mode):
    Image.fromarray(np.full((4, 6), 300, dtype=dtype)).save(pictures / "ant" / name)
    with pytest.raises(
        UserError, match=rf"{name} has the mode '{mode}', .*convert it to 8 bits per channel first"
    ):
        user_data.from_folder(pictures, **OPTIONS)


def test_an_image_of_a_format_that_is_not_allowed_is_reported_whatever_it_is_called(pictures):
    """Pillow goes by the content; for PostScript it would start another program."""
    (pictures / "ant" / "x.png").write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 6 4\n%%EndComments\n"
    )
    with pytest.raises(UserError, match=r"x\.png cannot be read as an image \(cannot identify image file"):
        user_data.from_folder(pictures, **OPTIONS)


SPLIT = {"validation": 0.1, "test": 0.2, "seed": 0}


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_npz_of_features(tmp_path):
    random = np.random.RandomState(0)
    inputs, labels = random.standard_normal((100, 5)) * 7 + 3, np.arange(100) % 4
    data = user_data.from_npz(save(tmp_path / "a.npz", inputs=inputs, labels=labels), **SPLIT)
    prepared.validate(data)
    np.testing.assert_array_equal(data.inputs, inputs.astype(np.float32))
    assert data.classes == 4
    assert prepared.class_counts(data)["train"] == [17, 17, 18, 18]
    np.testing.assert_allclose(data.mean, data.inputs[data.train_indices].mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(data.std, data.inputs[data.train_indices].std(axis=0), rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "axes", "channels"),
    [((20, 8, 9), None, 1), ((20, 8, 9, 3), (0, 3, 1, 2), 3), ((20, 3, 8, 9), (0, 1, 2, 3), 3)],
)
def test_npz_of_images(tmp_path, shape, axes, channels):
    images = np.random.RandomState(0).randint(0, 256, shape).astype(np.uint8)
    data = user_data.from_npz(save(tmp_path / "a.npz", inputs=images, labels=np.arange(20) % 2), **SPLIT)
    prepared.validate(data)
    expected = images[:, None] if axes is None else images.transpose(axes)
    np.testing.assert_array_equal(data.inputs, expected)
    assert data.inputs.shape[1] == channels


@pytest.mark.parametrize("shape", [(20, 3, 8, 3), (20, 1, 28, 1), (20, 4, 4, 3)])
def test_images_whose_channels_may_come_first_or_last_are_refused(tmp_path, shape):
    path = save(tmp_path / "a.npz", inputs=np.zeros(shape, np.uint8), labels=np.arange(20) % 2)
    with pytest.raises(UserError, match=r"inputs is \(20, .*which may be \(n, C, H, W\) or \(n, H, W, C\)"):
        user_data.from_npz(path, **SPLIT)


def test_npz_with_splits_and_posterior(tmp_path):
    posterior = np.random.RandomState(0).dirichlet([1, 1], size=10)
    path = save(
        tmp_path / "a.npz",
        inputs=np.ones((10, 2)),
        labels=np.arange(10) % 2,
        train_indices=[0, 1, 2],
        val_indices=[3, 4],
        test_indices=[9, 8],
        posterior=posterior,
    )
    data = user_data.from_npz(path, **SPLIT)
    prepared.validate(data)
    assert data.test_indices.tolist() == [9, 8]
    np.testing.assert_array_equal(data.posterior, posterior)
    np.testing.assert_array_equal(data.std, 1)  # constant features


GOOD = {"inputs": np.ones((10, 2)), "labels": np.arange(10) % 2}
INDICES = {"train_indices": [4, 5, 6], "val_indices": [2, 3], "test_indices": [0, 1]}
PARTS = {
    "x_train": np.ones((8, 2)),
    "y_train": np.arange(8) % 2,
    "x_test": np.ones((4, 2)),
    "y_test": np.arange(4) % 2,
}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, r"lacks the array 'x_train'; allowed: inputs, labels or x_train.*; it has: none"),
        ({**GOOD, "extra": 1}, r"has the unknown array 'extra'; allowed: inputs, labels, train_indices"),
        ({**GOOD, "val_indices": [1]}, "has indices for val only; allowed: train, val and test, or none"),
        ({**GOOD, "labels": np.ones(10)}, r"labels is float64 \(10,\); allowed: whole numbers \(n,\)"),
        ({**GOOD, "labels": -np.ones(10, int)}, r"labels must hold classes 0, 1, \.\.\."),
        (
            {**GOOD, "labels": np.arange(9) % 2},
            "inputs has 10 samples but labels has 9; allowed: equal numbers",
        ),
        (
            {**GOOD, "labels": np.arange(10) % 3 + 1},
            r"has no training sample of 1 of its 4 classes: 0; allowed: .* per class; number labels",
        ),
        (
            {**GOOD, "labels": np.array([0, 500, 1000, 0, 500, 1000, 0, 500, 1000, 0])},
            r"of 998 of its 1001 classes: 1, 2, 3, 4, 5, \.\.\.; allowed",
        ),
        ({**GOOD, **INDICES, "val_indices": [2, 10]}, "val_indices goes from 2 to 10; allowed: 0 to 9"),
        ({**GOOD, **INDICES, "test_indices": [0.5, 1]}, r"test_indices is float64 \(2,\); allowed: whole"),
        ({**PARTS, "y_val": [0, 1]}, "x_val is missing; allowed: images or features"),
        ({**PARTS, "x_val": np.ones((1, 2))}, "y_val is missing; allowed: whole numbers"),
        (
            {**GOOD, "inputs": np.ones((10, 4, 4))},
            r"inputs is float64 \(10, 4, 4\); allowed: images as uint8",
        ),
        ({**GOOD, "inputs": np.ones((10, 5, 5, 2), np.uint8)}, r"with C one of \(1, 3, 4\)"),
        ({**GOOD, "inputs": np.array([["a"]] * 10)}, "inputs is <U1"),
    ],
)
def test_npz_mistakes_are_reported(tmp_path, arrays, message):
    with pytest.raises(UserError, match=message):
        user_data.from_npz(save(tmp_path / "a.npz", **arrays), **SPLIT)
