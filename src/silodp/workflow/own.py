"""What the workflow asks about an experiment on a file of one's own."""

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
