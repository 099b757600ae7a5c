rule provenance:
    input:
        listings=PLAN.listings(),
        tables=PLAN.tables(),
    output:
        record=f"{PLAN.folder}/provenance.json",
        config=f"{PLAN.folder}/config.json",
    log:
        f"{PLAN.folder}/logs/provenance.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        run_file=RUN_FILE,
        digest=PLAN.digest(),
    shell:
        "silodp provenance {params.run_file} --listings {input.listings} --output {output.record} > {log} 2>&1"
