import numpy as np
import torch

from focalcal.data.prepared import PreparedData
from focalcal.training.batches import (
    EpochDraw,
    crop_and_flip,
    training_batches,
)
from focalcal.training.recipes import Recipe
from focalcal.training.residents import resident_split

CPU = torch.device("cpu")


def image_data(count=20, size=6):
    generator = np.random.default_rng(0)
    return PreparedData(
        generator.integers(0, 256, (count, 3, size, size), dtype=np.uint8),
        generator.integers(0, 5, count),
        np.arange(0, count - 4),
        np.arange(count - 4, count - 2),
        np.arange(count - 2, count),
        5,
        np.array([0.1, 0.5, 0.9], dtype=np.float32),
        np.array([0.2, 0.3, 0.4], dtype=np.float32),
    )


def test_crop_and_flip_against_a_loop():
    generator = np.random.default_rng(1)
    images = generator.integers(0, 256, (50, 6, 5, 3), dtype=np.uint8)
    offsets = generator.integers(0, 5, (50, 2))
    flips = generator.uniform(size=50) < 0.5
    expected = []
    for image, (top, left), flip in zip(images, offsets, flips, strict=True):
        padded = np.pad(image, ((2, 2), (2, 2), (0, 0)))
        crop = padded[top : top + 6, left : left + 5]
        expected.append(crop[:, ::-1] if flip else crop)
    result = crop_and_flip(torch.tensor(images), 2, torch.tensor(offsets), torch.tensor(flips))
    np.testing.assert_array_equal(result.numpy(), np.stack(expected))


def test_evaluation_inputs_are_normalised_channels_last():
    data = image_data()
    split = resident_split(data, data.val_indices, CPU)
    inputs = split.normalised(split.inputs)
    expected = (data.inputs[data.val_indices] / 255 - data.mean[:, None, None]) / data.std[:, None, None]
    np.testing.assert_allclose(inputs.numpy(), expected, rtol=0, atol=2e-6)
    assert inputs.is_contiguous(memory_format=torch.channels_last)


def test_every_sample_is_trained_on_once_per_epoch_in_a_new_order():
    data = image_data()
    split = resident_split(data, data.train_indices, CPU)
    recipe = Recipe(epochs=2, batch_size=5, learning_rate=1.0)
    orders = []
    for epoch in (0, 1):
        draw = EpochDraw.of(7, epoch, len(split), recipe, CPU)
        batches = list(training_batches(split, draw, recipe))
        assert [len(batch.labels) for batch in batches] == [5, 5, 5, 1]
        assert torch.equal(torch.cat([batch.labels for batch in batches]), split.labels[draw.order])
        assert sorted(draw.order.tolist()) == list(range(16))
        orders.append(draw.order.tolist())
    assert orders[0] != orders[1]


def test_an_epoch_can_be_entered_at_any_batch():
    data = image_data()
    split = resident_split(data, data.train_indices, CPU)
    recipe = Recipe(epochs=1, batch_size=3, learning_rate=1.0, crop_padding=1, flip=True)
    draw = EpochDraw.of(3, 5, len(split), recipe, CPU)
    whole = list(training_batches(split, draw, recipe))
    rest = list(training_batches(split, EpochDraw.of(3, 5, len(split), recipe, CPU), recipe, first_batch=2))
    assert len(rest) == len(whole) - 2
    for batch, again in zip(whole[2:], rest, strict=True):
        assert torch.equal(batch.inputs, again.inputs)
        assert torch.equal(batch.labels, again.labels)
