"""Padded crops and flips of whole uint8 batches, on the device that holds them."""

import torch
from torch import Tensor


def crop_and_flip(images: Tensor, padding: int, offsets: Tensor, flips: Tensor) -> Tensor:
    """Return crops of the zero-padded images, mirrored where `flips`, (n, H, W, C).

    Images are channels-last; `offsets` int64 (n, 2) are the crops' top and left corners in 0..2 padding;
    `flips` bool (n,). One gather does both: a mirrored crop reads its columns backwards.
    """
    count, height, width, channels = images.shape
    if padding:
        images = torch.nn.functional.pad(images, (0, 0, padding, padding, padding, padding))
    padded_height, padded_width = height + 2 * padding, width + 2 * padding
    rows = offsets[:, :1] + torch.arange(height, device=images.device)
    rows = rows + padded_height * torch.arange(count, device=images.device)[:, None]
    columns = torch.arange(width, device=images.device)
    columns = offsets[:, 1:] + torch.where(flips[:, None], width - 1 - columns, columns)
    pixels = padded_width * rows[:, :, None] + columns[:, None, :]
    # Twice as fast on a CPU as indexing with one tensor per dimension.
    chosen = images.reshape(-1, channels).index_select(0, pixels.reshape(-1))
    return chosen.view(count, height, width, channels)
