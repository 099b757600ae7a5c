"""Claimed against delivered ε for every private point of an experiment that a table reports."""

import math
from collections.abc import Callable

import pandas as pd

from silodp.dag import Plan, slug
from silodp.privacy.delivered import delivered
from silodp.privacy.plan import ADJACENCY
from silodp.results import PRIVACY_COLUMNS, PRIVACY_EXTRA

KEY = ["algorithm", "reading", "M", "R", "epsilon", "phase_length"]


def privacy_rows(plan: Plan, experiment: str, chosen: pd.DataFrame, sizes: list[int]) -> pd.DataFrame:
    """One row for each private point that was chosen, up to what its privacy does not depend on (step size and clip).

    Args:
        plan: the run.
        experiment: its name.
        chosen: what `tuning.select` gave.
        sizes: training records of each silo; where silos have plans of their own, the largest delivered ε is given.

    Returns:
        `PRIVACY_COLUMNS`, `PRIVACY_EXTRA` and phase_length, reported (chosen under the experiment's first report).
    """
    first = plan.experiments[experiment].reports[0].selection
    private = chosen[chosen["epsilon"].notna()]
    points = private.assign(reported=private["selection"] == first).groupby(KEY, as_index=False)["reported"].max()
    rows = []
    known: dict[tuple, tuple[float, str, float]] = {}
    for point in points.to_dict("records"):
        setting = f"M{point['M']}_R{point['R']}"
        task = plan.task(experiment, point["algorithm"], setting, slug(point["reading"]))
        public = task.readings.clip_rule == "grid"
        plans = set(task.plans(point["epsilon"], point["phase_length"], sizes))
        worst, method, lower, of = -math.inf, "", math.nan, next(iter(plans))
        for one in plans:
            key = (one.releases, one.budget.n, one.budget.delta, one.shuffler, one.trusted_sum, one.shuffled_sum)
            if key not in known:
                result = delivered(one)
                known[key] = (result.upper, result.method, result.lower)
            # A value that is no number must not pass for one that holds.
            if math.isnan(known[key][0]) or known[key][0] > worst:
                (worst, method, lower), of = known[key], one
        if task.readings.resample:
            # A record that was drawn into a silo several times moves a message several times as far as the plan counts.
            worst, method, lower = math.inf, "none: resampled records occur several times in a silo", math.nan
        rows.append(
            point
            | {
                "experiment": experiment,
                "claimed_epsilon": point["epsilon"],
                "delivered_epsilon": worst if public else math.inf,
                "delta": of.budget.delta,
                "accountant": method if public else "not private: the clip threshold is read off the data",
                "adjacency": ADJACENCY,
                "sampling": of.sampling,
                "noise_multiplier": of.seen.noise_multiplier,
                "holds": public and worst <= point["epsilon"],
                "delivered_lower": lower if public else math.nan,
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
