rule privacy:
    input:
        chosen=f"{PLAN.folder}/selection/{{experiment}}.parquet",
        silos=lambda wc: f"{PLAN.silos(wc.experiment, 'default')}/indices.parquet",
    output:
        f"{PLAN.folder}/privacy/{{experiment}}.csv",
    log:
        f"{PLAN.folder}/logs/privacy/{{experiment}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(PLAN.run.memory_mb),
        runtime=growing(60),
    params:
        run_file=RUN_FILE,
        silos=subpath(input.silos, parent=True),
        digest=lambda wc: PLAN.privacy_digest(wc.experiment),
    shell:
        "silodp privacy {params.run_file} {wildcards.experiment} --chosen {input.chosen} --silos {params.silos}"
        " --output {output} > {log} 2>&1"


rule merge_privacy:
    input:
        expand(f"{PLAN.folder}/privacy/{{experiment}}.csv", experiment=PLAN.experiments),
    output:
        f"{PLAN.folder}/privacy.csv",
    log:
        f"{PLAN.folder}/logs/merge_privacy.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    shell:
        "silodp merge-privacy {input} --output {output} > {log} 2>&1"


rule table:
    input:
        grid=lambda wc: PLAN.grids(wc.experiment),
        fresh=lambda wc: PLAN.fresh(wc.experiment),
        chosen=f"{PLAN.folder}/selection/{{experiment}}.parquet",
        privacy=f"{PLAN.folder}/privacy/{{experiment}}.csv",
    output:
        table=f"{PLAN.folder}/tables/{{experiment}}.csv",
        reported=f"{PLAN.folder}/reported/{{experiment}}.csv",
    log:
        f"{PLAN.folder}/logs/table/{{experiment}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(15),
    params:
        run_file=RUN_FILE,
        digest=lambda wc: PLAN.reports_digest(wc.experiment),
    shell:
        "silodp table {params.run_file} {wildcards.experiment} --grid {input.grid} --fresh {input.fresh}"
        " --chosen {input.chosen} --privacy {input.privacy} --output {output.table} --reported {output.reported}"
        " > {log} 2>&1"


rule tables:
    input:
        PLAN.tables(),
