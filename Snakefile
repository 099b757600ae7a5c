# snakemake --cores 2 [--configfile config/<run>.yaml] [target]; without a run file it is config/default.yaml.
workflow.include("workflow/Snakefile", overwrite_default_target=True)
