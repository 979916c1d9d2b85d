"""Theory: the mathematics of focal loss in numbers, proofs, figures and the decided statements of the papers."""


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
        "results/theory/chosen_gammas.csv",
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
        spec=spec_text(job_settings(config["theory"], "theory_tables")),
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
        spec=spec_text(job_settings(config["theory"], "theory_checks")),
    shell:
        "python -m workflow_scripts.theory_checks"
        " --spec {params.spec:q}"
        " --output results/theory"
        " > {log:q} 2>&1"


rule theory_all:
    """Everything of the theory stage."""
    input:
        rules.theory_tables.output,
        rules.theory_checks.output,
        LAYOUT.files(LAYOUT.products("figure", stage="theory")),
