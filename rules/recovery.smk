"""Posterior recovery: Psi at the training gamma against raw and temperature-scaled predictions."""


rule recover:
    """Compare recovered, calibrated and raw predictions of one run with the true posterior where it is known."""
    input:
        logits="results/runs/{dataset}/{model}/{loss}/seed{seed}/logits.npz",
        fits="results/calibration/{dataset}/{model}/{loss}/seed{seed}/fits.json",
    output:
        metrics="results/recovery/{dataset}/{model}/{loss}/seed{seed}/metrics.csv",
    log:
        "logs/recover/{dataset}/{model}/{loss}/seed{seed}.log",
    conda:
        "../envs/calibration.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        *code_version("workflow_scripts/recover.py"),
        spec=recovery_spec,
    shell:
        "python -m workflow_scripts.recover"
        " --spec {params.spec:q}"
        " --logits {input.logits:q}"
        " --fits {input.fits:q}"
        " --metrics {output.metrics:q}"
        " > {log:q} 2>&1"


rule recover_all:
    """Posterior recovery of all runs."""
    input:
        collect("results/recovery/{run}/metrics.csv", run=GRID.paths),
