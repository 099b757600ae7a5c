"""The findings that a page opens with: their numbers are the tables' and the claims', and a plug-in's come first."""

import base64
import io
import re

import numpy as np
import pandas as pd
import pytest
from small import ROOT

from silodp.experiments.columns import PRIVACY_COLUMNS
from silodp.files import with_reading, write_csv
from silodp.report.page.figures import Page
from silodp.report.page.findings import findings
from silodp.verdicts.claims.base import holm
from silodp.verdicts.claims.loading import load_claims
from silodp.verdicts.comparisons import BEHIND, compare, pairs_of

PUBLISHED = ROOT / "results" / "published"


def numbers(finding):
    return pd.read_csv(io.BytesIO(base64.b64decode(finding.csv.partition(",")[2])))


@pytest.fixture(scope="module")
def published():
    comparisons, privacy = (pd.read_csv(PUBLISHED / f"{name}.csv") for name in ("comparisons", "privacy"))
    return findings(Page(PUBLISHED, PUBLISHED), comparisons, privacy)


def test_the_sentences_count_the_published_rows(published):
    rows = with_reading(pd.read_csv(PUBLISHED / "comparisons.csv"))
    (claim,) = (claim for claim in load_claims() if claim.id == "N2")
    rows = rows[(rows["reading"] == "") & (rows["first"] == "spider") & rows["experiment"].isin(claim.experiments)]
    counts = rows["outcome"].value_counts()
    words = f"smaller test error at {counts['ahead']} of {len(rows)} comparisons, larger at {counts['behind']}"
    assert f"{words}, neither at {counts.drop(['ahead', 'behind']).sum()}. " in published[0].sentence
    assert "At equal certified ε it is behind at none of 32: at 31 its tuning" in published[0].sentence
    # A reader of no paper is told which algorithm is the newer.
    newer = "At the claimed ε, SPIDER, the newer algorithm, loses to MB-SGD, the simple"
    assert published[0].sentence.startswith(newer)
    table = numbers(published[1])
    violated, more, kept = ((table["claim"] == word).sum() for word in ("violated", "not certified", "kept"))
    assert f"at {violated} of {len(table)} private results; of {more} more" in published[1].sentence
    assert f"{kept} keep it" in published[1].sentence
    assert "never outperformed" in published[0].quote
    assert [each.paper for each in published] == ["The non-convex paper"] * 2 + ["The convex paper"]


def test_a_plug_ins_pairs_come_first_and_alone(tmp_path):
    trials = np.arange(6)
    cell = {"experiment": "wbcd_mlp", "reading": "", "M": 2, "R": 5, "epsilon": 3.0, "stepsize": 1.0, "clip": 1.0}
    cell |= {"phase_length": 1, "train_loss": 0.1, "N": 2, "private": True, "diverged": False}
    errors = {"mine": 0.30 + 0.001 * trials, "minibatch_sgd": 0.20 + 0.001 * trials[::-1]}
    reported = pd.concat(
        [pd.DataFrame(cell | {"algorithm": a, "trial": trials, "test_error": e}) for a, e in errors.items()]
    )
    write_csv(reported, tmp_path / "reported" / "wbcd_mlp.csv")
    assert pairs_of(["mine"])[2:] == [("mine", name) for name in ("minibatch_sgd", "local_sgd", "spider")]
    comparisons = compare(reported, "mine", "minibatch_sgd").assign(tolerance=0.0)
    (found,) = findings(Page(tmp_path, tmp_path), comparisons, pd.DataFrame(columns=PRIVACY_COLUMNS))
    assert "mine loses to MB-SGD more often than it wins: smaller test error at none of 1 comparisons" in found.sentence
    assert numbers(found).loc[0, ["mean", "outcome"]].tolist() == [pytest.approx(0.1), BEHIND]
    assert found.quote == ""


def test_two_algorithms_that_are_never_ahead_are_not_told_apart():
    """Breast cancer under the papers' noise: no difference at any ε."""
    rows = with_reading(pd.read_csv(PUBLISHED / "comparisons.csv")).query("experiment == 'wbcd_mlp'")
    (found, *_) = findings(Page(PUBLISHED, PUBLISHED), rows, pd.DataFrame(columns=PRIVACY_COLUMNS))
    assert "not told apart from MB-SGD, the simple one: smaller test error at none of 7" in found.sentence


def test_the_picture_of_a_part_says_what_its_marks_are(published):
    strokes = "strokes: single comparisons, which count as smaller or larger where their 95 % intervals leave out 0"
    assert f"{strokes}; grey band: within the tolerance of 0.01." in published[0].shown
    said = r"A mark is at the lower bound .* Drawn: \d+ of the \d+, those of MNIST, "
    said += r".*M = 25, R = 25; at each claimed ε, from left: MB-SGD"
    assert re.match(said, published[1].shown)


def test_what_holm_keeps_is_counted_by_direction(published):
    rows = with_reading(pd.read_csv(PUBLISHED / "comparisons.csv")).query("reading == '' and first == 'spider'")
    rows = rows[rows["experiment"].isin(["mnist_mlp", "cifar10_cnn", "wbcd_mlp"])]
    ahead, behind = (sum(holm(p.tolist())) for p in (1 - rows["p"], rows["p"]))
    assert f"keeps {ahead} of the 6 smaller and {behind} of the 23 larger errors" in published[0].detail
