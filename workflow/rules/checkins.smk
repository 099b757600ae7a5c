rule checkins_figure_2:
    output:
        multiext(f"{PLAN.folder}/checkins/figure_2.", "csv", "pdf", "png"),
    log:
        f"{PLAN.folder}/logs/checkins/figure_2.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        digest=PLAN.checkins_digest(),
    shell:
        "silodp checkins-figure-2 --output {output[0]} > {log} 2>&1"


rule checkins_experiment:
    input:
        silos=lambda wc: f"{PLAN.silos(wc.experiment, 'default')}/indices.parquet",
    output:
        multiext(f"{PLAN.folder}/checkins/{{experiment}}.", "csv", "pdf", "png"),
    log:
        f"{PLAN.folder}/logs/checkins/{{experiment}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=PLAN.run.memory_mb,
        runtime=240,
    params:
        run_file=RUN_FILE,
        silos=subpath(input.silos, parent=True),
        digest=lambda wc: PLAN.checkins_digest(wc.experiment),
    shell:
        "silodp checkins {params.run_file} {wildcards.experiment} --silos {params.silos} --output {output[0]}"
        " > {log} 2>&1"


rule checkins:
    input:
        PLAN.checkins(),
