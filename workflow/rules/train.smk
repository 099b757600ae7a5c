# `PLAN.patterns` and `PLAN.files` have each job's files from OUTPUTS in src/silodp/workflow/outputs.py.
rule train:
    input:
        silos=lambda wc: f"{PLAN.silos(wc.experiment, wc.reading)}/indices.parquet",
        records=lambda wc: f"{PLAN.silos(wc.experiment, wc.reading)}/records.npz",
    output:
        **PLAN.patterns("train"),
    log:
        f"{PLAN.folder}/logs/train/{{experiment}}/{{algorithm}}/{{setting}}/{{reading}}_{{trials}}.log",
    threads: PLAN.run.threads
    resources:
        **training(by_experiment),
    params:
        run_file=FROZEN,
        silos=subpath(input.silos, parent=True),
        digest=digest_of("train"),
    message:
        "Train {wildcards.algorithm} of {wildcards.experiment} in {wildcards.setting} over its grid,"
        " trials {wildcards.trials}, reading {wildcards.reading}"
    shell:
        "python -m silodp.jobs train run_file={params.run_file:q} experiment={wildcards.experiment:q}"
        " algorithm={wildcards.algorithm:q} setting={wildcards.setting:q} reading={wildcards.reading:q}"
        " trials={wildcards.trials:q} silos={params.silos:q} threads={threads} output={output:q}"
        " digest={params.digest} > {log:q} 2>&1"


rule race:
    input:
        silos=lambda wc: f"{PLAN.silos(wc.experiment, wc.reading)}/indices.parquet",
        records=lambda wc: f"{PLAN.silos(wc.experiment, wc.reading)}/records.npz",
        earlier=lambda wc: PLAN.before(
            wc.experiment, wc.algorithm, wc.setting, wc.reading, wc.rung
        ),
    output:
        **PLAN.patterns("race"),
    log:
        f"{PLAN.folder}/logs/train/{{experiment}}/{{algorithm}}/{{setting}}/{{reading}}_race{{rung}}.log",
    threads: PLAN.run.threads
    resources:
        **training(by_experiment),
    params:
        run_file=FROZEN,
        silos=subpath(input.silos, parent=True),
        digest=digest_of("race"),
    message:
        "Train rung {wildcards.rung} of the race of {wildcards.algorithm} of {wildcards.experiment}"
        " in {wildcards.setting}, reading {wildcards.reading}"
    shell:
        "python -m silodp.jobs race run_file={params.run_file:q} experiment={wildcards.experiment:q}"
        " algorithm={wildcards.algorithm:q} setting={wildcards.setting:q} reading={wildcards.reading:q}"
        " rung={wildcards.rung:q} earlier={input.earlier:q} silos={params.silos:q} threads={threads} output={output:q}"
        " digest={params.digest} > {log:q} 2>&1"


rule select:
    input:
        lambda wc: PLAN.grids(wc.experiment),
    output:
        **PLAN.patterns("select"),
    log:
        f"{PLAN.folder}/logs/select/{{experiment}}.log",
    resources:
        **needs(2000, 15),
    params:
        run_file=FROZEN,
        digest=digest_of("select"),
    message:
        "Choose points of {wildcards.experiment} by training loss"
    shell:
        "python -m silodp.jobs select run_file={params.run_file:q} experiment={wildcards.experiment:q} trials={input:q}"
        " output={output:q} digest={params.digest} > {log:q} 2>&1"


# A job trains all algorithms of an experiment at their chosen points: starting up takes longer than training there.
for experiment in PLAN.experiments:
    for number, cut in enumerate(PLAN.evaluated_cuts(experiment)):

        rule:
            name:
                f"evaluate_{experiment}_{number}"
            input:
                silos=PLAN.files("partition", experiment),
                chosen=f"{PLAN.folder}/selection/{experiment}.parquet",
            output:
                [
                    file
                    for file in PLAN.files("evaluate", experiment)
                    if file.endswith(f"_fresh{cut}.parquet")
                ],
            log:
                f"{PLAN.folder}/logs/evaluate/{experiment}_{cut}.log",
            threads: PLAN.run.threads
            resources:
                **training(PLAN.gpus(experiment)),
            params:
                run_file=FROZEN,
                experiment=experiment,
                trials=cut,
                silos=lambda wc, input: Path(input.silos[0]).parents[1],
                folder=lambda wc, output: Path(output[0]).parents[2],
                digest=PLAN.digest_of("evaluate", experiment=experiment),
            message:
                "Train the algorithms of {params.experiment} at the chosen points, trials {params.trials}"
            shell:
                "python -m silodp.jobs evaluate run_file={params.run_file:q} experiment={params.experiment:q}"
                " chosen={input.chosen:q} silos={params.silos:q} trials={params.trials:q} threads={threads}"
                " folder={params.folder:q} digest={params.digest} > {log:q} 2>&1"
