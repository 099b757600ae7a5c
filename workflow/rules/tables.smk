rule table:
    input:
        grid=lambda wc: PLAN.grids(wc.experiment),
        fresh=lambda wc: PLAN.fresh(wc.experiment),
        chosen=f"{PLAN.folder}/selection/{{experiment}}.parquet",
        privacy=f"{PLAN.folder}/privacy/{{experiment}}.csv",
    output:
        table=f"{PLAN.folder}/tables/{{experiment}}.csv",
        reported=f"{PLAN.folder}/reported/{{experiment}}.csv",
        losses=f"{PLAN.folder}/losses/{{experiment}}.parquet",
    log:
        f"{PLAN.folder}/logs/table/{{experiment}}.log",
    resources:
        **needs(2000, 15),
    params:
        run_file=FROZEN,
        digest=digest_of("table"),
    shell:
        "silodp table {params.run_file:q} {wildcards.experiment:q} --grid {input.grid:q} --fresh {input.fresh:q}"
        " --chosen {input.chosen:q} --privacy {input.privacy:q} --output {output.table:q} --reported {output.reported:q}"
        " --losses {output.losses:q} --digest {params.digest} > {log:q} 2>&1"


rule tables:
    input:
        PLAN.tables(),
