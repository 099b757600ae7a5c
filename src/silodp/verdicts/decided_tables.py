"""The decided tables (docs/claims.md): T and its power from the pilot, then cells and gate from the fresh trials."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from silodp.experiments.task import POINT
from silodp.federation.streams import Streams
from silodp.files import NON_PRIVATE
from silodp.verdicts.claims.base import data_set
from silodp.verdicts.comparisons import AHEAD, BEHIND
from silodp.verdicts.decided import OPEN, WITHIN, Choices, Estimates, estimate, interval, outcomes, swapped_estimates
from silodp.verdicts.decided_trials import BLOCK, COPY, GATED, Part, make_trials, trial_data

COLUMNS = ["family", "experiment", "reading", "M", "R", "epsilon", "first", "second", "trials", "difference"]
COLUMNS += ["low", "high", "low_90", "high_90", "margin", "useless", "same_mechanism", "outcome"]
# Trials at most; simulated runs of the power table.
LARGEST, RUNS = 1000, 2000
# Share of splits that choose one mechanism on both sides, from which a cell counts as that.
ALIKE = 0.95
# What the non-convex paper says that SPIDER improves on, as shares of the other's error.
PAPER = {"minibatch_sgd": 0.0172, "local_sgd": 0.0606}

Side = tuple[str, str]


def side_of(name: str, epsilon: float) -> Side:
    """The side behind a name of a pair at an ε of its cell, the ε as text."""
    return name.removesuffix(NON_PRIVATE), "nan" if name.endswith(NON_PRIVATE) else str(float(epsilon))


def choices_of(rows: pd.DataFrame) -> tuple[Choices, list[Side], pd.DataFrame]:
    """Losses and errors of all points that ran every trial, the sides that choose among them, and the points."""
    by, numbered = ["side", "epsilon", "algorithm", *POINT[1:]], rows.assign(epsilon=rows["epsilon"].map(str))
    wide = [numbered.pivot(index="trial", columns=by, values=name) for name in ("train_loss", "test_error")]
    whole = rows["trial"].nunique() == numbered.groupby(by).size()
    wide = [table.sort_index(axis=1).loc[:, whole.sort_index().to_numpy()] for table in wide]
    points = wide[0].columns.to_frame(index=False)
    groups = points.groupby(["side", "epsilon"]).indices
    slices = [slice(int(places[0]), int(places[-1]) + 1) for places in groups.values()]
    return Choices(wide[0].to_numpy(), wide[1].to_numpy(), slices), list(groups), points


def pilot_errors(part: Part, rows: pd.DataFrame, pair: Sequence[str]) -> NDArray:
    """Test errors of both names of a pair at their best points of the pilot, (2, trials, ε)."""
    data, sides, _ = choices_of(rows)
    best = {side: own.start + data.losses[:, own].mean(0).argmin() for side, own in zip(sides, data.sides, strict=True)}
    return np.array([[data.errors[:, best[side_of(name, e)]] for e in part.config.epsilons] for name in pair]).swapaxes(
        1, 2
    )


def planned_trials(differences: NDArray, margin: float) -> int:
    """T: the least multiple of `BLOCK` with half-widths of at most Δ/2, at most `LARGEST`; differences (trials, cells)."""
    sd = math.sqrt(float(differences.var(0, ddof=1).mean()))
    wanted = (T for T in range(BLOCK, LARGEST, BLOCK) if interval(0, sd / math.sqrt(T), T)[1] <= margin / 2)
    return next(wanted, LARGEST)


def plan_rows(parts: Sequence[Part], pilots: Sequence[pd.DataFrame]) -> list[dict[str, Any]]:
    """T of one data set in one family, and the simulated share of each outcome at five truths, a row a pair and truth.

    T is the largest that a pair of private algorithms asks for. A simulated run has the pilot's variances and
    correlations; `all` is how often the first is ahead in every cell.
    """
    name, of = parts[0].name, data_set(parts[0].experiment)
    margin, generator = (
        parts[0].protocol.data_sets[of].margin,
        Streams(parts[0].protocol.seed).generator("power", name, of),
    )
    pairs = [pair for pair in parts[0].family.pairs if not any(one.endswith(NON_PRIVATE) for one in pair)]
    both = [np.concatenate([pilot_errors(*one, pair) for one in zip(parts, pilots, strict=True)], 2) for pair in pairs]
    T = max(planned_trials(first - second, margin) for first, second in both)
    found = []
    for pair, (first, second) in zip(pairs, both, strict=True):
        centred = (first - second - (first - second).mean(0)) / math.sqrt(len(first) - 1)
        errors = np.sqrt((centred**2).sum(0) / T)
        noise = generator.standard_normal((RUNS, len(centred))) @ centred / math.sqrt(T)
        se = errors * np.sqrt(generator.chisquare(T - 1, noise.shape) / (T - 1))
        paper = PAPER[pair[1]] * second.mean(0) if pair[0] == "spider" else margin
        for truth, effect in {"0": 0, "Δ/2": margin / 2, "Δ": margin, "2Δ": 2 * margin, "paper": paper}.items():
            words = outcomes(noise - effect, se, T, margin)
            about = {"family": name, "data_set": of, "first": pair[0], "second": pair[1], "cells": words.shape[1]}
            about |= {"sd": math.sqrt(float((errors**2).mean() * T)), "trials": T, "truth": truth}
            about |= {word: float((words == word).mean()) for word in (AHEAD, BEHIND, WITHIN, OPEN)}
            found.append(about | {"all": float((words == AHEAD).all(1).mean())})
    return found
