rule report:
    input:
        tables=PLAN.tables(),
        figures=PLAN.figures(),
        privacy=f"{PLAN.folder}/privacy.csv",
        audit=f"{PLAN.folder}/audit.csv",
        formulas=f"{PLAN.folder}/formulas.csv",
        record=f"{PLAN.folder}/provenance.json",
        claims=f"{PLAN.folder}/claims.csv",
    output:
        f"{PLAN.folder}/report.html",
    log:
        f"{PLAN.folder}/logs/report.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        folder=subpath(output[0], parent=True),
        digest=PLAN.report_digest(),
    shell:
        "silodp report {params.folder} --output {output} > {log} 2>&1"
