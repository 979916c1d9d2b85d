"""Reporting: one tidy table of everything, then tables, figures, claims and the report.

Tables and figures declare themselves in focalcal/reporting; the rules here build them in a few jobs, since starting
Python costs more than most of them.
"""

SIMULATED = LAYOUT.products(stage="simulation")
TABLES = [product for product in LAYOUT.products("table") if product not in SIMULATED]
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
        sizes=collect(
            "results/calibration/{run}/sizes.{end}",
            run=GRID.paths if GRID.sizes_methods else [],
            end=["json", "npz"],
        ),
        recommended=collect(
            products.INPUTS["recommended"],
            run=GRID.paths if GRID.report_settings("recommend")["recommend"] else [],
        ),
        data=collect("results/data/{dataset}.json", dataset=GRID.datasets),
        accepted=REVIEWED,
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
        spec=ask(GRID.runs_spec),
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
        **product_params(TABLES, "focalcal/reporting/templates/table.html", *PUBLISHED),
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
        **product_params(CHARTS),


use rule tables as figures with:
    """Figures over all runs."""
    input:
        LAYOUT.inputs(FIGURES),
    output:
        figure_files(FIGURES),
    log:
        "logs/figures.log",
    benchmark:
        "results/benchmarks/figures.tsv"
    params:
        **product_params(FIGURES, *PUBLISHED),


use rule tables as recovery_figures with:
    """How well Psi recovers posteriors, over all runs."""
    input:
        LAYOUT.inputs(RECOVERY_FIGURES),
    output:
        figure_files(RECOVERY_FIGURES),
    log:
        "logs/recovery_figures.log",
    benchmark:
        "results/benchmarks/recovery_figures.tsv"
    params:
        **product_params(RECOVERY_FIGURES),


use rule tables as theory_figures with:
    """The papers' theoretical figures with exact curves and published values."""
    input:
        LAYOUT.inputs(THEORY_FIGURES),
    output:
        figure_files(THEORY_FIGURES),
    log:
        "logs/theory_figures.log",
    benchmark:
        "results/benchmarks/theory_figures.tsv"
    conda:
        "../envs/theory.yaml"
    params:
        **product_params(THEORY_FIGURES),


use rule tables as model_figures with:
    """Figures of one dataset and model: reliability, search, recovery."""
    input:
        model_inputs(MODEL_FIGURES),
    output:
        figure_files(MODEL_FIGURES),
    log:
        "logs/model_figures/{dataset}/{model}.log",
    benchmark:
        "results/benchmarks/model_figures/{dataset}/{model}.tsv"
    params:
        **product_params(MODEL_FIGURES),
        dataset_model="{dataset}/{model}",


use rule model_figures as training_figures with:
    """Training dynamics of one dataset and model that was trained here."""
    input:
        model_inputs(TRAINING_FIGURES),
    output:
        figure_files(TRAINING_FIGURES),
    log:
        "logs/training_figures/{dataset}/{model}.log",
    benchmark:
        "results/benchmarks/training_figures/{dataset}/{model}.tsv"
    params:
        **product_params(TRAINING_FIGURES),


use rule model_figures as curve_figures with:
    """Predictions over a one-dimensional input beside the true posterior."""
    input:
        model_inputs(CURVE_FIGURES),
    output:
        figure_files(CURVE_FIGURES),
    log:
        "logs/curve_figures/{dataset}/{model}.log",
    benchmark:
        "results/benchmarks/curve_figures/{dataset}/{model}.tsv"
    params:
        **product_params(CURVE_FIGURES),


use rule model_figures as image_figures with:
    """Example test images of one dataset and model with the confidences of its losses."""
    input:
        model_inputs(IMAGE_FIGURES),
    output:
        figure_files(IMAGE_FIGURES),
    log:
        "logs/image_figures/{dataset}/{model}.log",
    benchmark:
        "results/benchmarks/image_figures/{dataset}/{model}.tsv"
    params:
        **product_params(IMAGE_FIGURES),


rule claims:
    """The papers' checkable statements, each with printed and computed numbers, a verdict and its evidence.

    Numbers that only experiments give are computed first, from the available runs.
    """
    input:
        metrics="results/tables/metrics.csv",
        comparisons="results/tables/comparisons.csv",
        surfaces=collect("results/calibration/{run}/surfaces.npz", run=GRID.paths),
        histories=collect("results/runs/{run}/history.csv", run=GRID.trained_paths),
        logits=collect("results/runs/{run}/logits.npz", run=GRID.paths),
        evidence=[
            "results/theory/bounds.csv",
            "results/theory/certificate.json",
            "results/theory/checks.csv",
            "results/theory/matching.csv",
            "results/theory/matching_fits.csv",
            "results/tables/recovery_diagnosis.csv",
            "results/tables/recovery_paradigms.csv",
            "results/tables/recovery_posterior.csv",
            "results/tables/runs.csv",
            "results/tables/scores.csv",
        ],
    output:
        checks="results/tables/experiment_checks.csv",
        table=report(
            "results/tables/claims.csv",
            caption="../report/claims.rst",
            category=products.PAGES["papers"],
        ),
    log:
        "logs/claims.log",
    benchmark:
        "results/benchmarks/claims.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/claims.py", *PUBLISHED, *CLAIMS),
    shell:
        "python -m workflow_scripts.claims"
        " --results results"
        " --evidence {input.evidence:q}"
        " --checks {output.checks:q}"
        " --table {output.table:q}"
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
            [
                *rules.claims.input.evidence,
                rules.claims.output.checks,
                "results/theory/linear_model.csv",
            ]
            if LEDGER
            else []
        ),
        charts=LAYOUT.files(CHARTS),
        tables=LAYOUT.files(LAYOUT.products("table"), "html", "csv", "tex"),
        figures=LAYOUT.files(LAYOUT.reported("figure"), "png"),
        advice=collect("results/{file}", file=LAYOUT.advised.values()),
        accepted=REVIEWED,
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
        spec=spec_text(config),
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
