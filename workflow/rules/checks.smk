rule check:
    output:
        f"{PLAN.folder}/bounds/{{check}}.csv",
    log:
        f"{PLAN.folder}/logs/check/{{check}}.log",
    resources:
        **needs(PLAN.run.memory_mb, 60),
    params:
        run_file=FROZEN,
        digest=lambda wc: PLAN.digest_of("check", name=wc.check),
    shell:
        "silodp check {wildcards.check:q} {params.run_file:q} --output {output:q} --digest {params.digest} > {log:q} 2>&1"


rule bounds:
    input:
        PLAN.bounds(),


rule checkins_figure_2:
    output:
        f"{PLAN.folder}/checkins/figure_2.csv",
    log:
        f"{PLAN.folder}/logs/checkins/figure_2.log",
    resources:
        **needs(2000, 10),
    params:
        run_file=FROZEN,
        digest=PLAN.digest_of("checkins-figure-2"),
    shell:
        "silodp checkins-figure-2 --output {output:q} --digest {params.digest} --plan {params.run_file:q} > {log:q} 2>&1"


rule checkins_experiment:
    input:
        lambda wc: PLAN.files("fetch", wc.experiment),
    output:
        f"{PLAN.folder}/checkins/{{experiment}}.csv",
    log:
        f"{PLAN.folder}/logs/checkins/{{experiment}}.log",
    resources:
        **training(by_experiment),
    params:
        run_file=FROZEN,
        digest=digest_of("checkins"),
    shell:
        "silodp checkins {params.run_file:q} {wildcards.experiment:q} --output {output:q} --digest {params.digest} > {log:q} 2>&1"


rule checkins:
    input:
        PLAN.checkins(),
