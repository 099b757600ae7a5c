# Figures and page of results/published, from the tables committed there: nothing is fetched or trained.
# silodp rebuild results/published/config.json -- --snakefile workflow/published.smk [figures]
import sys

from silodp.claims.loading import load_claims
from silodp.config import ConfigError, load
from silodp.dag import Plan
from silodp.resources import growing

RUN_FILE = "results/published/config.json"

try:
    load_claims()
    PLAN = Plan(load(RUN_FILE), folder="results/published")
except ConfigError as error:
    print(f"silodp: {error}", file=sys.stderr)
    sys.exit(2)


container: None


localrules:
    all,
    claims,
    figures,
    formulas_figures,
    bounds_figure,
    checkins_figure,
    report,


rule all:
    default_target: True
    input:
        f"{PLAN.folder}/report.html",


include: "rules/figures.smk"
include: "rules/other_figures.smk"
include: "rules/claims.smk"
include: "rules/report.smk"
