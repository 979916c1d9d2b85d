"""The validated configuration, what rules may call, and which wildcard values exist."""

import gc
import json
import sys
from functools import cache
from pathlib import Path

# The libraries of Snakemake stay loaded. Looking for garbage among them would take a fifth of the time of a start.
gc.freeze()
ROOT = Path(str(workflow.current_basedir)).parent
sys.path.insert(0, str(ROOT))

from focalcal.calibration import catalogue
from focalcal.config.provenance import job_params
from focalcal.reporting import products
from focalcal.snakemake_shim.start import before_jobs, read_configuration
from focalcal.theory.settings import job_settings
from focalcal.training.catalogue import loss_file
from focalcal.training.models.catalogue import model_file

GRID = read_configuration(
    config,
    ROOT,
    workflow.overwrite_configfiles,
    is_main_process=workflow.is_main_process,
)
code_version = cache(job_params)
CALIBRATORS = catalogue.declaring_files(config["calibration"]["methods"])
LAYOUT = products.Layout(GRID)
REPORT = "results/report.html"
VOCABULARY = f"vocabulary={catalogue.fingerprint()}"


wildcard_constraints:
    dataset=GRID.constraint("dataset"),
    model=GRID.constraint("model"),
    loss=GRID.constraint("loss"),
    seed=r"0|[1-9]\d*",


def growing(first):
    """Return a resource that grows with each attempt: a job killed for memory or time may need more of it."""
    return lambda wildcards, attempt: first * attempt


def spec_text(settings):
    """Return a spec as rules pass it: JSON with sorted keys, so that equal settings are equal texts."""
    return json.dumps(settings, sort_keys=True)


def run_of(wildcards):
    """Return the run that a job's wildcards name."""
    return GRID["{0.dataset}/{0.model}/{0.loss}/seed{0.seed}".format(wildcards)]


def data_spec(wildcards):
    """Return everything that determines one prepared dataset."""
    return spec_text(GRID.data_spec(wildcards.dataset))


def data_files(wildcards):
    """Return the user's own files that a dataset is made from."""
    return GRID.data_files(wildcards.dataset)


def training_spec(wildcards):
    """Return everything that determines one trained model, besides data and code."""
    return spec_text(GRID.training_spec(run_of(wildcards)))


def loss_code(wildcards):
    """Return digests of the file of a run's loss, excluding files shared by all runs."""
    return _own_code("workflow_scripts/train.py", loss_file(wildcards.loss))


def model_code(entry_point):
    """Return a function of wildcards: digests of the file of a run's model, excluding files shared by all."""

    def digests(wildcards):
        return _own_code(entry_point, model_file(wildcards.model))

    return digests


def _own_code(entry_point, file):
    shared = set(code_version(entry_point))
    return " ".join(sorted({*code_version(file)} - shared))


def training_threads(wildcards):
    """Return the CPU threads that the run's recipe trains and predicts with."""
    return GRID.recipe(run_of(wildcards)).threads


def import_spec(wildcards):
    """Return everything that determines one set of imported logits."""
    return spec_text(GRID.import_spec(run_of(wildcards)))


def imported_file(wildcards):
    """Return the user's own file of logits: one, or none for a published network."""
    return GRID.import_files(run_of(wildcards))


def calibration_spec(wildcards):
    """Return everything that determines one run's calibration, besides its logits and code."""
    return spec_text(GRID.calibration_spec(run_of(wildcards)))


def recommendation_spec(wildcards):
    """Return everything that determines one run's recommended calibrator, besides its logits and code."""
    return spec_text(GRID.recommendation_spec(run_of(wildcards)))


def human_spec(wildcards):
    """Return everything that determines the human labels of a dataset."""
    return spec_text(GRID.human_spec(wildcards.dataset))


def human_sources(wildcards):
    """Return the user's own file of human labels: one or none."""
    return GRID.human_files(wildcards.dataset)


def human_labels(wildcards):
    """Return the human labels that a run is compared with: one file or none."""
    known = wildcards.dataset in GRID.human_labels
    return [f"results/human_labels/{wildcards.dataset}.npz"] if known else []


def theory_spec(rule):
    """Return the settings that one rule of the theory stage reads."""
    return spec_text(job_settings(config["theory"], rule))


def package_files(pattern):
    """Return data files of the package, for the digests of rules that read them."""
    return sorted(
        str(path.relative_to(ROOT)) for path in ROOT.glob(f"focalcal/{pattern}")
    )


def product_code(chosen, *data):
    """Return digests of all behind some products: their modules are loaded by name, not imported."""
    modules = sorted({module for product in chosen for module in product.modules})
    digests = code_version("workflow_scripts/products.py", *modules, *data)
    return " ".join([*digests, VOCABULARY])


def product_spec(chosen):
    """Return what is built, and the settings of the report that it declares."""
    return spec_text(
        {
            "kind": chosen[0].kind if chosen else "figure",
            "names": [product.name for product in chosen],
            "settings": LAYOUT.settings(chosen),
        }
    )


def shown_in_report(chosen, suffix):
    """Return the files of tables or figures, each under its heading in Snakemake's own report."""
    return [_report_entry(product, suffix) for product in chosen]


def _report_entry(product, suffix):
    if product.scope == "all":
        files, pair = LAYOUT.files([product], suffix), "All runs"
    else:
        files, pair = LAYOUT.patterns([product], suffix), "{dataset}, {model}"
    page, labels = products.PAGES[product.page], {product.kind: product.heading}
    return report(files, category=page, subcategory=pair, labels=labels)


def model_inputs(chosen):
    """Return a function of wildcards: the files that figures of one dataset and model read."""

    def files(wildcards):
        return LAYOUT.inputs(chosen, f"{wildcards.dataset}/{wildcards.model}")

    return files


def runs_files(pattern):
    """Return a function of wildcards: a file of each run of one dataset and model."""

    def files(wildcards):
        runs = GRID.runs_of(wildcards.dataset, wildcards.model)
        return [pattern.format(run=run.path) for run in runs]

    return files


# The specs below grow with the number of runs. `printf`, a part of the shell, writes them to standard input,
# since a program takes no argument of more than 128 KiB.


def recovery_spec(wildcards):
    """Return everything that determines the recovery of one dataset and model, besides its input files and code."""
    return spec_text(GRID.recovery_spec(wildcards.dataset, wildcards.model))


def runs_spec(wildcards):
    """Return what the collection of all runs needs: the sections that define them and the level of intervals."""
    return spec_text(GRID.runs_spec())


def whole_spec(wildcards):
    """Return the whole configuration."""
    return spec_text(config)


onstart:
    before_jobs(config, Path(REPORT))
