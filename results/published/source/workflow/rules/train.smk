rule train:
    input:
        silos=lambda wc: f"{PLAN.silos(wc.experiment, wc.reading)}/indices.parquet",
        records=lambda wc: f"{PLAN.silos(wc.experiment, wc.reading)}/records.npz",
    output:
        f"{PLAN.folder}/trials/{{experiment}}/{{algorithm}}/{{setting}}/{{reading}}_{{trials}}.parquet",
    log:
        f"{PLAN.folder}/logs/train/{{experiment}}/{{algorithm}}/{{setting}}/{{reading}}_{{trials}}.log",
    conda:
        "../../environment.yml"
    threads: PLAN.run.threads
    resources:
        **gpus(lambda wc: PLAN.gpus(wc.experiment)),
        mem_mb=growing(PLAN.run.memory_mb),
        runtime=growing(PLAN.run.runtime_minutes),
    params:
        run_file=lambda wc: RUN_FILE,
        silos=subpath(input.silos, parent=True),
        digest=lambda wc: PLAN.training_digest(wc.experiment, wc.algorithm),
    shell:
        "silodp train {params.run_file:q} {wildcards.experiment:q} {wildcards.algorithm:q} {wildcards.setting:q}"
        " --reading {wildcards.reading:q} --trials {wildcards.trials:q} --silos {params.silos:q} --threads {threads}"
        " --output {output:q} > {log:q} 2>&1"


rule race:
    input:
        silos=lambda wc: f"{PLAN.silos(wc.experiment, wc.reading)}/indices.parquet",
        records=lambda wc: f"{PLAN.silos(wc.experiment, wc.reading)}/records.npz",
        earlier=lambda wc: PLAN.before(
            wc.experiment, wc.algorithm, wc.setting, wc.reading, wc.rung
        ),
    output:
        f"{PLAN.folder}/trials/{{experiment}}/{{algorithm}}/{{setting}}/{{reading}}_race{{rung}}.parquet",
    log:
        f"{PLAN.folder}/logs/train/{{experiment}}/{{algorithm}}/{{setting}}/{{reading}}_race{{rung}}.log",
    conda:
        "../../environment.yml"
    threads: PLAN.run.threads
    resources:
        mem_mb=growing(PLAN.run.memory_mb),
        runtime=growing(PLAN.run.runtime_minutes),
        gpu=lambda wc: PLAN.gpus(wc.experiment),
    params:
        run_file=lambda wc: RUN_FILE,
        silos=subpath(input.silos, parent=True),
        digest=lambda wc: PLAN.race_digest(wc.experiment, wc.algorithm),
    shell:
        "silodp race {params.run_file:q} {wildcards.experiment:q} {wildcards.algorithm:q} {wildcards.setting:q}"
        " --reading {wildcards.reading:q} --rung {wildcards.rung:q} --earlier {input.earlier:q}"
        " --silos {params.silos:q} --threads {threads} --output {output:q} > {log:q} 2>&1"


rule select:
    input:
        lambda wc: PLAN.grids(wc.experiment),
    output:
        f"{PLAN.folder}/selection/{{experiment}}.parquet",
    log:
        f"{PLAN.folder}/logs/select/{{experiment}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(15),
    params:
        run_file=lambda wc: RUN_FILE,
        digest=lambda wc: PLAN.selection_digest(wc.experiment),
    shell:
        "silodp select {params.run_file:q} {wildcards.experiment:q} --trials {input:q} --output {output:q} > {log:q} 2>&1"


rule train_chosen:
    input:
        silos=lambda wc: f"{PLAN.silos(wc.experiment, wc.reading)}/indices.parquet",
        records=lambda wc: f"{PLAN.silos(wc.experiment, wc.reading)}/records.npz",
        chosen=f"{PLAN.folder}/selection/{{experiment}}.parquet",
    output:
        f"{PLAN.folder}/trials/{{experiment}}/{{algorithm}}/{{setting}}/{{reading}}_{{fresh}}.parquet",
    log:
        f"{PLAN.folder}/logs/train/{{experiment}}/{{algorithm}}/{{setting}}/{{reading}}_{{fresh}}.log",
    conda:
        "../../environment.yml"
    threads: PLAN.run.threads
    resources:
        **gpus(lambda wc: PLAN.gpus(wc.experiment)),
        mem_mb=growing(PLAN.run.memory_mb),
        runtime=growing(PLAN.run.runtime_minutes),
    params:
        run_file=lambda wc: RUN_FILE,
        trials=lambda wc: wc.fresh.removeprefix("fresh") or "all",
        silos=subpath(input.silos, parent=True),
        digest=lambda wc: PLAN.training_digest(wc.experiment, wc.algorithm),
    shell:
        "silodp train {params.run_file:q} {wildcards.experiment:q} {wildcards.algorithm:q} {wildcards.setting:q}"
        " --reading {wildcards.reading:q} --trials {params.trials:q} --chosen {input.chosen:q} --silos {params.silos:q}"
        " --threads {threads} --output {output:q} > {log:q} 2>&1"
