"""M20's network for parse trees: a binary Tree-LSTM."""

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from focalcal.training.text_batches import TreeLevels

MEMORY = 150
GATES = 4
DROPOUT = 0.5


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
        leaves = torch.cat([torch.sigmoid(gate) * torch.tanh(memory), memory], dim=1)
        weight = torch.cat([self.left.weight, self.right.weight], dim=1)
        hidden = _Compose.apply(leaves, weight, self.left.bias + self.right.bias, trees)
        return self.classifier(self.dropout(hidden))


class Dropout(nn.Dropout):
    """PyTorch's dropout from uniform numbers, which a CPU draws in a quarter of the time of Bernoulli's."""

    def forward(self, values: Tensor) -> Tensor:
        """Return `values`, in training with the share p of them 0 and the others divided by 1 - p."""
        if not self.training:
            return values
        return values * torch.rand_like(values).ge_(self.p).div_(1 - self.p)


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
        gates = leaves.new_empty(count - first, GATES + 1, size)
        below = leaves.new_empty(count - first, 2, size)
        squashed = leaves.new_empty(count - first, size)
        # Products of a few rows take half of the time with the weights in this order.
        transposed = weight.T.contiguous()
        levels = zip(
            *_by_level(trees, trees.children, inputs, gates, *gates.unbind(1), below, squashed),
            *_by_level(trees, memory[first:], hidden[first:]),
            strict=True,
        )
        for children, both, gate, i, left, right, u, o, memories, tanh, new, output in levels:
            torch.index_select(hidden, 0, children.flatten(), out=both.view(-1, size))
            torch.index_select(memory, 0, children.flatten(), out=memories.view(-1, size))
            torch.addmm(bias, both, transposed, out=gate.flatten(1))
            gate[:, :3].sigmoid_()
            torch.mul(i, u.tanh_(), out=new)
            new.addcmul_(left, memories[:, 0]).addcmul_(right, memories[:, 1])
            torch.mul(o.sigmoid_(), torch.tanh(new, out=tanh), out=output)
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
        i, _, _, u, o = gates.unbind(1)
        forget = gates[:, 1:3]
        # d c / d (what the gate squashes), for i, f_l, f_r and u; then d h / d c and the factor of o.
        factors = torch.empty_like(gates[:, :GATES])
        _sigmoid_backward(u, i, grad_input=factors[:, 0])
        _sigmoid_backward(below, forget, grad_input=factors[:, 1:3])
        _tanh_backward(i, u, grad_input=factors[:, 3])
        through_memory = _tanh_backward(o, squashed)
        through_output = _sigmoid_backward(squashed, o)
        from_hidden, from_memory = gradient.clone(), torch.zeros_like(gradient)
        from_gates = torch.empty_like(gates)
        levels = zip(
            *_by_level(trees, trees.children, from_hidden[first:], from_memory[first:], from_gates),
            *_by_level(trees, factors, through_memory, through_output, forget),
            strict=True,
        )
        for children, hidden, memory, gate, factor, by_memory, by_output, forgets in reversed(list(levels)):
            memory.addcmul_(hidden, by_memory)
            torch.mul(memory[:, None], factor, out=gate[:, :GATES])
            torch.mul(hidden, by_output, out=gate[:, GATES])
            # A node has one parent, so no row is written twice.
            from_hidden.index_add_(0, children.flatten(), (gate.flatten(1) @ weight).view(-1, size))
            from_memory.index_copy_(0, children.flatten(), (memory[:, None] * forgets).view(-1, size))
        from_gates = from_gates.flatten(1)
        leaves = torch.cat([from_hidden[:first], from_memory[:first]], dim=1)
        return leaves, from_gates.T @ inputs, from_gates.sum(dim=0), None


_sigmoid_backward, _tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward
"""gradient * y (1 - y) and gradient * (1 - y^2), in one pass."""


def _by_level(trees: TreeLevels, *rows: Tensor) -> list[tuple[Tensor, ...]]:
    """Return each tensor of rows of the nodes above the leaves, split into levels."""
    sizes = [end - start for start, end in zip(trees.ends, trees.ends[1:], strict=False)]
    return [tensor.split(sizes) for tensor in rows]
