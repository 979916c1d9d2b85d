"""Reporting: one tidy table of everything, then tables, figures, claims and the report.

Tables and figures declare themselves in focalcal/reporting; the rules here build them in a few jobs, since starting
Python costs more than most of them.
"""

TABLES = LAYOUT.products("table")
CHARTS = LAYOUT.products("chart")
FIGURES = LAYOUT.products("figure", stage="reporting", scope="all")
RECOVERY_FIGURES = LAYOUT.products("figure", stage="recovery", scope="all")
THEORY_FIGURES = LAYOUT.products("figure", stage="theory")
MODEL_FIGURES = LAYOUT.model_figures("")
TRAINING_FIGURES = LAYOUT.model_figures("trained")
CURVE_FIGURES = LAYOUT.model_figures("one-dimensional")
IMAGE_FIGURES = LAYOUT.model_figures("images")
PUBLISHED = package_files("reporting/records/published/*.csv")
CLAIMS = package_files("reporting/claims/published/*.yaml")
# A report on the user's own logits alone is about them, not about the papers.
LEDGER = [] if GRID.own_logits_only else ["results/tables/claims.csv"]


rule collect:
    """Four tidy tables of all runs: runs, metrics, comparisons of calibrators, and their effects with verdicts.

    A run whose record does not match configuration or code is refused.
    """
    input:
        records=collect("results/runs/{run}/run.json", run=GRID.paths),
        calibration=collect(
            "results/calibration/{run}/{file}",
            run=GRID.paths,
            file=["metrics.csv", "fits.json"],
        ),
        recovery=collect(
            "results/recovery/{pair}/{file}",
            pair=LAYOUT.dataset_models,
            file=["metrics.csv", "recovery.json"],
        ),
        diagnostics=collect(products.INPUTS["diagnostics"], run=GRID.paths),
        data=collect("results/data/{dataset}.json", dataset=GRID.datasets),
    output:
        collect(
            "results/tables/{frame}.csv",
            frame=["runs", "metrics", "comparisons", "effects"],
        ),
    log:
        "logs/collect.log",
    benchmark:
        "results/benchmarks/collect.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=growing(8000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/collect.py"),
        spec=runs_spec,
    shell:
        "printf %s {params.spec:q} | python -m workflow_scripts.collect"
        " --spec -"
        " --results results"
        " > {log:q} 2>&1"


rule tables:
    """Every table: CSV for programs; Markdown, LaTeX and HTML for people."""
    input:
        LAYOUT.inputs(TABLES),
    output:
        LAYOUT.files(TABLES, "md", "tex", "html"),
        shown_in_report(TABLES, "csv"),
    log:
        "logs/tables.log",
    benchmark:
        "results/benchmarks/tables.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        code=product_code(TABLES, "focalcal/reporting/templates/table.html", *PUBLISHED),
        spec=product_spec(TABLES),
        dataset_model="",
    shell:
        "python -m workflow_scripts.products"
        " --spec {params.spec:q}"
        " --results results"
        " --dataset-model={params.dataset_model:q}"
        " > {log:q} 2>&1"


use rule tables as charts with:
    """Charts that readers of the report filter, as Vega-Lite specifications with their data."""
    input:
        LAYOUT.inputs(CHARTS),
    output:
        LAYOUT.files(CHARTS),
    log:
        "logs/charts.log",
    benchmark:
        "results/benchmarks/charts.tsv"
    params:
        code=product_code(CHARTS),
        spec=product_spec(CHARTS),


use rule tables as figures with:
    """Figures over all runs."""
    input:
        LAYOUT.inputs(FIGURES),
    output:
        LAYOUT.files(FIGURES, "pdf"),
        shown_in_report(FIGURES, "png"),
    log:
        "logs/figures.log",
    benchmark:
        "results/benchmarks/figures.tsv"
    params:
        code=product_code(FIGURES, *PUBLISHED),
        spec=product_spec(FIGURES),


use rule tables as recovery_figures with:
    """How well Psi recovers posteriors, over all runs."""
    input:
        LAYOUT.inputs(RECOVERY_FIGURES),
    output:
        LAYOUT.files(RECOVERY_FIGURES, "pdf"),
        shown_in_report(RECOVERY_FIGURES, "png"),
    log:
        "logs/recovery_figures.log",
    benchmark:
        "results/benchmarks/recovery_figures.tsv"
    params:
        code=product_code(RECOVERY_FIGURES),
        spec=product_spec(RECOVERY_FIGURES),


use rule tables as theory_figures with:
    """The papers' theoretical figures with exact curves and published values."""
    input:
        LAYOUT.inputs(THEORY_FIGURES),
    output:
        LAYOUT.files(THEORY_FIGURES, "pdf"),
        shown_in_report(THEORY_FIGURES, "png"),
    log:
        "logs/theory_figures.log",
    benchmark:
        "results/benchmarks/theory_figures.tsv"
    conda:
        "../envs/theory.yaml"
    params:
        code=product_code(THEORY_FIGURES),
        spec=product_spec(THEORY_FIGURES),


use rule tables as model_figures with:
    """Figures of one dataset and model: reliability, search, recovery."""
    input:
        model_inputs(MODEL_FIGURES),
    output:
        LAYOUT.patterns(MODEL_FIGURES, "pdf"),
        shown_in_report(MODEL_FIGURES, "png"),
    log:
        "logs/model_figures/{dataset}/{model}.log",
    benchmark:
        "results/benchmarks/model_figures/{dataset}/{model}.tsv"
    params:
        code=product_code(MODEL_FIGURES),
        spec=product_spec(MODEL_FIGURES),
        dataset_model="{dataset}/{model}",


use rule model_figures as training_figures with:
    """Training dynamics of one dataset and model that was trained here."""
    input:
        model_inputs(TRAINING_FIGURES),
    output:
        LAYOUT.patterns(TRAINING_FIGURES, "pdf"),
        shown_in_report(TRAINING_FIGURES, "png"),
    log:
        "logs/training_figures/{dataset}/{model}.log",
    benchmark:
        "results/benchmarks/training_figures/{dataset}/{model}.tsv"
    params:
        code=product_code(TRAINING_FIGURES),
        spec=product_spec(TRAINING_FIGURES),


use rule model_figures as curve_figures with:
    """Predictions over a one-dimensional input beside the true posterior."""
    input:
        model_inputs(CURVE_FIGURES),
    output:
        LAYOUT.patterns(CURVE_FIGURES, "pdf"),
        shown_in_report(CURVE_FIGURES, "png"),
    log:
        "logs/curve_figures/{dataset}/{model}.log",
    benchmark:
        "results/benchmarks/curve_figures/{dataset}/{model}.tsv"
    params:
        code=product_code(CURVE_FIGURES),
        spec=product_spec(CURVE_FIGURES),


use rule model_figures as image_figures with:
    """Example test images of one dataset and model with the confidences of its losses."""
    input:
        model_inputs(IMAGE_FIGURES),
    output:
        LAYOUT.patterns(IMAGE_FIGURES, "pdf"),
        shown_in_report(IMAGE_FIGURES, "png"),
    log:
        "logs/image_figures/{dataset}/{model}.log",
    benchmark:
        "results/benchmarks/image_figures/{dataset}/{model}.tsv"
    params:
        code=product_code(IMAGE_FIGURES),
        spec=product_spec(IMAGE_FIGURES),


rule experiment_checks:
    """Numbers that decide the papers' experimental statements, from the available runs."""
    input:
        metrics="results/tables/metrics.csv",
        runs="results/tables/runs.csv",
        surfaces=collect("results/calibration/{run}/surfaces.npz", run=GRID.paths),
        histories=collect("results/runs/{run}/history.csv", run=GRID.trained_paths),
    output:
        "results/tables/experiment_checks.csv",
    log:
        "logs/experiment_checks.log",
    benchmark:
        "results/benchmarks/experiment_checks.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/experiment_checks.py", *PUBLISHED, *CLAIMS),
    shell:
        "python -m workflow_scripts.experiment_checks"
        " --results results"
        " --output {output:q}"
        " > {log:q} 2>&1"


rule claims:
    """The papers' checkable statements, each with printed and computed numbers, a verdict and its evidence."""
    input:
        evidence=[
            "results/theory/bounds.csv",
            "results/theory/certificate.json",
            "results/theory/checks.csv",
            "results/theory/matching.csv",
            "results/theory/matching_fits.csv",
            "results/theory/thresholds.csv",
            "results/tables/experiment_checks.csv",
            "results/tables/recovery_diagnosis.csv",
            "results/tables/recovery_paradigms.csv",
            "results/tables/recovery_posterior.csv",
            "results/tables/runs.csv",
            "results/tables/scores.csv",
        ],
    output:
        table=report(
            "results/tables/claims.csv",
            caption="../report/claims.rst",
            category=products.PAGES["papers"],
        ),
        readable="results/tables/claims.md",
    log:
        "logs/claims.log",
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        *code_version("workflow_scripts/claims.py", *PUBLISHED, *CLAIMS),
    shell:
        "python -m workflow_scripts.claims"
        " --evidence {input.evidence:q}"
        " --table {output.table:q}"
        " --readable {output.readable:q}"
        " > {log:q} 2>&1"


rule report:
    """Everything in one HTML file that opens offline; beside it the resolved configuration."""
    input:
        records=collect("results/runs/{run}/run.json", run=GRID.paths),
        data=collect("results/data/{dataset}.json", dataset=GRID.datasets),
        data_figures=collect(
            "results/figures/data/{dataset}.png", dataset=GRID.datasets
        ),
        runs="results/tables/runs.csv",
        claims=LEDGER,
        evidence=(
            [*rules.claims.input.evidence, "results/theory/linear_model.csv"]
            if LEDGER
            else []
        ),
        charts=LAYOUT.files(CHARTS),
        tables=LAYOUT.files(TABLES, "html", "csv", "tex"),
        figures=LAYOUT.files(LAYOUT.reported("figure"), "png"),
        advice=collect("results/{file}", file=LAYOUT.advised.values()),
    output:
        report=REPORT,
        config="results/config.json",
    log:
        "logs/report.log",
    benchmark:
        "results/benchmarks/report.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version(
            "workflow_scripts/report.py", *package_files("reporting/templates/**/*.*")
        ),
        spec=whole_spec,
        vocabulary=VOCABULARY,
    shell:
        "printf %s {params.spec:q} | python -m workflow_scripts.report"
        " --spec -"
        " --results results"
        " --output {output.report:q}"
        " --config {output.config:q}"
        " > {log:q} 2>&1"


rule report_all:
    """All tables and figures, the claims ledger and the report."""
    input:
        rules.collect.output,
        rules.tables.output,
        LAYOUT.files(LAYOUT.reported("figure")),
        LEDGER,
        rules.report.output,
