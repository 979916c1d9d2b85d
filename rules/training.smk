"""Training: one job per model, one job for its logits; imported logits join here."""


rule train:
    """Train one classifier; weights, history and run.json describe the same final epoch."""
    input:
        data="results/data/{dataset}.npz",
    output:
        weights="results/runs/{dataset}/{model}/{loss}/seed{seed}/weights.safetensors",
        history="results/runs/{dataset}/{model}/{loss}/seed{seed}/history.csv",
        record="results/runs/{dataset}/{model}/{loss}/seed{seed}/run.json",
    log:
        "logs/train/{dataset}/{model}/{loss}/seed{seed}.log",
    benchmark:
        "results/benchmarks/train/{dataset}/{model}/{loss}/seed{seed}.tsv"
    wildcard_constraints:
        dataset=GRID.trained_constraint,
    conda:
        "../envs/training.yaml"
    threads: ask(GRID.threads, "run")
    resources:
        mem_mb=growing(4000),
        runtime=1440,
        gpu=ask(GRID.gpus, "run"),
    params:
        *code_version("workflow_scripts/train.py"),
        loss=own_code("workflow_scripts/train.py", loss_file, "loss"),
        model=own_code("workflow_scripts/train.py", model_file, "model"),
        spec=ask(GRID.training_spec, "run"),
    shell:
        # The checkpoint is not an output: Snakemake deletes the outputs of a job that was stopped.
        # `exec` lets a signal to the job reach the training itself.
        "exec python -m workflow_scripts.train"
        " --spec {params.spec:q}"
        " --data {input.data:q}"
        " --checkpoint results/checkpoints/{wildcards.dataset:q}/{wildcards.model:q}/{wildcards.loss:q}/seed{wildcards.seed:q}"
        " --weights {output.weights:q}"
        " --history {output.history:q}"
        " --record {output.record:q}"
        " > {log:q} 2>&1"


rule dump_logits:
    """Validation and test logits of one trained model, from its weights alone."""
    input:
        data="results/data/{dataset}.npz",
        weights="results/runs/{dataset}/{model}/{loss}/seed{seed}/weights.safetensors",
    output:
        logits="results/runs/{dataset}/{model}/{loss}/seed{seed}/logits.npz",
    log:
        "logs/dump_logits/{dataset}/{model}/{loss}/seed{seed}.log",
    benchmark:
        "results/benchmarks/dump_logits/{dataset}/{model}/{loss}/seed{seed}.tsv"
    wildcard_constraints:
        dataset=GRID.trained_constraint,
    conda:
        "../envs/training.yaml"
    threads: ask(GRID.threads, "run")
    resources:
        mem_mb=growing(4000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/dump_logits.py"),
        model=own_code("workflow_scripts/dump_logits.py", model_file, "model"),
        spec=ask(GRID.training_spec, "run"),
    shell:
        "python -m workflow_scripts.dump_logits"
        " --spec {params.spec:q}"
        " --data {input.data:q}"
        " --weights {input.weights:q}"
        " --output {output.logits:q}"
        " > {log:q} 2>&1"


rule import_logits:
    """Logits of a model trained elsewhere, the user's or a published one, in the form that trained runs have."""
    input:
        file=ask(GRID.import_files, "run"),
    output:
        logits="results/runs/{dataset}/{model}/{loss}/seed{seed}/logits.npz",
        record="results/runs/{dataset}/{model}/{loss}/seed{seed}/run.json",
    log:
        "logs/import_logits/{dataset}/{model}/{loss}/seed{seed}.log",
    wildcard_constraints:
        dataset=GRID.imported_constraint,
    conda:
        "../envs/calibration.yaml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        *code_version("workflow_scripts/import_logits.py"),
        spec=ask(GRID.import_spec, "run"),
    shell:
        "python -m workflow_scripts.import_logits"
        " --spec {params.spec:q}"
        " --output {output.logits:q}"
        " --record {output.record:q}"
        " > {log:q} 2>&1"


rule plan:
    """Print jobs, epochs, images and estimated GPU-hours and disk of this configuration; make nothing."""
    log:
        "logs/plan.log",
    # Its output is for the terminal, even where a profile sends jobs to a cluster.
    localrule: True
    conda:
        "../envs/training.yaml"
    params:
        spec=spec_text(config),
    shell:
        "printf %s {params.spec:q} | python -m workflow_scripts.plan --spec - 2> {log:q}"


rule smoke:
    """Print what each run was trained on; with configs/smoke.yaml, the first thing to try on a GPU."""
    input:
        collect("results/runs/{run}/run.json", run=GRID.trained_paths),
    log:
        "logs/smoke.log",
    localrule: True
    conda:
        "../envs/training.yaml"
    shell:
        "python -m workflow_scripts.smoke --records {input:q} 2> {log:q}"


rule train_all:
    """All trained models, and the logits of all runs."""
    input:
        collect("results/runs/{run}/weights.safetensors", run=GRID.trained_paths),
        collect("results/runs/{run}/logits.npz", run=GRID.paths),
