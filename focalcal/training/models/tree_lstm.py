"""M20's network for parse trees: a binary Tree-LSTM."""

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from focalcal.training.models.catalogue import model
from focalcal.training.text_batches import TreeLevels

MEMORY = 150
GATES = 4
DROPOUT = 0.5


@model(
    id="tree-lstm",
    description="binary Tree-LSTM over word vectors, for parse trees (Tai et al. 2015)",
    inputs=("trees",),
)
class TreeLSTM(nn.Module):
    """The constituency Tree-LSTM of Tai et al. (2015), section 3.2, with N = 2 and a label at every node."""

    def __init__(self, vocabulary: int, dimensions: int, classes: int) -> None:
        super().__init__()
        # A batch has a hundredth of the words; a dense gradient would cost a fifth of the time.
        self.embedding = nn.Embedding(vocabulary, dimensions, sparse=True)
        self.leaf = nn.Linear(dimensions, 2 * MEMORY)
        self.left = nn.Linear(MEMORY, (GATES + 1) * MEMORY)
        self.right = nn.Linear(MEMORY, (GATES + 1) * MEMORY)
        self.dropout = Dropout(DROPOUT)
        self.classifier = nn.Linear(MEMORY, classes + 1)

    def forward(self, trees: TreeLevels) -> Tensor:
        """Return logits (nodes, K + 1) of all nodes, in the order of `trees`."""
        memory, gate = self.leaf(self.embedding(trees.words)).chunk(2, dim=1)
        leaves = torch.sigmoid(gate) * torch.tanh(memory)
        weight = torch.cat([self.left.weight, self.right.weight], dim=1)
        hidden = _Compose.apply(leaves, memory, weight, self.left.bias + self.right.bias, trees)
        return self.classifier(self.dropout(hidden))


class Dropout(nn.Dropout):
    """PyTorch's dropout from random bytes, which a CPU draws in a tenth of the time; p in steps of 1/256."""

    def forward(self, values: Tensor) -> Tensor:
        """Return `values`, in training with the share p of them 0 and the others divided by 1 - p."""
        if not self.training:
            return values
        count, dropped = values.numel(), round(256 * self.p)
        words = torch.empty(-(-count // 8), dtype=torch.int64, device=values.device)
        draws = words.random_(-(2**63), None).view(torch.uint8)[:count].view_as(values)
        return values * (draws >= dropped).to(values.dtype).mul_(256 / (256 - dropped))


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
    def forward(
        ctx: FunctionCtx, leaves: Tensor, memories: Tensor, weight: Tensor, bias: Tensor, trees: TreeLevels
    ) -> Tensor:
        """Return hidden states (nodes, d) from those and the memories of the leaves, (leaves, d) each."""
        (first, size), count = leaves.shape, trees.ends[-1]
        hidden, memory = leaves.new_empty(count, size), leaves.new_empty(count, size)
        hidden[:first], memory[:first] = leaves, memories
        inputs = leaves.new_empty(count - first, 2 * size)
        gates = leaves.new_empty(count - first, GATES + 1, size)
        below = leaves.new_empty(count - first, 2, size)
        squashed = leaves.new_empty(count - first, size)
        # Products of a few rows take half of the time with the weights in this order.
        transposed = weight.T.contiguous()
        levels = zip(
            *_by_level(trees, inputs, gates.flatten(1), *gates.unbind(1), *below.unbind(1)),
            *_by_level(trees, squashed, memory[first:], hidden[first:]),
            *_by_level(trees, trees.children.flatten(), inputs.view(-1, size), below.view(-1, size), rows=2),
            strict=True,
        )
        for level in levels:
            both, gate, i, forget_l, forget_r, u, o, left, right, tanh, new, output, *gathered = level
            children, hidden_below, memory_below = gathered
            torch.index_select(hidden, 0, children, out=hidden_below)
            torch.index_select(memory, 0, children, out=memory_below)
            torch.addmm(bias, both, transposed, out=gate)
            # tanh(x) = 2 sigmoid(2 x) - 1: five gates in one pass take less time than tanh of one.
            u.mul_(2)
            gate.sigmoid_()
            u.mul_(2).sub_(1)
            torch.mul(i, u, out=new).addcmul_(forget_l, left).addcmul_(forget_r, right)
            torch.mul(o, torch.tanh(new, out=tanh), out=output)
        ctx.trees = trees
        ctx.save_for_backward(weight, inputs, gates, below, squashed)
        return hidden

    @staticmethod
    @once_differentiable
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        """Return the gradients of the leaves, their memories, weight and bias."""
        weight, inputs, gates, below, squashed = ctx.saved_tensors
        trees, first, (count, size) = ctx.trees, ctx.trees.ends[0], squashed.shape
        i, _, _, u, o = gates.unbind(1)
        forget = gates[:, 1:3]
        # d c / d (what the gate squashes), for i, f_l, f_r and u; then d h / d c and the factor of o.
        factors = torch.empty_like(gates[:, :GATES])
        _sigmoid_backward(u, i, grad_input=factors[:, 0])
        _sigmoid_backward(below, forget, grad_input=factors[:, 1:3])
        _tanh_backward(i, u, grad_input=factors[:, 3])
        through_memory = _tanh_backward(o, squashed)
        through_output = _sigmoid_backward(squashed, o)
        from_gates = torch.empty_like(gates)
        # What parents pass to their two children; the last row is for roots, which have no parent.
        to_hidden, to_memory = gradient.new_zeros(2, 2 * count + 1, size)
        row = torch.full_like(gradient[:, 0], 2 * count, dtype=torch.int64)
        row[trees.children.flatten()] = torch.arange(2 * count, device=row.device)
        passed = to_hidden[:-1].view(count, 2 * size), to_memory[:-1].view(count, 2, size)
        levels = zip(
            *_by_level(trees, row[first:], gradient[first:], through_memory, through_output, factors, forget),
            *_by_level(trees, from_gates.flatten(1), from_gates[:, :GATES], from_gates[:, GATES], *passed),
            strict=True,
        )
        for level in reversed([*levels]):
            rows, given, by_memory, by_output, factor, forgets, gate, four, last, hidden, memory = level
            from_hidden = torch.index_select(to_hidden, 0, rows).add_(given)
            from_memory = torch.index_select(to_memory, 0, rows).addcmul_(from_hidden, by_memory)[:, None]
            torch.mul(from_memory, factor, out=four)
            torch.mul(from_hidden, by_output, out=last)
            torch.mm(gate, weight, out=hidden)
            torch.mul(from_memory, forgets, out=memory)
        leaves, from_gates = row[:first], from_gates.flatten(1)
        return (
            gradient[:first] + to_hidden[leaves],
            to_memory[leaves],
            from_gates.T @ inputs,
            from_gates.sum(dim=0),
            None,
        )


_sigmoid_backward, _tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward
"""gradient * y (1 - y) and gradient * (1 - y^2), in one pass."""


def _by_level(trees: TreeLevels, *tensors: Tensor, rows: int = 1) -> list[tuple[Tensor, ...]]:
    """Return each tensor, which has `rows` rows for each node above the leaves, split into levels."""
    sizes = [rows * (end - start) for start, end in zip(trees.ends, trees.ends[1:], strict=False)]
    return [tensor.split(sizes) for tensor in tensors]
