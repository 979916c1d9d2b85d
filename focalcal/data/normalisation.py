"""Mean and standard deviation of the training samples, by which a network's inputs are normalised."""

import numpy as np

_CHUNK = 4096


def training_statistics(inputs: np.ndarray, train: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the float32 mean and standard deviation of each channel or feature of the training samples.

    A constant feature gets standard deviation 1, so it is normalised to 0.
    """
    axes = (0, 2, 3) if inputs.ndim == 4 else (0,)
    scale = 255.0 if inputs.dtype == np.uint8 else 1.0
    chunks = [train[i : i + _CHUNK] for i in range(0, len(train), _CHUNK)]
    size = len(train) * int(np.prod(inputs.shape[2:], dtype=np.int64))
    mean = sum((inputs[chunk] / scale).sum(axis=axes, dtype=np.float64) for chunk in chunks) / size
    broadcast = mean[:, None, None] if inputs.ndim == 4 else mean
    squares = (
        np.square(inputs[chunk] / scale - broadcast).sum(axis=axes, dtype=np.float64) for chunk in chunks
    )
    std = np.sqrt(sum(squares) / size)
    return mean.astype(np.float32), np.where(std > 0, std, 1).astype(np.float32)
