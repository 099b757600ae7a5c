"""The decided tables (docs/claims.md): T and its power from the pilot, then cells and gate from the fresh trials."""

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from silodp.experiments.task import POINT
from silodp.files import NON_PRIVATE, read_parquet, write_parquet
from silodp.streams import Streams
from silodp.verdicts.claims.base import data_set
from silodp.verdicts.claims.claim_file import Decided
from silodp.verdicts.comparisons import AHEAD, BEHIND
from silodp.verdicts.decided import OPEN, WITHIN, Choices, estimate, interval, outcomes, swapped_estimates
from silodp.verdicts.decided_claims import keeps
from silodp.verdicts.decided_trials import (
    BLOCK,
    COPY,
    GATED,
    FamilySetting,
    make_pilot,
    stored_trials,
    trial_data,
    trial_files,
)

COLUMNS = ["family", "experiment", "reading", "M", "R", "epsilon", "first", "second", "trials", "difference"]
COLUMNS += ["low", "high", "low_90", "high_90", "margin", "useless", "same_mechanism", "outcome"]
# Trials at most; simulated runs of the power table.
LARGEST, RUNS = 1000, 2000
# Share of splits that choose one mechanism on both sides, from which a cell counts as that.
ALIKE = 0.95
# What the non-convex paper says that SPIDER improves on, as shares of the other's error.
PAPER = {"minibatch_sgd": 0.0172, "local_sgd": 0.0606}


def side_of(name: str, epsilon: float) -> tuple[str, str]:
    """The side behind a name of a pair and its ε at an ε of the cell, as text."""
    return name.removesuffix(NON_PRIVATE), "nan" if name.endswith(NON_PRIVATE) else str(float(epsilon))


def choices_of(rows: pd.DataFrame) -> tuple[Choices, list[str], pd.DataFrame]:
    """Losses and errors of a side's points that ran every trial, the ε at which it chooses, and the points."""
    by, numbered = ["epsilon", "algorithm", *POINT[1:]], rows.assign(epsilon=rows["epsilon"].map(str))
    wide = [numbered.pivot(index="trial", columns=by, values=name) for name in ("train_loss", "test_error")]
    whole = (rows["trial"].nunique() == numbered.groupby(by).size()).sort_index().to_numpy()
    losses, errors = (table.sort_index(axis=1).loc[:, whole] for table in wide)
    points = losses.columns.to_frame(index=False)
    groups = points.groupby("epsilon").indices
    slices = [slice(int(places[0]), int(places[-1]) + 1) for places in groups.values()]
    return Choices(losses.to_numpy(), errors.to_numpy(), slices), list(groups), points


def pilot_errors(part: FamilySetting, pair: Sequence[str]) -> NDArray:
    """Test errors of both names of a pair at their best points of the pilot, (2, trials, ε)."""
    found, rows = [], make_pilot(part)
    for name in pair:
        data, epsilons, _ = choices_of(rows[rows["side"] == name])
        best = [own.start + data.losses[:, own].mean(0).argmin() for own in data.sides]
        found.append(data.errors[:, [best[epsilons.index(str(float(e)))] for e in part.config.epsilons]])
    return np.array(found)


def planned_trials(differences: NDArray, margin: float) -> int:
    """T: the least multiple of `BLOCK` with half-widths of at most Δ/2, at most `LARGEST`; of (trials, cells)."""
    sd = math.sqrt(float(differences.var(0, ddof=1).mean()))
    wanted = (T for T in range(BLOCK, LARGEST, BLOCK) if interval(0, sd / math.sqrt(T), T)[1] <= margin / 2)
    return next(wanted, LARGEST)


def plan_rows(parts: Sequence[FamilySetting], margin: float, claims: Mapping[str, Decided]) -> list[dict[str, Any]]:
    """T of one data set in one family, and the simulated share of each outcome at five truths, a row a pair and truth.

    T is the largest that one of the family's `pairs` asks for. A simulated run has the pilot's variances and
    correlations; `all` is how often the first is ahead in every cell. Behind them a row for each pair of a claim, whose
    `all` is how often its cells confirm it at the paper's effect; a claim that states a number has none.
    """
    name, of = parts[0].name, data_set(parts[0].experiment)
    generator = Streams(parts[0].run.seed).generator("power", name, of)
    epsilons = np.concatenate([part.config.epsilons for part in parts])
    both = {pair: np.concatenate([pilot_errors(part, pair) for part in parts], 2) for pair in parts[0].pairs}
    asking = list(both.values())[: len(parts[0].family["pairs"])]
    T = max(planned_trials(first - second, margin) for first, second in asking)
    found, of_claims = [], []
    for pair, (first, second) in both.items():
        centred = (first - second - (first - second).mean(0)) / math.sqrt(len(first) - 1)
        errors = np.sqrt((centred**2).sum(0) / T)
        noise = generator.standard_normal((RUNS, len(centred))) @ centred / math.sqrt(T)
        se = errors * np.sqrt(generator.chisquare(T - 1, noise.shape) / (T - 1))
        paper = PAPER[pair[1]] * second.mean(0) if pair[0] == "spider" else margin
        about = {"family": name, "data_set": of, "first": pair[0], "second": pair[1], "cells": noise.shape[1]}
        about |= {"sd": math.sqrt(float((errors**2).mean() * T)), "trials": T}
        for truth, effect in {"0": 0, "Δ/2": margin / 2, "Δ": margin, "2Δ": 2 * margin, "paper": paper}.items():
            words = outcomes(noise - effect, se, T, margin)
            shares = {word: float((words == word).mean()) for word in (AHEAD, BEHIND, WITHIN, OPEN)}
            found.append(
                about | {"truth": truth} | shares | {"all": float((words == AHEAD).all(1).mean()), "claim": ""}
            )
        for claim, asked in claims.items():
            for sign, names in ((1, pair), (-1, pair[::-1])):
                way = asked.pair_of(*names) if asked.family == name and of in (asked.data_sets or [of]) else None
                if way and way.stated is None:
                    inside = (epsilons >= asked.epsilons[0]) & (epsilons <= asked.epsilons[1])
                    values, spread = sign * (noise - paper)[:, inside], se[:, inside]
                    if asked.verdict == "on_average":
                        own = math.sqrt(float((centred[:, inside].mean(1) ** 2).sum() / T))
                        values, spread = values.mean(1, keepdims=True), np.full((RUNS, 1), own)
                    kept = keeps(interval(values, spread, T)[1], margin * way.never_worse).all(1)
                    named = dict(zip(("first", "second"), names, strict=True)) | {"cells": int(inside.sum())}
                    of_claims.append(about | named | {"truth": "paper", "all": float(kept.mean()), "claim": claim})
    return found + of_claims


def _kept_file(part: FamilySetting, name: str, *sides: str) -> Path:
    """The file that keeps what is made of the sides' trials, named after these."""
    content = hashlib.sha256()
    for file in [file for side in sides for file in trial_files(part, side)]:
        content.update(file.read_bytes())
    return part.trials_folder / f"{name}_{sides[0].replace(':', '_')}_{content.hexdigest()[:12]}.parquet"


def errors_of(part: FamilySetting, side: str) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """A side's errors and choices, made where they are missing; None until all its trials are there.

    Errors have ε in columns; the first row is the procedure's, the others are bootstrap draws. Choices are points with
    the share of splits that choose each. Sides and settings of an experiment draw the same trials and splits.
    """
    if (rows := stored_trials(part, side)) is None:
        return None
    files = [_kept_file(part, name, side) for name in ("errors", "chosen")]
    if not all(file.exists() for file in files):
        data, epsilons, points = choices_of(rows)
        generator = Streams(part.run.seed).generator("decided", part.name, part.experiment, "bootstrap")
        found = estimate(data, part.config.trials, generator)
        write_parquet(pd.DataFrame(np.vstack([found.value, found.draws]), columns=epsilons), files[0])
        write_parquet(points.assign(share=found.chosen), files[1])
    return read_parquet(files[0]), read_parquet(files[1])


def flips_of(part: FamilySetting) -> pd.DataFrame | None:
    """The gate's differences where whole trials swap both copies: ε in columns, a row a flip."""
    first, second = (stored_trials(part, side) for side in (GATED, COPY))
    if first is None or second is None:
        return None
    file = _kept_file(part, "flips", GATED, COPY)
    if not file.exists():
        ours, epsilons, _ = choices_of(first[first["epsilon"].notna()])
        theirs, *_ = choices_of(second)
        half = ours.losses.shape[1]
        sides = [*ours.sides, *(slice(own.start + half, own.stop + half) for own in ours.sides)]
        data = Choices(np.hstack([ours.losses, theirs.losses]), np.hstack([ours.errors, theirs.errors]), sides)
        generator = Streams(part.run.seed).generator("decided", part.name, part.experiment, "gate")
        swaps = swapped_estimates(data, part.config.trials, generator)
        write_parquet(pd.DataFrame(list(swaps), columns=epsilons), file)
    return read_parquet(file)


def same_mechanism_share(part: FamilySetting, chosen: pd.DataFrame, epsilon: float) -> float:
    """Share of splits that choose FedProx-SPIDER with phases of one round and minibatch SGD's noise, within 0.1 %."""
    sizes = trial_data(part)(0).sizes
    ours, theirs = (part.task(name).plans(epsilon, 1, sizes)[0].releases[0] for name in ("fedprox_spider", GATED))
    alike = ours.sampler == theirs.sampler and math.isclose(ours.noise, theirs.noise, rel_tol=1e-3)
    rows = chosen[(chosen["algorithm"] == "fedprox_spider") & (chosen["phase_length"] == 1)]
    return float(rows.loc[rows["epsilon"] == str(float(epsilon)), "share"].sum()) * alike


def cell_rows(part: FamilySetting, margin: float, constant: float) -> list[dict[str, Any]]:
    """A row of `COLUMNS` a pair and ε, with its draws (`draws`) and both sides' errors (`levels`) behind them.

    Where a side's trials are not all there, a row is open and has no numbers.
    """
    T = part.trials
    sides = {side: kept for side in part.sides() if (kept := errors_of(part, side)) is not None}
    found = []
    for (first, second), epsilon in itertools.product(part.pairs, part.config.epsilons):
        row: dict[str, Any] = {"family": part.name, "experiment": part.experiment, "reading": part.reading}
        row |= {"M": part.setting.M, "R": part.setting.R, "epsilon": epsilon, "first": first, "second": second}
        row |= {"trials": 0, "margin": margin, "useless": False, "same_mechanism": False, "outcome": OPEN}
        keys = [side_of(name, epsilon) for name in (first, second)]
        if all(side in sides for side, _ in keys):
            levels = [sides[side][0][at].to_numpy() for side, at in keys]
            value, draws = (levels[0] - levels[1])[0], (levels[0] - levels[1])[1:]
            se = float(draws.std(ddof=1))
            least = min(interval(level[0], level[1:].std(ddof=1), T)[0] for level in levels)
            ends = *interval(value, se, T), *interval(value, se, T, 0.9)
            row |= dict(zip(COLUMNS[8:14], [T, value, *ends], strict=True))
            row |= {"useless": bool(least >= constant - margin)}
            row |= {"outcome": str(outcomes(value, se, T, margin)), "draws": draws, "levels": levels}
            if (first, second) == ("spider", GATED):
                row["same_mechanism"] = same_mechanism_share(part, sides["spider"][1], epsilon) >= ALIKE
        found.append(row)
    return found


def gate_row(name: str, parts: Sequence[FamilySetting]) -> dict[str, Any]:
    """The gate of a family over its settings that are run: cells whose interval leaves out 0, the limit, mean z²."""
    rejected, squares, counts = 0, [], {}
    for part in parts:
        flips, first, second = flips_of(part), errors_of(part, GATED), errors_of(part, COPY)
        if flips is None or first is None or second is None:
            continue
        sizes = flips.abs()
        # One sign for all settings of an experiment; experiments are independent, so rows of theirs may be added.
        counts[part.trials_folder] = (sizes > sizes.quantile(0.95)).sum(axis=1)
        for epsilon in flips:
            differences = (first[0][epsilon] - second[0][epsilon]).to_numpy()
            value, se = differences[0], differences[1:].std(ddof=1)
            rejected += int(outcomes(value, se, part.trials, 0) in (AHEAD, BEHIND))
            squares.append((value / se) ** 2)
    row: dict[str, Any] = {"family": name, "cells": len(squares), "rejected": rejected}
    limit = float(np.quantile(sum(counts.values()), 0.99)) if counts else math.nan
    return row | {"limit": limit, "mean_squared_z": float(np.mean(squares)) if squares else math.nan}
