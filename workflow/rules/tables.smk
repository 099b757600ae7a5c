rule table:
    input:
        grid=lambda wc: PLAN.grids(wc.experiment),
        fresh=lambda wc: PLAN.files("evaluate", wc.experiment),
        chosen=f"{PLAN.folder}/selection/{{experiment}}.parquet",
        privacy=f"{PLAN.folder}/privacy/{{experiment}}.csv",
    output:
        **PLAN.patterns("table"),
    log:
        f"{PLAN.folder}/logs/table/{{experiment}}.log",
    resources:
        **needs(2000, 15),
    params:
        run_file=FROZEN,
        digest=digest_of("table"),
    message:
        "Aggregate the trials of {wildcards.experiment} into its table"
    shell:
        "python -m silodp.jobs table run_file={params.run_file:q} experiment={wildcards.experiment:q} grid={input.grid:q}"
        " fresh={input.fresh:q} chosen={input.chosen:q} privacy={input.privacy:q} output={output.tables:q}"
        " reported={output.reported:q} losses={output.losses:q} digest={params.digest} > {log:q} 2>&1"


rule tables:
    input:
        PLAN.tables(),
    message:
        "The tables of all experiments are made"
