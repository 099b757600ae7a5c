"""Claims about trained models: the registered procedure's row, or none with what the run's own trials say."""

import pytest
from planted import claim, folder

from silodp.verdicts.claims.trained import NOTE, decided
from silodp.verdicts.decided_claims import VERDICTS

PAIRS = [{"first": "spider", "second": "minibatch_sgd"}, {"first": "local_sgd", "second": "minibatch_sgd"}]
STATISTIC = {"name": "decided", "family": "printed", "verdict": "at_every", "pairs": PAIRS, "most_epsilon": 3}
KNOWN = claim(STATISTIC, experiments=["wbcd_mlp"], evidence=["decided.csv"])


def compared(difference, experiment="wbcd_mlp", first="spider", second="minibatch_sgd", epsilon=1.0, reading=""):
    ends = {"difference": difference, "low": difference - 0.01, "high": difference + 0.01}
    return {"experiment": experiment, "reading": reading, "epsilon": epsilon, "first": first, "second": second} | ends


def test_the_row_of_the_decided_verdicts_is_the_claims(tmp_path):
    row = dict(zip(VERDICTS, ["X1", "open", "confirmed", "open", 0.1, -0.2, 0.3, "why", "what"], strict=True))
    other = row | {"claim": "X2", "verdict": "confirmed"}
    run = folder(tmp_path, decided_verdicts=[other, row], decided=[{"family": "printed"}], comparisons=[compared(-0.5)])
    (found,) = decided(KNOWN, run)
    assert (found.verdict, found.on_average, found.at_every) == ("open", "confirmed", "open")
    assert (found.value, found.low, found.high, found.note, found.statistic) == (0.1, -0.2, 0.3, "why", "what")
    assert found.evidence == ("decided.csv",)


def test_without_fresh_trials_it_is_not_testable_and_has_means_and_counts_without_a_word(tmp_path):
    rows = [compared(-0.02), compared(0.03, epsilon=3.0), compared(0.005, epsilon=2.0)]
    turned = [compared(0.5, first="minibatch_sgd", second="local_sgd")]
    silent = [{"reading": "grid=other"}, {"epsilon": 6.0}, {"second": "local_sgd"}, {"experiment": "mnist_mlp"}]
    rows += [*turned, *(compared(9.0, **other) for other in silent)]
    (found,) = decided(KNOWN, folder(tmp_path, comparisons=rows))
    assert (found.verdict, found.note) == ("not testable", NOTE)
    text = "wbcd, spider − minibatch_sgd +0.0050 in the mean, 1 of 3 intervals below 0, 1 above"
    assert (
        found.statistic
        == f"{text}; wbcd, minibatch_sgd − local_sgd +0.5000 in the mean, 0 of 1 intervals below 0, 1 above"
    )
    assert found.evidence == ("comparisons.csv",)
    assert str(found.value) == "nan"
    assert (found.on_average, found.at_every) == ("", "")


def test_an_interval_that_ends_at_zero_lies_on_neither_side(tmp_path):
    (found,) = decided(KNOWN, folder(tmp_path, comparisons=[compared(-0.01), compared(0.01, epsilon=2.0)]))
    assert found.statistic.endswith("0 of 2 intervals below 0, 0 above")


def test_a_run_without_comparisons_says_so_and_an_earlier_table_is_refused(tmp_path):
    (found,) = decided(KNOWN, folder(tmp_path / "none"))
    assert (found.verdict, found.evidence) == ("not testable", ())
    assert found.statistic == "no comparison of this run is about it"
    old = [{"claim": "X1", "on_average": "confirmed (…)", "at_every": "open (…)"}]
    with pytest.raises(ValueError, match=r"decided_verdicts\.csv: .*lacks the columns verdict, value"):
        decided(KNOWN, folder(tmp_path / "old", decided_verdicts=old))
