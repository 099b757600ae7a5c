"""What a theorem prescribes for one point of an experiment: `schedule: theorem-2.1` in place of numbers."""

import inspect
from typing import Any

from silodp.config.experiment import Experiment, Setting
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
        setting: M, and R as the most rounds.
        N, n: silos, and training records of the smallest.

    ValueError: a constant that the theorem asks for is missing, its assumptions fail, or it asks for more rounds.
    """
    options = experiment.algorithms[algorithm]
    assert options.schedule is not None
    known: dict[str, Any] = {
        "n": n,
        "N": N,
        "M": participation(setting),
        "L": (options.clips or experiment.clips)[0],
        "D": experiment.radius,
        "epsilon": epsilon,
        "delta": delta,
        "K": experiment.batch_records,
    } | (options.constants.model_dump(exclude_none=True) if options.constants else {})
    function = SCHEDULES[options.schedule]
    parameters = inspect.signature(function).parameters
    given = {name: known[name] for name in parameters if known.get(name) is not None}
    needed = [name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty]
    if missing := [name for name in needed if name not in given]:
        places = ["radius" if name == "D" else f"constants.{name}" for name in missing]
        raise ValueError(f"{options.schedule} asks for {', '.join(places)}")
    schedule = function(**given)
    if schedule.rounds > setting.R:
        asks = f"{options.schedule} asks for {schedule.rounds} rounds at epsilon = {epsilon:g}"
        raise ValueError(f"{asks}, R = {setting.R} allows fewer")
    return schedule
