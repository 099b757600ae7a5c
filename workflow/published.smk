# Figures and page of a publication, as results/published, from the tables committed there: nothing is fetched or trained.
# silodp rebuild results/published/config.json -- --snakefile workflow/published.smk [figures]
from pathlib import Path

from silodp.workflow.digests import from_here

RUN_FILE = from_here(
    workflow.configfiles[0] if workflow.configfiles else "results/published/config.json"
)
FOLDER = str(Path(RUN_FILE).parent)


include: "rules/common.smk"


from silodp.workflow.engine import note_holder


onstart:
    note_holder()


localrules:
    all,
    claims,
    figures,
    comparisons,
    formulas_figures,
    bounds_figure,
    checkins_figure,
    report,
    crate,


rule all:
    default_target: True
    input:
        PLAN.figures(),
        PLAN.other_figures(),
        f"{PLAN.folder}/claims.csv",
        f"{PLAN.folder}/report.html",
        f"{PLAN.folder}/ro-crate-metadata.json",


include: "rules/figures.smk"
include: "rules/report.smk"
