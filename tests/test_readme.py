"""README and docs say what is there: numbers of the published tables, links, commands, generated parts.

A number is found by the words around it, in whichever page has them: pages may move and be renamed.
"""

import math
import re
import shlex
from collections.abc import Callable
from functools import partial
from math import ceil, floor

import pandas as pd
import pytest
from small import ROOT

from silodp.cli import main
from silodp.experiments.validation import load, silo_sizes
from silodp.files import with_reading
from silodp.privacy.standing import Standing, counts_of, standings
from silodp.report.cells import cells_of, counts_of_cells, read_cells
from silodp.report.figures.finding_pictures import signed_difference
from silodp.report.figures.style import label
from silodp.report.paper_figures import paper_figures
from silodp.verdicts.claims.base import holm
from silodp.verdicts.claims.claim_files import load_claims
from silodp.verdicts.claims.rows import markdown
from silodp.verdicts.comparisons import CALIBRATED, ENDED, compare
from silodp.verdicts.statistics import paired_test
from silodp.workflow.job_digest import RunPlan

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXT = {page: page.read_text(encoding="utf-8") for page in PAGES}
# In one line, without the marks of lists and emphasis that may stand between words.
WORDS = {page: " ".join(text.replace("**", "").split()) for page, text in TEXT.items()}
RESULTS = ROOT / "results"
PUBLISHED = RESULTS / "published"
BOARD = pd.read_csv(PUBLISHED / "board" / "leaderboard.csv").fillna({"axis": ""})
CELLS = read_cells(PUBLISHED / "comparisons.csv")
CLAIMS = pd.read_csv(PUBLISHED / "claims.csv").fillna({"source": ""})
PRIVATE = with_reading(pd.read_csv(PUBLISHED / "privacy.csv"))
OF_PAPERS = PRIVATE.query("reading == ''")
OF_PAPERS = OF_PAPERS[OF_PAPERS["experiment"].isin({figure.experiment for figure in paper_figures()})]
OF_FIGURES = OF_PAPERS[OF_PAPERS["algorithm"].isin(["minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider"])]
EXPERIMENTS = {claim.id: claim.experiments for claim in load_claims()}
SPIDER, SGD = ("spider", "minibatch_sgd"), ("minibatch_sgd", "local_sgd")
RELEASED = "spider_q1_noise=released"
LATER = ("dp_scaffold", "localised_accelerated", "dp_mu2", "dp_mu2_difference", "dp_mu2_correlated")
LATER += ("minibatch_sgd_correlated", "minibatch_sgd_momentum", "minibatch_sgd_adam")


def rows_of(*names: str, reading: str | None = "") -> pd.DataFrame:
    """Rows of published tables, * in a name for several; under one reading, None for all."""
    paths = [path for name in names for path in sorted(RESULTS.glob(f"{name}.csv"))]
    rows = pd.concat(with_reading(pd.read_csv(path)) for path in paths)
    return rows if reading is None else rows[rows["reading"] == reading]


def reported(*names: str, reading: str | None = "") -> pd.DataFrame:
    """Trials of the main publication."""
    return rows_of(*(f"published/reported/{name}" for name in names), reading=reading)


def counts(comparisons: pd.DataFrame, *wanted: str) -> tuple[str, ...]:
    """In how many the first is ahead, of all, and behind, then how many of those ahead and behind Holm's method keeps.

    Only the `wanted` ones, where some are named.
    """
    outcomes, p = comparisons["outcome"].tolist(), comparisons["p"]
    found = {"ahead": outcomes.count("ahead"), "all": len(outcomes), "behind": outcomes.count("behind")}
    found |= {"ahead kept": sum(holm((1 - p).tolist())), "behind kept": sum(holm(p.tolist()))}
    return tuple(str(found[word]) for word in wanted or found)


def mean_difference(rows: pd.DataFrame, first: str, second: str) -> tuple[str, ...]:
    """Mean difference over settings and ε of every trial, with its interval, as the docs write it."""
    rows = rows[rows["epsilon"].notna() & rows["algorithm"].isin([first, second])]
    cells = rows.pivot(index=["experiment", "M", "R", "epsilon", "trial"], columns="algorithm", values="test_error")
    means = (cells[first] - cells[second]).dropna().groupby("trial").mean()
    return tuple(signed_difference(x) for x in paired_test(means)[:3])


def compared(claim: str, first: str, second: str, *wanted: str) -> tuple[str, ...]:
    """Counts of the comparisons of a claim's experiments under the default reading."""
    return counts(compare(reported(*EXPERIMENTS[claim]), first, second), *wanted)


def by_data_set(claim: str, first: str, second: str) -> tuple[str, ...]:
    """The mean difference on each data set of a claim."""
    found: tuple[str, ...] = ()
    for dataset in {"N2": ("mnist", "cifar", "wbcd"), "C1": ("insurance", "mnist")}[claim]:
        rows = reported(*(name for name in EXPERIMENTS[claim] if name.startswith(dataset)))
        found += mean_difference(rows, first, second)
    return found


def certified(first: str, *wanted: str, data: str = "", reading: str = CALIBRATED) -> tuple[str, ...]:
    """Counts of comparisons with minibatch SGD at calibrated noise, or at the papers' noise in the same runs."""
    return counts(compare(reported(f"{data}*_certified", reading=reading), first, "minibatch_sgd"), *wanted)


def certified_by_data_set(first: str) -> tuple[str, ...]:
    """The mean difference on MNIST, CIFAR-10 and breast cancer, each followed by how often it is behind, of all."""
    found: tuple[str, ...] = ()
    for data in ("mnist", "cifar", "wbcd"):
        rows = reported(f"{data}*_certified", reading=CALIBRATED)
        found += (*mean_difference(rows, first, "minibatch_sgd"), *certified(first, "behind", "all", data=data))
    return found


def sides_on_cifar_when_certified() -> tuple[str, ...]:
    """ε at which Fed-SPIDER is behind minibatch SGD, and ahead, then FedProx-SPIDER's difference from it."""
    rows = reported("cifar10_cnn_certified", reading=CALIBRATED)
    one, other = (compare(rows, f"{name}_spider", "minibatch_sgd") for name in ("fed", "fedprox"))
    behind, ahead = (one.loc[one["outcome"] == word, "epsilon"].tolist() for word in ("behind", "ahead"))
    assert other.loc[other["outcome"] == "ahead", "epsilon"].tolist() == ahead
    return *(f"{e:g}" for e in behind + ahead), *mean_difference(rows, "fedprox_spider", "minibatch_sgd")


def beside_non_private() -> tuple[str, ...]:
    """C3 at calibrated noise: ahead, of all, and the single comparison without a difference."""
    rows = reported("mnist_logistic_equal", reading=CALIBRATED)
    cells = compare(rows, "minibatch_sgd", "local_sgd:non_private").query("epsilon >= 12.5")
    ahead, every, *_ = counts(cells)
    assert int(every) - int(ahead) == 1
    return ahead, every


def cells(first: str, second: str, reading: str = "", decided: bool = True) -> pd.DataFrame:
    """The cells of a pair in pictures and sentences that fresh trials decide, or all of them."""
    rows = CELLS[(CELLS["first"] == first) & (CELLS["second"] == second) & (CELLS["reading"] == reading)]
    return rows[rows["decided"]] if decided else rows


def kept(rows: pd.DataFrame, *wanted: str) -> tuple[str, ...]:
    """Counts of cells by name, as `Counts` has them."""
    found = counts_of_cells(rows)
    return tuple(str(getattr(found, word)) for word in wanted)


def on_the_board(*names: str, axis: str = "", second: str = "minibatch_sgd") -> tuple[str, ...]:
    """Cells of these algorithms, in how many they are ahead and how many of these Holm keeps, and both for behind."""
    rows = BOARD[BOARD["first"].isin(names) & (BOARD["second"] == second) & (BOARD["axis"] == axis)]
    return str(len(rows)), *_sides_on_the_board(rows)


def _sides_on_the_board(rows: pd.DataFrame) -> tuple[str, ...]:
    sides = [rows["outcome"] == word for word in ("ahead", "behind")]
    return tuple(str(found.sum()) for side in sides for found in (side, side & rows["holm"]))


def corrections(axis: str) -> tuple[str, ...]:
    """Cells of all corrections along an axis, and those in which one is ahead, and kept by Holm's method."""
    rows = BOARD[(BOARD["axis"] == axis) & (BOARD["second"] != "silo_only")]
    return str(len(rows)), *_sides_on_the_board(rows)[:2]


def gradients(algorithm: str, R: int | None = None, places: int = 1) -> tuple[str, str]:
    """Least and most gradients that a silo takes in all rounds over its n, for data sets of the leaderboard: the
    successors' own comparison in R rounds, or all others."""
    plan, found = RunPlan(load(PUBLISHED / "config.json"), folder=str(PUBLISHED), published=True), []
    for name, config in plan.experiments.items():
        setting, n = config.settings[0], silo_sizes(config)[1]
        here = name.endswith("_leaderboard") and algorithm in config.algorithms
        if here and (setting.R if "successors" in name else None) == R:
            (of,) = plan.task(name, algorithm, setting.name, "default").plans(math.nan, 1, [n])
            taken = (r.count * r.records * r.gradients * (1 + r.joint) for r in of.releases)
            found.append(sum(taken) / n)
    return f"{min(found):.{places}f}", f"{max(found):.{places}f}"


def of_the_successors(M: int, R: int, epsilon: float) -> tuple[str, ...]:
    """Mean test errors on the successors' own data, by algorithm, with 2n gradients each and with 9.8n (1.25n)."""
    experiment, found = f"mnist_successors_{'r3' if R == 3 else f'm{M}'}", []
    corrected = ("dp_mu2", "dp_mu2_difference", "dp_mu2_correlated")
    papers = ("minibatch_sgd", "local_sgd", "accelerated_minibatch_sgd")
    for run, names in (("", corrected + papers), ("_gradients", ("localised_accelerated", *papers))):
        rows = rows_of(f"published/tables/{experiment}{run}_leaderboard").query("epsilon == @epsilon")
        found += [f"{rows.set_index('algorithm')['test_error_mean'][name]:.3f}" for name in names]
    return tuple(found)


def printed_k() -> tuple[str, ...]:
    """SPIDER against minibatch SGD with K by each ε, and with one K, then the largest change of a mean error by K."""
    rows = reported("*_per_eps", reading=None)
    printed, other = (compare(rows[rows["reading"] == reading], *SPIDER) for reading in ("batch=per_eps", ""))
    cells = rows[rows["epsilon"].notna()].groupby(["experiment", "algorithm", "trial", "reading"])["test_error"].mean()
    trials = cells.unstack("reading").pipe(lambda means: means["batch=per_eps"] - means[""])
    tests = [paired_test(part.to_numpy()) for _, part in trials.groupby(["experiment", "algorithm"])]
    assert all(test.low < 0 < test.high for test in tests)
    change = f"{max(abs(test.value) for test in tests):.4f}"
    return *counts(printed, "behind", "all", "ahead"), *counts(other, "behind", "ahead"), change


def at_an_end(noise: str) -> tuple[str, ...]:
    """Minibatch against local SGD on perceptrons, local SGD's noise at an end of its bracket, by data set."""
    said: tuple[str, ...] = ()
    for name in ("mnist_mlp_equal", "wbcd_equal"):
        rows = reported(name, reading=f"noise={noise}")
        said += counts(compare(rows, *SGD), "ahead", "behind", "ahead kept", "behind kept")
        said += mean_difference(rows, *SGD)
    return said


def standing_of(rows: pd.DataFrame) -> tuple[str, ...]:
    """All private rows, and how many claims are kept, violated, not certified."""
    found = counts_of(rows)
    assert found[Standing.KEPT] == rows["holds"].sum()
    kept, violated, rest = (found[word] for word in (Standing.KEPT, Standing.VIOLATED, Standing.NOT_CERTIFIED))
    return tuple(f"{count:,}" for count in (len(rows), kept, violated, rest))


def without_lower_bound() -> tuple[str, ...]:
    rows = PRIVATE[standings(PRIVATE) == Standing.NOT_CERTIFIED]
    return (str(rows["delivered_lower"].isna().sum()),)


def local_below_minibatch() -> tuple[str, ...]:
    """Points of local SGD with both bounds, and by how many percent its true ε can be below minibatch SGD's at most."""
    rows = OF_PAPERS.set_index(["experiment", "M", "R", "epsilon"])
    lower = rows.loc[rows["algorithm"] == "local_sgd", "delivered_lower"].dropna()
    upper = rows.loc[rows["algorithm"] == "minibatch_sgd", "delivered_epsilon"]
    return str(len(lower)), str(ceil(100 * (1 - lower / upper).max()))


def edges(tables: str, reading: str, chosen: str) -> tuple[str, ...]:
    """Chosen points that lie at an edge of their grid, of all."""
    rows = rows_of(tables, reading=reading).query(chosen)
    return str(rows["edge"].notna().sum()), str(len(rows))


def edges_when_certified(algorithm: str) -> tuple[str, ...]:
    return edges("published/tables/*_certified", CALIBRATED, f"algorithm == '{algorithm}' and private")


def edges_at_equal_epsilon() -> tuple[str, ...]:
    """Local SGD's, of all, and minibatch SGD's."""
    minibatch, local = (edges("published/tables/*_equal*", ENDED, f"algorithm == '{a}' and private") for a in SGD)
    return *local, minibatch[0]


def edges_of_wider_grids() -> tuple[str, ...]:
    tables, chosen = "published-protocols/tables/*", "algorithm != 'spider'"
    printed, points = edges(tables, "", chosen)
    return edges(tables, "grid=widened", chosen)[0], points, printed


def equal_grids(reading: str) -> list[pd.DataFrame]:
    """Insurance and MNIST on the grids of equal true ε, at the ε of the calibrated rows."""
    found = []
    for data in ("insurance", "mnist_logistic"):
        rows = reported(f"{data}_equal*", reading=None)
        epsilons = rows.loc[rows["reading"] == ENDED, "epsilon"].dropna()
        found.append(rows[(rows["reading"] == reading) & rows["epsilon"].isin(epsilons)])
    return found


def means_at_equal_epsilon(reading: str = ENDED) -> tuple[str, ...]:
    """Minibatch minus local SGD on those grids: the mean differences of insurance and MNIST."""
    return sum((mean_difference(rows, *SGD) for rows in equal_grids(reading)), ())


def with_the_papers_noise() -> tuple[str, ...]:
    """Minibatch against local SGD on those grids: ahead, behind, kept, the means of insurance, MNIST."""
    pairs = compare(pd.concat(equal_grids("")), *SGD)
    return *counts(pairs, "ahead", "behind", "ahead kept"), *means_at_equal_epsilon("")


def true_epsilon(places: int, **where: object) -> tuple[str, ...]:
    """The proven bounds on ε of the private row that has these entries, rounded outwards."""
    rows = PRIVATE
    for column, value in where.items():
        rows = rows[rows[column] == value]
    ((lower, upper),) = rows[["delivered_lower", "delivered_epsilon"]].to_numpy()
    scale = 10**places
    return f"{floor(lower * scale) / scale:,g}", f"{ceil(upper * scale) / scale:,g}"


def released_epsilon(claimed: float) -> tuple[str, ...]:
    """FedProx-SPIDER with the released noise on MNIST."""
    row = {"experiment": "mnist_mlp_released", "M": 25, "algorithm": "fedprox_spider", "claimed_epsilon": claimed}
    return true_epsilon(2 if claimed < 1 else 0, reading=RELEASED, **row)


def bracket_at_ten(reading: str) -> tuple[str, ...]:
    """Local SGD at a claim of 10, ten silos of insurance."""
    row = {"experiment": "insurance_equal", "M": 10, "algorithm": "local_sgd", "epsilon": 10}
    return true_epsilon(2, reading=reading, **row)


def at_claim_of_ten(reading: str) -> tuple[str, ...]:
    """The bracket, then for insurance and MNIST: minibatch SGD ahead, behind, the mean difference."""
    rows = rows_of("published/comparisons", reading=reading).query("first == 'minibatch_sgd' and second == 'local_sgd'")
    found = bracket_at_ten(reading)
    for dataset in ("insurance_equal", "mnist_logistic_equal"):
        part = rows[rows["experiment"].str.startswith(dataset)]
        found += (*counts(part, "ahead", "behind"), signed_difference(part["difference"].mean()))
    return found


def ahead_at_equal_epsilon() -> tuple[str, ...]:
    rows = rows_of("published/comparisons", reading=ENDED).query("second == 'local_sgd'")
    return counts(rows)


def phases_of_one_round() -> tuple[str, ...]:
    rows = rows_of(*(f"published/tables/{name}" for name in ("mnist_mlp", "cifar10_cnn", "wbcd_mlp")))
    rows = rows.query("algorithm == 'fedprox_spider' and private")
    return str((rows["phase_length"] == 1).sum()), str(len(rows))


def sides_on_cifar(algorithm: str, R: int) -> tuple[str | None, ...]:
    """(count, ε) where an algorithm is clearly ahead of minibatch SGD, and the same where it is clearly behind."""
    rows = compare(reported("cifar10_cnn").query("M == 10 and R == @R"), algorithm, "minibatch_sgd")
    sides = [[f"{e:g}" for e in rows.loc[rows["outcome"] == word, "epsilon"]] for word in ("ahead", "behind")]
    return tuple(part for side in sides for part in (str(len(side)), ", ".join(side) or None))


def errors_on_cifar() -> tuple[str, ...]:
    rows = rows_of("published/tables/cifar10_cnn").query("M == 10 and R == 50 and epsilon == 18")
    errors = rows.set_index("algorithm")["test_error_mean"]
    return tuple(f"{100 * errors[name]:.1f}" for name in ("fed_spider", "minibatch_sgd"))


def price_at_ten() -> tuple[str, ...]:
    """Of minibatch SGD on insurance, M = 10, at equal true ε: the private minus the non-private error."""
    rows = reported("insurance_equal", reading=ENDED).query("M == 10")
    (row,) = compare(rows, "minibatch_sgd", "minibatch_sgd:non_private").query("epsilon == 10").to_dict("records")
    return tuple(signed_difference(row[name]) for name in ("difference", "low", "high"))


def taken_apart(kind: str, reading: str) -> tuple[str, ...]:
    """FedProx-SPIDER against minibatch SGD in the run `spider`: ahead, behind and the mean difference, by data set."""
    found: tuple[str, ...] = ()
    for dataset in ("mnist_mlp", "wbcd", *(["cifar10_cnn"] if kind == "spider" else [])):
        rows, pair = reported(f"{dataset}_{kind}", reading=reading), ("fedprox_spider", "minibatch_sgd")
        found += (*counts(compare(rows, *pair), "ahead", "behind"), *mean_difference(rows, *pair))
    return found


def taken_apart_in_all(reading: str, *wanted: str) -> tuple[str, ...]:
    """Counts of FedProx-SPIDER with longer phases against minibatch SGD, over all data sets."""
    rows = reported("*_spider", reading=reading)
    return kept(cells_of(compare(rows, "fedprox_spider", "minibatch_sgd")), *wanted)


def released_on_breast_cancer() -> tuple[str, ...]:
    rows, pair = reported("wbcd_released", reading=RELEASED), ("fedprox_spider", "minibatch_sgd")
    counted = kept(cells_of(compare(rows, *pair)), "ahead", "ahead_kept", "cells", "behind")
    return *counted, *mean_difference(rows, *pair)


def minibatch_at_equal_epsilon() -> tuple[str, ...]:
    """Against local SGD with its noise at the end of a round, where silos differ and where they are alike."""
    rows = cells(*SGD, ENDED)
    alike = rows["experiment"].str.endswith("_p1")
    words = ("ahead", "ahead_kept", "cells", "behind", "behind_kept")
    return kept(rows[~alike], *words) + kept(rows[alike], *words)


def improvements_when_released() -> tuple[str, ...]:
    """FedProx-SPIDER's mean improvement with the released noise in percent, over both others on both data sets."""
    tables = [reported(f"{dataset}_released", reading=RELEASED) for dataset in ("mnist_mlp", "wbcd")]
    errors = [rows.groupby(["M", "R", "epsilon", "algorithm"])["test_error"].mean().unstack() for rows in tables]
    gains = [100 * (1 - each["fedprox_spider"] / each[second]).mean() for second in SGD for each in errors]
    return tuple(f"{gain:.1f}".replace("-", "−") for gain in gains)


def clips_of_the_paper() -> tuple[str, ...]:
    """With the largest norm as the clip where an experiment has that reading: ahead, all, ahead by a grid, behind.

    Last what Holm's correction keeps of those ahead and behind.
    """
    found = []
    for name in EXPERIMENTS["C1"]:
        rows = reported(name, reading=None)
        reading = "clip_rule=max_norm" if (rows["reading"] == "clip_rule=max_norm").any() else ""
        found.append(compare(rows[rows["reading"] == reading], *SGD))
    ahead, every, behind, ahead_kept, behind_kept = counts(pd.concat(found))
    return ahead, every, *compared("C1", *SGD, "ahead"), behind, ahead_kept, ahead, behind_kept, behind


# How docs/results.md calls the noise and the pairs of decided.csv.
OF_FAMILIES = {
    "the papers'": ("printed", "printed_linear", "convex"),
    "calibrated": ("calibrated", "equal", "perceptron"),
    "calibrated, at the end": ("equal_end",),
}
OF_SIDES = {"SPIDER": "spider", "MB-SGD": "minibatch_sgd", "local SGD": "local_sgd"}
OF_DATA = {
    "breast cancer": "wbcd",
    "insurance": "insurance",
    "MNIST, logistic": "mnist_logistic",
    "MNIST, perceptron": "mnist_mlp",
}


def decided(noise: str, data: str, first: str, second: str) -> tuple[str, ...]:
    """Cells ahead, behind, the same and open, and their mean difference, of decided.csv's rows that are of use."""
    rows = pd.read_csv(PUBLISHED / "decided.csv").query("trials > 0 and not useless")
    rows = rows[rows["family"].isin(OF_FAMILIES[noise]) & rows["experiment"].str.startswith(OF_DATA[data])]
    rows = rows[(rows["first"] == OF_SIDES[first]) & (rows["second"] == OF_SIDES[second])]
    counted = [str((rows["outcome"] == name).sum()) for name in ("ahead", "behind", "same", "open")]
    return *counted, signed_difference(rows["difference"].mean())


def spider_on_mnist(second: str, outcome: str, other: str) -> tuple[str, str, str]:
    """Cells under the papers' noise: with an outcome, all, with another outcome."""
    *counted, _ = decided("the papers'", "MNIST, perceptron", "SPIDER", second)
    cells = dict(zip(("ahead", "behind", "same", "open"), counted, strict=True))
    return cells[outcome], str(sum(map(int, counted))), cells[other]


def is_one_mechanism() -> tuple[str]:
    """Cells of SPIDER at calibrated noise, which all are minibatch SGD, and are neither ahead nor behind."""
    rows = pd.read_csv(PUBLISHED / "decided.csv").query("family == 'calibrated' and trials > 0")
    assert rows["same_mechanism"].all()
    assert rows["outcome"].isin(["same", "open"]).all()
    return (str(len(rows)),)


def perceptrons_ahead() -> tuple[str]:
    rows = pd.read_csv(PUBLISHED / "decided.csv").query("family == 'perceptron'")
    assert (rows["outcome"] == "ahead").all()
    return (str(len(rows)),)


def decided_where(family: str, alike: bool, data: str = "") -> tuple[str, ...]:
    """Cells of minibatch against local SGD that are ahead, all, and behind, where silos are alike or differ."""
    rows = pd.read_csv(PUBLISHED / "decided.csv").query("family == @family and not useless and second == 'local_sgd'")
    rows = rows[(rows["first"] == "minibatch_sgd") & rows["experiment"].str.startswith(data)]
    rows = rows[rows["experiment"].str.endswith("_p1") == alike]
    return str((rows["outcome"] == "ahead").sum()), str(len(rows)), str((rows["outcome"] == "behind").sum())


def on_average(claim: str) -> tuple[str, ...]:
    """The means of a claim's decided cells, by data set."""
    row = pd.read_csv(PUBLISHED / "decided_verdicts.csv").set_index("claim").loc[claim]
    assert (row["on_average"], "on average below the margin" in row["note"]) == ("confirmed", True)
    means = pd.read_csv(PUBLISHED / "decided_means.csv").query("claim == @claim")
    return tuple(signed_difference(value) for value in means["difference"])


def at_insurance_of_three(name: str) -> tuple[str, ...]:
    """Minibatch against local SGD on insurance with three silos at ε = 2: difference and interval of a table."""
    rows = with_reading(pd.read_csv(PUBLISHED / f"{name}.csv"))
    wanted = "experiment == 'insurance_linear_n3' and epsilon == 2 and reading == ''"
    rows = rows.query(f"{wanted} and first == 'minibatch_sgd' and second == 'local_sgd'")
    return tuple(signed_difference(x) for x in rows[["difference", "low", "high"]].iloc[0])


def test_the_table_of_procedures_is_decided_csv():
    table = (ROOT / "docs" / "results.md").read_text("utf-8").partition("## Procedures with their tuning")[2]
    table = table.partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if " − " in line and "|" in line
    ]
    assert len(rows) == 14
    for noise, data, pair, *numbers in rows:
        first, second = pair.split(" − ")
        assert tuple(numbers) == decided(noise, data, first, second), (noise, data, pair)


# Three numbers in the docs, with the sign that typography asks for.
INTERVAL = r"([+−][\d.]+) \[([+−][\d.]+), ([+−][\d.]+)\]"
PERCENT = r"([\d.]+) % \[([\d.]+), ([\d.]+)\]"
BOUNDS = r"\[([\d.,]+), ([\d.,]+)\]"
OF = r"(\d+) of (\d+)"
# A count, and what Holm's correction keeps of it.
HELD = r"(\d+) \((\d+)\)"
KEEPS, KEPT = r"Holm's correction keeps (\d+) and (\d+)", r"Holm's correction keeps (\d+)"
BOTH = r"Holm's correction keeps (\d+) of the (\d+) and (\d+) of the (\d+)"
# Columns of tables.
SIDES = rf" \| (\d+), (\d+) \| {INTERVAL}"
COUNTED = r"(\d+), (\d+) \((?:mean )?(−[\d.]+)\)"
EQUAL = rf"\| {BOUNDS} \| (?:minibatch SGD )?{COUNTED} \| {COUNTED}"
ENDS = rf"(\d+), (\d+) \(Holm keeps (\d+), (\d+)\) \| {INTERVAL}"
LISTED = r"(\d+)(?: \(([\d., ]+)\))?"
# Words around numbers → the numbers.
FACTS: dict[str, Callable[[], tuple[str | None, ...]]] = {
    r"Of the papers' own (\d+) private results, .*?, (\d+) keep .*?, (\d+) provably violate it, and (\d+) are open": (
        partial(standing_of, OF_FIGURES)
    ),
    r"of a paper runs, have (\d+) results: (\d+) keep .*?, (\d+) provably violate it, and (\d+) cannot": partial(
        standing_of, OF_PAPERS
    ),
    r"(\d+) of the papers' own (\d+) private results provably violate": lambda: standing_of(OF_FIGURES)[2::-2],
    rf"SPIDER is behind minibatch SGD \(MB-SGD\) at {HELD} of (\d+) cells and ahead at {HELD}": (
        lambda: kept(cells(*SPIDER), "behind", "behind_kept", "cells", "ahead", "ahead_kept")
    ),
    r"at (\d+) of the (\d+) cells with a choice of one or two": lambda: (
        *kept(cells(*SPIDER, CALIBRATED), "same_algorithm"),
        str(len(cells(*SPIDER, CALIBRATED))),
    ),
    r"2 to 4 rounds is ahead of minibatch SGD at (\d+) of (\d+) cells and behind at (\d+) \((\d+)\)": partial(
        taken_apart_in_all, "", "ahead", "cells", "behind", "behind_kept"
    ),
    r"more FedProx-SPIDER is ahead at (\d+) of (\d+) cells and behind at (\d+) \((\d+)\) with": partial(
        taken_apart_in_all, "", "ahead", "cells", "behind", "behind_kept"
    ),
    rf"ahead at (\d+) \((\d+)\) of (\d+) and behind at (\d+): {INTERVAL}": released_on_breast_cancer,
    rf"ahead at {HELD} of (\d+) cells (?:where silos differ \(insurance too\), )?and behind at {HELD}\. "
    rf"Where silos are alike it is ahead at {HELD} of (\d+) and behind at {HELD}": minibatch_at_equal_epsilon,
    rf"it is ahead of local SGD at {OF} cells\. With silos that are alike \(p = 1\) it is ahead at {OF}": lambda: (
        *decided_where("convex", False, "mnist")[:2],
        *decided_where("convex", True, "mnist")[:2],
    ),
    rf"noise is behind minibatch SGD at {OF} cells, and ahead at (\d+) \(R = 25, ε = 18\)": partial(
        spider_on_mnist, "MB-SGD", "behind", "ahead"
    ),
    rf"It is ahead of local SGD at\s+{OF} cells, and behind at (\d+) \(M = 12": partial(
        spider_on_mnist, "local SGD", "ahead", "behind"
    ),
    r"perceptron: at all (\d+) cells it is minibatch SGD": is_one_mechanism,
    r"is ahead of local SGD at all (\d+) cells of perceptrons": perceptrons_ahead,
    r"is confirmed on average: ([+−][\d.]+) on insurance, ([+−][\d.]+) on MNIST": partial(on_average, "C1"),
    r"is confirmed on average on MNIST, below the margin: ([+−][\d.]+)\.": partial(on_average, "C3"),
    r"Of ([\d,]+) published private rows, .*?, ([\d,]+) keep .*?, (\d+) provably violate it, and (\d+) cannot": partial(
        standing_of, PRIVATE
    ),
    r"Of these (\d+) have no lower bound": without_lower_bound,
    rf"edge of its grid at {OF} points": partial(edges_when_certified, "fed_spider"),
    rf"Its choice lies at an edge at {OF} points": partial(edges_when_certified, "local_sgd"),
    r"At the (\d+) points of local SGD that have both bounds its true ε can be at most (\d+) %": local_below_minibatch,
    r"There Fed-SPIDER is behind at ε = ([\d.]+), ([\d.]+) and ([\d.]+) and ahead at (\d+) and (\d+)\. FedProx-SPIDER, "
    rf"the same algorithm as minibatch SGD, differs from it by {INTERVAL}": sides_on_cifar_when_certified,
    rf"grids SPIDER is behind minibatch SGD at {OF} comparisons and ahead at (\d+); {KEEPS}\. On MNIST the mean "
    rf"difference is {INTERVAL}, and {INTERVAL} against local SGD": lambda: (
        *certified("spider", "behind", "all", "ahead", "behind kept", "ahead kept", reading=""),
        *mean_difference(reported("mnist_mlp_certified"), "spider", "minibatch_sgd"),
        *mean_difference(reported("mnist_mlp_certified"), "spider", "local_sgd"),
    ),
    rf"with calibrated noise, it is ahead at {OF} comparisons, and no difference": beside_non_private,
    rf"With the papers' noise on the same grids and trials it is ahead at (\d+) and behind at (\d+); {KEPT}: "
    rf"{INTERVAL} and {INTERVAL}": with_the_papers_noise,
    r"With the printed K SPIDER is behind minibatch SGD at (\d+) of (\d+) comparisons and ahead at (\d+), with the "
    r"other K at (\d+) and (\d+)\. The printed K .*? at most ([\d.]+)": printed_k,
    r"Holm's correction keeps (\d+) of the 6\. Of the 23 it keeps (\d+) by the t test": partial(
        compared, "N2", *SPIDER, "ahead kept", "behind kept"
    ),
    rf"It is ahead at {OF} comparisons and behind at (\d+); {KEEPS}\. The claimed": partial(
        compared, "N2", "spider", "local_sgd"
    ),
    **{
        rf"{form}.{{,60}} is behind minibatch SGD at {OF} comparisons(?: and|\. It is) ahead at (\d+)"
        rf"(?: \(CIFAR-10, .*?\))?; {KEEPS}": partial(
            certified, name, "behind", "all", "ahead", "behind kept", "ahead kept"
        )
        for form, name in (("Fed-SPIDER, ", "fed_spider"), ("Local SGD", "local_sgd"))
    },
    rf"The mean difference is {INTERVAL} on MNIST \(behind at {OF}\), {INTERVAL} on CIFAR-10 \({OF}\) and "
    rf"{INTERVAL} on breast cancer \({OF}\)": partial(certified_by_data_set, "fed_spider"),
    r"Of (\d+) comparisons SPIDER is ahead of minibatch SGD at (\d+) and behind at (\d+)": partial(
        compared, "N2", *SPIDER, "all", "ahead", "behind"
    ),
    rf"the mean difference is {INTERVAL} on MNIST, {INTERVAL} on CIFAR-10 and {INTERVAL} on breast cancer\. It": (
        partial(by_data_set, "N2", "spider", "local_sgd")
    ),
    rf"over settings and ε is {INTERVAL} on insurance and {INTERVAL} on MNIST": partial(by_data_set, "C1", *SGD),
    rf"at {OF} comparisons, with a grid of clips at (\d+), and behind at (\d+)\. {BOTH}": clips_of_the_paper,
    rf"minibatch SGD is ahead at {OF} comparisons and behind at (\d+); {KEEPS}": ahead_at_equal_epsilon,
    rf"mean difference is {INTERVAL} for insurance(?:,| and) {INTERVAL} for MNIST": means_at_equal_epsilon,
    rf"at ε = 10 \(claim C2\) is {INTERVAL} for": price_at_ten,
    rf"2 to 4 rounds, the papers'{SIDES * 3}": partial(taken_apart, "spider", ""),
    rf"2 to 4 rounds, calibrated{SIDES * 3}": partial(taken_apart, "spider", CALIBRATED),
    rf"1 round, the released program's{SIDES * 2}": partial(taken_apart, "released", RELEASED),
    r"improvement is ([\d.]+) % on MNIST and ([\d.]+) % on breast cancer over minibatch SGD, ([\d.]+) % and "
    r"(−[\d.]+) % over local SGD": improvements_when_released,
    rf"in {BOUNDS} at a claim of 0\.75": partial(released_epsilon, 0.75),
    rf"in {BOUNDS} at a claim of 18": partial(released_epsilon, 18),
    rf"calibrated, in each step {EQUAL}": partial(at_claim_of_ten, CALIBRATED),
    rf"calibrated, at the end of the round {EQUAL}": partial(at_claim_of_ten, ENDED),
    rf"true ε is a wide bracket: .*? {BOUNDS}": partial(bracket_at_ten, ENDED.replace("end", "contracted_step")),
    rf"at the end of the round \(`noise_at: end`\) it is in {BOUNDS}": partial(bracket_at_ten, ENDED),
    r"Of local SGD (\d+) of (\d+) chosen points lie at an edge of .*?, of minibatch SGD (\d+)": edges_at_equal_epsilon,
    **{
        rf"{form}{SIDES} \| {INTERVAL} \| {INTERVAL}": lambda name=name: (
            *compared("N2", name, "minibatch_sgd", "ahead", "behind"),
            *by_data_set("N2", name, "minibatch_sgd"),
        )
        for form, name in (
            ("the better of both", "spider"),
            ("FedProx-SPIDER alone", "fedprox_spider"),
            ("Fed-SPIDER alone", "fed_spider"),
        )
    },
    r"for FedProx-SPIDER at (\d+) of (\d+) points": phases_of_one_round,
    rf"minibatch SGD at claimed ε = 18 has a true ε in {BOUNDS}": partial(
        true_epsilon, 1, experiment="wbcd_mlp", algorithm="minibatch_sgd", epsilon=18, R=25, reading=""
    ),
    r"Fed-SPIDER has a test error of ([\d.]+) % where minibatch SGD has ([\d.]+) %": errors_on_cifar,
    rf"its true ε is in {BOUNDS} where minibatch": partial(
        true_epsilon, 1, experiment="cifar10_cnn", algorithm="fed_spider", epsilon=18, R=50, reading=""
    ),
    rf"behind there \({INTERVAL}, 1,000": partial(at_insurance_of_three, "decided"),
    rf"find no difference \({INTERVAL}\)": partial(at_insurance_of_three, "comparisons"),
    r"With wider grids (\d+) of (\d+) chosen points lie at an edge, with the printed grids (\d+)": edges_of_wider_grids,
    rf"calibrated, certified \| {ENDS} \| {ENDS}": partial(at_an_end, "calibrated"),
    rf"favourable, the other end \| {ENDS} \| {ENDS}": partial(at_an_end, "favourable"),
    rf"Of (\d+) comparisons of a later algorithm with minibatch SGD it is ahead at {HELD} and behind at {HELD}": (
        partial(on_the_board, *LATER)
    ),
    r"are ahead of minibatch SGD at (\d+) \((\d+)\) of (\d+) cells and behind at (\d+) \((\d+)\)": lambda: (
        *on_the_board(*LATER)[1:3],
        *on_the_board(*LATER)[:1],
        *on_the_board(*LATER)[3:],
    ),
    r"along the axis of p \((\d+) of (\d+) cells\), and at (\d+) \((\d+)\) of (\d+) along": lambda: (
        *corrections("silos.mixed")[1::-1],
        *corrections("silos.alpha")[1:],
        corrections("silos.alpha")[0],
    ),
    r"at (\d+) \((\d+)\) of (\d+) cells by p and at (\d+) \((\d+)\) of (\d+) by α": lambda: (
        *(found := on_the_board("fedprox_spider", axis="silos.mixed"))[3:],
        found[0],
        *(found := on_the_board("fedprox_spider", axis="silos.alpha"))[3:],
        found[0],
    ),
    **{
        rf"(?m)\| {label(name).removeprefix('ISRL-DP ')} \| (\d+) \| (\d+) \((\d+)\) \| (\d+) \((\d+)\) \|": partial(
            on_the_board, name
        )
        for name in ("local_sgd", "silo_only", "mr_mtl", *LATER)
    },
    r"DP-μ² with (\d)n gradients\W+is behind minibatch SGD with (\d)n at": lambda: (
        gradients("dp_mu2", 25, places=0)[0],
        gradients("local_sgd", 25, places=0)[0],
    ),
    r"Localised acceleration with ([\d.]+)n gradients\W+([\d.]+)n in 3 rounds": lambda: (
        *gradients("localised_accelerated", 25)[:1],
        *gradients("localised_accelerated", 3, places=2)[:1],
    ),
    r"Minibatch SGD takes ([\d.]+)n to ([\d.]+)n gradients": partial(gradients, "minibatch_sgd"),
    **{
        rf"\| {M}, {R}, {epsilon:g}(?: \(ρ = 8\))? " + r"\| ([\d.]+) " * 10: partial(of_the_successors, M, R, epsilon)
        for M, R, epsilon in (
            *((50, 25, epsilon) for epsilon in (1, 8, 65.32)),
            *((M, R, 65.32) for M, R in ((20, 25), (80, 25), (50, 3))),
        )
    },
    **{
        rf"\| {label}, R = {R} \| {LISTED} \| {LISTED} \|": partial(sides_on_cifar, name, R)
        for label, name in (("FedProx-SPIDER", "fedprox_spider"), ("Fed-SPIDER", "fed_spider"))
        for R in (50, 100)
    },
}


@pytest.mark.parametrize("words", FACTS)
def test_quoted_numbers_are_the_published_ones(words):
    quotes = {page.name: found.groups() for page, text in WORDS.items() for found in re.finditer(words, text)}
    assert quotes, "no page has these words: mend them, or take the fact out with its sentence"
    assert quotes == dict.fromkeys(quotes, FACTS[words]())


def headings(text: str) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*?) *$", re.sub(r"(?ms)^```.*?^```", "", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\(.*?\)", "", title).lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page):
    missing = []
    for path, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", TEXT[page]):
        target = (page.parent / path).resolve() if path else page
        # The page of the built site links to files that only the site has.
        if "://" in path or path.startswith("mailto:") or (page.name == "index.md" and not target.exists()):
            continue
        if not target.exists() or (anchor and target in TEXT and anchor not in headings(TEXT[target])):
            missing.append(f"{path}#{anchor}")
    assert missing == []


def shown(program: str) -> set[str]:
    """Commands of a program that README and docs show, without comments, placeholders and what follows a pipe."""
    blocks = [block for text in TEXT.values() for block in re.findall(r"(?ms)^```\w*\n(.*?)^```", text)]
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    inline = [code for text in TEXT.values() for code in re.findall(r"`([^`\n]+)`", text)]
    found = {re.split(r"\s#|[|;&]", line.strip())[0].removeprefix("$ ").strip() for line in [*lines, *inline]}
    return {line for line in found if line.startswith(f"{program} ")}


def test_every_make_target_that_is_shown_exists():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    words = {line: shlex.split(line)[1:] for line in shown("make")}
    asked = {line: [word for word in given if re.fullmatch(r"[a-z][\w-]*", word)] for line, given in words.items()}
    assert asked
    assert {line for line, words in asked.items() if not set(words) <= targets} == set()


def test_every_command_of_silodp_that_is_shown_has_the_options_that_are_shown(capsys):
    helps: dict[tuple[str, ...], str] = {}

    def help_of(*command: str) -> str:
        if command not in helps:
            helps[command] = capsys.readouterr().out if main([*command, "--help"]) == 0 else ""
        return helps[command]

    wrong = []
    for line in sorted(shown("silodp")):
        words = shlex.split(line.partition(" -- ")[0].replace("…", ""))[1:]
        command = tuple(word for word in words[:2] if re.fullmatch(r"[a-z][a-z-]+", word))
        text = help_of(*command[:1])
        if len(command) == 2 and re.search(rf"^\s+{command[1]}\b|[{{,]{command[1]}[}},]", text, re.MULTILINE):
            text = help_of(*command)
        options = [word.split("=")[0] for word in words if word.startswith("--")]
        wrong += [line] if not text or any(option not in text for option in options) else []
    assert wrong == []


def test_generated_tables_are_those_of_the_published_claims():
    assert any(markdown(CLAIMS) in text for text in TEXT.values()), "write it again: make docs"


def test_times_are_those_of_the_generated_table():
    """A row that begins with what a command makes ends with its processor minutes."""
    table = dict(re.findall(r"(?m)^\|.*\| `(make [^`]+)` \| ([\d,]+) \|$", TEXT[ROOT / "docs" / "replicate.md"]))
    artifact = (ROOT / "ARTIFACT.md").read_text(encoding="utf-8")
    for text in (TEXT[ROOT / "README.md"], artifact):
        rows = re.findall(r"(?m)^\|[^|]*\| `(make [^`]+)` \| ([\d,]+) \|", text)
        assert len(rows) >= 4
        assert all(table[command] == minutes for command, minutes in rows)


def test_the_readme_is_short_and_names_every_package():
    readme = TEXT[ROOT / "README.md"]
    assert len(readme.encode()) < 7_000
    packages = {path.parent.name for path in (ROOT / "src" / "silodp").glob("*/__init__.py")}
    assert {name for name in packages if f"`{name}`" not in readme} == set()
