rule claims:
    input:
        tables=PLAN.tables(),
        privacy=f"{PLAN.folder}/privacy.csv",
        formulas=f"{PLAN.folder}/formulas.csv",
        wanted=PLAN.wanted(),
    output:
        f"{PLAN.folder}/claims.csv",
    log:
        f"{PLAN.folder}/logs/claims.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(2000),
        runtime=growing(15),
    params:
        folder=subpath(output[0], parent=True),
        # Verdicts are made again when claims change, or when bounds or check-ins were made in the meantime.
        digest=PLAN.claims_digest(),
    shell:
        "silodp claims {params.folder} --output {output} > {log} 2>&1"
