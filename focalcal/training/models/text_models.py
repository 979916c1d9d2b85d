"""M20's networks for texts: a convolutional network with global pooling, and a binary Tree-LSTM."""

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from focalcal.training.text_batches import TextGroups, TreeLevels

CHANNELS = 128
KERNEL = 5
POOLING = 5
LONGEST = 1000
MEMORY = 150
GATES = 4
DROPOUT = 0.5


class GlobalPoolingCNN(nn.Module):
    """Three convolutions over word vectors with max pooling, the last of it global (after Lin et al. 2014).

    M20 adapts the network of Kumar et al. (2018), who take it from a Keras example: 128 channels, kernels and
    pools of 5, a hidden layer of 128, texts padded to 1,000 words on the left. M20 states no more than the
    name. All columns that see nothing but padding are equal, so only one or a few of them are computed.
    """

    def __init__(self, vocabulary: int, dimensions: int, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, dimensions, padding_idx=0, sparse=True)
        widths = (dimensions, CHANNELS, CHANNELS)
        # Images of one row: their channels-last convolutions are a quarter faster than those of sequences.
        self.convolutions = nn.ModuleList(nn.Conv2d(width, CHANNELS, (1, KERNEL)) for width in widths)
        self.hidden = nn.Linear(CHANNELS, CHANNELS)
        self.classifier = nn.Linear(CHANNELS, classes)

    def forward(self, texts: TextGroups) -> Tensor:
        """Return logits (n, K)."""
        features = torch.cat([self.pooled(numbers) for numbers in texts.groups])
        logits = self.classifier(torch.relu(self.hidden(features)))
        return torch.empty_like(logits).index_copy(0, texts.order, logits)

    def pooled(self, numbers: Tensor) -> Tensor:
        """Return the globally pooled features (m, 128) of texts (m, length), as if padded to `LONGEST`."""
        total = max(numbers.shape[1], LONGEST)
        vectors = self.embedding(nn.functional.pad(numbers, (_columns_of_padding(numbers, total), 0)))
        features, padding = vectors.transpose(1, 2)[:, :, None], vectors.new_zeros(vectors.shape[2])
        *pooled, last = self.convolutions
        for convolution in pooled:
            features = torch.relu(nn.functional.max_pool2d(convolution(features), (1, POOLING)))
            padding = torch.relu(convolution.weight.sum(dim=(2, 3)) @ padding + convolution.bias)
            total = (total - KERNEL + 1) // POOLING
            columns = _columns_of_padding(features, total)
            left = padding[:, None, None].expand(len(features), -1, 1, columns)
            features = torch.cat([left, features], dim=3)
        return torch.relu(last(features).amax(dim=(2, 3)))


def _columns_of_padding(features: Tensor, total: int) -> int:
    """Return how many columns of padding to the left of `features` stand for all up to `total`.

    A convolution then has a position that sees padding only, and pools stay aligned.
    """
    missing = total - features.shape[-1]
    enough = min(missing, KERNEL)
    return enough + (missing - enough) % POOLING


class TreeLSTM(nn.Module):
    """The constituency Tree-LSTM of Tai et al. (2015), section 3.2, with N = 2 and a label at every node."""

    def __init__(self, vocabulary: int, dimensions: int, classes: int) -> None:
        super().__init__()
        # A batch has a hundredth of the words; a dense gradient would cost a fifth of the time.
        self.embedding = nn.Embedding(vocabulary, dimensions, sparse=True)
        self.leaf = nn.Linear(dimensions, 2 * MEMORY)
        self.left = nn.Linear(MEMORY, (GATES + 1) * MEMORY)
        self.right = nn.Linear(MEMORY, (GATES + 1) * MEMORY)
        self.dropout = nn.Dropout(DROPOUT)
        self.classifier = nn.Linear(MEMORY, classes + 1)

    def forward(self, trees: TreeLevels) -> Tensor:
        """Return logits (nodes, K + 1) of all nodes, in the order of `trees`."""
        memory, gate = self.leaf(self.embedding(trees.words)).chunk(2, dim=1)
        leaves = torch.cat([torch.sigmoid(gate) * torch.tanh(memory), memory], dim=1)
        weight = torch.cat([self.left.weight, self.right.weight], dim=1)
        hidden = _Compose.apply(leaves, weight, self.left.bias + self.right.bias, trees)
        return self.classifier(self.dropout(hidden))


class _Compose(torch.autograd.Function):
    """Hidden states of all nodes from those of the leaves, one matrix product per level.

    With h and c of the left (l) and right (r) child, the five columns of blocks of `weight` give

        i, f_l, f_r, o = sigmoid(W [h_l, h_r] + b),  u = tanh(W [h_l, h_r] + b),
        c = i u + f_l c_l + f_r c_r,  h = o tanh(c)

    (Tai et al. 2015, Eqs 9-14) in the order i, f_l, f_r, u, o. The backward pass is written out because one
    recorded by autograd takes three times as long: here the factors of all levels and the gradients of the
    weights are single operations, and no level copies the states below it.
    """

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx: FunctionCtx, leaves: Tensor, weight: Tensor, bias: Tensor, trees: TreeLevels) -> Tensor:
        """Return hidden states (nodes, d) from those and the memories of the leaves, (leaves, 2 d)."""
        count, first, size = trees.ends[-1], trees.ends[0], leaves.shape[1] // 2
        hidden, memory = leaves.new_empty(count, size), leaves.new_empty(count, size)
        hidden[:first], memory[:first] = leaves[:, :size], leaves[:, size:]
        inputs = leaves.new_empty(count - first, 2 * size)
        gates = leaves.new_empty(count - first, (GATES + 1) * size)
        below = leaves.new_empty(count - first, 2, size)
        squashed = leaves.new_empty(count - first, size)
        children = trees.children.reshape(-1)
        for start, end in _levels(trees):
            level, pairs = slice(start - first, end - first), slice(2 * (start - first), 2 * (end - first))
            torch.index_select(hidden, 0, children[pairs], out=inputs[level].view(-1, size))
            torch.index_select(memory, 0, children[pairs], out=below[level].view(-1, size))
            torch.addmm(bias, inputs[level], weight.T, out=gates[level])
            gate = gates[level].view(-1, GATES + 1, size)
            gate[:, :3].sigmoid_()
            gate[:, 3].tanh_()
            gate[:, 4].sigmoid_()
            new = memory[start:end]
            torch.mul(gate[:, 0], gate[:, 3], out=new)
            new.addcmul_(gate[:, 1], below[level][:, 0]).addcmul_(gate[:, 2], below[level][:, 1])
            torch.tanh(new, out=squashed[level])
            torch.mul(gate[:, 4], squashed[level], out=hidden[start:end])
        ctx.trees = trees
        ctx.save_for_backward(weight, inputs, gates, below, squashed)
        return hidden

    @staticmethod
    @once_differentiable
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """Return the gradients of leaves, weight and bias."""
        weight, inputs, gates, below, squashed = ctx.saved_tensors
        trees, first, size = ctx.trees, ctx.trees.ends[0], squashed.shape[1]
        gates = gates.view(-1, GATES + 1, size)
        sigmoids, update, output = gates[:, :3], gates[:, 3], gates[:, 4]
        # d c / d (what the gate squashes), for i, f_l, f_r and u; then d h / d c and the factor of o.
        factors = torch.empty_like(gates[:, :GATES])
        torch.mul(sigmoids, 1 - sigmoids, out=factors[:, :3])
        factors[:, 0] *= update
        factors[:, 1:3] *= below
        torch.mul(gates[:, 0], 1 - update.square(), out=factors[:, 3])
        through_memory = output * (1 - squashed.square())
        through_output = squashed * output * (1 - output)
        from_hidden, from_memory = gradient.clone(), torch.zeros_like(gradient)
        from_gates = torch.empty_like(gates)
        children = trees.children.reshape(-1)
        for start, end in reversed(_levels(trees)):
            level, pairs = slice(start - first, end - first), slice(2 * (start - first), 2 * (end - first))
            memory = from_memory[start:end].addcmul_(from_hidden[start:end], through_memory[level])
            torch.mul(memory[:, None], factors[level], out=from_gates[level, :GATES])
            torch.mul(from_hidden[start:end], through_output[level], out=from_gates[level, GATES])
            # A node has one parent, so no row is written twice.
            states = from_gates[level].flatten(1) @ weight
            from_hidden.index_add_(0, children[pairs], states.view(-1, size))
            memories = memory[:, None] * gates[level, 1:3]
            from_memory.index_copy_(0, children[pairs], memories.view(-1, size))
        from_gates = from_gates.flatten(1)
        leaves = torch.cat([from_hidden[:first], from_memory[:first]], dim=1)
        return leaves, from_gates.T @ inputs, from_gates.sum(dim=0), None


def _levels(trees: TreeLevels) -> list[tuple[int, int]]:
    """Return the first and the end row of each level above the leaves."""
    return list(zip(trees.ends, trees.ends[1:], strict=False))
