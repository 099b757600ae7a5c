# Of experiments on a file of one's own: the reported runs' first trial as models to be used, each with its card.
from silodp.workflow.own import models_digest

for experiment in PLAN.experiments:
    if not PLAN.models(experiment):
        continue

    rule:
        name:
            f"models_{experiment}"
        input:
            chosen=f"{PLAN.folder}/selection/{experiment}.parquet",
            silos=f"{PLAN.silos(experiment, 'default')}/indices.parquet",
            privacy=f"{PLAN.folder}/privacy/{experiment}.csv",
        output:
            PLAN.models(experiment),
        log:
            f"{PLAN.folder}/logs/models/{experiment}.log",
        conda:
            "../../environment.yml"
        threads: PLAN.run.threads
        resources:
            **gpus(PLAN.gpus(experiment)),
            mem_mb=growing(PLAN.run.memory_mb),
            runtime=growing(PLAN.run.runtime_minutes),
        params:
            run_file=RUN_FILE,
            experiment=experiment,
            silos=subpath(input.silos, parent=True),
            folder=subpath(output[0], parent=True),
            digest=models_digest(PLAN, experiment),
        shell:
            "silodp model {params.run_file:q} {params.experiment:q} --chosen {input.chosen:q} --silos {params.silos:q}"
            " --privacy {input.privacy:q} --threads {threads} --folder {params.folder:q} > {log:q} 2>&1"
