import numpy as np
import pytest
import torch
from torch import nn

from focalcal.training.models.build import build_model, word_vectors
from focalcal.training.models.tree_lstm import Dropout
from focalcal.training.residents import resident_split
from focalcal.training.text_batches import Texts
from tests.unit.training import made_texts

CPU = torch.device("cpu")


def parameters_without_words(model):
    return sum(value.numel() for name, value in model.named_parameters() if name != "embedding.weight")


def test_parameters_of_the_convolutional_network():
    with torch.device("meta"):
        model = build_model("gp-cnn", (1000,), 20, (20_001, 100))
    # Three convolutions of 128 channels and width 5, a hidden layer of 128 and the classes.
    expected = (500 + 1) * 128 + 2 * (640 + 1) * 128 + (128 + 1) * 128 + (128 + 1) * 20
    assert parameters_without_words(model) == expected == 247_316
    assert word_vectors(model).shape == (20_001, 100)


def test_parameters_of_the_tree_lstm():
    """Tai et al. (2015), Table 1: 316,800 parameters of composition with memory 150 and 300 dimensions."""
    with torch.device("meta"):
        models = [build_model("tree-lstm", (111, 4), 2, (17_576, d)) for d in (300, 100)]
    classifier = (150 + 1) * 3
    assert parameters_without_words(models[0]) - classifier == 316_800
    assert parameters_without_words(models[1]) - classifier == 256_800


def test_a_batch_has_its_texts_one_after_the_other():
    data = made_texts.texts(count=90)
    split = resident_split(data, data.train_indices, CPU)
    chosen = torch.arange(60, 10, -1)
    batch = split.batch(chosen)
    assert torch.equal(batch.labels, split.labels[chosen])
    rows = [data.inputs[data.train_indices[i]] for i in chosen.tolist()]
    found = batch.inputs.words.split(batch.inputs.lengths.tolist())
    assert [text.tolist() for text in found] == [row[row > 0].tolist() for row in rows]
    assert batch.inputs.width == 40


def padded_to_the_end(model, texts):
    """Return the pooled features of texts that are padded, with PyTorch's layers."""
    total, words = max(texts.width, 1000), texts.words.split(texts.lengths.tolist())
    numbers = torch.stack([nn.functional.pad(text, (total - len(text), 0)) for text in words])
    features = model.embedding(numbers).transpose(1, 2)
    for convolution in model.convolutions[:-1]:
        features = torch.relu(nn.functional.max_pool1d(convolution(features), 5))
    return torch.relu(model.convolutions[-1](features)).amax(dim=2)


def texts_of(*lengths, width=1000):
    return Texts(torch.randint(1, 50, (sum(lengths),)), torch.tensor(lengths), width)


def features_and_gradients(model, features):
    torch.manual_seed(1)
    weights = torch.randn(features.shape, dtype=features.dtype)
    parameters = [model.embedding.weight, *model.convolutions.parameters()]
    gradients = torch.autograd.grad((features * weights).sum(), parameters)
    return [features.detach(), *(gradient.to_dense() for gradient in gradients)]


@pytest.mark.parametrize("length", [*range(31), 130, 851, 852, *range(985, 1001)])
@pytest.mark.parametrize("others", [(), (40, 7, 1000)], ids=["alone", "among others"])
def test_few_rows_of_padding_stand_for_all(length, others):
    torch.manual_seed(length)
    model = build_model("gp-cnn", (1000,), 3, (50, 6)).double()
    texts = texts_of(*others[:1], length, *others[1:])
    found, wanted = (
        features_and_gradients(model, features)
        for features in (model.pooled(texts), padded_to_the_end(model, texts))
    )
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("width", [1001, 1203])
def test_texts_of_a_dataset_with_longer_ones_are_padded_to_its_length(width):
    torch.manual_seed(width)
    model = build_model("gp-cnn", (width,), 3, (50, 6)).double()
    texts = texts_of(width, 3, width - 100, 990, width=width)
    found, wanted = (f(model, texts) for f in (type(model).pooled, padded_to_the_end))
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("way", ["compiled_pools", "convolved_pools"])
def test_pools_of_words_are_those_of_a_convolution(way):
    """In float32, as in training, with words that occur often, never and in neighbouring pools."""
    torch.manual_seed(0)
    model = build_model("gp-cnn", (1000,), 3, (50, 6))
    words = torch.randint(0, 9, (5 * 40 + 4,)).square() % 50
    first = model.convolutions[0]
    values = first(model.embedding(words).T[None])[0].T
    parameters = [model.embedding.weight, *first.parameters()]
    found, wanted = (
        [pools.detach(), *(g.to_dense() for g in torch.autograd.grad(pools.square().sum(), parameters))]
        for pools in (getattr(model, way)(words), values.unflatten(0, (-1, 5)).amax(dim=1))
    )
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


def test_dropout_keeps_the_mean_and_is_off_in_evaluation():
    torch.manual_seed(0)
    layer, ones = Dropout(0.75), torch.ones(10_001, 10)
    dropped = layer(ones)
    assert set(dropped.flatten().tolist()) == {0.0, 4.0}
    # Four standard deviations of a share; rows and columns do not share their draws.
    assert abs((dropped == 0).double().mean() - 0.75) < 4 * (0.75 * 0.25 / 100_010) ** 0.5
    for draws in (dropped, dropped.T):
        pairs = (draws[:-1] == 0) & (draws[1:] == 0)
        assert abs(pairs.double().mean() - 0.5625) < 4 * (0.5625 * 0.4375 / pairs.numel()) ** 0.5
    assert torch.equal(layer.eval()(ones), ones)


def test_logits_of_texts_do_not_depend_on_their_batch():
    data = made_texts.texts()
    split = resident_split(data, data.train_indices, CPU)
    torch.manual_seed(0)
    model = build_model("gp-cnn", (40,), 3, data.vectors.shape).eval()
    together = model(split.batch(torch.arange(40)).inputs)
    alone = torch.cat([model(split.batch(torch.tensor([i])).inputs) for i in range(40)])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)


def node_by_node(model, tree):
    """Return the logits of one tree's nodes, one node after the other (Tai et al. 2015, Eqs 9-14)."""
    hidden, memory = [], []
    for word, left, right, _ in tree.tolist():
        if left < 0:
            c, o = model.leaf(model.embedding.weight[word]).chunk(2)
        else:
            blocks = (model.left(hidden[left]) + model.right(hidden[right])).chunk(5)
            i, left_gate, right_gate, o = (torch.sigmoid(blocks[k]) for k in (0, 1, 2, 4))
            c = i * torch.tanh(blocks[3]) + left_gate * memory[left] + right_gate * memory[right]
            o = blocks[4]
        memory.append(c)
        hidden.append(torch.sigmoid(o) * torch.tanh(c))
    return model.classifier(torch.stack(hidden))


def test_levels_give_the_logits_and_gradients_of_a_loop_over_nodes():
    data = made_texts.trees()
    split = resident_split(data, data.train_indices, CPU)
    torch.manual_seed(0)
    model = build_model("tree-lstm", (17, 4), 2, data.vectors.shape).double().eval()
    batch = split.batch(torch.tensor([5, 3, 30, 8]))
    trees = [data.inputs[i][data.inputs[i][:, 3] >= 0] for i in (5, 3, 30, 8)]
    logits = model(batch.inputs)
    reference = [node_by_node(model, tree) for tree in trees]
    for sentence, (expected, tree) in enumerate(zip(reference, trees, strict=True)):
        rows = (batch.sentences == sentence).nonzero()[:, 0]
        # Rows of one sentence are in the order of its nodes within each level only: compare as sets.
        found = sorted(map(tuple, logits[rows].tolist()))
        np.testing.assert_allclose(found, sorted(map(tuple, expected.tolist())), rtol=0, atol=1e-12)
        torch.testing.assert_close(
            batch.sample_logits(logits)[sentence], expected[-1, :2], rtol=0, atol=1e-12
        )
        assert sorted(batch.targets[rows].tolist()) == sorted(tree[:, 3].tolist())
    by_levels = torch.autograd.grad((logits**3).sum(), list(model.parameters()))
    by_nodes = torch.autograd.grad(sum((part**3).sum() for part in reference), list(model.parameters()))
    for left, right in zip(by_levels, by_nodes, strict=True):
        torch.testing.assert_close(left.to_dense(), right, rtol=1e-9, atol=1e-12)


def test_losses_of_nodes_add_up_to_those_of_sentences():
    data = made_texts.trees()
    split = resident_split(data, data.train_indices, CPU)
    batch = split.batch(torch.arange(10))
    sizes = (data.inputs[data.train_indices[:10], :, 3] >= 0).sum(axis=1)
    assert batch.sample_losses(torch.ones(len(batch.targets))).tolist() == sizes.tolist()
    assert torch.equal(batch.targets[batch.roots], batch.labels)
