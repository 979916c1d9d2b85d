"""M20's network for texts: convolutions over word vectors with max pooling, the last of it global."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from focalcal.training.models.catalogue import model
from focalcal.training.text_batches import Texts

CHANNELS = 128
KERNEL = 5
POOLING = 5
LENGTH = 1000


@model(
    id="gp-cnn",
    description="M20's global-pooling CNN over word vectors, for texts",
    inputs=("tokens",),
)
class GlobalPoolingCNN(nn.Module):
    """Three convolutions over word vectors with max pooling, the last of it global (after Lin et al. 2014).

    M20 adapts the network of Kumar et al. (2018), who take it from a Keras example: 128 channels, kernels and
    pools of 5, a hidden layer of 128, texts padded to 1,000 words on the left. M20 states no more than the
    name. Texts of any length stand one after the other in one sequence. All pools that see nothing but
    padding are equal, so at most a few of them are computed.
    """

    def __init__(self, vocabulary: int, dimensions: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, dimensions, padding_idx=0, sparse=True)
        widths = (dimensions, CHANNELS, CHANNELS)
        self.convolutions = nn.ModuleList(nn.Conv1d(width, CHANNELS, KERNEL) for width in widths)
        self.hidden = nn.Linear(CHANNELS, CHANNELS)
        self.classifier = nn.Linear(CHANNELS, classes)

    def forward(self, texts: Texts) -> Tensor:
        """Return logits (n, K)."""
        return self.classifier(torch.relu(self.hidden(self.pooled(texts))))

    def pooled(self, texts: Texts) -> Tensor:
        """Return the globally pooled features (n, 128) of texts, as if padded to `LENGTH` words or more."""
        words = _Rows(max(texts.width, LENGTH) - texts.lengths, texts.lengths)
        pools = words.pools()
        last = pools.pools()
        first, second, third = self.convolutions

        sequence = _with_padding(texts.words, texts.words.new_zeros(()), words.sequence_before(pools))
        features, padding = torch.relu(self.pooled_words(sequence)), torch.relu(first.bias)

        sequence = _with_padding(features, padding, pools.sequence_before(last))
        features = torch.relu(_pooled(_Convolution.apply(sequence, second.weight, second.bias)))
        padding = torch.relu(second.weight.sum(dim=2) @ padding + second.bias)

        rows, positions = last.sequence_before_global_pool()
        values = _Convolution.apply(_with_padding(features, padding, rows), third.weight, third.bias)
        return torch.relu(values[positions.to(values.device)].amax(dim=1))

    def pooled_words(self, words: Tensor) -> Tensor:
        """Return the pools, (m, 128), of the first convolution over a sequence of 5 m + 4 words."""
        return (self.compiled_pools if words.device.type == "cpu" else self.convolved_pools)(words)

    def convolved_pools(self, words: Tensor) -> Tensor:
        """Return the pools of a convolution over the words' vectors."""
        first = self.convolutions[0]
        return _pooled(_Convolution.apply(self.embedding(words), first.weight, first.bias))

    def compiled_pools(self, words: Tensor) -> Tensor:
        """Return the same in a fifth of the time, on a CPU.

        The vector of each word that occurs is multiplied by the weights once, and compiled code adds the
        products of neighbouring words.
        """
        from focalcal.training.models.word_pools import WordPools  # noqa: PLC0415 (takes 0.3 s)

        first = self.convolutions[0]
        occurs = torch.zeros(self.embedding.num_embeddings, dtype=torch.bool)
        occurs[words] = True
        vectors, rows = self.embedding(occurs.nonzero()[:, 0]), (occurs.cumsum(0) - 1)[words]
        products = vectors @ first.weight.permute(1, 2, 0).flatten(1)
        return WordPools.apply(products.unflatten(1, (KERNEL, -1)), rows) + first.bias


@dataclass(frozen=True)
class _Rows:
    """The rows of each text: some that see only padding, all equal and not stored, then those stored."""

    padding: Tensor
    """int64 (n,)."""
    stored: Tensor
    """int64 (n,)."""
    spare: int = 0
    """Rows stored after those of each text that mean nothing."""

    def pools(self) -> "_Rows":
        """Return the rows after a convolution and pooling; one between two texts sees both of them."""
        padding = _pools(self.padding)
        return _Rows(padding, _pools(self.padding + self.stored) - padding, spare=1)

    def sequence_before(self, pools: "_Rows") -> Tensor:
        """Return the stored row at each place of a sequence whose pools are `pools`; -1 is padding."""
        return self._places(self.padding - POOLING * pools.padding, POOLING * (pools.stored + 1))

    def sequence_before_global_pool(self) -> tuple[Tensor, Tensor]:
        """Return the stored row at each place of a sequence, and the positions (n, m) of each text's pool.

        One position that sees only padding stands for all. Positions are repeated to make up m.
        """
        padding = self.padding.clamp(max=KERNEL)
        sizes = padding + self.stored
        positions = torch.arange(int(sizes.max()) - KERNEL + 1).minimum((sizes - KERNEL)[:, None])
        return self._places(padding, sizes), positions + _first_places(sizes)[:, None]

    def _places(self, padding: Tensor, sizes: Tensor) -> Tensor:
        """Return the stored rows of texts, each after some padding and in a block of its size.

        The last convolution reaches beyond the last block.
        """
        text = torch.arange(len(sizes)).repeat_interleave(sizes)
        row = torch.arange(len(text)) - (_first_places(sizes) + padding)[text]
        is_stored = (row >= 0) & (row < self.stored[text])
        rows = torch.where(is_stored, row + _first_places(self.stored + self.spare)[text], -1)
        return nn.functional.pad(rows, (0, KERNEL - 1), value=-1)


def _pools(rows: Tensor) -> Tensor:
    """Return how many whole pools there are after a convolution over so many rows."""
    return (rows - KERNEL + 1).clamp(min=0) // POOLING


def _first_places(sizes: Tensor) -> Tensor:
    return sizes.cumsum(0) - sizes


def _with_padding(values: Tensor, padding: Tensor, rows: Tensor) -> Tensor:
    """Return values[rows], and `padding` where the row is -1."""
    return torch.cat([values, padding[None]])[rows.to(values.device)]


def _pooled(values: Tensor) -> Tensor:
    """Return the maxima of each five consecutive rows."""
    return values.unflatten(0, (-1, POOLING)).amax(dim=1)


class _Convolution(torch.autograd.Function):
    """Convolution of one sequence of rows, (m + 4, d), as products of matrices, (m, 128).

    PyTorch's own takes twice as long on a CPU for a single long sequence.
    """

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx: FunctionCtx, rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Return the convolution with `weight`, (128, d, 5), plus `bias`."""
        taps, count = weight.permute(2, 1, 0).contiguous(), len(rows) - KERNEL + 1
        values = bias.expand(count, -1).contiguous()
        for shift, tap in enumerate(taps):
            values.addmm_(rows[shift : shift + count], tap)
        ctx.save_for_backward(rows, taps)
        return values

    @staticmethod
    @once_differentiable
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        """Return the gradients of rows, weight and bias."""
        (rows, taps), count = ctx.saved_tensors, len(gradient)
        from_rows = torch.zeros_like(rows) if ctx.needs_input_grad[0] else None
        from_taps = torch.empty_like(taps)
        for shift, tap in enumerate(taps):
            part = slice(shift, shift + count)
            torch.mm(rows[part].T, gradient, out=from_taps[shift])
            if from_rows is not None:
                from_rows[part].addmm_(gradient, tap.T)
        return from_rows, from_taps.permute(2, 1, 0), gradient.sum(dim=0)
