"""The validated configuration, what rules may call, and which wildcard values exist."""

import gc
import json
import sys
from functools import cache, partial
from pathlib import Path

# The libraries of Snakemake stay loaded. Looking for garbage among them would take a fifth of the time of a start.
gc.freeze()
ROOT = Path(str(workflow.current_basedir)).parent
# This checkout's focalcal, whichever is installed; a workflow that uses this one as a module keeps its path.
sys.path.insert(0, str(ROOT))
import focalcal

sys.path.remove(str(ROOT))

from focalcal.calibration import catalogue
from focalcal.config.provenance import job_params, own_params
from focalcal.reporting import products
from focalcal.reporting.records import state
from focalcal.snakemake_shim.start import (
    before_jobs,
    read_accepted,
    read_configuration,
)
from focalcal.theory.settings import job_settings
from focalcal.training.catalogue import loss_file
from focalcal.training.models.catalogue import model_file

GRID = read_configuration(
    config,
    ROOT,
    workflow.overwrite_configfiles,
    is_main_process=workflow.is_main_process,
    is_module=Path(workflow.basedir).resolve()
    not in [ROOT.resolve(), ROOT.resolve() / "workflow"],
)
ACCEPTED = read_accepted()
code_version = cache(partial(job_params, ACCEPTED))
CALIBRATORS = catalogue.declaring_files(config["calibration"]["methods"])
SIMULATED_CALIBRATORS = catalogue.declaring_files(
    GRID.simulation_spec.get("methods", ())
)
SIZE_CALIBRATORS = catalogue.declaring_files(GRID.sizes_methods)
LAYOUT = products.Layout(GRID)
REPORT = "results/report.html"
# Written by `focalcal accept`, which no rule calls.
REVIEWED = ["results/accepted.json"] if ACCEPTED.entries else []
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


def ask(method, *subjects):
    """Return a function of wildcards: what a method of the grid answers about their "run", "dataset" or "model".

    A spec, everything besides input files and code that determines what a job makes, is passed as text.
    """

    def answer(wildcards):
        named = {name: getattr(wildcards, name, None) for name in subjects}
        if "run" in named:
            path = "{0.dataset}/{0.model}/{0.loss}/seed{0.seed}".format(wildcards)
            named["run"] = GRID[path]
        found = method(**named)
        return spec_text(found) if isinstance(found, dict) else found

    return answer


def own_code(entry_point, file_of, wildcard):
    """Return a function of wildcards: digests of the file of a loss or model, excluding files shared by all runs."""

    def digests(wildcards):
        file = file_of(getattr(wildcards, wildcard))
        return " ".join(own_params(ACCEPTED, entry_point, file))

    return digests


def human_labels(wildcards):
    """Return the human labels that a run is compared with: one file or none."""
    known = wildcards.dataset in GRID.human_labels
    return [f"results/human_labels/{wildcards.dataset}.npz"] if known else []


def package_files(pattern):
    """Return data files of the package, for the digests of rules that read them."""
    return sorted(
        str(path.relative_to(ROOT)) for path in ROOT.glob(f"focalcal/{pattern}")
    )


def product_params(chosen, *data):
    """Return digests of all behind some products, what is built, and the settings of the report that it declares.

    The modules of products are loaded by name, not imported.
    """
    modules = sorted({module for product in chosen for module in product.modules})
    digests = code_version("workflow_scripts/products.py", *modules, *data)
    spec = {
        "kind": chosen[0].kind if chosen else "figure",
        "names": [product.name for product in chosen],
        "settings": LAYOUT.settings(chosen),
    }
    return {"code": " ".join([*digests, VOCABULARY]), "spec": spec_text(spec)}


def shown_in_report(chosen, suffix):
    """Return the files of tables or figures, each under its heading in Snakemake's own report."""
    return [_report_entry(product, _files([product], suffix)) for product in chosen]


def _report_entry(product, files):
    pair = "All runs" if product.scope == "all" else "{dataset}, {model}"
    page, labels = products.PAGES[product.page], {product.kind: product.heading}
    return report(files, category=page, subcategory=pair, labels=labels)


def figure_files(chosen):
    """Return the files of figures, over all runs or of one dataset and model."""
    return [*_files(chosen, "pdf"), *shown_in_report(chosen, "png")]


def _files(chosen, suffix):
    over_all = all(product.scope == "all" for product in chosen)
    return (LAYOUT.files if over_all else LAYOUT.patterns)(chosen, suffix)


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


def answer_if_idle(final):
    """Let the terminal say whether the results belong to the configuration where there is nothing to do.

    `final` has, for some rules, the last files that are made where they are asked for.
    """
    plugin = sys.modules.get("snakemake_logger_plugin_focalcal")
    if plugin and workflow.is_main_process:
        results = Path(REPORT).parent
        plugin.when_idle = partial(state.tell, config, GRID, results, final)


onstart:
    before_jobs(config, Path(REPORT))
