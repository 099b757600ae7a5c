# Figures are drawn again when their table or the code of their looks changes, and nothing else is made for them.
rule study:
    input:
        silos=lambda wc: PLAN.files("partition", wc.experiment),
        chosen=f"{PLAN.folder}/selection/{{experiment}}.parquet",
        table=f"{PLAN.folder}/tables/{{experiment}}.csv",
    output:
        study=f"{PLAN.folder}/study/{{experiment}}.json",
        figures=[
            f"{PLAN.folder}/study/{{experiment}}.{suffix}" for suffix in PLAN.formats
        ],
    log:
        f"{PLAN.folder}/logs/study/{{experiment}}.log",
    threads: PLAN.run.threads
    resources:
        **training(by_experiment),
    params:
        run_file=FROZEN,
        silos=lambda wc: PLAN.silos(wc.experiment, "default"),
        formats=PLAN.formats,
        digest=digest_of("study"),
    message:
        "Judge the models of {wildcards.experiment}"
    shell:
        "python -m silodp.jobs study run_file={params.run_file:q} experiment={wildcards.experiment:q}"
        " chosen={input.chosen:q} silos={params.silos:q} table={input.table:q} formats={params.formats:q}"
        " output={output.study:q} digest={params.digest} > {log:q} 2>&1"


for experiment in PLAN.experiments:
    if PLAN.is_own(experiment):
        continue

    rule:
        name:
            f"figures_{experiment}"
        input:
            table=f"{PLAN.folder}/tables/{experiment}.csv",
            reported=f"{PLAN.folder}/reported/{experiment}.csv",
        output:
            PLAN.files("figures", experiment),
        log:
            f"{PLAN.folder}/logs/figures/{experiment}.log",
        # The longest first, so that none is left to run alone.
        priority: len(PLAN.figure_names(experiment))
        localrule: True
        resources:
            **needs(1000, 15),
        params:
            run_file=FROZEN,
            experiment=experiment,
            names=list(PLAN.figure_names(experiment)),
            folder=subpath(output[0], parent=True),
            formats=PLAN.formats,
            digest=PLAN.digest_of("figure", experiment=experiment),
        message:
            "Draw the figures of {params.experiment}"
        shell:
            "python -m silodp.jobs figure run_file={params.run_file:q} experiment={params.experiment:q}"
            " names={params.names:q} table={input.table:q} reported={input.reported:q} folder={params.folder:q}"
            " formats={params.formats:q} digest={params.digest} > {log:q} 2>&1"


rule figures:
    input:
        PLAN.files("figures"),
        PLAN.other_figures(),
    message:
        "The figures of all experiments are drawn"


REDRAW = (
    "python -m silodp.jobs redraw run_file={params.run_file:q} tables={input.tables:q} folder={params.folder:q}"
    " formats={params.formats:q} digest={params.digest} > {log:q} 2>&1"
)


# Figures of the run's tables that no experiment's grid stands behind.
rule redraw:
    input:
        tables=list(PLAN.redrawn()),
    output:
        PLAN.files("redraw"),
    log:
        f"{PLAN.folder}/logs/redraw.log",
    resources:
        **needs(1000, 5),
    params:
        run_file=FROZEN,
        folder=subpath(output[0], parent=True),
        formats=PLAN.formats,
        digest=PLAN.digest_of("redraw"),
    message:
        "Draw the figures of formulas, ε by round and comparisons"
    shell:
        REDRAW


# The figure of one table about bounds or check-ins.
rule redraw_one:
    input:
        tables=f"{PLAN.folder}/{{kind}}/{{name}}.csv",
    output:
        multiext(f"{PLAN.folder}/{{kind}}/{{name}}.", *PLAN.formats),
    log:
        f"{PLAN.folder}/logs/redraw/{{kind}}/{{name}}.log",
    wildcard_constraints:
        kind="bounds|checkins",
    resources:
        **needs(1000, 5),
    params:
        run_file=FROZEN,
        folder=subpath(output[0], parent=True),
        formats=PLAN.formats,
        digest=lambda wc: PLAN.digest_of(
            "redraw", tables=[f"{PLAN.folder}/{wc.kind}/{wc.name}.csv"]
        ),
    message:
        "Draw the figure of {wildcards.kind}/{wildcards.name}"
    shell:
        REDRAW


if PLAN.board():

    rule leaderboard:
        input:
            reported=PLAN.files("table", *PLAN.board(), name="reported"),
        output:
            PLAN.files("leaderboard"),
        log:
            f"{PLAN.folder}/logs/leaderboard.log",
        localrule: True
        resources:
            **needs(1000, 5),
        params:
            run_file=FROZEN,
            folder=subpath(output[0], parent=True),
            formats=PLAN.formats,
            digest=PLAN.digest_of("leaderboard"),
        message:
            "Compare algorithms at equal true ε over data sets"
        shell:
            "python -m silodp.jobs leaderboard run_file={params.run_file:q} reported={input.reported:q}"
            " folder={params.folder:q} formats={params.formats:q} digest={params.digest} > {log:q} 2>&1"


rule comparisons:
    input:
        reported=PLAN.files("table", name="reported"),
        privacy=f"{PLAN.folder}/privacy.csv",
    output:
        **PLAN.patterns("comparisons"),
    log:
        f"{PLAN.folder}/logs/comparisons.log",
    resources:
        **needs(1000, 5),
    params:
        run_file=FROZEN,
        digest=PLAN.digest_of("comparisons"),
    message:
        "Compare SPIDER, minibatch SGD and local SGD in pairs"
    shell:
        "python -m silodp.jobs comparisons run_file={params.run_file:q} reported={input.reported:q}"
        " privacy={input.privacy:q} output={output:q} digest={params.digest} > {log:q} 2>&1"
