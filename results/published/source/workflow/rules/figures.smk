from pathlib import Path

# A job draws all figures of one kind for one experiment: starting up takes longer than drawing.
# The sources that decide their looks are inputs, so that an edit redraws what it concerns, in a fresh clone too.
for experiment, kind, names in PLAN.drawn_together():

    rule:
        name:
            f"figure_{experiment}_{kind}"
        input:
            table=f"{PLAN.folder}/tables/{experiment}.csv",
            heterogeneity=PLAN.heterogeneity(experiment),
            # Part of the code, also where results are kept in a storage.
            sources=local(PLAN.figure_sources(kind)),
        output:
            expand(
                f"{PLAN.folder}/figures/{{name}}.{{suffix}}",
                name=names,
                suffix=["pdf", "png"],
            ),
        log:
            f"{PLAN.folder}/logs/figure/{experiment}_{kind}.log",
        localrule: True
        conda:
            "../../environment.yml"
        resources:
            mem_mb=growing(1000),
            runtime=growing(15),
        params:
            run_file=RUN_FILE,
            experiment=experiment,
            names=names,
            silos=lambda wc, input: str(Path(str(input.heterogeneity[0])).parents[1]),
            folder=subpath(output[0], parent=True),
            digest=PLAN.figure_digest(experiment),
        shell:
            "silodp figure {params.run_file} {params.experiment} {params.names} --table {input.table}"
            " --silos {params.silos} --folder {params.folder} > {log} 2>&1"


rule figures:
    input:
        PLAN.figures(),
