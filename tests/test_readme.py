"""README and docs say what is there: numbers of the published tables, links, generated parts."""

import json
import math
import re
from math import ceil, floor

import pandas as pd
import pytest
from small import ROOT

from silodp.experiments.task import Task
from silodp.experiments.validation import load
from silodp.files import with_reading
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.claims.pages import markdown, turned, under_variants
from silodp.verdicts.comparisons import compare
from snakemake_logger_plugin_silodp.progress import span

README = (ROOT / "README.md").read_text(encoding="utf-8")
WORDS = " ".join(README.split())
# The site's own first page links to files of the site.
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "index.md")]


@pytest.fixture(scope="module")
def claims():
    table = pd.read_csv(ROOT / "results" / "published" / "claims.csv").fillna({"source": ""})
    return table.set_index("claim")


def test_the_stated_noise_is_as_the_published_claims_have_it(claims):
    row = claims.loc["N6: wbcd_mlp minibatch_sgd"]
    assert "at most" in row["statistic"]
    assert "at ε = 18" in row["statistic"]
    low, high = floor(row["low"] * 100) / 100, ceil(row["high"] * 100) / 100
    assert f"claimed ε = 18 delivers between {low:g} and {high:g} times that ε" in WORDS


def test_comparisons_are_as_the_published_claims_have_them(claims):
    counted = re.compile(r"share of (\d+) .*?: (\d+) support, .*?(\d+) contradict")
    total, support, contradict = counted.search(claims.loc["N2", "statistic"]).groups()
    assert f"of {total} paired comparisons {support} support the non-convex paper and {contradict} contradict" in WORDS
    total, support, contradict = counted.search(claims.loc["C1", "statistic"]).groups()
    assert f"{support} of {total} support it, {contradict} contradict it" in WORDS


def test_the_readme_opens_with_findings_and_the_forest_plot_of_the_page():
    before = README.partition("## Two commands")[0]
    assert before.index("**Accuracy.**") < before.index("**Privacy.**") < before.index("**Theory.**")
    pictures = [path.name for path in sorted((ROOT / "results" / "published" / "figures").glob("paired_*.svg"))]
    assert len(pictures) == 2
    assert all(f"results/published/figures/{name})" in before for name in pictures)


def test_verdicts_on_theorems_are_counted_as_published(claims):
    whole = claims[~claims.index.str.contains(": ") & claims.index.str.startswith("T-")]["verdict"]
    counts = whole.value_counts()
    named = [counts[name] for name in ("confirmed", "order agrees", "refuted")]
    numbers = f"{named[0]} are confirmed, {named[1]} agree in order, {named[2]} are refuted"
    assert f"Of {len(whole)} theorems and lemmas {numbers}" in WORDS
    assert f"the other {len(whole) - sum(named)} are derivations, or runs cannot confirm them" in WORDS


def test_the_table_of_verdicts_is_the_published_one(claims):
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert markdown(claims.reset_index()) in page, "write it again: make docs"


def test_the_table_of_verdicts_that_turn_is_the_published_one(claims):
    page = (ROOT / "docs" / "certified.md").read_text(encoding="utf-8")
    assert turned(claims.reset_index()) in page, "write it again: make docs"


def test_the_table_of_protocols_is_the_published_one(claims):
    page = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")
    folder = ROOT / "results" / "published-protocols"
    tables = {"paper": claims.reset_index(), "protocols": pd.read_csv(folder / "claims.csv")}
    assert under_variants(tables) in page, "write it again: make docs"
    text = " ".join(page.split())
    for name, form in (
        ("local_sgd", "from {0:.2%} to {1:.2%} (local SGD)"),
        ("minibatch_sgd", "from {0:.2%} to {1:.2%} (minib"),
    ):
        table = pd.read_csv(folder / "tables" / "mnist_mlp.csv").fillna({"reading": ""})
        plain = table[(table["algorithm"] == name) & ~table["private"]].set_index("reading")["test_error_mean"]
        said = form.format(plain[""], plain["split=per_silo"]).replace("%", " %").replace(" % to", " to")
        assert said in text
    tables = [pd.read_csv(path).fillna({"reading": "", "edge": ""}) for path in (folder / "tables").glob("*.csv")]
    # SPIDER's rows repeat the better one of its two algorithms.
    edges = pd.concat(tables).query("algorithm != 'spider'").assign(at=lambda rows: rows["edge"] != "")
    wide, printed = (edges[edges["reading"] == one]["at"] for one in ("grid=widened", ""))
    assert len(wide) == len(printed)
    assert f"{wide.sum()} of {len(wide)} chosen points at an edge, where the printed ones have {printed.sum()}" in text


def test_what_came_out_at_the_claimed_epsilon_is_as_published(claims):
    counted = re.compile(r"of (\d+) paired comparisons that support: (\d+) support, \d+ open(?:, (\d+) contradict)?")
    one, two = (
        counted.search(claims.loc[f"C1: [{name}]", "statistic"]).groups("0")
        for name in ("at exactly the claimed ε: noise=calibrated", "the same rows with the paper's noise: default")
    )
    assert f"{one[1]} of {one[0]} comparisons on insurance and MNIST support minibatch SGD against local SGD" in WORDS
    assert f"against local SGD and {one[2]} contradict it" in WORDS
    assert f"{two[1]} support it and {two[2]} contradict it" in WORDS
    sides = re.compile(r"spider − minibatch_sgd \S+ .* clearly smaller at (\d+) and clearly larger at (\d+) of (\d+)")
    spider, before = (
        sides.search(claims.loc[f"N2: [{name}]", "statistic"]).groups()
        for name in ("at exactly the claimed ε: noise=calibrated", "the same rows with the paper's noise: default")
    )
    assert (
        f"clearly behind at {spider[1]} of {spider[2]} comparisons and ahead at {spider[0]}, with the papers'" in WORDS
    )
    assert f"behind at {before[1]} and ahead at {before[0]}." in WORDS
    published, page = ROOT / "results" / "published", (ROOT / "docs" / "certified.md").read_text(encoding="utf-8")
    private = pd.read_csv(published / "privacy.csv").fillna({"reading": ""})
    over = private["delivered_epsilon"] / private["claimed_epsilon"]
    local = private["experiment"].str.match("insurance_certified|mnist_logistic_certified") & (
        private["algorithm"] == "local_sgd"
    )
    assert f"up to {ceil(over[local & (private['reading'] == '')].max())} times its claim" in WORDS
    tables = pd.concat([pd.read_csv(one) for one in sorted((published / "tables").glob("*_certified*.csv"))])
    both = tables[tables["private"]].assign(over=lambda rows: rows["delivered_epsilon"] > rows["epsilon"])
    groups = both[both["reading"].fillna("").isin(["", "noise=calibrated"])].fillna({"reading": ""}).groupby("reading")
    exceeding, rows = groups["over"].sum(), groups.size()
    told = [f"{exceeding[reading]} of {rows[reading]}" for reading in ("noise=calibrated", "")]
    assert f"in {told[0]} rows, the papers' in {told[1]}." in " ".join(page.split())
    table = pd.read_csv(published / "tables" / "wbcd_certified.csv").fillna({"reading": ""})
    cells = table.set_index(["algorithm", "epsilon", "reading"]).sort_index()
    for cell, form in (
        (("local_sgd", 18.0), "claims 18, delivers {0:.0f} and has a test error of {1:.2%}; with 6.6 times"),
        (
            ("fedprox_spider", 0.75),
            "0.75 delivers {0:.3f}; with 0.545 of the noise its error falls from {1:.2%} to {2:.2%}",
        ),
    ):
        paper, calibrated = cells.loc[(*cell, "")], cells.loc[(*cell, "noise=calibrated")]
        delivered = ceil(paper["delivered_epsilon"]) if cell[1] > 1 else ceil(paper["delivered_epsilon"] * 1000) / 1000
        text = form.format(delivered, paper["test_error_mean"], calibrated["test_error_mean"]).replace("%", " %")
        assert text in " ".join(page.split())
    both = private[(private["experiment"] == "wbcd_certified") & private["reading"].isin(["", "noise=calibrated"])]
    noise = both.set_index(["algorithm", "claimed_epsilon", "reading"])["noise_multiplier"]
    ratios = noise.xs("noise=calibrated", level=2) / noise.xs("", level=2)
    assert f"{ratios['local_sgd', 18.0]:.2g} times that noise" in " ".join(page.split())
    assert f"{ratios['fedprox_spider', 0.75]:.3f} of the noise" in " ".join(page.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_to_files(page):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def test_the_time_of_make_paper_is_that_of_the_one_invocation_that_is_published():
    record = json.loads((ROOT / "results" / "published" / "provenance.json").read_text(encoding="utf-8"))
    [only] = record["runs"]["paper"]["invocations"]
    assert only["command"] == "make paper"
    assert not only["dirty"]
    time = span(only["seconds"])
    [row] = [line for line in README.splitlines() if "| `make paper`" in line]
    assert f"| {time}, with all below but CIFAR-10 |" in row
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert f"{time} in one invocation in a clean clone (commit {only['commit'][:7]}," in page


def test_the_readme_is_one_screen_and_names_every_package():
    assert len(README.encode()) < 7_000
    packages = {path.parent.name for path in (ROOT / "src" / "silodp").glob("*/__init__.py")}
    assert {name for name in packages if f"`{name}`" not in README} == set()


def test_what_came_out_of_the_proximal_run_is_as_published():
    folder, words = (
        ROOT / "results" / "published-proximal",
        " ".join((ROOT / "docs" / "shuffling.md").read_text().split()),
    )

    def errors(experiment, epsilon, algorithms, reading="", private=True):
        table = pd.read_csv(folder / "tables" / f"{experiment}.csv", dtype={"reading": str}).fillna({"reading": ""})
        own = table[(table["private"] == private) & (table["reading"] == reading)]
        own = own[own["algorithm"].str.fullmatch(algorithms)]
        return 100 * (own[own["epsilon"] == epsilon] if private else own).set_index("algorithm")["test_error_mean"]

    def span(*values):
        return " to ".join(f"{value:.1f}" for value in values)

    sparse = [errors("mnist_sparse", 0.75, one) for one in ("(?!sdp_).*", "sdp_.*")]
    assert f"{span(sparse[0].min(), sparse[0].max())} %, their SDP" in words
    assert f"ideal sums {span(sparse[1].min(), sparse[1].max())} %" in words
    late, plain = errors("mnist_sparse", 18, ".*"), errors("mnist_sparse", 0, ".*", private=False)
    assert len(late) == 8
    assert f"between {late.min():.1f} and {late.max():.1f} %" in words
    assert f"({span(plain.min(), plain.max())} %)" in words
    moved = pd.concat(
        [errors("mnist_pvec", e, ".*", "summation=shuffled") - errors("mnist_pvec", e, ".*") for e in (0.75, 3, 18)]
    )
    assert f"by {moved.min():+.1f} to {moved.max():+.1f} points".replace("-", "−") in words
    sent = pd.read_csv(folder / "privacy.csv").dropna(subset="shuffled_bits")
    for experiment, unit, scale in (("mnist_pvec", "Mbit", 1e6), ("lasso_pvec_insurance", "kbit", 1e3)):
        own = sent[sent["experiment"] == experiment]
        once = own["algorithm"] == "sdp_prox_sgd"
        for bits in (own[once]["shuffled_bits"] / scale, own[~once]["shuffled_bits"] / scale):
            ends = [f"{one:.1f}" if one < 10 else f"{one:.0f}" for one in (bits.min(), bits.max())]
            assert f"{ends[0]} to {ends[1]} {unit}" in words or f"{ends[0]} to {ends[1]} and" in words
    pairs = [(errors("mnist_adaptive", e, "f.*"), errors("mnist_sparse", e, "fedprox_spider")) for e in (0.75, 18)]
    said = ["{:.1f} against {:.1f} % at".format(*(one.item() for one in pair)) for pair in pairs]
    assert all(one in words for one in said)
    behind, open_ = ([errors("mnist_shuffled", e, name).item() for e in (0.75, 18)] for name in ("sh.*", "mini.*"))
    assert f"{span(*behind)} % where minibatch SGD without a shuffler has {span(*open_)} %" in words


def test_what_came_out_on_cifar_10_is_as_published():
    published = ROOT / "results" / "published"
    text = of_results("### CIFAR-10", "R = 100]")
    reported = with_reading(pd.read_csv(published / "reported" / "cifar10_cnn.csv"))
    reported = reported[(reported["M"] == 10) & (reported["R"] == 50)]
    said = {
        "FedProx-SPIDER": ("fedprox_spider", "is clearly ahead at {0} of 7 ε and clearly behind at {1} (ε = {3})"),
        "Fed-SPIDER": ("fed_spider", "is clearly ahead at {0} of 7 (ε = {2}) and clearly behind at {1} (ε = {3})"),
    }
    for words, (name, form) in said.items():
        ahead, behind = sides(reported, name)
        told = form.format(len(ahead), len(behind), ", ".join(ahead), ", ".join(behind))
        assert f"- {words} {told}" in text
        if name == "fed_spider":
            assert f"Fed-SPIDER is ahead from ε = {ahead[0]} on" in WORDS
        else:
            assert not ahead
            assert "and FedProx-SPIDER nowhere" in WORDS
    local = compare(reported, "fedprox_spider", "local_sgd")["better"]
    assert f"Against local SGD that is so, clearly at {(local == 'fedprox_spider').sum()} of {len(local)}." in text
    plain = compare(reported, "minibatch_sgd", "minibatch_sgd:non_private").set_index("epsilon")["better"]
    assert [epsilon for epsilon, better in plain.items() if better == "undecided"] == [6, 12, 18]
    table = pd.read_csv(published / "tables" / "cifar10_cnn.csv").query("M == 10 and R == 50").set_index("algorithm")
    own = {name: table.loc[name].set_index("epsilon") for name in ("fed_spider", "minibatch_sgd", "local_sgd")}
    error = {name: rows["test_error_mean"] * 100 for name, rows in own.items()}
    delivered = {name: rows["delivered_epsilon"] for name, rows in own.items()}
    first, second = error["fed_spider"], error["minibatch_sgd"]
    assert f"by {second[18] - first[18]:.1f} points, {first[18]:.1f} % test error against {second[18]:.1f} %" in text
    assert (
        f"ε = {delivered['fed_spider'][18]:.1f} where minibatch SGD delivers {delivered['minibatch_sgd'][18]:.1f}"
        in text
    )
    assert f"at a claim of 12 it delivers {delivered['fed_spider'][12]:.1f} and errs at {first[12]:.1f} %" in text
    private = own["local_sgd"][own["local_sgd"]["private"]]
    assert (private["clip"] == 0.001).all()
    errors = private["test_error_mean"] * 100
    assert f"errs at {errors.min():.1f} to {errors.max():.1f} % and delivers up to" in text
    assert f"delivers up to {private['delivered_epsilon'].round(-1).max():,.0f} for a claim of 18" in text
    assert f"without noise errs at {second[second.index.isna()].item():.1f} %" in text
    taken = [gradients(name, 0) for name in ("fed_spider", "minibatch_sgd")]
    assert f"It takes {taken[0] / taken[1]:.2f} times as many gradients" in text


def test_what_came_out_on_cifar_10_with_more_rounds_is_as_published(claims):
    published = ROOT / "results" / "published"
    text = of_results("M = 10, R = 100]", "## ")
    reported = with_reading(pd.read_csv(published / "reported" / "cifar10_cnn.csv")).query("M == 10 and R == 100")
    assert set(reported["trial"]) == set(range(10))
    for words, name, form in (
        ("FedProx-SPIDER", "fedprox_spider", "{0} of 7 ε (ε = {1}) and clearly behind at {2} (ε = {3})"),
        ("Fed-SPIDER", "fed_spider", "{0} of 7 and clearly behind at {2} (ε = {3})"),
    ):
        ahead, behind = sides(reported, name)
        told = form.format(len(ahead), ", ".join(ahead), len(behind), ", ".join(behind))
        assert f"- {words} is clearly ahead at {told}" in text
        if name == "fedprox_spider":
            assert f"at R = 100 FedProx-SPIDER is ahead at ε = {', '.join(ahead)} alone" in WORDS
        else:
            assert not ahead
            assert "alone and Fed-SPIDER nowhere" in WORDS
            assert "18" not in behind
    local = compare(reported, "fedprox_spider", "local_sgd")["better"]
    assert f"clearly ahead of local SGD at {(local == 'fedprox_spider').sum()} of {len(local)}." in text
    local = compare(reported, "local_sgd", "minibatch_sgd")["better"]
    assert f"Local SGD is clearly behind at {(local == 'minibatch_sgd').sum()} of {len(local)}," in text
    table = pd.read_csv(published / "tables" / "cifar10_cnn.csv").query("R == 100 and private")
    table = table.set_index(["algorithm", "epsilon"])
    error, delivered = table["test_error_mean"] * 100, table["delivered_epsilon"]
    first, second = ("fed_spider", 18), ("minibatch_sgd", 18)
    assert f"at 18 its {error[first]:.1f} % are not told apart from {error[second]:.1f} %" in text
    said = f"{gradients('fed_spider', 1) / gradients('minibatch_sgd', 1):.2f} times as many gradients and"
    assert f"{said} ε = {delivered[first]:.1f} delivered where minibatch SGD delivers {delivered[second]:.1f}" in text
    assert (table.loc["local_sgd", "clip"] == 0.001).all()
    errors = error["local_sgd"]
    assert f"errs at {errors.min():.1f} to {errors.max():.1f} % and delivers up to" in text
    assert f"delivers up to {delivered['local_sgd'].round(-1).max():,.0f} for a claim of 18" in text
    assert claims.loc["N3", "verdict"] == "refuted"
    behind, ahead = (claims.loc[f"N3: {name}", "value"] for name in ("minibatch_sgd", "local_sgd"))
    (claim,) = [one for one in load_claims() if one.id == "N3"]
    stated = [f"{claim.statistic.stated[name]:g}" for name in ("minibatch_sgd", "local_sgd")]
    assert f"{-behind:.1f} % above minibatch SGD's (stated: {stated[0]} % below)" in text
    assert f"{ahead:.1f} % below local SGD's (stated: {stated[1]} %)" in text


def test_what_came_out_on_cifar_10_at_the_claimed_epsilon_is_as_published():
    published = ROOT / "results" / "published"
    text = " ".join((ROOT / "docs" / "certified.md").read_text(encoding="utf-8").split())
    reported = with_reading(pd.read_csv(published / "reported" / "cifar10_cnn_certified.csv"))
    reported = reported[reported["reading"] == "noise=calibrated"]
    first, (ahead, behind) = sides(reported, "fedprox_spider"), sides(reported, "fed_spider")
    told = f"{len(first[0] + first[1])} of {reported['epsilon'].nunique()}"
    said = f"told apart from FedProx-SPIDER at {told} ε; it is clearly ahead of Fed-"
    assert f"{said}SPIDER at {len(behind)} (ε = {', '.join(behind)}) and behind at none." in text
    assert not ahead
    tables = [pd.read_csv(published / "tables" / f"{name}.csv") for name in ("cifar10_cnn_certified", "cifar10_cnn")]
    wanted = "algorithm == 'fed_spider' and R == 50 and epsilon == 18 and reading.isna()"
    errors = [table.query(wanted)["test_error_mean"].item() * 100 for table in tables]
    assert (
        f"it ends at {errors[0]:.1f} % for ε = 18 where that of Figure 6 found a point with {errors[1]:.1f} %" in text
    )


def sides(reported: pd.DataFrame, name: str) -> tuple[list[str], list[str]]:
    """The ε at which an algorithm is clearly ahead of minibatch SGD, and those at which it is clearly behind."""
    better = compare(reported, name, "minibatch_sgd").set_index("epsilon")["better"]
    ahead, behind = ([f"{e:g}" for e, one in better.items() if one == side] for side in (name, "minibatch_sgd"))
    return ahead, behind


def of_results(start: str, end: str) -> str:
    """docs/results.md between two marks, in one line."""
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    return " ".join(page.partition(start)[2].partition(end)[0].split())


def gradients(algorithm: str, setting: int) -> float:
    """What a silo of 1,000 records takes in a run with phases of one round, in a setting of CIFAR-10."""
    cifar = load(ROOT / "config" / "cifar.yaml").experiments["cifar10_cnn"]
    (plan,) = Task("cifar10_cnn", cifar, algorithm, cifar.settings[setting]).plans(math.nan, 1, [1000])
    return sum(one.count * one.records * one.gradients for one in plan.releases)
