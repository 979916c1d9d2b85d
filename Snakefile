"""focalcal: a benchmark suite for focal loss and calibration. Each stage is one file under rules/."""

from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

min_version("9.14.8")

if not Path(str(workflow.current_basedir)).is_dir():
    raise WorkflowError(
        f"{workflow.current_basedir} is not a folder, and jobs import the packages beside this Snakefile; "
        "allowed: a clone; clone the repository and name the Snakefile of the clone"
    )


# Beside this file, wherever `--directory` puts the results and whichever workflow uses this one as a module.
configfile: f"{workflow.current_basedir}/configs/recipes.yaml"
configfile: f"{workflow.current_basedir}/config.yaml"


include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/training.smk"
include: "rules/calibration.smk"
include: "rules/recovery.smk"
include: "rules/theory.smk"
include: "rules/reporting.smk"
include: "rules/simulation.smk"


rule all:
    """Everything; theory is left out if only own logits are studied."""
    default_target: True
    input:
        rules.data_all.input,
        rules.train_all.input,
        rules.calibrate_all.input,
        rules.recover_all.input,
        [] if GRID.own_logits_only else rules.theory_all.input,
        rules.report_all.input,
        rules.simulate_all.input,


answer_if_idle(
    {
        "inspect_data": rules.data_all.input,
        "theory_tables": rules.theory_tables.output,
        "theory_checks": rules.theory_checks.output,
        "theory_figures": rules.theory_all.input,
        "simulate": rules.simulate_all.input,
        "report": rules.report_all.input,
    }
)
