"""Decided tables from planted runs whose answers are known, and a small family that is really trained."""

import functools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import small
import torch
from pandas.testing import assert_frame_equal
from scipy import stats

from silodp.cli import main
from silodp.cli.decided import _note_machine
from silodp.config.errors import ConfigError
from silodp.config.experiment import Experiment
from silodp.config.loading import known_experiments
from silodp.experiments.task import POINT
from silodp.files import write_parquet
from silodp.verdicts.claims.claim_file import Decided
from silodp.verdicts.claims.claim_files import read_protocol
from silodp.verdicts.decided import estimate, interval, swapped_estimates
from silodp.verdicts.decided_tables import cell_rows, gate_row, plan_rows, planned_trials
from silodp.verdicts.decided_trials import COPY, FamilySetting, choosable, make_trials, pilot, train_points, trial_files
from silodp.workflow.digests import checksum

EPSILONS, CHOOSING, T = [2.0, 8.0], 4, 100
STEPS = np.exp([-3, -1.5, 0]).tolist()
GENERATOR = np.random.default_rng(3)
PAIRED = ("local_sgd", "fedprox_spider", "minibatch_sgd")


def part(tmp_path: Path, first: str = "local_sgd", **changes) -> FamilySetting:
    """One setting of breast cancer, `first` against minibatch SGD; its publication knows no point."""
    names = ["fedprox_spider", "fed_spider"] if first == "spider" else [first]
    keys = {"algorithms": {name: {"private": "private"} for name in [*names, "minibatch_sgd"]}, "trials": CHOOSING}
    keys |= {
        "model": {"name": "logistic"},
        "stepsizes": {"low": -3, "high": 0, "points": 3, "spacing": "exponential"},
        "clips": [1.0],
    }
    keys |= {"phase_lengths": [1, 2], "alternatives": [{"noise": "calibrated"}]}
    config = small.experiment(**keys | changes)
    numbers = dict.fromkeys([*POINT, "M", "R", "trials", "train_loss_mean", "train_loss_error"], pd.Series(dtype=float))
    nothing = pd.DataFrame({"algorithm": pd.Series(dtype=str), "reading": pd.Series(dtype=str), **numbers})
    write_parquet(nothing, tmp_path / "results" / "published" / "losses" / "small.parquet")
    family = {"publication": "published", "pairs": [[first, "minibatch_sgd"]], "trials": {"small": T}}
    return FamilySetting(
        "printed", family, "small", config, small.run(seed=5), config.settings[0], tmp_path / "decided"
    )


@pytest.fixture(autouse=True)
def _quick(tmp_path, monkeypatch):
    """A tenth of the draws and splits of the published tables."""
    quick = functools.partial(estimate, splits=200, draws=100, resplits=50)
    monkeypatch.setattr("silodp.verdicts.decided_tables.estimate", quick)
    swapped = functools.partial(swapped_estimates, flips=99, resplits=50)
    monkeypatch.setattr("silodp.verdicts.decided_tables.swapped_estimates", swapped)
    monkeypatch.chdir(tmp_path)


def rows(algorithm: str, errors: np.ndarray, losses: np.ndarray | None = None, phase: int = 1) -> pd.DataFrame:
    """Rows of points (trials, ε, points) of an algorithm; a point is a step size."""
    losses = errors if losses is None else losses
    found = [
        (algorithm, trial, epsilon, STEPS[point], 1.0, phase, losses[trial, e, point], errors[trial, e, point])
        for trial, e, point in np.ndindex(errors.shape)
        for epsilon in [EPSILONS[e]]
    ]
    return pd.DataFrame(found, columns=["algorithm", "trial", *POINT, "train_loss", "test_error"])


def plant(of: FamilySetting, side: str, table: pd.DataFrame) -> None:
    for file, numbers in trial_files(of, side).items():
        write_parquet(table[(table["trial"] + of.config.trials).isin(numbers)], file)


def normal(mean: float, sd: float = 0.02, points: int = 1) -> np.ndarray:
    """(T, ε, points) errors of exactly that mean and standard deviation."""
    values = GENERATOR.normal(size=(T, 2, points))
    return mean + sd * (values - values.mean(0)) / values.std(0, ddof=1)


def test_with_one_point_a_side_a_cell_is_the_paired_difference(tmp_path):
    of = part(tmp_path)
    ours, theirs = normal(0.30), normal(0.33)
    plant(of, "local_sgd", rows("local_sgd", ours))
    assert [row["outcome"] for row in cell_rows(of, 0.01, 0.5)] == ["open", "open"]  # the other side is not there yet
    plant(of, "minibatch_sgd", rows("minibatch_sgd", theirs))
    found = cell_rows(of, 0.01, 0.5)
    assert [row["epsilon"] for row in found] == EPSILONS
    for e, row in enumerate(found):
        difference = (ours - theirs)[:, e, 0]
        se = difference.std(ddof=1) / math.sqrt(T)
        assert row["difference"] == pytest.approx(-0.03, abs=1e-3)
        for level, low, high in ((0.95, "low", "high"), (0.90, "low_90", "high_90")):
            half = stats.t.ppf((1 + level) / 2, T - 1) * se
            assert row[high] - row["difference"] == pytest.approx(half, rel=0.3)
            assert row["difference"] - row[low] == pytest.approx(half, rel=0.3)
        assert (row["high"] - row["low"]) / (row["high_90"] - row["low_90"]) == pytest.approx(
            stats.t.ppf(0.975, T - 1) / stats.t.ppf(0.95, T - 1)
        )
        assert (row["trials"], row["outcome"], row["useless"]) == (T, "ahead", False)


def test_the_point_of_least_loss_is_evaluated_and_not_the_one_of_least_error(tmp_path):
    of, errors = part(tmp_path), normal(0.30, points=2)
    errors[:, :, 1] -= 0.1
    losses = np.stack([normal(1.0)[:, :, 0], normal(2.0)[:, :, 0]], 2)
    plant(of, "local_sgd", rows("local_sgd", errors, losses))
    plant(of, "minibatch_sgd", rows("minibatch_sgd", normal(0.30)))
    assert [row["difference"] for row in cell_rows(of, 0.01, 0.5)] == pytest.approx([0, 0], abs=1e-3)


@pytest.mark.parametrize(("ours", "theirs", "useless"), [(0.5, 0.505, True), (0.5, 0.3, False), (0.3, 0.5, False)])
def test_a_cell_is_useless_where_neither_side_beats_doing_nothing(tmp_path, ours, theirs, useless):
    of = part(tmp_path)
    plant(of, "local_sgd", rows("local_sgd", normal(ours)))
    plant(of, "minibatch_sgd", rows("minibatch_sgd", normal(theirs)))
    assert [row["useless"] for row in cell_rows(of, 0.01, 0.5)] == [useless] * 2


@pytest.mark.parametrize(("reading", "phase", "same"), [("noise=calibrated", 1, True), ("", 1, False), ("", 2, False)])
def test_calibrated_phases_of_one_round_are_the_same_mechanism(tmp_path, reading, phase, same):
    of = part(tmp_path, "spider")
    of = replace(of, family={**of.family, "reading": reading})
    plant(of, "spider", rows("fedprox_spider", normal(0.3), phase=phase))
    plant(of, "minibatch_sgd", rows("minibatch_sgd", normal(0.3)))
    assert [row["same_mechanism"] for row in cell_rows(of, 0.01, 0.5)] == [same] * 2


@pytest.mark.parametrize(("share", "same"), [(0.95, True), (0.9499, False)])
def test_a_cell_is_of_one_mechanism_from_a_share_of_the_splits_on(tmp_path, share, same, monkeypatch):
    of = part(tmp_path, "spider")
    for side, name in (("spider", "fedprox_spider"), ("minibatch_sgd", "minibatch_sgd")):
        plant(of, side, rows(name, normal(0.3)))
    monkeypatch.setattr("silodp.verdicts.decided_tables.same_mechanism_share", lambda *_: share)
    assert [row["same_mechanism"] for row in cell_rows(of, 0.01, 0.5)] == [same] * 2


def test_the_gate_lets_equal_procedures_pass_and_finds_unequal_ones(tmp_path, monkeypatch):
    of, errors = part(tmp_path), normal(0.3)
    assert gate_row("printed", [of])["cells"] == 0
    plant(of, "minibatch_sgd", rows("minibatch_sgd", errors))
    plant(of, COPY, rows("minibatch_sgd", normal(0.3)))
    honest = gate_row("printed", [of])
    assert (honest["cells"], honest["rejected"]) == (2, 0)
    assert 0 <= honest["limit"] <= 2
    assert honest["mean_squared_z"] < 0.1
    other = part(tmp_path / "other")
    plant(other, "minibatch_sgd", rows("minibatch_sgd", errors))
    plant(other, COPY, rows("minibatch_sgd", normal(0.32)))
    unequal = gate_row("printed", [other])
    assert (unequal["rejected"], unequal["mean_squared_z"] > 9) == (2, True)
    # Swaps that are as far apart as the limit itself are not beyond it.
    tied = pd.DataFrame(dict.fromkeys(map(str, EPSILONS), [0.0] * 90 + [0.1] * 10))
    monkeypatch.setattr("silodp.verdicts.decided_tables.flips_of", lambda part: tied)
    assert gate_row("printed", [of])["limit"] == 0


@pytest.mark.parametrize(("sd", "margin", "wanted"), [(0.01, 0.01, 50), (0.0272, 0.01, 150), (0.9, 0.01, 1000)])
def test_t_is_the_least_that_is_precise_enough(sd, margin, wanted):
    values = GENERATOR.normal(size=(40, 3))
    differences = sd * (values - values.mean(0)) / values.std(0, ddof=1)
    assert planned_trials(differences, margin) == wanted
    half = [stats.t.ppf(0.975, n - 1) * sd / math.sqrt(n) for n in (wanted - 50, wanted) if n]
    assert half[-1] <= margin / 2 or wanted == 1000
    assert all(other > margin / 2 for other in half[:-1])


def test_a_half_width_of_exactly_half_the_margin_is_precise_enough():
    differences = GENERATOR.normal(size=(40, 3))
    half = interval(0, math.sqrt(float(differences.var(0, ddof=1).mean())) / 10, 100)[1]
    assert [planned_trials(differences, margin) for margin in (2 * half, np.nextafter(2 * half, 0))] == [100, 150]


def test_the_papers_effect_is_its_share_of_the_error_at_the_points_of_least_loss(tmp_path):
    """1.72 % of an error of 0.5; of two points the first is chosen at ε = 2 and the second at ε = 8."""
    of, spread = part(tmp_path, "spider"), np.array([-0.02, 0.02, -0.02, 0.02])[:, None, None]
    losses = np.tile([[1.0, 2.0], [2.0, 1.0]], (CHOOSING, 1, 1))
    errors = np.where(losses == 1, 0.5, 0.9) + spread
    table = [rows("fedprox_spider", errors - 2 * spread, losses).assign(side="spider")]
    table.append(rows("minibatch_sgd", errors, losses).assign(side="minibatch_sgd"))
    write_parquet(pd.concat(table), of.trials_folder / "pilot.parquet")
    found = pd.DataFrame(plan_rows([of], 0.0172, {})).set_index("truth")[["ahead", "same", "open", "all"]]
    assert found.loc["paper"].tolist() == found.loc["Δ/2"].tolist() != found.loc["Δ"].tolist()


@pytest.mark.parametrize("wide", ["local_sgd", "fedprox_spider"])
def test_there_are_trials_enough_for_every_pair_of_a_family(tmp_path, wide):
    of = part(tmp_path, algorithms={name: {"private": "private"} for name in PAIRED})
    of = replace(of, family={**of.family, "pairs": [[name, "minibatch_sgd"] for name in PAIRED[:2]]})
    step = np.array([-0.02, 0.02, -0.02, 0.02])[:, None, None] * np.ones((1, 2, 1))
    table = [rows(name, 0.3 + step * (name == wide)).assign(side=name) for name in PAIRED]
    write_parquet(pd.concat(table), of.trials_folder / "pilot.parquet")
    wanted = planned_trials(step[:, :, 0], 0.01)
    assert {row["trials"] for row in plan_rows([of], 0.01, {})} == {wanted}
    assert wanted > 50


def test_power_is_the_level_at_0_and_grows_with_the_truth(tmp_path):
    of = part(tmp_path)
    trials = np.arange(CHOOSING)
    values = np.array([-1.0, 1.0, -1.0, 1.0])[trials, None, None] * [[[0.02], [0.02]]]
    # The pilot's spread counts and its mean does not.
    table = [rows("local_sgd", 0.35 + values).assign(side="local_sgd")]
    table.append(rows("minibatch_sgd", 0.3 - values).assign(side="minibatch_sgd"))
    write_parquet(pd.concat(table), of.trials_folder / "pilot.parquet")
    found = {row["truth"]: row for row in plan_rows([of], 0.05, {})}
    sd = 0.04 * math.sqrt(4 / 3)
    assert found["0"]["sd"] == pytest.approx(sd)
    assert {row["trials"] for row in found.values()} == {
        planned_trials(sd * np.array([[0.5**0.5], [-(0.5**0.5)]]), 0.05)
    }
    assert 0.01 < found["0"]["ahead"] < 0.04
    assert found["0"]["ahead"] < found["Δ/2"]["ahead"] < found["Δ"]["ahead"] <= found["2Δ"]["ahead"] == 1
    assert found["paper"]["ahead"] == pytest.approx(found["Δ"]["ahead"])  # no paper states an effect of this pair
    # The cells of a setting share trials: perfectly correlated ones are ahead together.
    assert found["Δ/2"]["all"] > found["Δ/2"]["ahead"] ** 2


def test_a_claims_power_is_that_of_its_own_cells_pairs_and_rule(tmp_path):
    """Of two cells one is ten times as noisy: the claim about the quiet one has power, also the other way round."""
    of = part(tmp_path)
    values = np.array([-1.0, 1.0, -1.0, 1.0])[:, None, None] * [[[0.01], [0.2]]]
    table = [rows("local_sgd", 0.3 + values).assign(side="local_sgd")]
    table.append(rows("minibatch_sgd", 0.3 - values).assign(side="minibatch_sgd"))
    write_parquet(pd.concat(table), of.trials_folder / "pilot.parquet")
    pair = {"first": "local_sgd", "second": "minibatch_sgd"}
    turned = {"first": "minibatch_sgd", "second": "local_sgd", "never_worse": True}
    about = {"name": "decided", "family": "printed", "verdict": "at_every"}
    claims = {
        "better": Decided(**about, pairs=[pair], most_epsilon=2),
        "both": Decided(**about, pairs=[pair]),
        "ends": Decided(**about, pairs=[pair], least_epsilon=2, most_epsilon=8),
        "turned": Decided(**about, pairs=[turned], most_epsilon=2),
        "other": Decided(**about | {"family": "calibrated"}, pairs=[pair]),
        "stated": Decided(**about, pairs=[pair | {"stated": 2.0}]),
        "mean": Decided(**about | {"verdict": "on_average"}, pairs=[pair]),
    }
    found = {row["claim"]: row for row in plan_rows([of], 0.05, claims) if row["claim"]}
    assert set(found) == {"better", "both", "ends", "turned", "mean"}
    assert [found[name]["cells"] for name in ("better", "both", "ends")] == [1, 2, 2]
    assert found["better"]["all"] > 0.99
    assert 0.6 < found["both"]["all"] < 0.95
    assert found["both"]["all"] < found["mean"]["all"]
    # At the effect, minibatch SGD is worse by the whole margin: half of the intervals' ends lie above it and more.
    assert found["turned"]["all"] < 0.05
    assert found["turned"]["first"] == "minibatch_sgd"


def test_machines_that_made_trials_are_noted_once_each(tmp_path, monkeypatch):
    of = part(tmp_path)
    file = of.trials_folder / "made_by.json"
    _note_machine(of)
    assert not file.exists()
    plant(of, "local_sgd", rows("local_sgd", normal(0.3)))
    lock = checksum(small.ROOT / "requirements.lock")
    runs = [{"machine": name, "requirements_lock_sha256": lock} for name in ("first", "second")]
    for name in ("first", "first", "second", "first"):
        monkeypatch.setattr("silodp.cli.decided.machine", lambda name=name: name)
        _note_machine(of)
    assert file.read_text() == json.dumps({"runs": runs}, indent=1) + "\n"


def test_commands_of_trials_and_of_the_plan_go_through_the_parts_that_are_asked_for(tmp_path, monkeypatch, capsys):
    of, made, noted = part(tmp_path), [], []
    rest = [replace(of, experiment="other"), replace(of, setting=of.setting.model_copy(update={"R": 9}))]
    protocol = read_protocol() | {"data_sets": {"small": {"margin": 0.25}}}
    monkeypatch.setattr("silodp.cli.decided.read_protocol", lambda: protocol)
    monkeypatch.setattr("silodp.cli.decided.data_set", lambda name: "small")
    monkeypatch.setattr("silodp.cli.decided.parts_of", lambda protocol, name, folder: [of, *rest])
    monkeypatch.setattr("silodp.cli.decided.make_trials", lambda part, side: made.append((part, side)))
    monkeypatch.setattr("silodp.cli.decided._note_machine", noted.append)
    words = ["--experiments", "small", "--settings", of.setting.name, "--folder", str(tmp_path / "tables")]
    assert main(["decided", "trials", "printed", *words]) == 0
    assert (made, noted) == ([(of, side) for side in ("local_sgd", "minibatch_sgd", COPY)], [of])
    assert main(["decided", "trials", "printed", *words, "--sides", "minibatch_sgd"]) == 0
    assert (made[3:], noted) == ([(of, "minibatch_sgd")], [of, of])

    def rows(parts, margin, claims):
        return [{"claim": "", "experiment": part.experiment, "margin": margin} for part in parts]

    monkeypatch.setattr("silodp.cli.decided.plan_rows", rows)
    assert main(["decided", "plan", "printed", "--folder", str(tmp_path / "tables")]) == 0
    table = pd.read_csv(tmp_path / "tables" / "decided_power.csv")
    assert table[["experiment", "margin"]].to_numpy().tolist() == [["small", 0.25], ["other", 0.25], ["small", 0.25]]
    assert "small    0.25" in capsys.readouterr().out


OTHER = [
    ("stepsize", 0.3),
    ("clip", 7),
    ("phase_length", 3),
    ("algorithm", "accelerated_minibatch_sgd"),
    ("epsilon", 5),
]


@pytest.mark.parametrize(("key", "value"), OTHER)
def test_trials_and_pilots_of_another_grid_are_refused(tmp_path, key, value):
    """What lies there has no digest: with the grid's change the old trials were taken for the new ones."""
    of = part(tmp_path)
    good = rows("local_sgd", normal(0.3))
    plant(of, "minibatch_sgd", rows("minibatch_sgd", normal(0.3)))
    plant(of, "local_sgd", good)
    assert len(cell_rows(of, 0.01, 0.5)) == 2
    file = next(iter(trial_files(of, "local_sgd")))
    stored = pd.read_parquet(file)
    stored.loc[stored.index[3:4], key] = value
    write_parquet(stored, file)
    said = f"{file}: point: .*{value}[,:].*must be on the grid of the publication"
    for made in (lambda: cell_rows(of, 0.01, 0.5), lambda: make_trials(of, "local_sgd")):
        with pytest.raises(ConfigError, match=said):
            made()
    pilot_file = of.trials_folder / "pilot.parquet"
    write_parquet(stored.assign(side="local_sgd"), pilot_file)
    with pytest.raises(ConfigError, match=f"{pilot_file}: point"):
        plan_rows([of], 0.05, {})


def test_what_is_kept_of_trials_is_made_again_for_others(tmp_path):
    of = part(tmp_path)
    plant(of, "minibatch_sgd", rows("minibatch_sgd", normal(0.3)))
    for error in (0.30, 0.33):
        plant(of, "local_sgd", rows("local_sgd", normal(error)))
        assert [row["difference"] for row in cell_rows(of, 0.01, 0.5)] == pytest.approx([error - 0.3] * 2, abs=1e-3)


def test_mnists_linear_trials_are_of_the_linear_grid_alone():
    """The families differ in the reading of one grid: each refuses the other's trials."""
    protocol, name = read_protocol(), "mnist_mlp"
    config = Experiment.model_validate(known_experiments()[name])
    folder = small.ROOT / "results" / "decided"
    linear, printed = (
        FamilySetting(family, protocol["families"][family], name, config, small.run(), config.settings[0], folder)
        for family in ("printed_linear", "printed")
    )
    for family, other in ((linear, printed), (printed, linear)):
        file = family.trials_folder / "pilot.parquet"
        assert len(family.of_grid(file)) > 0
        with pytest.raises(ConfigError, match="trials of another grid are another family's"):
            other.of_grid(file)


def test_choosable_points_are_those_that_four_paired_standard_errors_do_not_part():
    base, step = GENERATOR.normal(size=(10, 1)), np.tile([[1.0], [-1.0]], (5, 1))
    apart = step / step.std(ddof=1) * math.sqrt(10)  # a paired standard error of 1
    near, far = base + 3.9 + apart, base + 4.1 + apart
    errors = np.hstack([base, near, far])[:, None, :].repeat(2, 1)
    alike = rows("local_sgd", errors[:, :, :1]).assign(clip=2.0)
    table = pd.concat([rows("local_sgd", errors), alike]).assign(side="local_sgd")
    found = choosable(table)
    assert found.groupby("epsilon")["stepsize"].apply(list).to_dict() == {epsilon: STEPS[:2] for epsilon in EPSILONS}
    # A point that is not trained in every trial is no choice.
    some = table[(table["stepsize"] != STEPS[1]) | (table["trial"] > 0)]
    assert set(choosable(some)["stepsize"]) == {STEPS[0]}


def test_a_small_family_is_trained_point_by_point_and_trial_by_trial(tmp_path):
    of = part(tmp_path)
    whole = pilot(of)
    assert set(whole["trial"]) == set(range(CHOOSING))
    grid = of.grid()
    assert set(whole["stepsize"]) == set(grid["stepsize"])
    some = grid[(grid["algorithm"] == "local_sgd") & (grid["epsilon"] == 2.0)].iloc[[0, 2]]
    alone = train_points(of, some, [2], "grid")
    joined = whole.merge(some[["algorithm", *POINT]]).query("trial == 2")[list(alone)].reset_index(drop=True)
    assert_frame_equal(alone, joined)
    other = train_points(of, some, [2], "decided")
    assert (other["train_loss"].to_numpy() != alone["train_loss"].to_numpy()).all()


def test_a_point_that_the_publication_shows_to_be_far_is_not_trained(tmp_path):
    of = part(tmp_path)
    grid = of.grid()[["algorithm", *POINT]]
    known = grid.assign(M=2, R=3, reading="", trials=CHOOSING, train_loss_mean=1.0, train_loss_error=0.125)
    steps = sorted(grid["stepsize"].unique())
    known.loc[known["stepsize"] == steps[1], "train_loss_mean"] = 2.0
    known.loc[known["stepsize"] == steps[2], "train_loss_mean"] = 2.01
    write_parquet(known, tmp_path / "results" / "published" / "losses" / "small.parquet")
    assert sorted(pilot(of)["stepsize"].unique()) == steps[:2]


def test_fresh_trials_go_on_from_the_pilots_and_the_copy_has_noise_of_its_own(tmp_path):
    of = part(tmp_path, stepsizes={"low": -1, "high": 0, "points": 1})
    for side in ("minibatch_sgd", COPY):
        make_trials(of, side)
    tables = {side: pd.concat(map(pd.read_parquet, trial_files(of, side))) for side in ("minibatch_sgd", COPY)}
    for table in tables.values():
        assert sorted(table["trial"].unique()) == list(range(CHOOSING, CHOOSING + T))
    ours, theirs = (table.sort_values(["trial", "epsilon"])["train_loss"].to_numpy() for table in tables.values())
    assert (ours != theirs).all()
    # What is there stays, and what is missing is made again.
    first, *rest = trial_files(of, COPY)
    first.unlink()
    before = [file.stat().st_mtime_ns for file in rest]
    make_trials(of, COPY)
    assert [file.stat().st_mtime_ns for file in rest] == before
    assert_frame_equal(pd.concat(map(pd.read_parquet, trial_files(of, COPY))), tables[COPY])


def test_a_data_set_whose_trials_need_a_gpu_says_so(capsys, monkeypatch, tmp_path):
    """CIFAR-10 is planned on CUDA; without a device nothing starts."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.chdir(small.ROOT)
    words = ["--experiments", "cifar10_cnn", "--settings", "M10_R50", "--folder", str(tmp_path)]
    assert main(["decided", "plan", "printed", *words]) == 2
    told = "config/claims/decided.yaml: data_sets.cifar10.device: 'cuda': this machine has no CUDA device: must be cpu"
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
