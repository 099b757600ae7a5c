# Figures and page of a publication, as results/published, from the tables committed there: nothing is fetched or trained. A
# clone has no record of what they were made by, so all of them are made again:
# silodp rebuild results/published/config.json -- --snakefile workflow/published.smk --forceall [figures]
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
