"""Reporting: one tidy table of everything, then tables and figures made from it."""


rule aggregate:
    """All runs' metrics in one tidy table; a run whose record does not match configuration or code is refused."""
    input:
        records=collect("results/runs/{run}/run.json", run=GRID.paths),
        calibration=collect("results/calibration/{run}/metrics.csv", run=GRID.paths),
        recovery=collect("results/recovery/{run}/metrics.csv", run=GRID.paths),
        data=collect("results/data/{dataset}.json", dataset=GRID.datasets),
    output:
        metrics="results/tables/metrics.csv",
        runs="results/tables/runs.csv",
    log:
        "logs/aggregate.log",
    benchmark:
        "results/benchmarks/aggregate.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        *code_version("workflow_scripts/aggregate.py"),
        spec=whole_spec,
    shell:
        "python -m workflow_scripts.aggregate"
        " --spec {params.spec:q}"
        " --results results"
        " --metrics {output.metrics:q}"
        " --runs {output.runs:q}"
        " > {log:q} 2>&1"


rule summarise:
    """Mean and standard deviation over seeds for each dataset, model, loss and calibrator."""
    input:
        metrics="results/tables/metrics.csv",
    output:
        csv="results/tables/summary.csv",
        markdown="results/tables/summary.md",
        figure_png="results/figures/summary.png",
        figure_pdf="results/figures/summary.pdf",
    log:
        "logs/summarise.log",
    benchmark:
        "results/benchmarks/summarise.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        *code_version("workflow_scripts/summarise.py"),
        spec=report_spec,
    shell:
        "python -m workflow_scripts.summarise"
        " --spec {params.spec:q}"
        " --metrics {input.metrics:q}"
        " --csv {output.csv:q}"
        " --markdown {output.markdown:q}"
        " --figures {output.figure_png:q} {output.figure_pdf:q}"
        " > {log:q} 2>&1"


rule report_all:
    """All tables and figures."""
    input:
        rules.aggregate.output,
        rules.summarise.output,
