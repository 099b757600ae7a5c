rule fetch:
    output:
        f"{PLAN.folder}/data/{{dataset}}.csv",
    log:
        f"{PLAN.folder}/logs/fetch/{{dataset}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(60),
    params:
        places=PLAN.places(),
    shell:
        "silodp fetch {wildcards.dataset} {params.places} --listing {output} > {log} 2>&1"


rule partition:
    input:
        lambda wc: PLAN.data_files(wc.experiment),
    output:
        indices=f"{PLAN.folder}/silos/{{experiment}}/{{reading}}/indices.parquet",
        labels=f"{PLAN.folder}/silos/{{experiment}}/{{reading}}/labels.csv",
        heterogeneity=f"{PLAN.folder}/silos/{{experiment}}/{{reading}}/heterogeneity.csv",
    log:
        f"{PLAN.folder}/logs/partition/{{experiment}}/{{reading}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(PLAN.run.memory_mb),
        runtime=growing(60),
    params:
        run_file=RUN_FILE,
        folder=subpath(output.indices, parent=True),
        digest=lambda wc: PLAN.partition_digest(wc.experiment),
    shell:
        "silodp partition {params.run_file} {wildcards.experiment} --reading {wildcards.reading}"
        " --output {params.folder} > {log} 2>&1"
