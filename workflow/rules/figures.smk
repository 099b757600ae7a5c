rule figure:
    input:
        table=lambda wc: f"{PLAN.folder}/tables/{PLAN.figure(wc.name)['experiment']}.csv",
        heterogeneity=lambda wc: PLAN.heterogeneity(wc.name),
    output:
        pdf=f"{PLAN.folder}/figures/{{name}}.pdf",
        png=f"{PLAN.folder}/figures/{{name}}.png",
    log:
        f"{PLAN.folder}/logs/figure/{{name}}.log",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=1000,
        runtime=5,
    params:
        run_file=RUN_FILE,
        experiment=lambda wc: PLAN.figure(wc.name)["experiment"],
        digest=lambda wc: PLAN.figure_digest(PLAN.figure(wc.name)["experiment"]),
    shell:
        "silodp figure {params.run_file} {params.experiment} {wildcards.name} --table {input.table}"
        " --heterogeneity {input.heterogeneity} --output {output.png} > {log} 2>&1"


rule figures:
    input:
        PLAN.figures(),
