from silodp.config.errors import project_root
from silodp.workflow.outputs import MANIFEST
from silodp.workflow.digests import from_here


rule claims:
    input:
        tables=PLAN.tables(),
        privacy=f"{PLAN.folder}/privacy.csv",
        formulas=f"{PLAN.folder}/formulas.csv",
        comparisons=f"{PLAN.folder}/comparisons.csv",
        wanted=PLAN.asked_outputs(),
        # Evidence names the figures that are there. Not by `ancient`, which hides other reasons to run a job.
        figures=PLAN.files("figures") + PLAN.other_figures(),
    output:
        **PLAN.patterns("claims"),
    log:
        f"{PLAN.folder}/logs/claims.log",
    resources:
        **needs(2000, 15),
    params:
        run_file=FROZEN,
        folder=subpath(output[0], parent=True),
        # Verdicts are made again when what they are built on changes, or when bounds or check-ins were made in the meantime.
        digest=PLAN.digest_of("claims"),
    message:
        "Judge the papers' claims"
    shell:
        "python -m silodp.jobs claims run_file={params.run_file:q} folder={params.folder:q} output={output:q}"
        " digest={params.digest} > {log:q} 2>&1"


# What was published keeps the record of the runs that made it.
if not PLAN.published:

    rule provenance:
        input:
            listings=PLAN.files("fetch"),
            # The last before the page, so that it tells of every job that made a result.
            results=PLAN.tables() + PLAN.files("figures") + PLAN.other_figures(),
            others=[
                file
                for job in ("merge", "comparisons", "formulas", "claims")
                for file in PLAN.files(job)
            ],
        output:
            record=f"{PLAN.folder}/provenance.json",
            config=f"{PLAN.folder}/config.json",
            plugins=[file for file in PLAN.files("provenance") if file.endswith(".py")],
        log:
            f"{PLAN.folder}/logs/provenance.log",
        resources:
            **needs(1000, 5),
        params:
            run_file=FROZEN,
            digest=PLAN.digest_of("provenance"),
        message:
            "Record code, lock, configuration, data and machine"
        shell:
            "python -m silodp.jobs provenance run_file={params.run_file:q} listings={input.listings:q}"
            " output={output.record:q} digest={params.digest} > {log:q} 2>&1"


rule report:
    input:
        tables=PLAN.tables(),
        figures=PLAN.files("figures") + PLAN.other_figures(),
        privacy=f"{PLAN.folder}/privacy.csv",
        audit=f"{PLAN.folder}/audit.csv",
        papers=PLAN.files("formulas") + PLAN.files("claims"),
        studies=PLAN.files("study"),
        record=f"{PLAN.folder}/provenance.json",
        comparisons=f"{PLAN.folder}/comparisons.csv",
        wanted=PLAN.asked_outputs(),
    output:
        **PLAN.patterns("report"),
    log:
        f"{PLAN.folder}/logs/report.log",
    resources:
        **needs(1000, 5),
    params:
        run_file=FROZEN,
        folder=subpath(output[0], parent=True),
        digest=PLAN.digest_of("report"),
    message:
        "Build the report page"
    shell:
        "python -m silodp.jobs report run_file={params.run_file:q} folder={params.folder:q} output={output:q}"
        " digest={params.digest} > {log:q} 2>&1"


# The manifest comes last: it has the checksum of every other file. That of a publication says which files may not change.
rule crate:
    input:
        [
            f"{PLAN.folder}/{name}"
            for name in ("claims.csv", "comparisons.csv", "report.html")
        ]
        + PLAN.files("figures")
        + PLAN.other_figures()
        if PLAN.published
        else [file for file in PLAN.deliverables() if not file.endswith(MANIFEST)],
        authors=local(from_here(project_root() / "CITATION.cff")),
    output:
        # Of a publication the job reads the earlier one.
        (
            update(f"{PLAN.folder}/{MANIFEST}")
            if PLAN.published
            else f"{PLAN.folder}/{MANIFEST}"
        ),
    log:
        f"{PLAN.folder}/logs/crate.log",
    resources:
        **needs(1000, 15),
    params:
        run_file=FROZEN,
        folder=subpath(output[0], parent=True),
        digest=PLAN.digest_of("crate"),
    message:
        "Write the manifest with every checksum"
    shell:
        "python -m silodp.jobs crate run_file={params.run_file:q} folder={params.folder:q} digest={params.digest}"
        " > {log:q} 2>&1"
