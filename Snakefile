# The workflow of one run: data, silos, training, selection, tables, figures, privacy, report.
# snakemake --configfile config/<run>.yaml [target]; without a config file it is config/default.yaml.
import sys

from snakemake.utils import min_version

min_version("9.0")

from silodp.checks import CHECKS
from silodp.claims.loading import load_claims
from silodp.config import ConfigError, load
from silodp.dag import Plan
from silodp.resources import growing
from silodp.sources import from_here

RUN_FILE = from_here(
    workflow.configfiles[0] if workflow.configfiles else "config/default.yaml"
)

try:
    load_claims()
    PLAN = Plan(load(RUN_FILE))
except ConfigError as error:
    print(f"silodp: {error}", file=sys.stderr)
    sys.exit(2)

if PLAN.resolved.left_out:
    print(
        f"silodp: {RUN_FILE}: left out, as they ask for a CUDA device and none is here: "
        + ", ".join(PLAN.resolved.left_out),
        file=sys.stderr,
    )


container: None


wildcard_constraints:
    experiment="|".join(PLAN.experiments),
    algorithm="[a-z0-9_]+",
    setting=r"M\d+_R\d+",
    reading=r"[^/_](?:[^/]*[^/_])?",
    trials=r"\d+-\d+",
    check="|".join(CHECKS),


# On a cluster these run where Snakemake does: downloads, as other nodes may have no internet, and what takes seconds.
# So do the rules that draw figures.
localrules:
    all,
    figures,
    bounds,
    checkins,
    tables,
    claims,
    fetch,
    select,
    table,
    merge_privacy,
    audit,
    formulas_figures,
    bounds_figure,
    checkins_figure,
    provenance,
    report,


rule all:
    default_target: True
    input:
        f"{PLAN.folder}/report.html",


include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/aggregate.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/other_figures.smk"
include: "workflow/rules/provenance.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/bounds.smk"
include: "workflow/rules/checkins.smk"
