rule privacy:
    input:
        chosen=f"{PLAN.folder}/selection/{{experiment}}.parquet",
        silos=lambda wc: f"{PLAN.silos(wc.experiment, 'default')}/indices.parquet",
    output:
        **PLAN.patterns("privacy"),
    log:
        f"{PLAN.folder}/logs/privacy/{{experiment}}.log",
    resources:
        **needs(PLAN.run.memory_mb, 120),
    params:
        run_file=FROZEN,
        silos=subpath(input.silos, parent=True),
        digest=digest_of("privacy"),
    shell:
        "silodp privacy {params.run_file:q} {wildcards.experiment:q} --chosen {input.chosen:q} --silos {params.silos:q}"
        " --output {output.privacy:q} --by-round {output.by_round:q} --audit {output.audit:q} --digest {params.digest}"
        " > {log:q} 2>&1"


# privacy.csv, by_round.csv and audit.csv of the whole run.
rule merge:
    input:
        PLAN.files("privacy"),
    output:
        PLAN.files("merge"),
    log:
        f"{PLAN.folder}/logs/merge.log",
    resources:
        **needs(1000, 5),
    params:
        run_file=FROZEN,
        folder=subpath(output[0], parent=True),
        experiments=list(PLAN.experiments),
        digest=PLAN.digest_of("merge"),
    shell:
        "silodp merge {params.folder:q} {params.experiments:q} --digest {params.digest} --plan {params.run_file:q}"
        " > {log:q} 2>&1"


rule formulas:
    output:
        **PLAN.patterns("formulas"),
    log:
        f"{PLAN.folder}/logs/formulas.log",
    resources:
        **needs(1000, 10),
    params:
        run_file=FROZEN,
        digest=PLAN.digest_of("formulas"),
    shell:
        "silodp formulas --output {output:q} --digest {params.digest} --plan {params.run_file:q} > {log:q} 2>&1"
