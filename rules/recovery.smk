"""Posterior recovery: Psi at the training gamma against raw and temperature-scaled predictions."""


rule recovery_human:
    """How people labelled the test samples of one dataset, fetched or read from the user's file, and checked."""
    input:
        ask(GRID.human_files, "dataset"),
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
        spec=ask(GRID.human_spec, "dataset"),
    shell:
        "python -m workflow_scripts.recovery_human"
        " --spec {params.spec:q}"
        " --output {output.human:q}"
        " > {log:q} 2>&1"


rule recover:
    """Compare recovered, calibrated and raw predictions of one dataset and model with the posterior, true or human."""
    input:
        logits=runs_files("results/runs/{run}/logits.npz"),
        fits=runs_files("results/calibration/{run}/fits.json"),
        human=human_labels,
    output:
        metrics="results/recovery/{dataset}/{model}/metrics.csv",
        record="results/recovery/{dataset}/{model}/recovery.json",
    log:
        "logs/recover/{dataset}/{model}.log",
    benchmark:
        "results/benchmarks/recover/{dataset}/{model}.tsv"
    conda:
        "../envs/calibration.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/recover.py"),
        spec=ask(GRID.recovery_spec, "dataset", "model"),
    shell:
        # A spec that grows with the number of runs comes from standard input, by a part of the shell: a program takes
        # no argument of more than 128 KiB.
        "printf %s {params.spec:q} | python -m workflow_scripts.recover"
        " --spec -"
        " --logits {input.logits:q}"
        " --fits {input.fits:q}"
        " --human {input.human:q}"
        " --metrics {output.metrics:q}"
        " --record {output.record:q}"
        " > {log:q} 2>&1"


rule recover_all:
    """Posterior recovery of all runs, with its figures."""
    input:
        collect("results/recovery/{pair}/metrics.csv", pair=LAYOUT.dataset_models),
        LAYOUT.files(LAYOUT.products("figure", stage="recovery")),
