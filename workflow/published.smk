# Figures and page of a publication, as results/published, from the tables committed there: nothing is fetched or trained. A
# clone has no record of what they were made by, so all of them are made again:
# silodp rebuild results/published/config.json -- --snakefile workflow/published.smk --forceall [redrawn]
from pathlib import Path

RUN_FILE = "results/published/config.json"
FOLDER = str(Path((workflow.configfiles or [RUN_FILE])[0]).parent)


include: "rules/common.smk"


onstart:
    begin()


localrules:
    all,
    claims,
    figures,
    comparisons,
    redraw,
    redraw_one,
    redrawn,
    report,
    crate,


rule all:
    default_target: True
    input:
        PLAN.files("figures"),
        PLAN.other_figures(),
        f"{PLAN.folder}/claims.csv",
        f"{PLAN.folder}/report.html",
        f"{PLAN.folder}/ro-crate-metadata.json",
    message:
        "Figures, verdicts and page of the publication are made"


include: "rules/figures.smk"
include: "rules/report.smk"


# What `make figures` asks for: the manifest has the figures' checksums.
rule redrawn:
    input:
        PLAN.files("figures"),
        PLAN.other_figures(),
    log:
        f"{PLAN.folder}/logs/redrawn.log",
    resources:
        **needs(1000, 15),
    params:
        run_file=FROZEN,
        folder=PLAN.folder,
        digest=PLAN.digest_of("crate"),
    message:
        "Write the manifest of the figures that were drawn again"
    shell:
        "python -m silodp.jobs crate run_file={params.run_file:q} folder={params.folder:q} digest={params.digest}"
        " > {log:q} 2>&1"
