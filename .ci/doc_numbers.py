"""Numbers and tables of README and docs, from the published tables.

`109<!--=papers violated-->` in a page is a number with its name in `numbers()`; words stand as in
`<!--+spider data-->breast cancer<!--/-->`. A table stands between the lines `<!-- table NAME: written by make docs -->`
and `<!-- end of NAME -->`, with its name in TABLES.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from math import ceil, floor
from pathlib import Path

import pandas as pd

from silodp.files import with_reading
from silodp.privacy.standing import Standing, counts_of
from silodp.report.cells import cells_of, counts_of_cells
from silodp.report.figures.style import short_label
from silodp.report.paper_figures import of_figures
from silodp.verdicts.comparisons import CALIBRATED, ENDED, compare
from silodp.verdicts.statistics import paired_test

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "results" / "published"
SPIDER, SGD, LOCAL = "spider", "minibatch_sgd", "local_sgd"
FIGURES = (SGD, LOCAL, "fedprox_spider", "fed_spider")
LATER = ("dp_scaffold", "localised_accelerated", "dp_mu2", "dp_mu2_difference", "dp_mu2_correlated")
LATER += ("minibatch_sgd_correlated", "minibatch_sgd_momentum", "minibatch_sgd_adam")
LINEAR = "stepsize_grid=linear"


def signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−")


@cache
def table(name: str) -> pd.DataFrame:
    rows = pd.read_csv(PUBLISHED / f"{name}.csv")
    return with_reading(rows) if "reading" in rows else rows


def reported(*names: str, reading: str = "") -> pd.DataFrame:
    """Published trials of experiments, * in a name for several, under one reading."""
    paths = [path for name in names for path in sorted((PUBLISHED / "reported").glob(f"{name}.csv"))]
    rows = pd.concat(with_reading(pd.read_csv(path)) for path in paths)
    return rows[rows["reading"] == reading]


def decided(first: str, second: str, reading: str = "", begin: str = "", linear: bool = False) -> pd.DataFrame:
    """Cells of a pair that fresh trials decide, of experiments whose names begin so.

    Only if `linear`, those of MNIST's perceptron on the linear grid, which no claim counts.
    """
    rows = table("decided")
    rows = rows[(rows["trials"] > 0) & ((rows["family"] == "printed_linear") == linear)]
    wanted = (rows["first"] == first) & (rows["second"] == second) & (linear | (rows["reading"] == reading))
    rows = rows[wanted & rows["experiment"].str.startswith(begin)]
    return cells_of(rows, rows)


def published(first: str, second: str, *names: str, reading: str = "") -> pd.DataFrame:
    """Cells of published trials, without the luck of tuning."""
    return cells_of(compare(reported(*names, reading=reading), first, second), None)


def held(rows: pd.DataFrame, word: str) -> str:
    """How many cells are ahead or behind, and in brackets how many of them Holm's correction keeps."""
    counts = counts_of_cells(rows)
    return f"{getattr(counts, word)} ({getattr(counts, f'{word}_kept')})"


def count(rows: pd.DataFrame, word: str = "cells") -> str:
    return str(getattr(counts_of_cells(rows), word))


def data_sets(rows: pd.DataFrame) -> str:
    names = {"mnist": "MNIST", "cifar10": "CIFAR-10", "wbcd": "breast cancer"}
    return ", ".join(names[name] for name in dict.fromkeys(rows["experiment"].str.partition("_")[0]))


def mean(rows: pd.DataFrame) -> str:
    """The mean difference of the counted cells."""
    words = ("ahead", "behind", "same", "open")
    return signed(rows.loc[rows["outcome"].isin(words), "difference"].mean())


def trial_mean(first: str, second: str, *names: str, reading: str = "") -> str:
    """The mean difference over settings and ε of every published trial, with its 95 % interval."""
    rows = reported(*names, reading=reading)
    rows = rows[rows["epsilon"].notna() & rows["algorithm"].isin([first, second])]
    cells = rows.pivot(index=["experiment", "M", "R", "epsilon", "trial"], columns="algorithm", values="test_error")
    value, low, high = paired_test((cells[first] - cells[second]).dropna().groupby("trial").mean())[:3]
    return f"{signed(value)} [{signed(low)}, {signed(high)}]"


def decided_mean(first: str, second: str, data_set: str) -> str:
    """The mean difference of a data set's cells under the papers' noise, by fresh trials, with its 95 % interval."""
    known = {"family": "printed", "data_set": data_set, "first": first, "second": second}
    rows = table("decided_means")
    ((value, low, high),) = rows[rows["claim"].isna() & (rows[list(known)] == known).all(axis=1)][
        ["difference", "low", "high"]
    ].to_numpy()
    return f"{signed(value)} [{signed(low)}, {signed(high)}]"


def of_papers(algorithms: tuple[str, ...] = ()) -> pd.DataFrame:
    """Private results of the experiments behind the papers' figures."""
    rows = table("privacy").query("reading == ''")
    rows = rows[rows["experiment"].isin(of_figures())]
    return rows[rows["algorithm"].isin(algorithms)] if algorithms else rows


def standing(rows: pd.DataFrame, word: Standing | None = None) -> str:
    return f"{counts_of(rows)[word] if word else len(rows):,}"


def true_epsilon(places: int | None = None, name: str = "privacy", **where: object) -> str:
    """The proven bounds on ε of one private row, rounded outwards; without `places` to three digits at least."""
    rows = table(name)
    for column, value in where.items():
        rows = rows[rows[column] == value]
    ((lower, upper),) = rows[["delivered_lower", "delivered_epsilon"]].fillna(0).to_numpy()
    scale = 10 ** (sum(upper < 10**power for power in (0, 1, 2)) if places is None else places)
    return f"[{floor(lower * scale) / scale:,.9g}, {ceil(upper * scale) / scale:,.9g}]"


def where_silos(alike: bool, begin: str = "") -> pd.DataFrame:
    """Minibatch against local SGD at equal certified ε, where silos are alike or differ."""
    rows = decided(SGD, LOCAL, ENDED, begin)
    return rows[rows["experiment"].str.endswith("_p1") == alike]


def claims(*verdicts: str) -> str:
    rows = pd.read_csv(PUBLISHED / "claims.csv", keep_default_na=False).query("form != 'corrected'")
    return str(int(rows["verdict"].isin(verdicts).sum()) if verdicts else len(rows))


def on_the_board(*names: str) -> pd.DataFrame:
    rows = pd.read_csv(PUBLISHED / "board" / "leaderboard.csv").fillna({"axis": ""})
    return rows[rows["first"].isin(names) & (rows["second"] == SGD) & (rows["axis"] == "")]


def board(word: str, *names: str) -> str:
    rows = on_the_board(*names)
    found = rows["outcome"] == word
    return f"{found.sum()} ({(found & rows['holm']).sum()})" if word else str(len(rows))


def one_mechanism() -> pd.DataFrame:
    """Cells of SPIDER at calibrated noise whose tuning has a choice of phases."""
    rows = decided(SPIDER, SGD, CALIBRATED)
    return rows[~rows["experiment"].str.startswith("cifar")]


def numbers() -> dict[str, Callable[[], str]]:
    """Name → what makes the number."""
    papers, both = partial(of_papers, FIGURES), ("ahead", "behind")
    found: dict[str, Callable[[], str]] = {
        "papers all": lambda: standing(papers()),
        "papers kept": lambda: standing(papers(), Standing.KEPT),
        "papers violated": lambda: standing(papers(), Standing.VIOLATED),
        "papers open": lambda: standing(papers(), Standing.NOT_CERTIFIED),
        "published all": lambda: standing(table("privacy")),
        "published kept": lambda: standing(table("privacy"), Standing.KEPT),
        "published violated": lambda: standing(table("privacy"), Standing.VIOLATED),
        "published open": lambda: standing(table("privacy"), Standing.NOT_CERTIFIED),
        "low violated": lambda: standing(papers().query("epsilon <= 1.5"), Standing.VIOLATED),
        "low all": lambda: standing(papers().query("epsilon <= 1.5")),
        "high violated": lambda: standing(papers().query("epsilon >= 3"), Standing.VIOLATED),
        "high all": lambda: standing(papers().query("epsilon >= 3")),
        "low not Fed-SPIDER": lambda: standing(
            papers().query("epsilon <= 1.5 and algorithm != 'fed_spider'"), Standing.VIOLATED
        ),
        "claims": claims,
        "claims refuted": partial(claims, "refuted"),
        "claims gap": partial(claims, "gap"),
        "claims misprint": partial(claims, "misprint"),
        "spider cells": lambda: count(decided(SPIDER, SGD)),
        "spider data": lambda: data_sets(decided(SPIDER, SGD)),
        "local mnist cells": lambda: count(decided(SPIDER, LOCAL, begin="mnist_mlp")),
        "local mnist mean": lambda: decided_mean(SPIDER, LOCAL, "mnist"),
        "local wbcd cells": lambda: count(decided(SPIDER, LOCAL, begin="wbcd")),
        "one round": lambda: count(one_mechanism(), "same_algorithm"),
        "one round choice": lambda: str(len(one_mechanism())),
        "linear local": lambda: trial_mean(SPIDER, LOCAL, "mnist_mlp", reading=LINEAR),
        "program local": lambda: trial_mean(SPIDER, LOCAL, "mnist_mlp"),
        "wide local": lambda: trial_mean(SPIDER, LOCAL, "mnist_mlp_certified"),
        "linear minibatch": lambda: trial_mean(SPIDER, SGD, "mnist_mlp", reading=LINEAR),
        "program minibatch": lambda: trial_mean(SPIDER, SGD, "mnist_mlp"),
        "wide minibatch": lambda: trial_mean(SPIDER, SGD, "mnist_mlp_certified"),
        "differ cells": lambda: count(where_silos(False)),
        "alike cells": lambda: count(where_silos(True)),
        "alike same": lambda: count(where_silos(True), "same"),
        "alike worst": lambda: f"{ceil(1000 * where_silos(True)['difference'].abs().max()) / 1000:g}",
        "wbcd minibatch": lambda: true_epsilon(1, experiment="wbcd_mlp", algorithm=SGD, epsilon=18, R=25, reading=""),
        "wbcd local": lambda: true_epsilon(1, experiment="wbcd_mlp", algorithm=LOCAL, epsilon=18, R=25, reading=""),
        "longer cells": lambda: count(published("fedprox_spider", SGD, "*_spider")),
        "fed cells": lambda: count(published("fed_spider", SGD, "*_certified", reading=CALIBRATED)),
        "fed mnist": lambda: trial_mean("fed_spider", SGD, "mnist_mlp_certified", reading=CALIBRATED),
        "released mean": lambda: trial_mean("fedprox_spider", SGD, "wbcd_released", reading=RELEASED),
        "released cells": lambda: count(published("fedprox_spider", SGD, "wbcd_released", reading=RELEASED)),
        "cifar cells": lambda: count(published("fed_spider", SGD, "cifar10_cnn")),
        "cifar error fed": partial(cifar_error, "fed_spider"),
        "cifar error minibatch": partial(cifar_error, SGD),
        "cifar minibatch": lambda: true_epsilon(1, experiment="cifar10_cnn", algorithm=SGD, epsilon=18, R=50),
        "cifar fed": lambda: true_epsilon(1, experiment="cifar10_cnn", algorithm="fed_spider", epsilon=18, R=50),
        "bracket in steps": partial(bracket_at_ten, f"{CALIBRATED}"),
        "bracket at the end": partial(bracket_at_ten, ENDED),
        "theorem insurance": lambda: true_epsilon(4, experiment="insurance_theorems", **AT_ONE),
        "theorem mnist": lambda: true_epsilon(4, experiment="mnist_theorems", **AT_ONE),
        "later cells": partial(board, "", *LATER),
        "later ahead": partial(board, "ahead", *LATER),
        "later behind": partial(board, "behind", *LATER),
    }
    pairs: dict[str, Callable[[], pd.DataFrame]] = {
        "spider": partial(decided, SPIDER, SGD),
        "local mnist": partial(decided, SPIDER, LOCAL, begin="mnist_mlp"),
        "local wbcd": partial(decided, SPIDER, LOCAL, begin="wbcd"),
        "differ": partial(where_silos, False),
        "alike": partial(where_silos, True),
        "longer": partial(published, "fedprox_spider", SGD, "*_spider"),
        "longer calibrated": partial(published, "fedprox_spider", SGD, "*_spider", reading=CALIBRATED),
        "fed": partial(published, "fed_spider", SGD, "*_certified", reading=CALIBRATED),
        "released": partial(published, "fedprox_spider", SGD, "wbcd_released", reading=RELEASED),
        "cifar fedprox": partial(published, "fedprox_spider", SGD, "cifar10_cnn"),
        "cifar fed": partial(published, "fed_spider", SGD, "cifar10_cnn"),
        "local calibrated": partial(published, LOCAL, SGD, "*_certified", reading=CALIBRATED),
    }
    for name, rows in pairs.items():
        found |= {f"{name} {word}": lambda rows=rows, word=word: held(rows(), word) for word in both}
    return found


RELEASED = "spider_q1_noise=released"
AT_ONE = {"algorithm": SGD, "epsilon": 1, "reading": ""}


def cifar_error(algorithm: str) -> str:
    rows = table("tables/cifar10_cnn").query("M == 10 and R == 50 and epsilon == 18 and reading == ''")
    return f"{100 * rows.set_index('algorithm')['test_error_mean'][algorithm]:.1f}"


def bracket_at_ten(reading: str) -> str:
    """Local SGD at a claim of 10, ten silos of insurance."""
    return true_epsilon(2, experiment="insurance_equal", M=10, algorithm=LOCAL, epsilon=10, reading=reading)


def markdown(heading: list[str], rows: list[list[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def counted(rows: pd.DataFrame) -> list[str]:
    counts = counts_of_cells(rows)
    return [held(rows, "ahead"), held(rows, "behind"), str(counts.same), str(counts.open), mean(rows)]


COUNTED = ["ahead", "behind", "same", "open", "mean"]


def spider_table() -> str:
    """SPIDER minus others by noise and data."""
    rows = []
    for name, second in (("minibatch SGD", SGD), ("local SGD", LOCAL)):
        grids = {"MNIST, linear grid": decided(SPIDER, second, linear=True)}
        found = decided(SPIDER, second, begin="mnist_mlp")
        grids |= {"MNIST": found} if len(found) else {}
        grids["breast cancer"] = decided(SPIDER, second, begin="wbcd")
        rows += [[data, name, *counted(cells)] for data, cells in grids.items()]
    return markdown(["data", "SPIDER against", *COUNTED], rows)


def sgd_table() -> str:
    """Minibatch minus local SGD by noise and data."""
    rows = []
    for noise, reading in (("the papers'", ""), ("equal certified ε", ENDED)):
        insurance, mnist = (decided(SGD, LOCAL, reading, begin) for begin in ("insurance", "mnist_logistic"))
        alike = mnist["experiment"].str.endswith("_p1")
        rows.append([noise, f"insurance ({count(insurance, 'useless')} left out)", *counted(insurance)])
        rows += [[noise, "MNIST, silos of one digit pair", *counted(mnist[~alike])]]
        rows += [[noise, "MNIST, silos alike", *counted(mnist[alike])]]
    for data, begin in (("MNIST, perceptron", "mnist_mlp"), ("breast cancer, perceptron", "wbcd")):
        rows.append(["calibrated in each step", data, *counted(decided(SGD, LOCAL, CALIBRATED, begin))])
    return markdown(["noise", "data", *COUNTED], rows)


def formulas_table() -> str:
    """True ε of the papers' noise formulas at n = 1,238."""
    rows = table("formulas")
    lines = []
    for (paper, formula, R), part in rows.groupby(["paper", "formula", "R"], sort=False):
        known = set(part["claimed_epsilon"])
        cells = [
            true_epsilon(None, "formulas", paper=paper, formula=formula, claimed_epsilon=e)
            if e in known
            else "not claimed"
            for e in (0.75, 3, 18)
        ]
        lines.append([paper.replace("nonconvex", "non-convex"), formula, str(R), *cells])
    return markdown(["paper", "formula", "R", "claimed 0.75", "claimed 3", "claimed 18"], lines)


def board_table() -> str:
    """The leaderboard's algorithms against minibatch SGD."""
    names = (LOCAL, "accelerated_minibatch_sgd", "one_pass_accelerated_sgd", "fedprox_spider", "fed_spider")
    names += ("silo_only", "mr_mtl", *LATER)
    rows = [[short_label(name), board("", name), board("ahead", name), board("behind", name)] for name in names]
    return markdown(["algorithm", "cells", "ahead of minibatch SGD", "behind"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "spider": spider_table,
    "sgd": sgd_table,
    "formulas": formulas_table,
    "leaderboard": board_table,
}
_NUMBER = re.compile(r"(?:[+−]?\d[\d.,]*(?: \(\d+\))?(?: \[[^\]]*\])?|\[[^\]]*\])?<!--=([^>]*)-->")


def written(text: str, more: Mapping[str, Callable[[], str]], tables: Mapping[str, Callable[[], str]]) -> str:
    """A page with its numbers and tables made again, `more` of them beside those of here; KeyError for another name."""
    known, tables = numbers() | more, TABLES | tables
    text = _NUMBER.sub(lambda found: f"{known[found[1]]()}<!--={found[1]}-->", text)
    text = re.sub(r"(<!--\+([^>]*)-->)[^<]*(?=<!--/-->)", lambda found: f"{found[1]}{known[found[2]]()}", text)
    place = r"(?s)(<!-- table ([\w -]+): [^\n]*-->\n).*?(<!-- end of \2 -->)"
    return re.sub(place, lambda found: f"{found[1]}{tables[found[2]]()}\n{found[3]}", text)
