import os


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
        run_file=RUN_FILE,
        silos=subpath(input.silos, parent=True),
        digest=lambda wc: PLAN.audit_digest(wc.experiment),
    shell:
        "silodp audit {params.run_file} {wildcards.experiment} --silos {params.silos} --output {output} > {log} 2>&1"


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
    shell:
        "silodp merge {input} --output {output} > {log} 2>&1"


rule formulas:
    output:
        table=f"{PLAN.folder}/formulas.csv",
        figures=multiext(
            f"{PLAN.folder}/figures/formulas_",
            "convex.pdf",
            "convex.png",
            "nonconvex.pdf",
            "nonconvex.png",
        ),
    log:
        f"{PLAN.folder}/logs/formulas.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        figures=lambda wc, output: os.path.dirname(output.figures[0]),
        digest=PLAN.formulas_digest(),
    shell:
        "silodp formulas --figures {params.figures} --output {output.table} > {log} 2>&1"
