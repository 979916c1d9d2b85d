"""The configuration: every key with its type, limits, default and meaning, once.

`make schema` writes schemas/config.schema.json from these dataclasses. Recipes and the theory stage's
settings are described where they are used, in `focalcal.training.recipes` and `focalcal.theory.settings`.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Len, MinLen

from focalcal.calibration.catalogue import (
    CRITERIA,
    DISTORTIONS,
    LARGEST_GAMMA,
    SMALLEST_GAMMA,
    SMALLEST_TEMPERATURE,
)
from focalcal.common.constraints import UNIQUE, OpenShare, Positive, SchemaKeyword, Section, Seed
from focalcal.common.intervals import CONFIDENCE
from focalcal.common.samples import FEWEST_SAMPLES
from focalcal.theory.settings import TheorySettings
from focalcal.training.recipes import Recipe


def _matching(pattern: str, description: str, longest: int) -> tuple[SchemaKeyword, ...]:
    keywords = {"pattern": pattern, "maxLength": longest, "description": description}
    return tuple(SchemaKeyword(name, value) for name, value in keywords.items())


Name = Annotated[
    str,
    *_matching(
        "^[A-Za-z0-9][A-Za-z0-9.:_+-]*$",
        "A name of letters, digits, dot, colon, plus, minus and underscore.",
        100,
    ),
]
Names = Annotated[tuple[Name, ...], MinLen(1), UNIQUE]
DatasetName = Annotated[
    str,
    *_matching("^[A-Za-z0-9][A-Za-z0-9._-]*$", "A name of letters, digits, dot, minus and underscore.", 100),
]
LogitsName = Annotated[
    str,
    *_matching(
        "^[A-Za-z0-9][A-Za-z0-9._+-]*$",
        "A name of letters, digits, dot, plus, minus and underscore.",
        100,
    ),
]
PublishedName = Annotated[
    str,
    *_matching("^[A-Za-z0-9][A-Za-z0-9._/-]*$", "The name of a collection, or COLLECTION/NETWORK.", 200),
]
PathText = Annotated[
    str,
    *_matching("^[^{}<>]+$", "A path without {, }, < and >, which Snakemake reads as wildcards.", 4000),
]
Bins = Annotated[int, Ge(1), Le(1000)]
Criterion = Annotated[str, SchemaKeyword("enum", list(CRITERIA))]
MethodNames = Annotated[tuple[str, ...], MinLen(1), UNIQUE]
Distortion = Annotated[str, SchemaKeyword("enum", list(DISTORTIONS))]
MOST_SAMPLES = 10_000_000
EvaluatedCount = Annotated[int, Ge(FEWEST_SAMPLES["val"]), Le(MOST_SAMPLES)]

LEFT_OUT: Any = None
"""Default of a key that has no default here: what leaving it out means depends on other keys."""


@dataclass(frozen=True)
class RunBlock(Section):
    """One block of runs: the product of its lists, all trained by one recipe."""

    datasets: Names
    """Names of datasets, from the registry or from `datasets`."""
    models: Names
    """Names of models, or timm:NAME for any model of timm."""
    losses: Names
    """Loss ids; those of the focal family carry their gamma, as in focal-2."""
    seeds: Annotated[tuple[Seed, ...], MinLen(1), UNIQUE]
    """Random seeds, one run each; they fix initial weights, batch order and augmentation."""
    recipe: str
    """Name of a recipe under `recipes`, which says how these runs are optimised."""


@dataclass(frozen=True)
class LogitsEntry(Section):
    """Where one set of logits is, and which run it stands for."""

    path: PathText
    """The file with validation and test logits and labels (.npz, .safetensors, .csv, .parquet). Without
    {, }, < and >, which Snakemake reads as wildcards."""
    dataset: Name
    """Name of the dataset as tables show it; it need not be in the registry."""
    model: Name
    """Name of the model as tables show it."""
    loss: Name
    """Loss that the network was trained with; Psi takes its gamma from an id such as focal-2."""
    seed: Seed
    """Seed of the run; it keeps several runs of one model apart."""
    kind: Literal["logits", "probabilities"] = "logits"
    """What the file holds; probabilities are turned into logits by their logarithm."""
    split: Literal["stored", "halves"] = "stored"
    """halves: the file has no validation samples, only `logits` and `labels`. It stands for two runs of one
    network, this seed and the next: half of its samples validates and the other half tests, then they
    swap."""


@dataclass(frozen=True)
class SplitSizes(Section):
    """Number of samples in each split of an embedded dataset (gauss-3, gauss-10, digits)."""

    train: Annotated[int, Ge(FEWEST_SAMPLES["train"]), Le(MOST_SAMPLES)] = LEFT_OUT
    """Number of training samples."""
    val: EvaluatedCount = LEFT_OUT
    """Number of validation samples, on which calibrators are fitted."""
    test: EvaluatedCount = LEFT_OUT
    """Number of test samples, on which everything is measured."""


@dataclass(frozen=True)
class DatasetSettings(Section):
    """The settings of one dataset; those left out keep the defaults of focalcal/data/registry/NAME.toml."""

    base: Annotated[str, MinLen(1)] = LEFT_OUT
    """A built-in dataset that this one is a variant of, with its own parameters, such as another number of
    training samples. The variant's name must not be that of another dataset."""
    sizes: SplitSizes = LEFT_OUT
    seed: Seed = LEFT_OUT
    """Random seed that draws an embedded dataset or splits one of your own (0 by default)."""
    noise: Annotated[float, Ge(0), Le(100)] = LEFT_OUT
    """Factor on the class widths of gauss-3 and gauss-10, above 0 (1 is the default; more means a larger
    Bayes error); standard deviation of the pixel noise added to digits, pixels being in [0, 1] (0 is the
    default)."""
    split_seed: Seed = LEFT_OUT
    """Random seed that holds validation images out of an official training set; papers use 1."""
    validation: EvaluatedCount | OpenShare = LEFT_OUT
    """Validation samples held out of training, as a number of samples or, for data of your own, as a share of
    all of them (0.1 by default)."""
    test: EvaluatedCount | OpenShare = LEFT_OUT
    """Test samples of data of your own without a test split, as a number of samples or as a share of all of
    them (0.2 by default)."""
    fraction: Annotated[float, Gt(0), Le(1)] = LEFT_OUT
    """Share of the training images of each class that cifar10-s keeps."""
    folder: PathText = LEFT_OUT
    """Your own images: a folder with one sub-folder per class, or with train, test and optionally val folders
    that have them. Relative to the working directory, or absolute. Without {, }, < and >, which Snakemake
    reads as wildcards."""
    image_size: Annotated[int, Ge(1), Le(1024)] | None = LEFT_OUT
    """Side in pixels of the square that images of `folder` are scaled and centre-cropped to; null keeps their
    size, which must then be the same for all."""
    greyscale: bool = LEFT_OUT
    """Whether images of `folder` are read with one grey channel instead of three colour channels (false by
    default)."""
    npz: PathText = LEFT_OUT
    """Your own arrays: an .npz file with inputs and labels (docs/add-a-dataset.md lists the names). Relative
    to the working directory, or absolute. Without {, }, < and >, which Snakemake reads as wildcards."""
    texts: PathText = LEFT_OUT
    """Your own labelled texts: a CSV file with the columns text, label and optionally split, or a folder laid
    out as for images, with .txt files. Relative to the working directory, or absolute. Without {, },
    < and >, which Snakemake reads as wildcards."""
    vocabulary: Annotated[int, Ge(1), Le(10_000_000)] = LEFT_OUT
    """Number of words of `texts` that are kept, the most frequent ones (20,000 by default)."""
    length: Annotated[int, Ge(1), Le(10_000_000)] = LEFT_OUT
    """Number of words of each of the `texts` that are kept, its last ones (1,000 by default)."""
    vectors: str | None = "glove-6b-100d"
    """Word vectors that texts start from: glove-6b-100d, or null for random ones, which a recipe should train
    with word_vector_rate."""
    dimensions: Annotated[int, Ge(1), Le(1000)] = LEFT_OUT
    """Dimension of the word vectors; those of glove-6b-100d have 100."""
    options: dict[str, Any] = LEFT_OUT
    """Anything you like, handed to load(options) of your own extensions/datasets/NAME.py."""


@dataclass(frozen=True)
class TemperatureGrid(Section):
    """Grid of temperatures: start, start + step, ... up to stop."""

    start: Annotated[float, Ge(SMALLEST_TEMPERATURE), Le(1000)]
    """Smallest temperature."""
    stop: Annotated[float, Gt(0), Le(1000)]
    """Largest temperature, not below start."""
    step: Annotated[float, Gt(0), Le(1000)]
    """Distance between neighbouring temperatures."""


@dataclass(frozen=True)
class CalibrationSection(Section):
    """The calibration stage."""

    methods: MethodNames
    """Calibrators to fit and measure, by name."""
    criteria: Annotated[tuple[Criterion, ...], MinLen(1), UNIQUE]
    """What calibrators are fitted by: each criterion is minimised on validation data and reported
    separately."""
    gammas: Annotated[tuple[Annotated[float, Ge(SMALLEST_GAMMA), Le(LARGEST_GAMMA)], ...], MinLen(1), UNIQUE]
    """Grid of the focal map's gamma; gamma 0, plain temperature scaling, is always included."""
    temperatures: TemperatureGrid
    bins: Bins
    """Number of bins of ece, adaece, mce and classwise_ece; the papers use 15 (C21 uses 10)."""
    adaece: Literal["split", "authors"]
    """Equal-mass binning: split divides the sorted samples evenly, authors interpolates edges as M20's code
    did."""
    sizes: Annotated[tuple[EvaluatedCount, ...], UNIQUE] = ()
    """Numbers of validation samples for which calibrators are compared as well: they are fitted by log-loss
    to subsamples of the validation split. A run leaves out those that its validation split does not have."""
    repetitions: Annotated[int, Ge(2), Le(1000)] = 10
    """Subsamples of each size. Large sizes have fewer, 20,000 samples in all, but at least six; the size
    that is the whole split has one, and its bootstrap resamples."""
    sizes_methods: Annotated[tuple[str, ...], UNIQUE] = ()
    """Calibrators that are compared for these sizes: ts, and others that are fitted by log-loss, or not at
    all, whatever the training loss. Left out, those of calibration.methods."""


@dataclass(frozen=True)
class RecoverySection(Section):
    """The posterior recovery stage."""

    bins: Bins
    """Number of bins of the stage's ECE; C21 uses 10."""
    human_labels: dict[Name, PathText] = field(default_factory=dict)
    """Human label distributions of test samples, by dataset; predictions of its runs are compared with them.
    Each is download (CIFAR-10H for cifar10, from its authors' repository or the file cifar10h-probs.npy in
    CACHE/cifar10), or the path of a .npy file, or of a .npz file with an array probs, of shape (test samples,
    classes): rows sum to 1, in the order of the test samples. Without {, }, < and >, which Snakemake reads as
    wildcards."""


@dataclass(frozen=True)
class SimulationSection(Section):
    """The simulation: calibrators on logits made from known posteriors, for each distortion."""

    classes: Annotated[tuple[Annotated[int, Ge(2), Le(10_000)], ...], MinLen(1), UNIQUE]
    """Numbers of classes."""
    samples: Annotated[tuple[EvaluatedCount, ...], MinLen(1), UNIQUE]
    """Numbers of validation samples that calibrators are fitted to."""
    repetitions: Annotated[int, Ge(1), Le(1000)] = 50
    """Draws of validation samples. Large cells have fewer: as many as have 2,500,000 logits, at least two;
    calibrators with matrices or cross-validation have three, with at most ten classes."""
    distortions: Annotated[tuple[Distortion, ...], MinLen(1), UNIQUE] = tuple(DISTORTIONS)
    """What is wrong with the logits; nothing shows what the parameters of a calibrator cost."""
    methods: MethodNames = ("none", "ts", "fts", "two-ts", "ets", "isotonic", "svs", "fts-svs")
    """Calibrators, which are fitted by log-loss or not at all, whatever the training loss."""
    seed: Seed = 0
    """Random seed."""


@dataclass(frozen=True)
class ReportSection(Section):
    """The reporting stage."""

    title: Annotated[str, Len(1, 120)] = LEFT_OUT
    """Title of the report. Left out, it is the name of the last --configfile, else the names of your own
    logits if nothing else is calibrated."""
    confidence: OpenShare = CONFIDENCE
    """Level of the intervals in tables, figures, charts and verdicts."""
    metric: str = "nll"
    """Metric that the overview and figures show. Verdicts are by log-loss first in any case."""
    criterion: Criterion = "nll"
    """What the shown calibrators are fitted by on validation data, one of calibration.criteria."""
    resamples: Annotated[int, Ge(100), Le(100_000)] = 1000
    """Bootstrap draws of each run's test samples."""
    reliability_methods: MethodNames = ("none", "ts", "fts", "psi")
    """Calibrators that get a column of reliability diagrams, each one of calibration.methods. Those of the
    default that are not among them are left out."""
    recommend: bool = True
    """Whether a calibrator is recommended for each run, by cross-validation, and saved. It takes as long as
    all calibration, and studies of many small runs need none."""


@dataclass(frozen=True)
class PlanSection(Section):
    """What the target `plan` assumes when it estimates cost."""

    images_per_second: Annotated[dict[str, Positive], SchemaKeyword("required", ["default"])]
    """Estimated training throughput of one GPU in images per second, by model; `default` is for all other
    models. It holds for 32 x 32 images: time grows with the number of pixels. Replace the estimates with your
    own measurements."""


@dataclass(frozen=True)
class Config(Section):
    """A focalcal configuration."""

    runs: tuple[RunBlock, ...]
    """Blocks of training runs; each block is the product of its lists. An empty list trains nothing."""
    logits: dict[LogitsName, LogitsEntry]
    """Logits of networks trained elsewhere, by a name of your choice; they are calibrated and reported like
    any run."""
    datasets: dict[DatasetName, DatasetSettings]
    """Parameters of built-in datasets, and datasets of your own, by name. Which keys a dataset accepts
    depends on what it is; a key that does not fit is refused with the list of those that do."""
    cache: Annotated[str, MinLen(1)] | None
    """Folder for downloads, shared between clones; null means $FOCALCAL_CACHE or ~/.cache/focalcal."""
    recipes: dict[str, Recipe]
    """How runs are optimised, by name."""
    calibration: CalibrationSection
    recovery: RecoverySection
    theory: TheorySettings
    report: ReportSection
    plan: PlanSection
    simulation: SimulationSection = LEFT_OUT
    published: Annotated[tuple[PublishedName, ...], UNIQUE] = ()
    """Collections of published networks, or single ones as COLLECTION/NETWORK; their logits are fetched,
    calibrated and reported like any run."""
