"""Theory: the mathematics of focal loss in numbers, proofs, figures and the decided statements of the papers."""

from focalcal.theory.settings import job_settings

THEORY = GRID.section_spec("theory")
THEORY_FIGURES = [
    "k24_fig1",
    "k24_fig2",
    "k24_fig3",
    "k24_fig4",
    "k24_fig5",
    "k24_fig6",
    "k24_fig7",
    "c21_fig1",
    "c21_fig2",
    "m20_fig4a",
    "m20_fig5",
    "m20_fig6",
    "m20_fig7",
    "sharp_bounds",
    "box_sensitivity",
]


rule theory_tables:
    """Exact numbers: temperature bounds and their proof, matching temperatures, thresholds, gamma*."""
    output:
        "results/theory/bounds.csv",
        "results/theory/bounds.json",
        "results/theory/certificate.json",
        "results/theory/matching.csv",
        "results/theory/matching_fits.csv",
        "results/theory/thresholds.csv",
        "results/theory/overconfidence.csv",
        "results/theory/gamma_star.csv",
    log:
        "logs/theory_tables.log",
    benchmark:
        "results/benchmarks/theory_tables.tsv"
    conda:
        "../envs/theory.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/theory_tables.py"),
        spec=job_settings(THEORY, "theory_tables"),
    shell:
        "python -m workflow_scripts.theory_tables"
        " --spec {params.spec:q}"
        " --output results/theory"
        " > {log:q} 2>&1"


rule theory_checks:
    """Numbers that decide the papers' theoretical statements; M20's linear-model experiment (App. G)."""
    output:
        "results/theory/checks.csv",
        "results/theory/linear_model.csv",
        "results/theory/linear_model_history.csv",
    log:
        "logs/theory_checks.log",
    benchmark:
        "results/benchmarks/theory_checks.tsv"
    conda:
        "../envs/theory.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/theory_checks.py"),
        spec=job_settings(THEORY, "theory_checks"),
    shell:
        "python -m workflow_scripts.theory_checks"
        " --spec {params.spec:q}"
        " --output results/theory"
        " > {log:q} 2>&1"


rule theory_figures:
    """The papers' theoretical figures with exact curves, published values beside them, and captions."""
    input:
        "results/theory/bounds.csv",
        "results/theory/matching.csv",
        "results/theory/linear_model.csv",
        "results/theory/linear_model_history.csv",
    output:
        collect(
            "results/figures/theory/{figure}.{kind}",
            figure=THEORY_FIGURES,
            kind=["pdf", "txt"],
        ),
        report(
            collect("results/figures/theory/{figure}.png", figure=THEORY_FIGURES),
            category="Theory",
        ),
    log:
        "logs/theory_figures.log",
    benchmark:
        "results/benchmarks/theory_figures.tsv"
    conda:
        "../envs/theory.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        *code_version("workflow_scripts/theory_figures.py"),
    shell:
        "python -m workflow_scripts.theory_figures"
        " --evidence {input:q}"
        " --output results/figures/theory"
        " > {log:q} 2>&1"


rule theory_all:
    """Everything of the theory stage."""
    input:
        rules.theory_tables.output,
        rules.theory_checks.output,
        rules.theory_figures.output,
