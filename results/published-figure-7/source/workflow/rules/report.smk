rule claims:
    input:
        tables=PLAN.tables(),
        privacy=f"{PLAN.folder}/privacy.csv",
        formulas=f"{PLAN.folder}/formulas.csv",
        wanted=PLAN.wanted(),
        # A clone has no record of the bounds that published verdicts were decided by: by their dates, too.
        beside=PLAN.published_beside(),
        # Evidence names figures that are there: claims come after them, and are not made again with them.
        figures=ancient(PLAN.figures() + PLAN.other_figures()),
        # By their dates: a clone's published claims.csv has no record of what it was made from.
        claims=local(PLAN.claims_files()),
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
        # Verdicts are made again when what they are built on changes, or when bounds or check-ins were made in the meantime.
        digest=PLAN.claims_digest(),
        # Tables of others are left from an earlier run file.
        experiments=list(PLAN.experiments),
    shell:
        "silodp claims {params.folder:q} --experiments {params.experiments:q} --output {output:q} > {log:q} 2>&1"


# What was published keeps the record of the runs that made it.
if not PLAN.published:

    rule provenance:
        input:
            listings=PLAN.listings(),
            # The last before the page, so that it tells of every job that made a result.
            results=PLAN.tables() + PLAN.figures() + PLAN.other_figures(),
            others=[
                f"{PLAN.folder}/{name}.csv"
                for name in ("audit", "claims", "comparisons", "formulas", "privacy")
            ],
        output:
            record=f"{PLAN.folder}/provenance.json",
            config=f"{PLAN.folder}/config.json",
            rules=PLAN.rules(),
            plugins=PLAN.plugins(),
        log:
            f"{PLAN.folder}/logs/provenance.log",
        conda:
            "../../environment.yml"
        resources:
            mem_mb=growing(1000),
            runtime=growing(5),
        params:
            run_file=lambda wc: RUN_FILE,
            digest=PLAN.digest(),
        shell:
            "silodp provenance {params.run_file:q} --listings {input.listings:q} --output {output.record:q} > {log:q} 2>&1"


rule report:
    input:
        tables=PLAN.tables(),
        figures=PLAN.figures() + PLAN.other_figures(),
        privacy=f"{PLAN.folder}/privacy.csv",
        audit=f"{PLAN.folder}/audit.csv",
        formulas=f"{PLAN.folder}/formulas.csv",
        record=f"{PLAN.folder}/provenance.json",
        claims=f"{PLAN.folder}/claims.csv",
        models=[
            file for experiment in PLAN.experiments for file in PLAN.models(experiment)
        ],
        comparisons=f"{PLAN.folder}/comparisons.csv",
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
        "silodp report {params.folder:q} --output {output:q} > {log:q} 2>&1"


rule crate:
    input:
        f"{PLAN.folder}/report.html",
        f"{PLAN.folder}/provenance.json",
    output:
        f"{PLAN.folder}/ro-crate-metadata.json",
    log:
        f"{PLAN.folder}/logs/crate.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        folder=subpath(output[0], parent=True),
        digest=PLAN.crate_digest(),
    shell:
        "silodp crate {params.folder:q} > {log:q} 2>&1"


# What was published has checksums of its own.
if not PLAN.published:

    rule checksums:
        input:
            PLAN.deliverables(),
        output:
            f"{PLAN.folder}/checksums.json",
        log:
            f"{PLAN.folder}/logs/checksums.log",
        conda:
            "../../environment.yml"
        resources:
            mem_mb=growing(1000),
            runtime=growing(15),
        params:
            folder=subpath(output[0], parent=True),
            digest=PLAN.digest(),
        shell:
            "silodp checksums {params.folder:q} > {log:q} 2>&1"
