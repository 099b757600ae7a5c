"""The findings that a page opens with: their numbers are the tables' and the claims', and a plug-in's come first."""

import base64
import io
import re

import numpy as np
import pandas as pd
import pytest
from small import ROOT

from silodp.experiments.columns import PRIVACY_COLUMNS
from silodp.report.cells import USELESS, cells_of, read_cells
from silodp.report.page.figure_list import Page
from silodp.report.page.sentences import findings
from silodp.verdicts.comparisons import BEHIND, compare, pairs_of

PUBLISHED = ROOT / "results" / "published"


def numbers(finding):
    return pd.read_csv(io.BytesIO(base64.b64decode(finding.csv.partition(",")[2])))


@pytest.fixture(scope="module")
def published():
    cells, privacy = read_cells(PUBLISHED / "comparisons.csv"), pd.read_csv(PUBLISHED / "privacy.csv")
    return findings(Page(PUBLISHED, PUBLISHED), cells, privacy)


def test_the_sentences_count_the_decided_cells(published):
    fresh = pd.read_csv(PUBLISHED / "decided.csv").query("trials > 0")
    for found, family, first in ((published[0], "printed", "spider"), (published[2], "equal_end", "minibatch_sgd")):
        rows = fresh[(fresh["family"] == family) & (fresh["first"] == first) & ~fresh["useless"]]
        rows = rows[rows["second"] == {"spider": "minibatch_sgd", "minibatch_sgd": "local_sgd"}[first]]
        counts = rows["outcome"].value_counts()
        words = rf"Smaller test error at {counts['ahead']} \(\d+\) of {len(rows)} cells, "
        assert re.search(words + rf"larger at {counts['behind']} \(\d+\), alike at {counts['same']}, ", found.counted)
        assert "fresh trials" in found.detail
    assert re.search("Not decided: .*CIFAR-10.*, by published trials, without the luck of tuning", published[0].detail)
    assert "5 further cells, in which neither beats the best constant, are left out" in published[2].detail


def test_minibatch_and_local_sgd_are_counted_by_how_silos_differ(published):
    rows = numbers(published[2]).query("decided")
    rows = rows[rows["outcome"] != USELESS]
    alike = rows["experiment"].str.endswith("_p1")
    for words, part in (("hold different data", rows[~alike]), ("are alike", rows[alike])):
        ahead, behind = ((part["outcome"] == word).sum() for word in ("ahead", "behind"))
        found = re.search(rf"{words}: smaller at (\w+) of (\d+), larger at (\w+)", published[2].counted)
        assert found.groups() == (str(ahead or "none"), str(len(part)), str(behind or "none"))


def test_only_cells_with_a_choice_of_phases_are_said_to_choose(published):
    fresh = pd.read_csv(PUBLISHED / "decided.csv").query("family == 'calibrated' and trials > 0")
    words = f"chooses phases of one round at {fresh['same_mechanism'].sum()} of the {len(fresh)} cells with a choice"
    assert words in published[0].counted


def test_the_sentences_say_who_is_who_and_how_claims_stand(published):
    assert published[0].sentence == "At the claimed ε, the newer SPIDER loses to MB-SGD more often than it wins."
    assert all(len(each.sentence.split()) <= 15 for each in published)
    table = numbers(published[1])
    violated, more, kept = ((table["claim"] == word).sum() for word in ("violated", "not certified", "kept"))
    counted = f"Of {len(table)} private results {kept} keep their claim, {violated} provably violate it; of {more} the"
    assert published[1].counted.startswith(counted)
    low, high = table.query("epsilon <= 1.5"), table.query("epsilon >= 3")
    small, large = ((part["claim"] == "violated").sum() for part in (low, high))
    words = f"Violated: {small} of {len(low)} at ε ≤ 1.5, all by Fed-SPIDER; {large} of {len(high)} from ε = 3 on."
    assert published[1].counted.endswith(words)
    assert "never outperformed" in published[0].quote
    assert [each.paper for each in published] == ["The non-convex paper"] * 2 + ["The convex paper"]


def test_the_sentence_and_the_picture_of_the_pair_count_the_same(published):
    """README shows the picture and says the sentence."""
    picture = (PUBLISHED / "figures" / "paired_spider-minibatch_sgd.svg").read_text()
    ahead, cells, behind = re.search(
        r"Smaller test error at (\S+ \(\d+\)) of (\d+) .*? larger at (\S+ \(\d+\))", published[0].counted
    ).groups()
    for words in (f"better: {ahead} of {cells},", f"MB-SGD better: {behind} of {cells},"):
        assert words in re.sub("<[^>]*>", "", picture)


def test_a_plug_ins_pairs_come_first_and_alone(tmp_path):
    trials = np.arange(6)
    cell = {"experiment": "wbcd_mlp", "reading": "", "M": 2, "R": 5, "epsilon": 3.0, "stepsize": 1.0, "clip": 1.0}
    cell |= {"phase_length": 1, "train_loss": 0.1, "N": 2, "private": True, "diverged": False}
    errors = {"mine": 0.30 + 0.001 * trials, "minibatch_sgd": 0.20 + 0.001 * trials[::-1]}
    reported = pd.concat(
        [pd.DataFrame(cell | {"algorithm": a, "trial": trials, "test_error": e}) for a, e in errors.items()]
    )
    assert pairs_of(["mine"])[2:] == [("mine", name) for name in ("minibatch_sgd", "local_sgd", "spider")]
    cells = cells_of(compare(reported, "mine", "minibatch_sgd"))
    (found,) = findings(Page(tmp_path, tmp_path), cells, pd.DataFrame(columns=PRIVACY_COLUMNS))
    assert found.sentence == "At the claimed ε, mine loses to MB-SGD more often than it wins."
    assert found.counted.startswith("Smaller test error at none of 1 cells")
    assert numbers(found).loc[0, ["difference", "outcome"]].tolist() == [pytest.approx(0.1), BEHIND]
    assert found.quote == ""


def test_two_algorithms_that_are_never_ahead_are_not_told_apart():
    """Breast cancer's published trials under the papers' noise: no difference at any ε."""
    rows = cells_of(pd.read_csv(PUBLISHED / "comparisons.csv").query("experiment == 'wbcd_mlp'"))
    (found, *_) = findings(Page(PUBLISHED, PUBLISHED), rows, pd.DataFrame(columns=PRIVACY_COLUMNS))
    assert found.sentence == "At the claimed ε, the newer SPIDER is not told apart from MB-SGD."
    assert "Smaller test error at none of 7" in found.counted
    assert found.shown.endswith("; all: published trials, without the luck of tuning.")


def test_a_headline_counts_what_holms_correction_keeps():
    """Of the protocols' five cells SPIDER is ahead at two, of which none is kept: the page said that SPIDER beats."""
    rows = cells_of(pd.read_csv(PUBLISHED.parent / "published-protocols" / "comparisons.csv", keep_default_na=False))
    (found, *_) = findings(Page(PUBLISHED, PUBLISHED), rows, pd.DataFrame(columns=PRIVACY_COLUMNS))
    assert found.counted.startswith("Smaller test error at 2 (0) of 5 cells, larger at none")
    assert found.sentence == "At the claimed ε, the newer SPIDER is not told apart from MB-SGD."


def test_the_picture_of_a_part_says_what_its_marks_are(published):
    assert (
        "coloured where its 95 % interval leaves out 0; diamond: their mean; grey band: within the"
        in published[0].shown
    )
    said = r"A mark is at the lower bound .* Drawn: \d+ of the \d+, those of MNIST, "
    said += r".*M = 25, R = 25; at each claimed ε, from left: MB-SGD"
    assert re.match(said, published[1].shown)
