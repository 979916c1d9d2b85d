"""What determines a training run: its spec, the recipe with its checks and learning-rate curve; no torch."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt

from focalcal.common.constraints import UNIQUE, NonNegative, OpenShare, Positive, Section
from focalcal.common.errors import UserError
from focalcal.training.catalogue import parse_loss
from focalcal.training.models.catalogue import find_model

Epoch = Annotated[int, Ge(0), Le(100_000)]
EpochCount = Annotated[int, Ge(1), Le(100_000)]
BatchSize = Annotated[int, Ge(1), Le(1_000_000)]
ShareBelowOne = Annotated[float, Ge(0), Lt(1)]

ASCENDING = ("milestones", "gamma_milestones")


@dataclass(frozen=True)
class AdaFocalSettings(Section):
    """Constants of AdaFocal (Ghosh et al. 2022), as K24 used them."""

    bins: Annotated[int, Ge(1), Le(1000)] = 15
    """Number of equal-mass confidence bins, each with its own gamma."""
    rate: NonNegative = 1.0
    """Lambda: how fast a gamma follows its bin's gap between confidence and accuracy."""
    start: float = 1.0
    """Gamma of every bin in the first epoch."""
    switch: NonNegative = 0.2
    """Where |gamma| falls below this, gamma changes its sign: the bin moves from focal to inverse focal loss
    or back."""
    low: float = -2.0
    """Smallest gamma."""
    high: float = 20.0
    """Largest gamma."""


@dataclass(frozen=True)
class Recipe(Section):
    """How a network is optimised. Every setting determines the result, so an edit trains its runs again."""

    epochs: EpochCount
    """Passes over the training set."""
    batch_size: BatchSize
    """Images in a training step; the last batch of an epoch may be smaller."""
    learning_rate: Annotated[float, Gt(0), Le(1e6)]
    """Learning rate at its highest, before any decay."""
    optimizer: Literal["sgd", "adamw", "adagrad"] = "sgd"
    """sgd has momentum and L2 weight decay; adamw has decoupled weight decay and betas (momentum, 0.999), and
    is Adam without it; adagrad has L2 weight decay and no momentum."""
    momentum: ShareBelowOne = 0.9
    """Momentum of sgd, first beta of adamw."""
    nesterov: bool = False
    """Whether sgd looks ahead along its momentum; the papers do not."""
    weight_decay: NonNegative = 0.0
    """Strength of weight decay, on all parameters except word vectors."""
    word_vector_rate: Positive | None = None
    """Learning rate of plain SGD on the word vectors of texts, without decay; null leaves them unchanged."""
    schedule: Literal["constant", "steps", "cosine", "one-cycle"] = "constant"
    """constant; steps (multiply by `decay` at each of `milestones`); cosine (from the peak to 0); one-cycle
    (rise for the share `warmup` of all steps, then fall to 0, both along a cosine)."""
    milestones: tuple[Epoch, ...] = ()
    """Epochs, counted from 0, from which the learning rate of `steps` is multiplied by `decay` once more."""
    decay: Positive = 0.1
    """Factor on the learning rate at each milestone."""
    warmup: ShareBelowOne = 0.3
    """Share of all steps in which the learning rate of `one-cycle` rises."""
    reduction: Literal["sum", "mean"] = "mean"
    """What is differentiated: the sum of a batch's losses or their mean. M20 and K24 sum and clip the
    gradient, which is normalised-gradient descent in effect, another optimiser than a mean without clipping.
    brier is always a mean."""
    clip_norm: Positive | None = None
    """Largest norm of the whole gradient, to which a longer one is scaled; null does not clip."""
    crop_padding: Annotated[int, Ge(0), Le(1024)] = 0
    """Pixels of black border from which training images are cropped at random to their own size."""
    flip: bool = False
    """Whether half of the training images, chosen at random, are mirrored left to right."""
    channels_last: bool = True
    """Whether convolutions work on channels-last memory, the faster order on CPU and GPU."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """fp32, or bf16 autocast on CUDA (ignored on a CPU that `auto` falls back to)."""
    tf32: bool = False
    """Whether fp32 matrix products on CUDA may round their inputs to TF32, faster and less exact."""
    compile: bool = False
    """Whether torch.compile optimises the network on CUDA; worth it for runs of more than a few minutes."""
    deterministic: bool = True
    """Whether CUDA uses only deterministic kernels, which are slower; a CPU always does."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto is the GPU where there is one, else the CPU."""
    threads: Annotated[int, Ge(1), Le(1024)] = 1
    """CPU threads of a run; more than one pays for convolutional networks only, and may change last bits."""
    evaluation_batch_size: BatchSize = 1024
    """Images in an evaluation step."""
    keep: Literal["last", "best"] = "last"
    """Which epoch's weights a run ends with: the last, as for the papers' images, or the first with the
    highest validation accuracy, as for M20's texts."""
    evaluate_every: EpochCount = 1
    """Epochs from one evaluation on the validation set to the next; the last epoch is always evaluated."""
    checkpoint_every: EpochCount = 1
    """Epochs from one checkpoint to the next; a run that is asked to stop writes one at once."""
    history_test: bool = False
    """Whether history.csv also follows the test set (M20 Figs 1 and 3); nothing is chosen by it."""
    snapshot_epochs: Annotated[tuple[EpochCount, ...], UNIQUE] = ()
    """Epochs, counted from 1, after which run.json keeps the training set's reliability bins (M20 Fig. 2), of
    the predictions that were made during the epoch, in training mode."""
    gamma_milestones: tuple[Epoch, Epoch] = (100, 250)
    """Epochs, counted from 0, at which the gamma of focal-sched-532 and focal-sched-531 falls."""
    mmce_weight: NonNegative = 2.0
    """Factor of MMCE beside cross-entropy in mmce and mmce-authors (M20: 2 for images, 8 for texts)."""
    adafocal: AdaFocalSettings = field(default_factory=AdaFocalSettings)
    adafocal_split: Literal["val", "holdout"] = "val"
    """Whose calibration moves AdaFocal's gammas: val, as in the papers, or holdout, a share of the training
    set that is then not trained on, so that calibrators are fitted on validation data the loss never saw."""
    holdout_fraction: OpenShare = 0.1
    """Share of the training set that `holdout` withholds."""


@dataclass(frozen=True)
class RunSpec:
    """One dataset, model, loss, seed and recipe."""

    dataset: str
    model: str
    loss: str
    seed: int
    recipe: Recipe


def spec_from_dict(values: Mapping[str, Any]) -> RunSpec:
    """Return the run that a mapping with the fields of `RunSpec` describes."""
    keys = [entry.name for entry in fields(RunSpec)]
    missing = [key for key in keys if key not in values]
    if missing:
        raise UserError(f"--spec must have the keys {', '.join(keys)}; {missing[0]!r} is missing")
    dataset, model, loss, seed, recipe = (values[key] for key in keys)
    find_model(model)
    return RunSpec(dataset, model, parse_loss(loss).id, seed, recipe_from_dict(recipe))


def recipe_from_dict(values: Mapping[str, Any]) -> Recipe:
    """Return the recipe of a mapping that satisfies the configuration's schema."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    if "adafocal" in values:
        values["adafocal"] = AdaFocalSettings(**values["adafocal"])
    return Recipe(**values)


def check_recipe(recipe: Recipe) -> None:
    """Raise a UserError for settings that are fine one by one but contradict each other."""
    for name in ASCENDING:
        values = list(getattr(recipe, name))
        if values != sorted(set(values)):
            raise _not_allowed(name, values, "numbers that increase")
    if recipe.milestones and recipe.schedule != "steps":
        allowed = f"nothing with schedule {recipe.schedule}; set schedule: steps, or milestones: []"
        raise _not_allowed("milestones", list(recipe.milestones), allowed)
    if any(epoch > recipe.epochs for epoch in recipe.snapshot_epochs):
        allowed = f"at most the number of epochs, which is {recipe.epochs}"
        raise _not_allowed("snapshot_epochs", list(recipe.snapshot_epochs), allowed)
    if recipe.device == "cpu" and (recipe.precision != "fp32" or recipe.compile):
        allowed = "auto or cuda with bf16 or compile; on a CPU leave out precision and compile"
        raise _not_allowed("device", recipe.device, allowed)
    low, start, high = recipe.adafocal.low, recipe.adafocal.start, recipe.adafocal.high
    if low > high:
        raise _not_allowed("adafocal.low", low, f"at most adafocal.high, which is {high}")
    if not low <= start <= high:
        allowed = f"from adafocal.low, which is {low}, to adafocal.high, which is {high}"
        raise _not_allowed("adafocal.start", start, allowed)


def _not_allowed(name: str, value: object, allowed: str) -> UserError:
    return UserError(f"recipe.{name} is {json.dumps(value)}; allowed: {allowed}")


def learning_rate(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """Return the learning rate of optimiser step `step`, counted from 0 over the whole training.

    `steps` multiplies by `decay` from each milestone epoch on. `cosine` falls from the peak to 0. `one-cycle`
    rises along a cosine from peak / 25 to the peak over the share `warmup` of all steps, then falls to 0.
    """
    peak = recipe.learning_rate
    if recipe.schedule == "constant":
        return peak
    if recipe.schedule == "steps":
        epoch = step // steps_per_epoch
        return peak * recipe.decay ** sum(epoch >= milestone for milestone in recipe.milestones)
    progress = step / max(1, recipe.epochs * steps_per_epoch)
    if recipe.schedule == "cosine":
        return peak * _half_cosine(progress)
    if progress < recipe.warmup:
        return peak - (peak - peak / 25) * _half_cosine(progress / recipe.warmup)
    return peak * _half_cosine((progress - recipe.warmup) / (1 - recipe.warmup))


def _half_cosine(progress: float) -> float:
    """Return the cosine that falls from 1 at progress 0 to 0 at progress 1."""
    return 0.5 * (1 + math.cos(math.pi * progress))
