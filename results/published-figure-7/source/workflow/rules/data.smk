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
        # Not the mirror's address itself, which may hold a password: parameters are kept in Snakemake's own records.
        run_file=lambda wc: RUN_FILE,
        digest=lambda wc: PLAN.data_digest(wc.dataset),
    shell:
        "silodp fetch {wildcards.dataset:q} --run-file {params.run_file:q} --listing {output:q} > {log:q} 2>&1"


rule partition:
    input:
        lambda wc: PLAN.data_files(wc.experiment),
    output:
        indices=f"{PLAN.folder}/silos/{{experiment}}/{{reading}}/indices.parquet",
        labels=f"{PLAN.folder}/silos/{{experiment}}/{{reading}}/labels.csv",
        records=f"{PLAN.folder}/silos/{{experiment}}/{{reading}}/records.npz",
        heterogeneity=f"{PLAN.folder}/silos/{{experiment}}/{{reading}}/heterogeneity.csv",
    log:
        f"{PLAN.folder}/logs/partition/{{experiment}}/{{reading}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(PLAN.run.memory_mb),
        runtime=growing(60),
    params:
        run_file=lambda wc: RUN_FILE,
        folder=subpath(output.indices, parent=True),
        digest=lambda wc: PLAN.partition_digest(wc.experiment),
    shell:
        "silodp partition {params.run_file:q} {wildcards.experiment:q} --reading {wildcards.reading:q}"
        " --output {params.folder:q} > {log:q} 2>&1"
