rule fetch:
    output:
        **PLAN.patterns("fetch"),
    log:
        f"{PLAN.folder}/logs/fetch/{{dataset}}.log",
    resources:
        **needs(1000, 60),
    params:
        # Not the mirror's address itself, which may hold a password: parameters are kept in Snakemake's own records.
        run_file=FROZEN,
        digest=lambda wc: PLAN.digest_of("fetch", names=[wc.dataset]),
    message:
        "Fetch the files of {wildcards.dataset}"
    shell:
        "python -m silodp.jobs fetch run_file={params.run_file:q} names={wildcards.dataset:q} listing={output.data:q}"
        " digest={params.digest} > {log:q} 2>&1"


rule partition:
    input:
        lambda wc: PLAN.files("fetch", wc.experiment),
    output:
        **PLAN.patterns("partition"),
    log:
        f"{PLAN.folder}/logs/partition/{{experiment}}/{{reading}}.log",
    resources:
        **needs(PLAN.run.memory_mb, 60),
    params:
        run_file=FROZEN,
        folder=subpath(output.indices, parent=True),
        digest=digest_of("partition"),
    message:
        "Divide the records of {wildcards.experiment} among silos, reading {wildcards.reading}"
    shell:
        "python -m silodp.jobs partition run_file={params.run_file:q} experiment={wildcards.experiment:q}"
        " reading={wildcards.reading:q} output={params.folder:q} digest={params.digest} > {log:q} 2>&1"
