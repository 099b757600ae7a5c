# The workflow of one run: data, silos, training, selection, tables, figures, privacy, report.
# snakemake --configfile config/<run>.yaml [target]; without a config file it is config/default.yaml.
from snakemake.utils import min_version

min_version("9.0")

from snakemake.sourcecache import LocalSourceFile

from silodp.config.errors import project_root
from silodp.workflow import invocations
from silodp.workflow.digests import from_here
from silodp.workflow.engine import note_holder
from silodp.workflow.own import sent_along
from silodp.workflow.provenance import git_state

RUN_FILE = from_here(
    workflow.configfiles[0] if workflow.configfiles else "config/default.yaml"
)
FOLDER = None


include: "workflow/rules/common.smk"


# Jobs that share no disk with this folder unpack its sources first. The run file is read with the file that it names.
if workflow.storage_settings.default_storage_provider is not None:
    for path in sent_along(PLAN):
        workflow._included[path] = LocalSourceFile(path)


# For the provenance: a run may be made in several invocations.
onstart:
    note_holder()
    invocations.begin(PLAN.folder, git_state(project_root()))


onsuccess:
    invocations.end(PLAN.folder, completed=True)


onerror:
    invocations.end(PLAN.folder, completed=False)


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
    by_round,
    audit,
    comparisons,
    formulas_figures,
    bounds_figure,
    checkins_figure,
    provenance,
    report,
    crate,
    checksums,


rule all:
    default_target: True
    input:
        PLAN.deliverables(),
        f"{PLAN.folder}/checksums.json",


include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/privacy.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/checks.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"
