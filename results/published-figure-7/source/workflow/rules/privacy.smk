rule privacy:
    input:
        chosen=f"{PLAN.folder}/selection/{{experiment}}.parquet",
        silos=lambda wc: f"{PLAN.silos(wc.experiment, 'default')}/indices.parquet",
    output:
        table=f"{PLAN.folder}/privacy/{{experiment}}.csv",
        by_round=f"{PLAN.folder}/by_round/{{experiment}}.csv",
    log:
        f"{PLAN.folder}/logs/privacy/{{experiment}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(PLAN.run.memory_mb),
        runtime=growing(60),
    params:
        run_file=lambda wc: RUN_FILE,
        silos=subpath(input.silos, parent=True),
        digest=lambda wc: PLAN.privacy_digest(wc.experiment),
    shell:
        "silodp privacy {params.run_file:q} {wildcards.experiment:q} --chosen {input.chosen:q} --silos {params.silos:q}"
        " --output {output.table:q} --by-round {output.by_round:q} > {log:q} 2>&1"


rule by_round:
    input:
        expand(
            f"{PLAN.folder}/by_round/{{experiment}}.csv", experiment=PLAN.experiments
        ),
    output:
        f"{PLAN.folder}/by_round.csv",
    log:
        f"{PLAN.folder}/logs/by_round.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        digest=PLAN.merge_digest("merge"),
    shell:
        "silodp merge {input:q} --output {output:q} > {log:q} 2>&1"


rule merge_privacy:
    input:
        expand(f"{PLAN.folder}/privacy/{{experiment}}.csv", experiment=PLAN.experiments),
    output:
        f"{PLAN.folder}/privacy.csv",
    log:
        f"{PLAN.folder}/logs/merge_privacy.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        digest=PLAN.merge_digest("merge-privacy"),
    shell:
        "silodp merge-privacy {input:q} --output {output:q} > {log:q} 2>&1"


rule audit_experiment:
    input:
        silos=lambda wc: f"{PLAN.silos(wc.experiment, 'default')}/indices.parquet",
    output:
        f"{PLAN.folder}/audit/{{experiment}}.csv",
    log:
        f"{PLAN.folder}/logs/audit/{{experiment}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(PLAN.run.memory_mb),
        runtime=growing(120),
    params:
        run_file=lambda wc: RUN_FILE,
        silos=subpath(input.silos, parent=True),
        digest=lambda wc: PLAN.audit_digest(wc.experiment),
    shell:
        "silodp audit {params.run_file:q} {wildcards.experiment:q} --silos {params.silos:q} --output {output:q} > {log:q} 2>&1"


rule audit:
    input:
        expand(f"{PLAN.folder}/audit/{{experiment}}.csv", experiment=PLAN.experiments),
    output:
        f"{PLAN.folder}/audit.csv",
    log:
        f"{PLAN.folder}/logs/audit.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        digest=PLAN.merge_digest("merge"),
    shell:
        "silodp merge {input:q} --output {output:q} > {log:q} 2>&1"


rule formulas:
    output:
        f"{PLAN.folder}/formulas.csv",
    log:
        f"{PLAN.folder}/logs/formulas.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        digest=PLAN.formulas_digest(),
    shell:
        "silodp formulas --output {output:q} > {log:q} 2>&1"
