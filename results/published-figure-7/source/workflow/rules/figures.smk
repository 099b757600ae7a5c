from pathlib import Path

# A job draws all figures of one kind for one experiment: starting up takes longer than drawing.
# The sources that decide their looks are inputs, so that an edit redraws what it concerns, in a fresh clone too.
for experiment, kind, names in PLAN.drawn_together():

    rule:
        name:
            f"figure_{experiment}_{kind}"
        input:
            table=f"{PLAN.folder}/tables/{experiment}.csv",
            reported=f"{PLAN.folder}/reported/{experiment}.csv",
            heterogeneity=PLAN.heterogeneity(experiment),
            # Part of the code, also where results are kept in a storage.
            sources=local(PLAN.figure_sources(kind)),
        output:
            expand(
                f"{PLAN.folder}/figures/{{name}}.{{suffix}}",
                name=names,
                suffix=PLAN.formats,
            ),
        log:
            f"{PLAN.folder}/logs/figure/{experiment}_{kind}.log",
        # The longest first, so that none is left to run alone.
        priority: len(names)
        localrule: True
        conda:
            "../../environment.yml"
        resources:
            mem_mb=growing(1000),
            runtime=growing(15),
        params:
            run_file=lambda wc: RUN_FILE,
            experiment=experiment,
            names=names,
            silos=lambda wc, input: str(Path(str(input.heterogeneity[0])).parents[1]),
            folder=subpath(output[0], parent=True),
            formats=PLAN.formats,
            digest=PLAN.figure_digest(experiment, kind),
        shell:
            "silodp figure {params.run_file:q} {params.experiment:q} {params.names:q} --table {input.table:q}"
            " --reported {input.reported:q} --silos {params.silos:q} --folder {params.folder:q} --formats {params.formats:q}"
            " > {log:q} 2>&1"


rule figures:
    input:
        PLAN.figures(),
        PLAN.other_figures(),


# Figures of tables that no experiment's grid stands behind; as those of results, each is drawn again when its table or
# the sources of its looks change, and nothing else is made for it.


rule formulas_figures:
    input:
        table=f"{PLAN.folder}/formulas.csv",
        sources=local(PLAN.figure_sources("formula_lines")),
    output:
        expand(
            f"{PLAN.folder}/figures/formulas_{{paper}}.{{suffix}}",
            paper=["convex", "nonconvex"],
            suffix=PLAN.formats,
        ),
    log:
        f"{PLAN.folder}/logs/formulas_figures.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        folder=subpath(output[0], parent=True),
        formats=PLAN.formats,
        digest=PLAN.redraw_digest(),
    shell:
        "silodp redraw {input.table:q} --folder {params.folder:q} --formats {params.formats:q} > {log:q} 2>&1"


if PLAN.by_round():

    rule by_round_figures:
        input:
            table=f"{PLAN.folder}/by_round.csv",
            sources=local(PLAN.figure_sources("by_round")),
        output:
            expand("{stem}.{suffix}", stem=PLAN.by_round(), suffix=PLAN.formats),
        log:
            f"{PLAN.folder}/logs/by_round_figures.log",
        localrule: True
        conda:
            "../../environment.yml"
        resources:
            mem_mb=growing(1000),
            runtime=growing(5),
        params:
            folder=subpath(output[0], parent=True),
            formats=PLAN.formats,
            digest=PLAN.redraw_digest(),
        shell:
            "silodp redraw {input.table:q} --folder {params.folder:q} --formats {params.formats:q} > {log:q} 2>&1"


rule comparisons:
    input:
        reported=PLAN.reported(),
        # Their tolerances.
        claims=local(PLAN.claims_files()),
    output:
        f"{PLAN.folder}/comparisons.csv",
    log:
        f"{PLAN.folder}/logs/comparisons.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        digest=PLAN.comparisons_digest(),
    shell:
        "silodp comparisons {input.reported:q} --output {output:q} > {log:q} 2>&1"


if PLAN.paired():

    rule paired_figures:
        input:
            table=f"{PLAN.folder}/comparisons.csv",
            sources=local(PLAN.figure_sources("paired_differences")),
        output:
            expand("{stem}.{suffix}", stem=PLAN.paired(), suffix=PLAN.formats),
        log:
            f"{PLAN.folder}/logs/paired_figures.log",
        localrule: True
        conda:
            "../../environment.yml"
        resources:
            mem_mb=growing(1000),
            runtime=growing(5),
        params:
            folder=subpath(output[0], parent=True),
            formats=PLAN.formats,
            digest=PLAN.redraw_digest(),
        shell:
            "silodp redraw {input.table:q} --folder {params.folder:q} --formats {params.formats:q} > {log:q} 2>&1"


rule bounds_figure:
    input:
        table=f"{PLAN.folder}/bounds/{{check}}.csv",
        sources=local(PLAN.figure_sources("bounds")),
    output:
        multiext(f"{PLAN.folder}/bounds/{{check}}.", *PLAN.formats),
    log:
        f"{PLAN.folder}/logs/bounds_figure/{{check}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        folder=subpath(output[0], parent=True),
        formats=PLAN.formats,
        digest=PLAN.redraw_digest(),
    shell:
        "silodp redraw {input.table:q} --folder {params.folder:q} --formats {params.formats:q} > {log:q} 2>&1"


rule checkins_figure:
    input:
        table=f"{PLAN.folder}/checkins/{{name}}.csv",
        sources=local(PLAN.figure_sources("checkin_lines")),
    output:
        multiext(f"{PLAN.folder}/checkins/{{name}}.", *PLAN.formats),
    log:
        f"{PLAN.folder}/logs/checkins_figure/{{name}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        folder=subpath(output[0], parent=True),
        formats=PLAN.formats,
        digest=PLAN.redraw_digest(),
    shell:
        "silodp redraw {input.table:q} --folder {params.folder:q} --formats {params.formats:q} > {log:q} 2>&1"
