"""Simulation: calibrators on logits made from known posteriors. No training, and none of the runs is needed."""

SIMULATED_TABLES = [product for product in SIMULATED if product.kind == "table"]
SIMULATED_FIGURES = [product for product in SIMULATED if product.kind == "figure"]


rule simulate:
    """The divergence of calibrated predictions from the truth, by distortion, classes, samples and calibrator."""
    output:
        table="results/simulation/divergences.csv",
    log:
        "logs/simulate.log",
    benchmark:
        "results/benchmarks/simulate.tsv"
    conda:
        "../envs/calibration.yaml"
    threads: 8
    resources:
        mem_mb=growing(8000),
        runtime=growing(120),
    params:
        *code_version("workflow_scripts/simulate.py", *SIMULATED_CALIBRATORS),
        spec=spec_text(GRID.simulation_spec),
    shell:
        "python -m workflow_scripts.simulate"
        " --spec {params.spec:q}"
        " --table {output.table:q}"
        " --processes {threads}"
        " > {log:q} 2>&1"


use rule tables as simulated_tables with:
    """The table of the simulation."""
    input:
        LAYOUT.inputs(SIMULATED_TABLES),
    output:
        LAYOUT.files(SIMULATED_TABLES, "md", "tex", "html"),
        shown_in_report(SIMULATED_TABLES, "csv"),
    log:
        "logs/simulated_tables.log",
    benchmark:
        "results/benchmarks/simulated_tables.tsv"
    params:
        **product_params(SIMULATED_TABLES, "focalcal/reporting/templates/table.html"),


use rule tables as simulated_figures with:
    """The figure of the simulation."""
    input:
        LAYOUT.inputs(SIMULATED_FIGURES),
    output:
        figure_files(SIMULATED_FIGURES),
    log:
        "logs/simulated_figures.log",
    benchmark:
        "results/benchmarks/simulated_figures.tsv"
    params:
        **product_params(SIMULATED_FIGURES),


rule simulate_all:
    """The simulation with its table and figure, where one is configured."""
    input:
        LAYOUT.files(SIMULATED),
