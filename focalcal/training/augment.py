"""Pad-crop and flip of whole uint8 batches, on whatever device holds them."""

import torch
from torch import Tensor


def crop_and_flip(images: Tensor, padding: int, offsets: Tensor, flips: Tensor) -> Tensor:
    """Return crops of the black-padded images, mirrored where `flips`, (n, H, W, C) like `images`.

    Images are channels-last; `offsets` int64 (n, 2) are the crops' top and left corners in 0..2 padding;
    `flips` bool (n,). One gather does both: a mirrored crop reads its columns backwards.
    """
    count, height, width, _ = images.shape
    if padding:
        images = torch.nn.functional.pad(images, (0, 0, padding, padding, padding, padding))
    rows = offsets[:, :1] + torch.arange(height, device=images.device)
    columns = torch.arange(width, device=images.device).expand(count, width)
    columns = offsets[:, 1:] + torch.where(flips[:, None], width - 1 - columns, columns)
    samples = torch.arange(count, device=images.device)
    return images[samples[:, None, None], rows[:, :, None], columns[:, None, :]]
