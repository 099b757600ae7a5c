rule check:
    output:
        f"{PLAN.folder}/bounds/{{check}}.csv",
    log:
        f"{PLAN.folder}/logs/check/{{check}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(PLAN.run.memory_mb),
        runtime=growing(60),
    params:
        run_file=RUN_FILE,
        digest=PLAN.check_digest(),
    shell:
        "silodp check {wildcards.check} {params.run_file} --output {output} > {log} 2>&1"


rule bounds_figure:
    input:
        f"{PLAN.folder}/bounds/{{check}}.csv",
    output:
        pdf=f"{PLAN.folder}/bounds/{{check}}.pdf",
        png=f"{PLAN.folder}/bounds/{{check}}.png",
    log:
        f"{PLAN.folder}/logs/bounds_figure/{{check}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        digest=PLAN.bounds_figure_digest(),
    shell:
        "silodp bounds-figure {wildcards.check} --table {input} --output {output.png} > {log} 2>&1"


rule bounds:
    input:
        PLAN.bounds(),
