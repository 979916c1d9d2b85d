"""Calibration: all calibrators and criteria of one run in one job; the calibrator to use in another."""


rule calibrate:
    """Fit every calibrator on validation logits, score it on both splits, compare it with TS and FTS on test samples."""
    input:
        logits="results/runs/{dataset}/{model}/{loss}/seed{seed}/logits.npz",
    output:
        metrics="results/calibration/{dataset}/{model}/{loss}/seed{seed}/metrics.csv",
        fits="results/calibration/{dataset}/{model}/{loss}/seed{seed}/fits.json",
        surfaces="results/calibration/{dataset}/{model}/{loss}/seed{seed}/surfaces.npz",
        diagnostics="results/calibration/{dataset}/{model}/{loss}/seed{seed}/diagnostics.json",
    log:
        "logs/calibrate/{dataset}/{model}/{loss}/seed{seed}.log",
    benchmark:
        "results/benchmarks/calibrate/{dataset}/{model}/{loss}/seed{seed}.tsv"
    conda:
        "../envs/calibration.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/calibrate.py", *CALIBRATORS),
        spec=ask(GRID.calibration_spec, "run"),
    shell:
        "python -m workflow_scripts.calibrate"
        " --spec {params.spec:q}"
        " --logits {input.logits:q}"
        " --metrics {output.metrics:q}"
        " --fits {output.fits:q}"
        " --surfaces {output.surfaces:q}"
        " --diagnostics {output.diagnostics:q}"
        " > {log:q} 2>&1"


rule calibrate_all:
    """Calibration of all runs."""
    input:
        collect("results/calibration/{run}/metrics.csv", run=GRID.paths),


rule validation_sizes:
    """Scores of calibrators that are fitted by log-loss to few validation samples, with what intervals need.

    The other rule that fits and predicts: a separate job, since it costs more than all else of a run, few
    configurations ask for it, and another size should not calibrate again.
    """
    input:
        logits="results/runs/{dataset}/{model}/{loss}/seed{seed}/logits.npz",
    output:
        record="results/calibration/{dataset}/{model}/{loss}/seed{seed}/sizes.json",
        scores="results/calibration/{dataset}/{model}/{loss}/seed{seed}/sizes.npz",
    log:
        "logs/validation_sizes/{dataset}/{model}/{loss}/seed{seed}.log",
    benchmark:
        "results/benchmarks/validation_sizes/{dataset}/{model}/{loss}/seed{seed}.tsv"
    conda:
        "../envs/calibration.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        *code_version("workflow_scripts/validation_sizes.py", *SIZE_CALIBRATORS),
        spec=ask(GRID.sizes_spec, "run"),
    shell:
        "python -m workflow_scripts.validation_sizes"
        " --spec {params.spec:q}"
        " --logits {input.logits:q}"
        " --record {output.record:q}"
        " --scores {output.scores:q}"
        " > {log:q} 2>&1"


rule recommend:
    """The calibrator to use for one run, chosen by cross-validated log-loss on validation logits, saved."""
    input:
        logits="results/runs/{dataset}/{model}/{loss}/seed{seed}/logits.npz",
        fits="results/calibration/{dataset}/{model}/{loss}/seed{seed}/fits.json",
        metrics="results/calibration/{dataset}/{model}/{loss}/seed{seed}/metrics.csv",
        diagnostics="results/calibration/{dataset}/{model}/{loss}/seed{seed}/diagnostics.json",
    output:
        calibrator="results/recommended/{dataset}/{model}/{loss}/seed{seed}.json",
    log:
        "logs/recommend/{dataset}/{model}/{loss}/seed{seed}.log",
    benchmark:
        "results/benchmarks/recommend/{dataset}/{model}/{loss}/seed{seed}.tsv"
    conda:
        "../envs/calibration.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/recommend.py", *CALIBRATORS),
        spec=ask(GRID.recommendation_spec, "run"),
    shell:
        "python -m workflow_scripts.recommend"
        " --spec {params.spec:q}"
        " --logits {input.logits:q}"
        " --fits {input.fits:q}"
        " --metrics {input.metrics:q}"
        " --diagnostics {input.diagnostics:q}"
        " --output {output.calibrator:q}"
        " > {log:q} 2>&1"


rule recommend_all:
    """The recommended calibrators of all runs."""
    input:
        collect("results/recommended/{run}.json", run=GRID.paths),
