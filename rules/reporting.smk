"""Reporting: one tidy table of everything, then statistics, tables, figures, claims and the report."""

from focalcal.reporting import layout
from focalcal.reporting.settings import report_settings

PLACES = layout.Places(GRID)
REPORT = GRID.section_spec("report")
TEMPLATES = [
    f"focalcal/reporting/report/templates/report.{suffix}"
    for suffix in ("html", "css", "js")
]
CLAIMS = [
    str(path.relative_to(ROOT))
    for path in ROOT.glob("focalcal/reporting/claims/published/*.yaml")
]
PUBLISHED = [
    f"focalcal/reporting/records/published/{name}.csv" for name in layout.PUBLISHED
]


rule aggregate:
    """All runs' metrics in one tidy table; a run whose record does not match configuration or code is refused."""
    input:
        records=collect("results/runs/{run}/run.json", run=GRID.paths),
        calibration=collect(
            "results/calibration/{run}/{file}",
            run=GRID.paths,
            file=["metrics.csv", "fits.json"],
        ),
        recovery=collect(
            "results/recovery/{run}/{file}",
            run=GRID.paths,
            file=["metrics.csv", "recovery.json"],
        ),
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
        mem_mb=growing(8000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/aggregate.py"),
        spec=runs_spec,
    shell:
        "printf %s {params.spec:q} | python -m workflow_scripts.aggregate"
        " --spec -"
        " --results results"
        " --metrics {output.metrics:q}"
        " --runs {output.runs:q}"
        " > {log:q} 2>&1"


rule diagnose:
    """What figures and sample statistics need of one run: reliability bins, ECE against T, intervals."""
    input:
        logits="results/runs/{dataset}/{model}/{loss}/seed{seed}/logits.npz",
        fits="results/calibration/{dataset}/{model}/{loss}/seed{seed}/fits.json",
    output:
        diagnostics="results/diagnostics/{dataset}/{model}/{loss}/seed{seed}.json",
    log:
        "logs/diagnose/{dataset}/{model}/{loss}/seed{seed}.log",
    benchmark:
        "results/benchmarks/diagnose/{dataset}/{model}/{loss}/seed{seed}.tsv"
    conda:
        "../envs/calibration.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/diagnose.py"),
        spec=report_settings(REPORT, "criterion", "resamples"),
        calibration=calibration_spec,
    shell:
        "python -m workflow_scripts.diagnose"
        " --spec {params.spec:q}"
        " --calibration {params.calibration:q}"
        " --logits {input.logits:q}"
        " --fits {input.fits:q}"
        " --output {output.diagnostics:q}"
        " > {log:q} 2>&1"


rule tables:
    """Scores over seeds in the papers' layouts and our own: CSV for programs, Markdown, LaTeX."""
    input:
        metrics="results/tables/metrics.csv",
    output:
        "results/tables/summary.csv",
        layout.table_files("scores", "md", "tex", "html"),
        report(
            layout.table_files("scores", "csv"),
            caption="../report/tables.rst",
            category="Tables",
            subcategory="Scores over seeds",
        ),
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
        *code_version("workflow_scripts/tables.py", *PUBLISHED),
        spec=report_settings(REPORT, "metric", "criterion"),
    shell:
        "python -m workflow_scripts.tables"
        " --spec {params.spec:q}"
        " --metrics {input.metrics:q}"
        " --output results/tables"
        " > {log:q} 2>&1"


rule statistics:
    """Calibrators compared over runs and test samples, ranked; how selection flatters itself; bound hits."""
    input:
        metrics="results/tables/metrics.csv",
        runs="results/tables/runs.csv",
        diagnostics=collect("results/diagnostics/{run}.json", run=GRID.paths),
        fits=collect("results/calibration/{run}/fits.json", run=GRID.paths),
    output:
        "results/tables/headline.json",
        layout.table_files("statistics", "md", "tex", "html"),
        report(
            layout.table_files("statistics", "csv"),
            caption="../report/statistics.rst",
            category="Tables",
            subcategory="Statistics",
        ),
    log:
        "logs/statistics.log",
    benchmark:
        "results/benchmarks/statistics.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/statistics.py"),
        spec=report_settings(REPORT, "metric", "criterion"),
    shell:
        "python -m workflow_scripts.statistics"
        " --spec {params.spec:q}"
        " --metrics {input.metrics:q}"
        " --runs {input.runs:q}"
        " --results results"
        " --output results/tables"
        " > {log:q} 2>&1"


rule figures:
    """Figures over all runs: calibration error, accuracy, critical difference, selection optimism."""
    input:
        metrics="results/tables/metrics.csv",
    output:
        layout.figure_files("pdf"),
        report(
            "results/figures/calibration_error.png",
            caption="../report/calibration_error.rst",
            category="Overview",
            labels={"figure": "calibration error"},
        ),
        report(
            "results/figures/accuracy.png",
            caption="../report/accuracy.rst",
            category="Training",
            subcategory="All runs",
            labels={"figure": "calibration against accuracy"},
        ),
        report(
            "results/figures/critical_difference.png",
            caption="../report/critical_difference.rst",
            category="Calibration",
            subcategory="All runs",
            labels={"figure": "critical difference"},
        ),
        report(
            "results/figures/optimism.png",
            caption="../report/optimism.rst",
            category="Calibration",
            subcategory="All runs",
            labels={"figure": "selection optimism"},
        ),
    log:
        "logs/figures.log",
    benchmark:
        "results/benchmarks/figures.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/figures.py", *PUBLISHED),
        spec=report_settings(REPORT, "metric", "criterion"),
    shell:
        "python -m workflow_scripts.figures"
        " --spec {params.spec:q}"
        " --metrics {input.metrics:q}"
        " --output results/figures"
        " > {log:q} 2>&1"


rule figures_reliability:
    """Reliability diagrams of one dataset and model: a row a loss, a column a calibrator."""
    input:
        runs="results/tables/runs.csv",
        diagnostics=PLACES.files("results/diagnostics/{run}.json"),
    output:
        pdf="results/figures/reliability/{dataset}/{model}.pdf",
        png=report(
            "results/figures/reliability/{dataset}/{model}.png",
            caption="../report/reliability.rst",
            category="Calibration",
            subcategory="{dataset}, {model}",
            labels={"figure": "reliability"},
        ),
    log:
        "logs/figures_reliability/{dataset}/{model}.log",
    benchmark:
        "results/benchmarks/figures_reliability/{dataset}/{model}.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/figures_reliability.py"),
        spec=report_settings(REPORT, "reliability_methods"),
    shell:
        "python -m workflow_scripts.figures_reliability"
        " --spec {params.spec:q}"
        " --runs {input.runs:q}"
        " --results results"
        " --place {wildcards.dataset:q}/{wildcards.model:q}"
        " --output {output.png:q} {output.pdf:q}"
        " > {log:q} 2>&1"


rule figures_search:
    """The search for temperature and gamma of one dataset and model: ECE against T, surface, best T by gamma."""
    input:
        runs="results/tables/runs.csv",
        diagnostics=PLACES.files("results/diagnostics/{run}.json"),
        fits=PLACES.files("results/calibration/{run}/fits.json"),
        surfaces=PLACES.files("results/calibration/{run}/surfaces.npz"),
    output:
        temperature_pdf="results/figures/temperature/{dataset}/{model}.pdf",
        surface_pdf="results/figures/surface/{dataset}/{model}.pdf",
        relation_pdf="results/figures/relation/{dataset}/{model}.pdf",
        temperature=report(
            "results/figures/temperature/{dataset}/{model}.png",
            caption="../report/temperature.rst",
            category="Calibration",
            subcategory="{dataset}, {model}",
            labels={"figure": "ECE against temperature"},
        ),
        surface=report(
            "results/figures/surface/{dataset}/{model}.png",
            caption="../report/surface.rst",
            category="Calibration",
            subcategory="{dataset}, {model}",
            labels={"figure": "search surface"},
        ),
        relation=report(
            "results/figures/relation/{dataset}/{model}.png",
            caption="../report/relation.rst",
            category="Calibration",
            subcategory="{dataset}, {model}",
            labels={"figure": "best temperature by gamma"},
        ),
    log:
        "logs/figures_search/{dataset}/{model}.log",
    benchmark:
        "results/benchmarks/figures_search/{dataset}/{model}.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/figures_search.py"),
        spec=report_settings(REPORT, "criterion"),
    shell:
        "python -m workflow_scripts.figures_search"
        " --spec {params.spec:q}"
        " --runs {input.runs:q}"
        " --results results"
        " --place {wildcards.dataset:q}/{wildcards.model:q}"
        " --temperature {output.temperature:q} {output.temperature_pdf:q}"
        " --surface {output.surface:q} {output.surface_pdf:q}"
        " --relation {output.relation:q} {output.relation_pdf:q}"
        " > {log:q} 2>&1"


rule figures_training:
    """Training dynamics of one dataset and model, by epoch."""
    input:
        runs="results/tables/runs.csv",
        histories=PLACES.files("results/runs/{run}/history.csv", trained=True),
        records=PLACES.files("results/runs/{run}/run.json", trained=True),
    output:
        pdf="results/figures/training/{dataset}/{model}.pdf",
        png=report(
            "results/figures/training/{dataset}/{model}.png",
            caption="../report/training.rst",
            category="Training",
            subcategory="{dataset}, {model}",
            labels={"figure": "training dynamics"},
        ),
        snapshots_pdf="results/figures/snapshots/{dataset}/{model}.pdf",
        snapshots_png=report(
            "results/figures/snapshots/{dataset}/{model}.png",
            caption="../report/snapshots.rst",
            category="Training",
            subcategory="{dataset}, {model}",
            labels={"figure": "reliability while training"},
        ),
    log:
        "logs/figures_training/{dataset}/{model}.log",
    benchmark:
        "results/benchmarks/figures_training/{dataset}/{model}.tsv"
    conda:
        "../envs/reporting.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/figures_training.py"),
    shell:
        "python -m workflow_scripts.figures_training"
        " --runs {input.runs:q}"
        " --results results"
        " --place {wildcards.dataset:q}/{wildcards.model:q}"
        " --output {output.png:q} {output.pdf:q}"
        " --snapshots {output.snapshots_png:q} {output.snapshots_pdf:q}"
        " > {log:q} 2>&1"


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
        *code_version("workflow_scripts/experiment_checks.py", *PUBLISHED),
    shell:
        "python -m workflow_scripts.experiment_checks"
        " --metrics {input.metrics:q}"
        " --runs {input.runs:q}"
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
        ],
    output:
        table=report(
            "results/tables/claims.csv",
            caption="../report/claims.rst",
            category="Claims",
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
        *code_version("workflow_scripts/claims.py", *CLAIMS),
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
        runs="results/tables/runs.csv",
        headline="results/tables/headline.json",
        claims="results/tables/claims.csv",
        tables=layout.table_files("scores", "html")
        + layout.table_files("statistics", "html"),
        figures=layout.figure_files("png") + PLACES.all_figures("png"),
        theory=rules.theory_all.input,
        recovery=rules.recover_all.input,
        data_figures=rules.data_all.input,
    output:
        report="results/report.html",
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
        *code_version("workflow_scripts/report.py", *TEMPLATES),
        spec=whole_spec,
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
        rules.aggregate.output,
        rules.tables.output,
        rules.statistics.output,
        rules.figures.output,
        PLACES.all_figures("png", "pdf"),
        rules.claims.output,
        rules.report.output,
