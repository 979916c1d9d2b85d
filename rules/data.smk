"""Datasets: fetched or generated, split, checksummed."""


rule fetch_data:
    """Prepare one dataset: inputs, labels and split indices, with a record of where they came from."""
    input:
        files=ask(GRID.data_files, "dataset"),
    output:
        data="results/data/{dataset}.npz",
        record="results/data/{dataset}.json",
    log:
        "logs/fetch_data/{dataset}.log",
    benchmark:
        "results/benchmarks/fetch_data/{dataset}.tsv"
    conda:
        "../envs/data.yaml"
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        *code_version("workflow_scripts/fetch_data.py"),
        spec=ask(GRID.data_spec, "dataset"),
    shell:
        "python -m workflow_scripts.fetch_data"
        " --spec {params.spec:q}"
        " --output {output.data:q}"
        " --record {output.record:q}"
        " > {log:q} 2>&1"


rule inspect_data:
    """Samples of one dataset to look at, and its class counts to check."""
    input:
        data="results/data/{dataset}.npz",
        record="results/data/{dataset}.json",
    output:
        figure="results/figures/data/{dataset}.png",
        figure_pdf="results/figures/data/{dataset}.pdf",
        table="results/tables/data/{dataset}.csv",
    log:
        "logs/inspect_data/{dataset}.log",
    conda:
        "../envs/data.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        *code_version("workflow_scripts/inspect_data.py"),
    shell:
        "python -m workflow_scripts.inspect_data"
        " --data {input.data:q}"
        " --record {input.record:q}"
        " --figure {output.figure:q}"
        " --table {output.table:q}"
        " > {log:q} 2>&1"


rule data_all:
    """All that is fetched: datasets with a figure of each, human labels, logits of models trained elsewhere."""
    input:
        collect("results/data/{dataset}.npz", dataset=GRID.datasets),
        collect("results/figures/data/{dataset}.png", dataset=GRID.datasets),
        collect("results/human_labels/{dataset}.npz", dataset=GRID.human_labels),
        collect("results/runs/{run}/logits.npz", run=GRID.imported_paths),
