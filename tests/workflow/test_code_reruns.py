"""Which jobs an edit of a file runs again: the params of all jobs, before and after edits of every kind."""

import pytest

from tests.project import Project, copy_sources, make_tiny
from tests.workflow.job_params import job_params

LOSSES = ["ce", "focal-2", "adafocal", "mmce", "poly-2"]
NETWORKS = [("gauss-3", "mlp", LOSSES), ("digits", "resnet8", ["ce"]), ("sst-binary", "tree-lstm", ["ce"])]
METHODS = ["none", "ts", "fts", "psi", "vs"]
TRAIN = {f"train {model} {loss}" for _, model, losses in NETWORKS for loss in losses}
PREDICT = {f"dump_logits {model} {loss}" for _, model, losses in NETWORKS for loss in losses}
COMPUTING = {
    *("fetch_data", "train", "dump_logits", "import_logits", "calibrate", "recommend", "recover"),
    *("recovery_human", "theory_tables", "theory_checks"),
}
"""All other rules count as `reporting`."""


def of_model(model):
    return {job for job in TRAIN | PREDICT if f" {model} " in job}


INERT = {
    "a comment": ("training/losses.py", "import torch", "# A remark.\nimport torch"),
    "a docstring": ("calibration/run.py", '"""Return', '"""Here is'),
    "the text of an error in training": ("training/mmce.py", "variant must be", "the variant has to be"),
    "the text of an error with values": ("training/checkpoint.py", "is damaged (its", "is broken (its"),
    "how errors end a program": ("common/errors.py", "USER_ERROR_EXIT_CODE = 2", "USER_ERROR_EXIT_CODE = 3"),
    "parts of messages": ("common/messages.py", "= 80", "= 90"),
    "the loader of extensions": ("common/extensions.py", "does not define what", "lacks what"),
    "reading of declarations": ("common/declarations.py", "must be a literal", "has to be a literal"),
    "writing of CSV files": ("common/csv_rows.py", "rows = list(rows)", "rows = [*rows]"),
    "atomic writing": ("common/io.py", ".partial", ".part"),
    "checksums": ("common/checksums.py", "the same command", "that command"),
    "types of the configuration": ("common/constraints.py", "2**32", "2**31"),
    "the digests themselves": ("common/codehash.py", "slows Python", "slows it"),
    "lines in the log of a training": ("training/progress.py", "LINE_SECONDS = 1.0", "LINE_SECONDS = 2.0"),
    "a progress bar": ("data/progress.py", "import time", "import time\n\nCHANGED = True"),
    "downloads": ("data/download.py", "import time", "import time\n\nCHANGED = True"),
    "records of provenance": ("config/provenance.py", "timeout=10", "timeout=20"),
    "an entry point": ("../workflow_scripts/train.py", "128 + received[0]", "129 + received[0]"),
    "what entry points share": ("../workflow_scripts/entry.py", "100_000", "200_000"),
    "a model's description": ("training/models/he_resnet.py", "He's CIFAR ResNet-8", "The ResNet-8"),
    "a loss's description": ("training/losses.py", 'description="cross-entropy"', 'description="CE"'),
    "the catalogue of models": ("training/models/catalogue.py", "unknown model", "no model"),
    "a comment in the registry": ("data/registry/gauss-3.toml", "# Defaults", "# The defaults"),
}
CODE = {
    "training/losses.py": TRAIN,
    "training/adafocal.py": {"train mlp adafocal"},
    "training/mmce.py": {"train mlp mmce"},
    "training/losses_after_m20.py": {"train mlp poly-2"},
    "training/proper.py": set(),
    "training/loop.py": TRAIN,
    "training/recipes.py": TRAIN | PREDICT,
    "training/batches.py": TRAIN | PREDICT,
    "training/logits.py": PREDICT,
    "training/models/build.py": TRAIN | PREDICT,
    "training/models/mlp.py": of_model("mlp"),
    "training/models/he_resnet.py": of_model("resnet8"),
    "training/models/tree_lstm.py": of_model("tree-lstm"),
    "training/models/densenet.py": set(),
    "training/models/timm_models.py": set(),
    "training/appearance.py": set(),
    "calibration/run.py": {"calibrate", "recommend"},
    "calibration/methods/scaling.py": {"calibrate", "recommend"},
    "calibration/methods/dirichlet.py": set(),
    "calibration/methods/ensemble.py": set(),
    "calibration/recommend.py": {"recommend"},
    "calibration/scores/diagnostics.py": {"calibrate", "recommend"},
    "calibration/metrics.py": {"calibrate", "recommend", "recover"},
    "calibration/files/imports.py": {"import_logits"},
    "recovery/recover.py": {"recover"},
    "theory/psi.py": {
        *("calibrate", "recommend", "recover"),
        *("theory_tables", "theory_checks"),
    },
    "theory/linear_model.py": {"theory_checks"},
    "theory/certificate.py": {"theory_tables"},
    "data/synthetic.py": {"fetch_data"},
    "data/splits.py": TRAIN | PREDICT | {"fetch_data"},
    "reporting/records/collect.py": set(),
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A project with networks and losses of several files, which need not have run."""
    project = Project(tmp_path_factory.mktemp("sources"))
    copy_sources(project.root)

    def configure(config):
        make_tiny(config)
        config["published"] = ["kull2019-cifar10"]
        config["runs"] = [
            {"datasets": [dataset], "models": [model], "losses": losses, "seeds": [1], "recipe": "tiny"}
            for dataset, model, losses in NETWORKS
        ]
        config["calibration"]["methods"] = METHODS

    project.configure(configure)
    return project


@pytest.fixture(scope="module")
def before(sources):
    return job_params(sources.root)


@pytest.fixture
def project(sources, tmp_path):
    return sources.copy(tmp_path / "project")


def named(job):
    """Return a job as the tables above name it."""
    rule, *wildcards = job
    if rule not in COMPUTING:
        return "reporting"
    return " ".join([rule, *wildcards[1:3]]) if rule in {"train", "dump_logits"} else rule


def lines(params):
    """Return params one by one; those that depend on wildcards have several digests in one."""
    return {line for value in params for line in ([value] if "{" in str(value) else str(value).split())}


def jobs_again(before, after, start=""):
    """Return the jobs with different params, of those that begin in one way."""
    assert before.keys() == after.keys()
    differing = {job: lines(before[job]) ^ lines(after[job]) for job in before}
    return {named(job) for job, found in differing.items() if any(line.startswith(start) for line in found)}


def test_no_edit_of_words_or_plumbing_runs_anything_again(project, before):
    for path, old, new in INERT.values():
        project.edit(f"focalcal/{path}", old, new)
    after = job_params(project.root)
    assert {job: lines(before[job]) ^ lines(after[job]) for job in before if before[job] != after[job]} == {}


@pytest.fixture(scope="module")
def after_code(sources, tmp_path_factory):
    """The params after an edit of all files in `CODE`: each digest says which file it belongs to."""
    project = sources.copy(tmp_path_factory.mktemp("edited") / "project")
    for path in CODE:
        source = project.root / "focalcal" / path
        source.write_text(f"{source.read_text('utf-8')}\n\nCHANGED = True\n", encoding="utf-8")
    return job_params(project.root)


@pytest.mark.parametrize("path", CODE)
def test_an_edit_of_code_runs_again_what_computes_with_it(path, before, after_code):
    again = jobs_again(before, after_code, f"focalcal/{path}=")
    assert again - {"reporting"} == CODE[path]


def test_a_new_file_of_each_kind_runs_no_computation_again(project, before):
    def add(path, text):
        (project.root / "focalcal" / path).write_text(text, encoding="utf-8")

    add(
        "training/models/new.py",
        "from focalcal.training.models.catalogue import model\n\n\n"
        '@model(id="new", description="new")\ndef new(shape, classes): ...\n',
    )
    add(
        "training/new_loss.py",
        "from focalcal.training.catalogue import loss\n\n\n"
        '@loss(id="new", description="new")\ndef new(logits, labels, context): ...\n',
    )
    assert job_params(project.root) == before
    add(
        "calibration/new.py",
        "from focalcal.calibration.catalogue import calibrator\n\n\n"
        '@calibrator(id="new", label="New")\nclass New: ...\n',
    )
    assert jobs_again(before, job_params(project.root)) == {"reporting"}


def test_a_label_runs_again_what_shows_it(project, before):
    project.edit("focalcal/calibration/calibrators.py", 'label="TS"', 'label="Scaled"')
    after = job_params(project.root)
    assert jobs_again(before, after) == jobs_again(before, after, "vocabulary=") == {"reporting"}


def test_a_template_runs_the_report_again(project, before):
    project.edit("focalcal/reporting/templates/report.css", "body", "html")
    assert jobs_again(before, job_params(project.root)) == {"reporting"}


@pytest.mark.parametrize(
    ("section", "key", "value", "expected"),
    [
        ("recovery", "bins", 12, {"recover"}),
        ("calibration", "bins", 12, {"calibrate", "recommend"}),
        ("calibration", "criteria", ["ece", "nll"], {"calibrate"}),
        ("report", "title", "Another", set()),
        ("theory", "linear_model_steps", 7, {"theory_checks"}),
    ],
)
def test_a_setting_runs_again_what_reads_it(project, before, section, key, value, expected):
    project.configure(lambda config: config[section].update({key: value}))
    assert jobs_again(before, job_params(project.root)) - {"reporting"} == expected


PACKAGES = {
    "torch": TRAIN | PREDICT,
    "torchvision": of_model("resnet8"),
    "timm": set(),
    "numba": {"calibrate", "recommend", "recover"},
    "python-flint": {"theory_tables"},
}


def test_another_version_of_a_package_runs_again_what_computes_with_it(project, before):
    for package in PACKAGES:
        metadata = project.root / f"{package.replace('-', '_')}-99.9.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 99.9\n", encoding="utf-8")
    after = job_params(project.root)
    again = {package: jobs_again(before, after, f"{package}==") - {"reporting"} for package in PACKAGES}
    assert again == PACKAGES
