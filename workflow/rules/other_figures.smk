# Figures of tables that no experiment's grid stands behind; as those of results, each is drawn again when its table or
# the sources of its looks change, and nothing else is made for it.


rule formulas_figures:
    input:
        table=f"{PLAN.folder}/formulas.csv",
        sources=local(PLAN.figure_sources("formula_lines")),
    output:
        multiext(
            f"{PLAN.folder}/figures/formulas_",
            "convex.pdf",
            "convex.png",
            "nonconvex.pdf",
            "nonconvex.png",
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
    shell:
        "silodp redraw {input.table} --folder {params.folder} > {log} 2>&1"


rule bounds_figure:
    input:
        table=f"{PLAN.folder}/bounds/{{check}}.csv",
        sources=local(PLAN.figure_sources("bounds")),
    output:
        multiext(f"{PLAN.folder}/bounds/{{check}}.", "pdf", "png"),
    log:
        f"{PLAN.folder}/logs/bounds_figure/{{check}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        folder=subpath(output[0], parent=True),
    shell:
        "silodp redraw {input.table} --folder {params.folder} > {log} 2>&1"


rule checkins_figure:
    input:
        table=f"{PLAN.folder}/checkins/{{name}}.csv",
        sources=local(PLAN.figure_sources("checkin_lines")),
    output:
        multiext(f"{PLAN.folder}/checkins/{{name}}.", "pdf", "png"),
    log:
        f"{PLAN.folder}/logs/checkins_figure/{{name}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=growing(1000),
        runtime=growing(5),
    params:
        folder=subpath(output[0], parent=True),
    shell:
        "silodp redraw {input.table} --folder {params.folder} > {log} 2>&1"
