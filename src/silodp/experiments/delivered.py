"""Claimed ε and bounds on the true ε of every private point of an experiment that a table reports."""

import functools
import math

import numpy as np
import pandas as pd

from silodp.config.experiment import Experiment
from silodp.experiments.table import KEY
from silodp.experiments.task import task_at
from silodp.files import PRIVACY_COLUMNS, PRIVACY_EXTRA
from silodp.privacy.adversary import delivered, reached
from silodp.privacy.plan import ADJACENCY
from silodp.privacy.shuffling.shuffled_plan import sent_bits
from silodp.privacy.standing import standing


def privacy_rows(experiment: str, config: Experiment, chosen: pd.DataFrame, sizes: list[int]) -> pd.DataFrame:
    """One row for each private point that was chosen, up to what its privacy does not depend on (step size and clip).

    `chosen` is what `selection.select` gives, `sizes` are training records of each silo; the worst silo counts.
    Columns: `PRIVACY_COLUMNS`, `PRIVACY_EXTRA`, phase_length, reported (chosen under the first report).
    """
    private = chosen[chosen["epsilon"].notna()]
    private = private.assign(reported=private["selection"] == config.reports[0].selection)
    delivered_by, reached_by = functools.cache(delivered), functools.cache(reached)
    rows = []
    for point in private.groupby(KEY, as_index=False)["reported"].max().to_dict("records"):
        task = task_at(experiment, config, point)
        plans = dict.fromkeys(task.plans(point["epsilon"], point["phase_length"], sizes))
        # NaN, which is not proven, counts as the largest.
        worst = max(plans, key=lambda plan: np.nan_to_num(delivered_by(plan).upper, nan=math.inf))
        result = delivered_by(worst)
        epsilon, method = result.upper, result.method
        lower = reached_by(worst, result, point["M"] == len(sizes))
        if task.readings.resample:
            # A record that was drawn into a silo several times moves a message several times as far as the plan counts.
            epsilon, method, lower = math.inf, "none: resampled records occur several times in a silo", math.nan
        if task.readings.clip_rule != "grid":
            epsilon, method, lower = math.inf, "not private: the clip threshold is read off the data", math.nan
        rows.append(
            point
            | {
                "experiment": experiment,
                "claimed_epsilon": point["epsilon"],
                "delivered_epsilon": epsilon,
                # ε is the largest over silos, so this must be too: together they hold for each.
                "delta": max(plan.budget.delta for plan in plans),
                "accountant": method,
                "adjacency": ADJACENCY,
                "sampling": worst.sampling,
                "noise_multiplier": worst.seen.noise_multiplier,
                "holds": epsilon <= point["epsilon"],
                "delivered_lower": lower,
                "claim": standing(point["epsilon"], lower, epsilon),
                "shuffled_bits": sent_bits(worst),
            }
        )
    frame = pd.DataFrame(rows, columns=[*PRIVACY_COLUMNS, *PRIVACY_EXTRA, "phase_length", "reported"])
    # Where trials chose different phase lengths, the row of the merged table is the one that promises least.
    row = ["algorithm", "reading", "M", "R", "epsilon", "reported"]
    frame = frame.sort_values([*row, "delivered_epsilon"], kind="stable")
    return frame.assign(reported=frame["reported"] & ~frame.duplicated(row, keep="last")).reset_index(drop=True)
