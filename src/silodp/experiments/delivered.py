"""Claimed against delivered ε for every private point of an experiment that a table reports."""

import math
from collections.abc import Callable

import pandas as pd

from silodp.config.experiment import Experiment
from silodp.experiments.task import Task
from silodp.files import PRIVACY_COLUMNS, PRIVACY_EXTRA
from silodp.privacy.accounting.accountant import DeliveredEpsilon, end_of_round_epsilon
from silodp.privacy.adversary import delivered
from silodp.privacy.plan import ADJACENCY, PrivacyPlan
from silodp.privacy.shuffling.shuffled_plan import sent_bits

KEY = ["algorithm", "reading", "M", "R", "epsilon", "phase_length"]


def privacy_rows(experiment: str, config: Experiment, chosen: pd.DataFrame, sizes: list[int]) -> pd.DataFrame:
    """One row for each private point that was chosen, up to what its privacy does not depend on (step size and clip).

    Args:
        experiment: its name.
        config: the experiment.
        chosen: what `tuning.select` gave.
        sizes: training records of each silo; where silos have plans of their own, the largest delivered ε is given.

    Returns:
        `PRIVACY_COLUMNS`, `PRIVACY_EXTRA` and phase_length, reported (chosen under the experiment's first report).
    """
    first = config.reports[0].selection
    private = chosen[chosen["epsilon"].notna()]
    points = private.assign(reported=private["selection"] == first).groupby(KEY, as_index=False)["reported"].max()
    rows = []
    known: dict[tuple, DeliveredEpsilon] = {}
    from_below: dict[tuple, float] = {}
    for point in points.to_dict("records"):
        setting = next(one for one in config.settings if (point["M"], point["R"]) == (one.M, one.R))
        task = Task(experiment, config, point["algorithm"], setting, point["reading"])
        public, everyone = task.readings.clip_rule == "grid", point["M"] == len(sizes)
        plans = set(task.plans(point["epsilon"], point["phase_length"], sizes))
        worst, of, found = -math.inf, next(iter(plans)), None
        for one in plans:
            key = (one.releases, one.budget.n, one.budget.delta, one.shuffler, one.trusted_sum, one.shuffled_sum)
            if key not in known:
                known[key] = delivered(one)
            # A value that is no number must not pass for one that holds.
            if math.isnan(known[key].upper) or known[key].upper > worst:
                found, of = known[key], one
                worst = found.upper
        assert found is not None
        method, below = found.method, (of, everyone)
        if below not in from_below:
            from_below[below] = reached(of, found, everyone)
        lower = from_below[below]
        if task.readings.resample:
            # A record that was drawn into a silo several times moves a message several times as far as the plan counts.
            worst, method, lower = math.inf, "none: resampled records occur several times in a silo", math.nan
        rows.append(
            point
            | {
                "experiment": experiment,
                "claimed_epsilon": point["epsilon"],
                "delivered_epsilon": worst if public else math.inf,
                # ε is the largest over silos, so this must be too: together they hold for each.
                "delta": max(one.budget.delta for one in plans),
                "accountant": method if public else "not private: the clip threshold is read off the data",
                "adjacency": ADJACENCY,
                "sampling": of.sampling,
                "noise_multiplier": of.seen.noise_multiplier,
                "holds": public and worst <= point["epsilon"],
                "delivered_lower": lower if public else math.nan,
                "shuffled_bits": sent_bits(of),
            }
        )
    columns = [*PRIVACY_COLUMNS, *PRIVACY_EXTRA, "phase_length", "reported"]
    frame = pd.DataFrame(rows, columns=columns)
    # Where trials chose different phase lengths, the row of the merged table is the one that promises least.
    frame = frame.sort_values(
        ["algorithm", "reading", "M", "R", "epsilon", "reported", "delivered_epsilon"], kind="stable"
    )
    last = ~frame.duplicated(["algorithm", "reading", "M", "R", "epsilon", "reported"], keep="last")
    return frame.assign(reported=frame["reported"] & last).reset_index(drop=True)


def reached(plan: PrivacyPlan, result: DeliveredEpsilon, everyone: bool) -> float:
    """ε that some neighbouring silos reach at the claim's δ: what can refute a claim; NaN where none is proven.

    Args:
        plan: what a silo releases.
        result: its delivered ε, as the adversary of a silo's own messages has it.
        everyone: whether all silos take part in every round. Where M < N, `result` counts a silo that is drawn in all
            rounds, which is rare, and nothing is proven from below about one that is not.
    """
    guarded = plan.shuffler is not None or plan.shuffled_sum is not None or plan.trusted_sum is not None
    (first, *_) = plan.releases
    # The order in which disjoint batches use the records is random and secret, which the plan does not count.
    if guarded or not everyone or first.clipping != "record" or first.sampler == "disjoint":
        return math.nan
    if first.steps == 1:
        return result.lower
    # Of local SGD only the model after a round's steps is seen; it is asked for where a claim hangs on it.
    n, delta = plan.budget.n, plan.budget.delta
    if plan.budget.epsilon is None or result.upper <= plan.budget.epsilon:
        return math.nan
    rounds = first.count // first.steps
    return end_of_round_epsilon(first.steps, rounds, n, plan.noise_multiplier, delta).lower


def delivered_lookup(rows: pd.DataFrame) -> Callable[[pd.Series], float]:
    """Function from a trial row (`source` in place of its algorithm) to its delivered ε in `rows`."""
    values = {
        (
            row["algorithm"],
            row["reading"],
            int(row["M"]),
            int(row["R"]),
            float(row["epsilon"]),
            int(row["phase_length"]),
        ): float(row["delivered_epsilon"])
        for row in rows.to_dict("records")
    }

    def delivered(row: pd.Series) -> float:
        return values[
            row["source"], row["reading"], int(row["M"]), int(row["R"]), row["epsilon"], int(row["phase_length"])
        ]

    return delivered
