import pytest
import torch

from focalcal.training.optimizers import make_optimizer
from focalcal.training.recipes import Recipe

RATES = [0.1, 0.1, 0.05, 0.2, 0.01]


def trained(steps):
    """Return the weights of a small problem after one step per rate in RATES by `steps(parameters)`."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))
    inputs, labels = torch.randn(11, 5), torch.arange(11) % 3
    step = steps(list(model.parameters()))
    for rate in RATES:
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        step(rate)
    return [parameter.detach().clone() for parameter in model.parameters()]


def torch_steps(kind, **arguments):
    def make(parameters):
        optimizer = kind(parameters, lr=1.0, fused=True, **arguments)

        def step(rate):
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()

        return step

    return make


@pytest.mark.parametrize(
    ("changes", "kind", "arguments"),
    [
        ({"nesterov": False}, torch.optim.SGD, {"momentum": 0.9}),
        ({"nesterov": True}, torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
        ({"optimizer": "adamw"}, torch.optim.AdamW, {}),
        ({"optimizer": "adagrad"}, torch.optim.Adagrad, {}),
    ],
)
def test_steps_give_the_bits_of_torch_optim(changes, kind, arguments):
    recipe = Recipe(epochs=1, batch_size=1, learning_rate=1.0, weight_decay=0.02, **changes)
    ours = trained(lambda parameters: make_optimizer(parameters, recipe).step)
    theirs = trained(torch_steps(kind, weight_decay=0.02, **arguments))
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("name", ["sgd", "adamw", "adagrad"])
def test_state_continues_an_optimisation(name):
    recipe = Recipe(epochs=1, batch_size=1, learning_rate=1.0, optimizer=name)

    def handing_over(parameters):
        """Use a new optimiser for every step, with the state of the previous one."""
        current = [make_optimizer(parameters, recipe)]

        def step(rate):
            following = make_optimizer(parameters, recipe)
            for key, value in following.state().items():
                value.copy_(current[0].state()[key])
            following.step(rate)
            current[0] = following

        return step

    unbroken = trained(lambda parameters: make_optimizer(parameters, recipe).step)
    assert all(torch.equal(a, b) for a, b in zip(trained(handing_over), unbroken, strict=True))


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_a_parameter_that_the_network_does_not_use_is_unchanged(optimizer):
    used, unused = (torch.ones(2, requires_grad=True) for _ in range(2))
    recipe = Recipe(epochs=1, batch_size=1, learning_rate=1.0, weight_decay=0.1, optimizer=optimizer)
    stepper = make_optimizer([unused, used], recipe)
    (used**2).sum().backward()
    stepper.step(0.1)
    assert torch.equal(unused, torch.ones(2))
    assert (used < 1).all()
