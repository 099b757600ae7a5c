"""README and docs say what is there: numbers of the published tables, links, commands, generated parts.

A number is found by the words around it, in whichever page has them: pages may move and be renamed.
"""

import math
import re
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, floor
from pathlib import Path

import pandas as pd
import pytest
from small import ROOT

from silodp.cli import main
from silodp.experiments.validation import load, silo_sizes
from silodp.files import with_reading
from silodp.privacy.standing import Standing, counts_of, standings
from silodp.report.figures.findings import signed
from silodp.report.paper_figures import paper_figures
from silodp.verdicts.claims.base import holm
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.claims.rows import markdown, turned, under_variants
from silodp.verdicts.comparisons import ENDED, compare
from silodp.verdicts.statistics import paired_test
from silodp.workflow.plan import Plan

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXT = {page: page.read_text(encoding="utf-8") for page in PAGES}
# In one line, without the marks of lists and emphasis that may stand between words.
WORDS = {page: " ".join(text.replace("**", "").split()) for page, text in TEXT.items()}
PUBLISHED = ROOT / "results" / "published"
BOARD = ROOT / "results" / "published-leaderboard"
CLAIMS = pd.read_csv(PUBLISHED / "claims.csv").fillna({"source": ""})
PRIVATE = with_reading(pd.read_csv(PUBLISHED / "privacy.csv"))
OF_PAPERS = PRIVATE.query("reading == ''")
OF_PAPERS = OF_PAPERS[OF_PAPERS["experiment"].isin({figure.experiment for figure in paper_figures()})]
# A row of the table at equal true ε.
COUNTED = r"(\d+), (\d+) \((?:mean )?(−[\d.]+)\)"
EQUAL = rf"\| \[([\d.]+), ([\d.]+)\] \| (?:minibatch SGD )?{COUNTED} \| {COUNTED}"
# Three numbers in the docs, with the sign that typography asks for.
INTERVAL = r"([+−][\d.]+) \[([+−][\d.]+), ([+−][\d.]+)\]"
PERCENT = r"([\d.]+) % \[([\d.]+), ([\d.]+)\]"
OF = r"(\d+) of (\d+)"
KEEPS, KEPT = r"Holm's correction keeps (\d+) and (\d+)", r"Holm's correction keeps (\d+)"
BOTH = r"Holm's correction keeps (\d+) of the (\d+) and (\d+) of the (\d+)"


EXPERIMENTS = {claim.id: claim.experiments for claim in load_claims()}


def compared(claim: str, first: str, second: str) -> pd.DataFrame:
    """The comparisons of a claim's experiments under the default reading."""
    tables = (with_reading(pd.read_csv(PUBLISHED / "reported" / f"{name}.csv")) for name in EXPERIMENTS[claim])
    return pd.concat(compare(table.query("reading == ''"), first, second) for table in tables)


def sides(claim: str, first: str, second: str, order: Sequence[int] = (0, 1, 2)) -> tuple[str, ...]:
    """How often the first is ahead, and behind, of how many."""
    outcomes = compared(claim, first, second)["outcome"].tolist()
    found = (outcomes.count("ahead"), outcomes.count("behind"), len(outcomes))
    return tuple(str(found[place]) for place in order)


def kept(rows: pd.DataFrame) -> tuple[str, str]:
    """How many of the comparisons in which the first is ahead, and behind, Holm's correction keeps."""
    return str(sum(holm((1 - rows["p"]).tolist()))), str(sum(holm(rows["p"].tolist())))


def certified(first: str, reading: str = "noise=calibrated") -> pd.DataFrame:
    """Comparisons with minibatch SGD in the runs at calibrated noise, which have the papers' noise beside it."""
    files = (PUBLISHED / "reported").glob("*_certified.csv")
    tables = [with_reading(pd.read_csv(path)) for path in files]
    return pd.concat(compare(table[table["reading"] == reading], first, "minibatch_sgd") for table in tables)


def behind_when_certified(first: str, reading: str = "noise=calibrated") -> tuple[str, ...]:
    """Against minibatch SGD in those runs: behind, of all, ahead, and what Holm keeps of those behind and ahead."""
    rows = certified(first, reading)
    counts = rows["outcome"].value_counts()
    return str(counts["behind"]), str(len(rows)), str(counts.get("ahead", 0)), *reversed(kept(rows))


def in_certified(experiment: str, first: str, second: str, reading: str = "noise=calibrated") -> tuple[str, ...]:
    """The mean difference in one of those runs."""
    rows = with_reading(pd.read_csv(PUBLISHED / "reported" / f"{experiment}_certified.csv"))
    return mean_difference(rows[rows["reading"] == reading], first, second)


def sides_on_cifar_when_certified() -> tuple[str, ...]:
    """ε at which Fed-SPIDER is behind minibatch SGD, and ahead, then FedProx-SPIDER's difference from it."""
    rows = certified("fed_spider").query("experiment.str.startswith('cifar')").set_index("epsilon")["outcome"]
    sides = (tuple(f"{e:g}" for e in rows.index[rows == word]) for word in ("behind", "ahead"))
    same = certified("fedprox_spider").query("experiment.str.startswith('cifar')").set_index("epsilon")["outcome"]
    assert same.index[same == "ahead"].tolist() == rows.index[rows == "ahead"].tolist()
    return *sum(sides, ()), *in_certified("cifar10_cnn", "fedprox_spider", "minibatch_sgd")


def beside_non_private() -> tuple[str, ...]:
    """C3 at calibrated noise: ahead, of all, and the single comparison without a difference."""
    (row,) = CLAIMS[CLAIMS["claim"] == "C3: [at exactly the claimed ε: noise=calibrated]"]["statistic"]
    every, ahead, none = re.search(r"of (\d+) comparisons (\d+) ahead, (\d+) no difference found", row).groups()
    assert int(every) - int(ahead) == int(none) == 1
    return ahead, every


def certified_by_data_set(first: str) -> tuple[str, ...]:
    """The mean difference on MNIST, CIFAR-10 and breast cancer, each followed by how often it is behind, of all."""
    found: tuple[str, ...] = ()
    for dataset in ("mnist", "cifar", "wbcd"):
        files = (PUBLISHED / "reported").glob(f"{dataset}*_certified*.csv")
        rows = with_reading(pd.concat(map(pd.read_csv, files))).query("reading == 'noise=calibrated'")
        part = certified(first).query("experiment.str.startswith(@dataset)")
        counts = str((part["outcome"] == "behind").sum()), str(len(part))
        found += (*mean_difference(rows, first, "minibatch_sgd"), *counts)
    return found


def mean_difference(rows: pd.DataFrame, first: str, second: str) -> tuple[str, ...]:
    """Mean difference over settings and ε of every trial, with its interval, as the docs write it."""
    rows = rows[rows["epsilon"].notna() & rows["algorithm"].isin([first, second])]
    cells = rows.pivot(index=["experiment", "M", "R", "epsilon", "trial"], columns="algorithm", values="test_error")
    means = (cells[first] - cells[second]).dropna().groupby("trial").mean()
    return tuple(f"{x:+.4f}".replace("-", "−") for x in paired_test(means)[:3])


def on(dataset: str, first: str, second: str, claim: str = "N2") -> tuple[str, ...]:
    """Mean difference over settings and ε of every trial, with its interval."""
    tables = [pd.read_csv(PUBLISHED / "reported" / f"{n}.csv") for n in EXPERIMENTS[claim] if n.startswith(dataset)]
    return mean_difference(with_reading(pd.concat(tables)).query("reading == ''"), first, second)


def each_form(name: str) -> tuple[str, ...]:
    """Comparisons with minibatch SGD: ahead, behind, and the mean difference on every data set."""
    effects = [on(dataset, name, "minibatch_sgd") for dataset in ("mnist", "cifar", "wbcd")]
    return sum(effects, sides("N2", name, "minibatch_sgd", (0, 1)))


def on_the_board(*wanted: str) -> tuple[str, ...]:
    """For each question in words of leaderboard.md: cells with yes, with worse, and all."""
    text = (BOARD / "board" / "leaderboard.md").read_text()
    return sum((re.search(rf"{words}: yes at (\d+), worse at (\d+) of (\d+)", text).groups() for words in wanted), ())


def gradients(algorithm: str, R: int | None = None) -> list[float]:
    """Gradients that a silo takes in all rounds over its n, for data sets of the leaderboard: the successors' own
    comparison in R rounds, or all others."""
    plan, found = Plan(load(BOARD / "config.json"), folder=str(BOARD), published=True), []
    for name, config in plan.experiments.items():
        setting, n = config.settings[0], silo_sizes(config)[1]
        if name.endswith("_leaderboard") and (setting.R if "successors" in name else None) == R:
            (of,) = plan.task(name, algorithm, setting.name, "default").plans(math.nan, 1, [n])
            found.append(sum(release.count * release.records * release.gradients for release in of.releases) / n)
    return sorted(found)


def of_the_successors(M: int, R: int, epsilon: float) -> tuple[str, ...]:
    """Mean test errors in the successors' own comparison, by algorithm."""
    rows = pd.concat(map(pd.read_csv, (BOARD / "tables").glob("mnist_successors_*.csv")))
    rows = rows[(rows["M"] == M) & (rows["R"] == R) & (rows["epsilon"] == epsilon)].set_index("algorithm")
    names = ("minibatch_sgd", "localised_accelerated", "dp_mu2", "dp_mu2_difference", "dp_mu2_correlated")
    return tuple(f"{rows['test_error_mean'][name]:.3f}" for name in names)


def on_the_board_at(question: str, experiment: str, epsilon: float) -> tuple[str, ...]:
    """Difference of a question's groups at a cell, with its interval."""
    rows = pd.read_csv(BOARD / "board" / "leaderboard.csv").set_index(["question", "experiment", "epsilon"])
    return tuple(signed(rows.loc[(question, experiment, epsilon), key]) for key in ("difference", "low", "high"))


def printed_k() -> tuple[str, ...]:
    """SPIDER against minibatch SGD with K by each ε, and with one K, then the largest change of a mean error by K."""
    reported = ROOT / "results" / "published-per-eps" / "reported"
    rows = with_reading(pd.concat(map(pd.read_csv, reported.glob("*.csv"))))
    runs = [rows[rows["reading"] == reading] for reading in ("batch=per_eps", "")]
    each = [compare(run, *SPIDER)["outcome"].tolist() for run in runs]
    said = [str(part.count(word)) for part in each for word in ("behind", "ahead")]
    cells = rows[rows["epsilon"].notna()].groupby(["experiment", "algorithm", "trial", "reading"])["test_error"].mean()
    trials = cells.unstack("reading").pipe(lambda means: means["batch=per_eps"] - means[""])
    tests = [paired_test(part.to_numpy()) for _, part in trials.groupby(["experiment", "algorithm"])]
    assert all(test.low < 0 < test.high for test in tests)
    return said[0], str(len(each[0])), *said[1:], f"{max(abs(test.value) for test in tests):.4f}"


def at_an_end(noise: str) -> tuple[str, ...]:
    """Minibatch against local SGD on perceptrons, local SGD's noise at an end of its bracket, by data set."""
    said: tuple[str, ...] = ()
    for name in ("mnist_mlp_equal", "wbcd_equal"):
        rows = pd.read_csv(ROOT / "results" / "published-perceptron" / "reported" / f"{name}.csv")
        rows = rows[(rows["reading"] == f"noise={noise}") & rows["epsilon"].notna()]
        errors = rows.pivot(index=["M", "epsilon"], columns=["algorithm", "trial"], values="test_error")
        tests = [paired_test(row) for row in (errors["minibatch_sgd"] - errors["local_sgd"]).to_numpy()]
        p = [test.p for test in tests]
        counts = sum(test.high < 0 for test in tests), sum(test.low > 0 for test in tests)
        keeps = sum(holm([1 - one for one in p])), sum(holm(p))
        said += (*map(str, (*counts, *keeps)), *mean_difference(rows, "minibatch_sgd", "local_sgd"))
    return said


def private_rows() -> tuple[str, ...]:
    """All, those that keep their claim, those that violate it, and the rest."""
    keep, violate = PRIVATE["holds"].sum(), (PRIVATE["delivered_lower"] > PRIVATE["claimed_epsilon"]).sum()
    return tuple(f"{count:,}" for count in (len(PRIVATE), keep, violate, len(PRIVATE) - keep - violate))


def rows_of_the_papers() -> tuple[str, ...]:
    """The private rows behind the papers' figures: all, and how many claims are kept, violated, not certified."""
    counts = counts_of(OF_PAPERS)
    return str(len(OF_PAPERS)), *(
        str(counts[word]) for word in (Standing.KEPT, Standing.VIOLATED, Standing.NOT_CERTIFIED)
    )


def without_lower_bound() -> tuple[str, ...]:
    rows = PRIVATE[standings(PRIVATE) == Standing.NOT_CERTIFIED]
    return (str(rows["delivered_lower"].isna().sum()),)


def local_below_minibatch() -> tuple[str, ...]:
    """Points of local SGD with both bounds, and by how many percent its true ε can be below minibatch SGD's at most."""
    rows = OF_PAPERS.set_index(["experiment", "M", "R", "epsilon"])
    lower = rows.loc[rows["algorithm"] == "local_sgd", "delivered_lower"].dropna()
    upper = rows.loc[rows["algorithm"] == "minibatch_sgd", "delivered_epsilon"]
    return str(len(lower)), str(ceil(100 * (1 - lower / upper).max()))


def edges_when_certified(algorithm: str) -> tuple[str, ...]:
    """Chosen points at calibrated noise that lie at an edge of their grid, of all."""
    rows = with_reading(pd.concat(map(pd.read_csv, (PUBLISHED / "tables").glob("*_certified*.csv"))))
    rows = rows.query("reading == 'noise=calibrated' and algorithm == @algorithm and private")
    return str(rows["edge"].notna().sum()), str(len(rows))


def with_the_papers_noise() -> tuple[str, ...]:
    """Minibatch against local SGD on the grids of equal true ε: ahead, behind, kept, the means of insurance, MNIST."""
    found = []
    for dataset in ("insurance", "mnist_logistic"):
        files = sorted((PUBLISHED / "reported").glob(f"{dataset}_equal*.csv"))
        rows = with_reading(pd.concat(map(pd.read_csv, files)))
        # At the ε of the calibrated rows.
        own = rows["epsilon"].isin(rows.loc[rows["reading"] == ENDED, "epsilon"].dropna())
        found.append(rows[(rows["reading"] == "") & own])
    pairs = compare(pd.concat(found), *SGD)
    ahead, behind = (str((pairs["outcome"] == word).sum()) for word in ("ahead", "behind"))
    means = (mean_difference(part, *SGD) for part in found)
    return ahead, str(len(pairs)), behind, kept(pairs)[0], *(number for mean in means for number in mean)


def true_epsilon(experiment: str, algorithm: str, epsilon: float, R: int = 25) -> tuple[str, ...]:
    """The proven bounds on ε of a default row."""
    row = PRIVATE.query("experiment == @experiment and algorithm == @algorithm and R == @R and reading == ''")
    ((lower, upper),) = row[row["epsilon"] == epsilon][["delivered_lower", "delivered_epsilon"]].to_numpy()
    return f"{floor(lower * 10) / 10:.1f}", f"{ceil(upper * 10) / 10:.1f}"


def phases_of_one_round() -> tuple[str, ...]:
    rows = pd.concat(pd.read_csv(PUBLISHED / f"tables/{name}.csv") for name in ("mnist_mlp", "cifar10_cnn", "wbcd_mlp"))
    rows = with_reading(rows).query("algorithm == 'fedprox_spider' and reading == '' and private")
    return str((rows["phase_length"] == 1).sum()), str(len(rows))


def sides_on_cifar(algorithm: str, R: int) -> tuple[str | None, ...]:
    """(count, ε) where an algorithm is clearly ahead of minibatch SGD, and the same where it is clearly behind."""
    rows = with_reading(pd.read_csv(PUBLISHED / "reported" / "cifar10_cnn.csv")).query(f"M == 10 and R == {R}")
    better = compare(rows, algorithm, "minibatch_sgd").set_index("epsilon")["better"]
    sides = [[f"{e:g}" for e, name in better.items() if name == side] for side in (algorithm, "minibatch_sgd")]
    return tuple(part for side in sides for part in (str(len(side)), ", ".join(side) or None))


def errors_on_cifar() -> tuple[str, ...]:
    rows = pd.read_csv(PUBLISHED / "tables/cifar10_cnn.csv").query("M == 10 and R == 50 and epsilon == 18")
    return tuple(
        f"{100 * rows.set_index('algorithm').at[a, 'test_error_mean']:.1f}" for a in ("fed_spider", "minibatch_sgd")
    )


def improvements() -> tuple[str, ...]:
    """How much larger than minibatch SGD's the error is, and how much smaller than local SGD's, in percent."""
    rows = CLAIMS.set_index("claim").loc[["N3: minibatch_sgd", "N3: local_sgd"]]
    above, below = rows[["value", "low", "high"]].to_numpy()
    return tuple(f"{x:.1f}" for x in (-above[0], -above[2], -above[1], *below))


def ahead_at_equal_epsilon() -> tuple[str, ...]:
    rows = pd.read_csv(PUBLISHED / "comparisons.csv")
    rows = rows[(rows["reading"] == ENDED) & (rows["second"] == "local_sgd")]
    ahead, behind = ((rows["better"] == name).sum() for name in SGD)
    return str(ahead), str(len(rows)), str(behind), *kept(rows)


def means_at_equal_epsilon() -> tuple[str, ...]:
    """Minibatch minus local SGD at equal true ε: the mean differences of insurance and MNIST."""
    files = {name: (PUBLISHED / "reported").glob(f"{name}_equal*.csv") for name in ("insurance", "mnist_logistic")}
    tables = (with_reading(pd.concat(map(pd.read_csv, sorted(found)))) for found in files.values())
    return sum((mean_difference(rows[rows["reading"] == ENDED], *SGD) for rows in tables), ())


def price_at_ten() -> tuple[str, ...]:
    """Of minibatch SGD on insurance, M = 10, at equal true ε: the private minus the non-private error."""
    name = "C2: insurance_equal M=10 R=35, minibatch_sgd, [at exactly the claimed ε: noise=calibrated;noise_at=end]"
    return tuple(signed(x) for x in CLAIMS.set_index("claim").loc[name, ["value", "low", "high"]])


def without_total(found: tuple[str, ...]) -> tuple[str, ...]:
    """Of numbers "ahead, of all, behind, …": without the second."""
    return found[0], *found[2:]


def taken_apart(kind: str, reading: str, second: str = "minibatch_sgd") -> tuple[list[str], list[str]]:
    """FedProx-SPIDER of the run `spider`: ahead, behind and the mean difference, and the mean improvement in %."""
    found, gains = [], []
    for dataset in ("mnist_mlp", "wbcd", *(["cifar10_cnn"] if kind == "spider" else [])):
        rows = with_reading(pd.read_csv(PUBLISHED / "reported" / f"{dataset}_{kind}.csv"))
        rows = rows.query("reading == @reading and epsilon.notna()")
        outcomes = compare(rows, "fedprox_spider", second)["outcome"].tolist()
        cells = rows.pivot(index=["M", "R", "epsilon", "trial"], columns="algorithm", values="test_error")
        means = (cells["fedprox_spider"] - cells[second]).groupby("trial").mean()
        found += [str(outcomes.count(word)) for word in ("ahead", "behind")]
        found += [f"{x:+.4f}".replace("-", "−") for x in paired_test(means)[:3]]
        errors = cells.groupby(["M", "R", "epsilon"]).mean()
        gains.append(f"{100 * (1 - errors['fedprox_spider'] / errors[second]).mean():.1f}".replace("-", "−"))
    return found, gains


def released_epsilon(claimed: float) -> tuple[str, ...]:
    """The proven bounds on ε of FedProx-SPIDER with the released noise on MNIST, M = 25."""
    row = PRIVATE.query("experiment == 'mnist_mlp_released' and reading == @RELEASED and M == 25")
    row = row.query("algorithm == 'fedprox_spider' and claimed_epsilon == @claimed")
    ((lower, upper),) = row[["delivered_lower", "delivered_epsilon"]].to_numpy()
    scale = 100 if claimed < 1 else 1
    return (
        f"{floor(lower * scale) / scale:,.{2 * (claimed < 1)}f}",
        f"{ceil(upper * scale) / scale:,.{2 * (claimed < 1)}f}",
    )


def clips_of_the_paper() -> tuple[str, ...]:
    """With the largest norm as the clip where an experiment has that reading: ahead, all, ahead by a grid, behind.

    Last what Holm's correction keeps of those ahead and behind.
    """
    found = []
    for name in EXPERIMENTS["C1"]:
        rows = with_reading(pd.read_csv(PUBLISHED / "reported" / f"{name}.csv"))
        reading = "clip_rule=max_norm" if (rows["reading"] == "clip_rule=max_norm").any() else ""
        found.append(compare(rows[rows["reading"] == reading], *SGD))
    rows, by_grid = pd.concat(found), sides("C1", *SGD)
    ahead, behind = (str((rows["outcome"] == word).sum()) for word in ("ahead", "behind"))
    return ahead, str(len(rows)), by_grid[0], behind, kept(rows)[0], ahead, kept(rows)[1], behind


def audits() -> tuple[str, ...]:
    """Least runs; algorithms whose median share of the upper bound is a half, all; the ends of those medians."""
    rows = pd.concat(map(pd.read_csv, (ROOT / "results").glob("published*/audit.csv")))
    medians = (rows["audited_profile"] / rows["delivered_epsilon"]).groupby(rows["algorithm"]).median()
    half = medians[medians >= 0.5]
    ends = f"{half.min():.2f}", f"{half.max():.2f}"
    return f"{rows['runs'].min():,}", str(len(half)), str(len(medians)), *ends


def bracket_at_ten(reading: str) -> tuple[str, ...]:
    """The proven bounds on ε of local SGD at a claim of 10, ten silos of insurance."""
    rows = PRIVATE[(PRIVATE["experiment"] == "insurance_equal") & (PRIVATE["reading"] == reading)]
    row = rows.query("algorithm == 'local_sgd' and M == 10 and epsilon == 10")
    ((lower, upper),) = row[["delivered_lower", "delivered_epsilon"]].to_numpy()
    return f"{floor(lower * 100) / 100:g}", f"{ceil(upper * 100) / 100:g}"


def at_claim_of_ten(reading: str) -> tuple[str, ...]:
    """The bracket, then for insurance and MNIST: minibatch SGD ahead, behind, the mean difference."""
    rows = pd.read_csv(PUBLISHED / "comparisons.csv").query("reading == @reading and second == 'local_sgd'")
    rows = rows[(rows["first"] == "minibatch_sgd") & rows["experiment"].str.contains("_equal")]
    found = list(bracket_at_ten(reading))
    for dataset in ("insurance", "mnist"):
        part = rows[rows["experiment"].str.startswith(dataset)]
        counts = [str((part["better"] == name).sum()) for name in SGD]
        found += [*counts, f"{part['difference'].mean():+.4f}".replace("-", "−")]
    return tuple(found)


def edges_at_equal_epsilon() -> tuple[str, ...]:
    rows = with_reading(pd.concat(map(pd.read_csv, (PUBLISHED / "tables").glob("*_equal*.csv"))))
    rows = rows[(rows["reading"] == ENDED) & rows["private"]]
    edges = rows["edge"].notna().groupby(rows["algorithm"])
    return str(edges.sum()["local_sgd"]), str(edges.size()["local_sgd"]), str(edges.sum()["minibatch_sgd"])


def edges_of_wider_grids() -> tuple[str, ...]:
    tables = (ROOT / "results" / "published-protocols" / "tables").glob("*.csv")
    rows = with_reading(pd.concat(map(pd.read_csv, tables))).query("algorithm != 'spider'")
    at_edge = rows["edge"].notna().groupby(rows["reading"])
    return tuple(str(count) for count in (at_edge.sum()["grid=widened"], at_edge.size()[""], at_edge.sum()[""]))


def time_of_make_paper() -> tuple[str, ...]:
    """Hours and minutes as docs/performance.md has them, which says how they were measured."""
    text = TEXT[ROOT / "docs" / "performance.md"]
    return re.search(r"^\| `make paper`.*?\| (\d+) h (\d+) min \|", text, re.MULTILINE).groups()


RELEASED = "spider_q1_noise=released"
SPIDER, SGD = ("spider", "minibatch_sgd"), ("minibatch_sgd", "local_sgd")
# Words around numbers → the numbers.
ENDS = r"(\d+), (\d+) \(Holm keeps (\d+), (\d+)\) \| ([−+][\d.]+) \[([−+][\d.]+), ([−+][\d.]+)\]"
FACTS: dict[str, Callable[[], tuple[str | None, ...]]] = {
    r"Of (\d+) private results of the papers' experiments.*? (\d+) keep .*?, (\d+) provably violate it, "
    r"and (\d+) cannot": rows_of_the_papers,
    r"Of these (\d+) have no lower bound": without_lower_bound,
    rf"edge of its grid at {OF} points": partial(edges_when_certified, "fed_spider"),
    rf"Its choice lies at an edge at {OF} points": partial(edges_when_certified, "local_sgd"),
    rf"it is ahead at (\d+) and behind at (\d+); {KEEPS}": lambda: without_total(ahead_at_equal_epsilon()),
    r"At the (\d+) points of local SGD that have both bounds its true ε can be at most (\d+) %": local_below_minibatch,
    rf"calibrated noise Fed-SPIDER, .*? behind minibatch SGD at {OF} comparisons\. It is ahead at (\d+) \(CIFAR-10, "
    rf".*?\); {KEEPS}": partial(behind_when_certified, "fed_spider"),
    r"There Fed-SPIDER is behind at ε = ([\d.]+), ([\d.]+) and ([\d.]+) and ahead at (\d+) and (\d+)\. FedProx-SPIDER, "
    rf"the same algorithm as minibatch SGD, differs from it by {INTERVAL}": sides_on_cifar_when_certified,
    rf"grids SPIDER is behind minibatch SGD at {OF} comparisons and ahead at (\d+); {KEEPS}\. On MNIST the mean "
    rf"difference is {INTERVAL}, and {INTERVAL} against local SGD": lambda: (
        *behind_when_certified("spider", ""),
        *in_certified("mnist_mlp", "spider", "minibatch_sgd", ""),
        *in_certified("mnist_mlp", "spider", "local_sgd", ""),
    ),
    rf"with calibrated noise, it is ahead at {OF} comparisons, and no difference": beside_non_private,
    rf"With the papers' noise on the same grids and trials it is ahead at (\d+) and behind at (\d+); {KEPT}: "
    rf"{INTERVAL} and {INTERVAL}": lambda: without_total(with_the_papers_noise()),
    rf"equal grids minibatch SGD is ahead at {OF} comparisons and behind at (\d+)": lambda: with_the_papers_noise()[:3],
    r"With the printed K SPIDER is behind minibatch SGD at (\d+) of (\d+) comparisons and ahead at (\d+), with the "
    r"other K at (\d+) and (\d+)\. The printed K .*? at most ([\d.]+)": printed_k,
    r"Of ([\d,]+) published private rows, .*?, ([\d,]+) keep .*?, (\d+) provably violate it, and (\d+) cannot": (
        private_rows
    ),
    rf"than minibatch SGD at (\d+) of (\d+) comparisons and a larger error at (\d+) \(picture\); {KEEPS}": lambda: (
        *sides("N2", *SPIDER, (0, 2, 1)),
        *kept(compared("N2", *SPIDER)),
    ),
    r"Holm's correction keeps (\d+) of the 6\. Of the 23 it keeps (\d+) by the t test": lambda: kept(
        compared("N2", *SPIDER)
    ),
    rf"It is ahead at (\d+) of (\d+) comparisons and behind at (\d+); {KEEPS}\. The claimed": lambda: (
        *sides("N2", "spider", "local_sgd", (0, 2, 1)),
        *kept(compared("N2", "spider", "local_sgd")),
    ),
    **{
        rf"{form}.{{,60}} is behind minibatch SGD at (\d+) of (\d+) comparisons and ahead at (\d+); {KEEPS}": partial(
            behind_when_certified, name
        )
        for form, name in (("Fed-SPIDER, whose", "fed_spider"), ("Local SGD", "local_sgd"))
    },
    rf"The mean difference is {INTERVAL} on MNIST \(behind at {OF}\), {INTERVAL} on CIFAR-10 \({OF}\) and "
    rf"{INTERVAL} on breast cancer \({OF}\)": partial(certified_by_data_set, "fed_spider"),
    r"Of (\d+) comparisons SPIDER is ahead of minibatch SGD at (\d+) and behind at (\d+)": partial(
        sides, "N2", *SPIDER, (2, 0, 1)
    ),
    rf"The mean difference is {INTERVAL} on MNIST \(behind\);": partial(on, "mnist", *SPIDER),
    rf"the mean difference is {INTERVAL} on MNIST, −": partial(on, "mnist", "spider", "local_sgd"),
    rf"{INTERVAL} on CIFAR-10 and \S+ \S+ \S+ on breast cancer\. It": partial(on, "cifar", "spider", "local_sgd"),
    rf"on CIFAR-10 and {INTERVAL} on breast cancer\. It": partial(on, "wbcd", "spider", "local_sgd"),
    rf"over settings and ε is {INTERVAL} on insurance": partial(on, "insurance", *SGD, "C1"),
    rf"on insurance and {INTERVAL} on MNIST": partial(on, "mnist", *SGD, "C1"),
    rf"{OF} comparisons \(a grid of clips: (\d+)\) and a larger error at (\d+)\. {BOTH}": clips_of_the_paper,
    rf"at {OF} comparisons, with a grid of clips at (\d+), and behind at (\d+)\. {BOTH}": clips_of_the_paper,
    r"have ([\d,]+) runs a row or more\. For (\d+) of (\d+) algorithms .*? between ([\d.]+) .*? and ([\d.]+)\.": audits,
    rf"minibatch SGD is ahead at {OF} comparisons and behind at (\d+); {KEEPS}": ahead_at_equal_epsilon,
    rf"mean difference is {INTERVAL} for insurance(?:,| and) {INTERVAL} for MNIST": means_at_equal_epsilon,
    rf"at ε = 10 \(claim C2\) is {INTERVAL} for": price_at_ten,
    **{
        rf"{words}" + rf" \| (\d+), (\d+) \| {INTERVAL}" * (3 if asked[0] == "spider" else 2): lambda asked=asked: (
            tuple(taken_apart(*asked)[0])
        )
        for words, asked in (
            ("2 to 4 rounds, the papers'", ("spider", "")),
            ("2 to 4 rounds, calibrated", ("spider", "noise=calibrated")),
            ("1 round, the released program's", ("released", RELEASED)),
        )
    },
    r"improvement is ([\d.]+) % on MNIST and ([\d.]+) % on breast cancer over minibatch SGD": lambda: tuple(
        taken_apart("released", RELEASED)[1]
    ),
    r"over minibatch SGD, ([\d.]+) % and (−[\d.]+) % over local SGD": lambda: tuple(
        taken_apart("released", RELEASED, "local_sgd")[1]
    ),
    r"is in \[([\d.]+), ([\d.]+)\] at a claim of 0\.75": lambda: released_epsilon(0.75),
    r"in \[([\d,]+), ([\d,]+)\] at a claim of 18": lambda: released_epsilon(18.0),
    rf"calibrated, in each step {EQUAL}": partial(at_claim_of_ten, "noise=calibrated"),
    rf"calibrated, at the end of the round {EQUAL}": partial(at_claim_of_ten, ENDED),
    r"true ε is a wide bracket: .*? \[([\d.]+), ([\d.]+)\]": partial(
        bracket_at_ten, ENDED.replace("end", "contracted_step")
    ),
    r"at the end of the round \(`noise_at: end`\) it is in \[([\d.]+), ([\d.]+)\]": partial(bracket_at_ten, ENDED),
    r"Of local SGD (\d+) of (\d+) chosen points lie at an edge of .*?, of minibatch SGD (\d+)": edges_at_equal_epsilon,
    **{
        rf"{form} \| (\d+), (\d+) \| {INTERVAL} \| {INTERVAL} \| {INTERVAL}": partial(each_form, name)
        for form, name in (
            ("the better of both", "spider"),
            ("FedProx-SPIDER alone", "fedprox_spider"),
            ("Fed-SPIDER alone", "fed_spider"),
        )
    },
    r"for FedProx-SPIDER at (\d+) of (\d+) points": phases_of_one_round,
    r"minibatch SGD at claimed ε = 18 has a true ε in \[([\d.]+), ([\d.]+)\]": lambda: true_epsilon(
        "wbcd_mlp", "minibatch_sgd", 18
    ),
    r"Fed-SPIDER has a test error of ([\d.]+) % where minibatch SGD has ([\d.]+) %": errors_on_cifar,
    r"its true ε is in \[([\d.]+), ([\d.]+)\] where minibatch": lambda: true_epsilon(
        "cifar10_cnn", "fed_spider", 18, 50
    ),
    rf"SPIDER's test error is {PERCENT} above .*? below\) and {PERCENT} below local": improvements,
    r"With wider grids (\d+) of (\d+) chosen points lie at an edge, with the printed grids (\d+)": edges_of_wider_grids,
    **{
        rf"{end} \| {ENDS} \| {ENDS}": partial(at_an_end, noise)
        for end, noise in (("calibrated, certified", "calibrated"), ("favourable, the other end", "favourable"))
    },
    r"successor beats the papers' best at (\d+) of (\d+) cells": lambda: on_the_board("a successor beat.*?")[::2],
    r"It takes ([\d.]+)n gradients there": lambda: (f"{gradients('localised_accelerated', 25)[0]:.1f}",),
    r"cells, with ([\d.]+) times its gradients": lambda: (f"{gradients('localised_accelerated', 25)[0]:.1f}",),
    r"localised acceleration takes ([\d.]+)n, and": lambda: (f"{gradients('localised_accelerated', 3)[0]:.2f}",),
    r"Minibatch SGD takes ([\d.]+)n to ([\d.]+)n gradients": lambda: tuple(
        f"{gradients('minibatch_sgd')[end]:.1f}" for end in (0, -1)
    ),
    rf"ahead of minibatch SGD: {INTERVAL} for M = 50 and ε = 8": lambda: on_the_board_at(
        "successor", "mnist_successors_m50_leaderboard", 8
    ),
    rf"on STAR at ε = 4: {INTERVAL}": lambda: on_the_board_at("successor", "star_leaderboard", 4),
    r"the best single model at (\d+) of (\d+) cells": lambda: on_the_board("a model for each silo.*?")[::2],
    r"it is worse at (\d+) of (\d+) cells, and better at none": lambda: on_the_board("is one pass.*?")[1:],
    r"`make paper`[^|]*\| (\d+) h (\d+) min": time_of_make_paper,
}
FACTS |= {
    rf"\| {M}, {R}, {epsilon:g}(?: \(ρ = 8\))? " + r"\| ([\d.]+) " * 5: partial(of_the_successors, M, R, epsilon)
    for M, R, epsilon in ((50, 25, 1), (50, 25, 8), (50, 25, 65.32), (20, 25, 65.32), (80, 25, 65.32), (50, 3, 65.32))
}
LISTED = r"(\d+)(?: \(([\d., ]+)\))?"
FACTS |= {
    rf"\| {label}, R = {R} \| {LISTED} \| {LISTED} \|": partial(sides_on_cifar, name, R)
    for label, name in (("FedProx-SPIDER", "fedprox_spider"), ("Fed-SPIDER", "fed_spider"))
    for R in (50, 100)
}


@pytest.mark.parametrize("words", FACTS)
def test_quoted_numbers_are_the_published_ones(words):
    quotes = {page.name: found.groups() for page, text in WORDS.items() for found in re.finditer(words, text)}
    if not quotes:
        pytest.skip("no page has these words")
    assert quotes == dict.fromkeys(quotes, FACTS[words]())


def test_most_facts_are_quoted():
    assert sum(any(re.search(words, text) for text in WORDS.values()) for words in FACTS) >= len(FACTS) / 2


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
    asked = {line: [word for word in line.split()[1:] if re.fullmatch(r"[a-z][\w-]*", word)] for line in shown("make")}
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
    protocols = pd.read_csv(ROOT / "results" / "published-protocols" / "claims.csv").fillna({"source": ""})
    for table in (markdown(CLAIMS), turned(CLAIMS), under_variants({"paper": CLAIMS, "protocols": protocols})):
        assert any(table in text for text in TEXT.values()), "write it again: make docs"


def test_the_readme_is_short_and_names_every_package():
    readme = TEXT[ROOT / "README.md"]
    assert len(readme.encode()) < 7_000
    packages = {path.parent.name for path in Path(ROOT / "src" / "silodp").glob("*/__init__.py")}
    assert {name for name in packages if f"`{name}`" not in readme} == set()
