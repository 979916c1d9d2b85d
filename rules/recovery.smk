"""Posterior recovery: Psi at the training gamma against raw and temperature-scaled predictions."""

from focalcal.reporting import recovery_layout

RECOVERY = recovery_layout.Plan(GRID, GRID, config["recovery"], config["datasets"])


rule recovery_human:
    """How people labelled the test samples of one dataset, fetched or read from the user's file, and checked."""
    input:
        RECOVERY.human_sources,
    output:
        human="results/human_labels/{dataset}.npz",
    log:
        "logs/recovery_human/{dataset}.log",
    conda:
        "../envs/data.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/recovery_human.py"),
        spec=RECOVERY.human_spec,
    shell:
        "python -m workflow_scripts.recovery_human"
        " --spec {params.spec:q}"
        " --output {output.human:q}"
        " > {log:q} 2>&1"


rule recover:
    """Compare recovered, calibrated and raw predictions of one run with the posterior, true or human."""
    input:
        logits="results/runs/{dataset}/{model}/{loss}/seed{seed}/logits.npz",
        fits="results/calibration/{dataset}/{model}/{loss}/seed{seed}/fits.json",
        human=RECOVERY.human_files,
    output:
        metrics="results/recovery/{dataset}/{model}/{loss}/seed{seed}/metrics.csv",
        record="results/recovery/{dataset}/{model}/{loss}/seed{seed}/recovery.json",
    log:
        "logs/recover/{dataset}/{model}/{loss}/seed{seed}.log",
    conda:
        "../envs/calibration.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/recover.py"),
        spec=RECOVERY.spec,
    shell:
        "python -m workflow_scripts.recover"
        " --spec {params.spec:q}"
        " --logits {input.logits:q}"
        " --fits {input.fits:q}"
        " --human {input.human:q}"
        " --metrics {output.metrics:q}"
        " --record {output.record:q}"
        " > {log:q} 2>&1"


rule recovery_tables:
    """Distances to posteriors, ECE with and without Psi, and who is under- or overconfident, over seeds."""
    input:
        records=collect("results/recovery/{run}/recovery.json", run=GRID.paths),
        runs=collect("results/runs/{run}/run.json", run=GRID.paths),
        logits=collect("results/runs/{run}/logits.npz", run=GRID.paths),
        data=collect("results/data/{dataset}.json", dataset=GRID.datasets),
    output:
        recovery_layout.table_files(RECOVERY.tables, "md", "tex"),
        report(
            recovery_layout.table_files(RECOVERY.tables, "csv"),
            caption="../report/recovery_tables.rst",
            category="Tables",
            subcategory="Posterior recovery",
        ),
    log:
        "logs/recovery_tables.log",
    benchmark:
        "results/benchmarks/recovery_tables.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/recovery_tables.py"),
        spec=RECOVERY.summary_spec,
    shell:
        "printf %s {params.spec:q} | python -m workflow_scripts.recovery_tables"
        " --spec -"
        " --results results"
        " --output results/tables"
        " > {log:q} 2>&1"


rule recovery_figures:
    """Predictions over x, distances to posteriors, reliability and ECE with and without Psi."""
    input:
        records=collect("results/recovery/{run}/recovery.json", run=GRID.paths),
        runs=collect("results/runs/{run}/run.json", run=GRID.paths),
        data_records=collect("results/data/{dataset}.json", dataset=GRID.datasets),
        data=RECOVERY.curve_inputs,
    output:
        recovery_layout.figure_files(RECOVERY.figures, "pdf"),
        report(
            recovery_layout.figure_files(RECOVERY.figures, "png"),
            caption="../report/recovery_figures.rst",
            category="Posterior recovery",
        ),
    log:
        "logs/recovery_figures.log",
    benchmark:
        "results/benchmarks/recovery_figures.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/recovery_figures.py"),
        spec=RECOVERY.figures_spec,
    shell:
        "printf %s {params.spec:q} | python -m workflow_scripts.recovery_figures"
        " --spec -"
        " --results results"
        " --output results/figures/recovery"
        " > {log:q} 2>&1"


rule recover_all:
    """Posterior recovery of all runs, with its tables and figures."""
    input:
        collect("results/recovery/{run}/metrics.csv", run=GRID.paths),
        rules.recovery_tables.output,
        rules.recovery_figures.output,
