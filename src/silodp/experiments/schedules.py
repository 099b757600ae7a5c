"""What a theorem prescribes for one point of an experiment: `schedule: theorem-2.1` in place of numbers."""

import inspect
from typing import Any

from silodp.config.experiment import AlgorithmOptions, Experiment, Setting
from silodp.theory.convex.schedules import SCHEDULES, Schedule


def participation(setting: Setting) -> float:
    """M with 1/M = E[1/M_r] (convex paper, Assumption 2)."""
    values = setting.participants
    return float(setting.M) if values is None else len(values) / sum(1 / value for value in values)


def prescribe(
    experiment: Experiment, algorithm: str, setting: Setting, *, N: int, n: int, epsilon: float, delta: float
) -> Schedule:
    """The schedule that the experiment names for `algorithm`, at one ε.

    Args:
        experiment: its one clip threshold is the theorem's L, its radius D.
        algorithm: its options name the schedule and the constants.
        setting: M, and R as the most rounds.
        N, n: silos, and training records of the smallest.
        epsilon, delta: the claim.

    Raises:
        ValueError: a constant that the theorem asks for is missing, its assumptions fail, or it asks for more rounds.
    """
    options: AlgorithmOptions = experiment.algorithms[algorithm]
    assert options.schedule is not None
    function = SCHEDULES[options.schedule]
    constants = options.constants.model_dump(exclude_none=True) if options.constants else {}
    known: dict[str, Any] = {
        "n": n,
        "N": N,
        "M": participation(setting),
        "L": (options.clips or experiment.clips)[0],
        "D": experiment.radius,
        "epsilon": epsilon,
        "delta": delta,
        "K": experiment.batch_records,
    } | constants
    parameters = inspect.signature(function).parameters
    given = {name: known[name] for name in parameters if known.get(name) is not None}
    missing = [
        name
        for name, parameter in parameters.items()
        if name not in given and parameter.default is inspect.Parameter.empty
    ]
    if missing:
        places = [{"D": "radius"}.get(name, f"constants.{name}") for name in missing]
        raise ValueError(f"{options.schedule} asks for {', '.join(places)}")
    found = function(**given)
    if found.rounds > setting.R:
        raise ValueError(
            f"{options.schedule} asks for {found.rounds} rounds at epsilon = {epsilon:g}, R = {setting.R} allows fewer"
        )
    return found
