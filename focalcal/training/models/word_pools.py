"""Pools of a convolution over words from the products of each word's vector with the weights, compiled."""

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable


class WordPools(torch.autograd.Function):
    """Maxima of each five consecutive values of a convolution with kernel 5 over a sequence of words.

    The value at place p is the sum over k of the products of word p + k with tap k.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, products: Tensor, words: Tensor) -> Tensor:
        """Return (m, c) pools of `products`, (words, 5, c), and a sequence `words`, int64 (5 m + 4,)."""
        kernel, channels = products.shape[1:]
        pools = np.empty(((len(words) - kernel + 1) // kernel, channels), products.numpy().dtype)
        places = np.empty(pools.shape, dtype=np.int8)
        _fill_pools(products.numpy(), words.numpy(), pools, places)
        ctx.save_for_backward(products, words, torch.from_numpy(places))
        return torch.from_numpy(pools)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        """Return the gradient of the products."""
        products, words, places = ctx.saved_tensors
        from_products = torch.zeros_like(products)
        _add_gradients(gradient.contiguous().numpy(), words.numpy(), places.numpy(), from_products.numpy())
        return from_products, None


@njit
def _fill_pools(products, words, pools, places):
    """Fill `pools` with the maxima and `places` with where in its pool, 0 to 4, each is first attained."""
    for pool in range(pools.shape[0]):
        for place in range(5):
            at = 5 * pool + place
            first, second = products[words[at], 0], products[words[at + 1], 1]
            third, fourth = products[words[at + 2], 2], products[words[at + 3], 3]
            fifth = products[words[at + 4], 4]
            for channel in range(pools.shape[1]):
                value = first[channel] + second[channel] + third[channel] + fourth[channel] + fifth[channel]
                if place == 0 or value > pools[pool, channel]:
                    pools[pool, channel] = value
                    places[pool, channel] = place


@njit
def _add_gradients(gradient, words, places, from_products):
    """Add each pool's gradient to the five products of which its maximum is the sum."""
    part = np.empty(gradient.shape[1], gradient.dtype)
    for pool in range(gradient.shape[0]):
        for place in range(5):
            for channel in range(gradient.shape[1]):
                part[channel] = gradient[pool, channel] if places[pool, channel] == place else 0
            for tap in range(5):
                row = from_products[words[5 * pool + place + tap], tap]
                for channel in range(gradient.shape[1]):
                    row[channel] += part[channel]
