rule checkins_figure_2:
    output:
        table=f"{PLAN.folder}/checkins/figure_2.csv",
        figures=multiext(f"{PLAN.folder}/checkins/figure_2.", "pdf", "png"),
    log:
        f"{PLAN.folder}/logs/checkins/figure_2.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(10),
    params:
        digest=PLAN.checkins_digest(),
    shell:
        "silodp checkins-figure-2 --output {output.table} > {log} 2>&1"


rule checkins_experiment:
    input:
        lambda wc: PLAN.data_files(wc.experiment),
    output:
        table=f"{PLAN.folder}/checkins/{{experiment}}.csv",
        figures=multiext(f"{PLAN.folder}/checkins/{{experiment}}.", "pdf", "png"),
    log:
        f"{PLAN.folder}/logs/checkins/{{experiment}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(PLAN.run.memory_mb),
        runtime=growing(PLAN.run.runtime_minutes),
        gpu=lambda wc: PLAN.gpus(wc.experiment),
    params:
        run_file=RUN_FILE,
        digest=lambda wc: PLAN.checkins_digest(wc.experiment),
    shell:
        "silodp checkins {params.run_file} {wildcards.experiment} --output {output.table} > {log} 2>&1"


rule checkins:
    input:
        PLAN.checkins(),
