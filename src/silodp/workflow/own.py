"""What the workflow asks about an experiment on a file of one's own."""

from pathlib import Path

from silodp.config.errors import ConfigError
from silodp.workflow.digests import computed_by, digest, put_aside
from silodp.workflow.plan import Plan


def models_digest(plan: Plan, experiment: str) -> str:
    """Changes when the models that an experiment saves, or their cards, would for the same chosen points."""
    config = plan.experiments[experiment]
    asked = plan.from_data(experiment)
    asked.chosen |= {"silodp.algorithms": list(config.algorithms)}
    asked.chosen |= {"silodp.federation.models:MODELS": [config.model.name]}
    put_aside(asked, config, config.algorithms)
    used = [plan.run.seed, plan.run.dtype, config.model_dump(mode="json"), plan.data_digest(config.dataset)]
    return digest([*used, computed_by("silodp.cli.own:model", asked)])


def sent_along(plan: Plan) -> list[str]:
    """Files of one's own, relative to this folder, that jobs need which share no disk with it: all read the run file.

    Raises:
        ConfigError: one lies elsewhere, where an archive of this folder's sources cannot take it.
    """
    named = [config.dataset.file for config in plan.experiments.values() if not isinstance(config.dataset, str)]
    here, found = Path.cwd(), []
    for file in dict.fromkeys(named):
        if not Path(file).resolve().is_relative_to(here):
            raise ConfigError(f"{file}: must lie below {here}, as jobs that share no disk get it with the workflow")
        found.append(str(Path(file).resolve().relative_to(here)))
    return found
