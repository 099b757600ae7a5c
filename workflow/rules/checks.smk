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
    message:
        "Compare the bound {wildcards.check} of the papers with runs"
    shell:
        "python -m silodp.jobs check run_file={params.run_file:q} name={wildcards.check:q} output={output:q}"
        " digest={params.digest} > {log:q} 2>&1"


rule bounds:
    input:
        PLAN.bounds(),
    message:
        "The papers' bounds are held against runs"


rule checkins_figure_2:
    output:
        f"{PLAN.folder}/checkins/figure_2.csv",
    log:
        f"{PLAN.folder}/logs/checkins/figure_2.log",
    resources:
        **needs(2000, 10),
    params:
        run_file=FROZEN,
        digest=PLAN.digest_of("checkins_figure_2"),
    message:
        "Compute Figure 2 of the check-ins paper"
    shell:
        "python -m silodp.jobs checkins_figure_2 run_file={params.run_file:q} output={output:q}"
        " digest={params.digest} > {log:q} 2>&1"


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
    message:
        "Compare random check-ins with other amplification on {wildcards.experiment}"
    shell:
        "python -m silodp.jobs checkins run_file={params.run_file:q} experiment={wildcards.experiment:q}"
        " output={output:q} digest={params.digest} > {log:q} 2>&1"


rule checkins:
    input:
        PLAN.checkins(),
    message:
        "Random check-ins are compared with other amplification"
