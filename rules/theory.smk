"""Theory: the mathematics of focal loss in numbers, proofs, figures and the decided statements of the papers."""

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


rule theory_bounds:
    """Temperatures that enclose the binary focal map: K24's, the tightest, the whole line's; critical gamma."""
    output:
        table="results/theory/bounds.csv",
        summary="results/theory/bounds.json",
    log:
        "logs/theory_bounds.log",
    benchmark:
        "results/benchmarks/theory_bounds.tsv"
    conda:
        "../envs/theory.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        *code_version("workflow_scripts/theory_bounds.py"),
        spec=theory_spec("theory_bounds"),
    shell:
        "python -m workflow_scripts.theory_bounds"
        " --spec {params.spec:q}"
        " --output {output.table:q}"
        " --summary {output.summary:q}"
        " > {log:q} 2>&1"


rule theory_certificate:
    """Proof by interval arithmetic that those bounds hold for every logit and cannot be improved."""
    output:
        "results/theory/certificate.json",
    log:
        "logs/theory_certificate.log",
    benchmark:
        "results/benchmarks/theory_certificate.tsv"
    conda:
        "../envs/theory.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/theory_certificate.py"),
        spec=theory_spec("theory_certificate"),
    shell:
        "python -m workflow_scripts.theory_certificate"
        " --spec {params.spec:q}"
        " --output {output:q}"
        " > {log:q} 2>&1"


rule theory_matching:
    """The temperature closest to Psi^gamma for each class count and box of logits, and fitted lines."""
    output:
        table="results/theory/matching.csv",
        fits="results/theory/matching_fits.csv",
    log:
        "logs/theory_matching.log",
    benchmark:
        "results/benchmarks/theory_matching.tsv"
    conda:
        "../envs/theory.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/theory_matching.py"),
        spec=theory_spec("theory_matching"),
    shell:
        "python -m workflow_scripts.theory_matching"
        " --spec {params.spec:q}"
        " --output {output.table:q}"
        " --fits {output.fits:q}"
        " > {log:q} 2>&1"


rule theory_thresholds:
    """Where the focal minimiser is over- or underconfident, and the gamma of each gradient threshold p0."""
    output:
        thresholds="results/theory/thresholds.csv",
        overconfidence="results/theory/overconfidence.csv",
        gamma_star="results/theory/gamma_star.csv",
    log:
        "logs/theory_thresholds.log",
    conda:
        "../envs/theory.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        *code_version("workflow_scripts/theory_thresholds.py"),
        spec=theory_spec("theory_thresholds"),
    shell:
        "python -m workflow_scripts.theory_thresholds"
        " --spec {params.spec:q}"
        " --thresholds {output.thresholds:q}"
        " --overconfidence {output.overconfidence:q}"
        " --gamma-star {output.gamma_star:q}"
        " > {log:q} 2>&1"


rule theory_linear_model:
    """Cross-entropy and focal loss on a two-weight logistic regression with flipped labels (M20 App. G)."""
    output:
        table="results/theory/linear_model.csv",
        history="results/theory/linear_model_history.csv",
    log:
        "logs/theory_linear_model.log",
    benchmark:
        "results/benchmarks/theory_linear_model.tsv"
    conda:
        "../envs/theory.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/theory_linear_model.py"),
        spec=theory_spec("theory_linear_model"),
    shell:
        "python -m workflow_scripts.theory_linear_model"
        " --spec {params.spec:q}"
        " --output {output.table:q}"
        " --history {output.history:q}"
        " > {log:q} 2>&1"


rule theory_checks:
    """Numbers that decide the papers' theoretical statements: margins, violations, quoted values."""
    output:
        "results/theory/checks.csv",
    log:
        "logs/theory_checks.log",
    benchmark:
        "results/benchmarks/theory_checks.tsv"
    conda:
        "../envs/theory.yaml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        *code_version("workflow_scripts/theory_checks.py"),
    shell:
        "python -m workflow_scripts.theory_checks"
        " --output {output:q}"
        " > {log:q} 2>&1"


rule theory_figures:
    """The papers' theoretical figures with exact curves, published values beside them, and captions."""
    input:
        rules.theory_bounds.output,
        rules.theory_matching.output,
        rules.theory_linear_model.output,
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
        " --output results/figures/theory"
        " > {log:q} 2>&1"


rule theory_all:
    """Everything of the theory stage."""
    input:
        rules.theory_bounds.output,
        rules.theory_certificate.output,
        rules.theory_matching.output,
        rules.theory_thresholds.output,
        rules.theory_linear_model.output,
        rules.theory_checks.output,
        rules.theory_figures.output,
