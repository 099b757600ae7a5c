rule check:
    output:
        f"{PLAN.folder}/bounds/{{check}}.csv",
    log:
        f"{PLAN.folder}/logs/check/{{check}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(PLAN.run.memory_mb),
        runtime=growing(60),
    params:
        run_file=lambda wc: RUN_FILE,
        digest=lambda wc: PLAN.check_digest(wc.check),
    shell:
        "silodp check {wildcards.check:q} {params.run_file:q} --output {output:q} > {log:q} 2>&1"


rule bounds:
    input:
        PLAN.bounds(),


rule checkins_figure_2:
    output:
        f"{PLAN.folder}/checkins/figure_2.csv",
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
        "silodp checkins-figure-2 --output {output:q} > {log:q} 2>&1"


rule checkins_experiment:
    input:
        lambda wc: PLAN.data_files(wc.experiment),
    output:
        f"{PLAN.folder}/checkins/{{experiment}}.csv",
    log:
        f"{PLAN.folder}/logs/checkins/{{experiment}}.log",
    conda:
        "../../environment.yml"
    resources:
        **gpus(lambda wc: PLAN.gpus(wc.experiment)),
        mem_mb=growing(PLAN.run.memory_mb),
        runtime=growing(PLAN.run.runtime_minutes),
    params:
        run_file=lambda wc: RUN_FILE,
        digest=lambda wc: PLAN.checkins_digest(wc.experiment),
    shell:
        "silodp checkins {params.run_file:q} {wildcards.experiment:q} --output {output:q} > {log:q} 2>&1"


rule checkins:
    input:
        PLAN.checkins(),
