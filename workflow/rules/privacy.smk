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
    message:
        "Bound the true ε of every chosen private point of {wildcards.experiment}"
    shell:
        "python -m silodp.jobs privacy run_file={params.run_file:q} experiment={wildcards.experiment:q}"
        " chosen={input.chosen:q} silos={params.silos:q} output={output.privacy:q} by_round={output.by_round:q}"
        " audit={output.audit:q} digest={params.digest} > {log:q} 2>&1"


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
    message:
        "Merge the experiments' tables of privacy, by_round and audit"
    shell:
        "python -m silodp.jobs merge run_file={params.run_file:q} folder={params.folder:q}"
        " experiments={params.experiments:q} digest={params.digest} > {log:q} 2>&1"


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
    message:
        "Bound the true ε of the papers' noise formulas"
    shell:
        "python -m silodp.jobs formulas run_file={params.run_file:q} output={output:q} digest={params.digest}"
        " > {log:q} 2>&1"
