"""A claim under a variant of the protocol, and under the paper's protocol on the same rows: which verdicts turn."""

import pandas as pd
import pytest
from paired import claims, rows, run

from silodp.verdicts.claims import decide
from silodp.verdicts.claims.pages import under_variants
from silodp.verdicts.claims.variants import SAME_ROWS, changes

AHEAD, BEHIND = (0.2, 0.3), (0.3, 0.2)


def test_a_variant_is_set_against_the_protocol_on_its_own_experiments_alone(tmp_path):
    """The claim is refuted by breast cancer, which the variant does not train: on MNIST nothing turns."""
    tables = {"wbcd_mlp": {"": BEHIND}, "mnist_mlp": {"": AHEAD, "grid=widened": AHEAD}}
    found = decide(claims(tmp_path), run(tmp_path, tables))
    assert found["verdict"].iloc[0] == "refuted"
    (one,) = changes(found)
    assert (one.claim, one.reading, one.protocol, one.variant) == ("X1", "grid=widened", "confirmed", "confirmed")
    assert not one.turns


@pytest.mark.parametrize(("column", "other"), [("M", 7), ("R", 7), ("epsilon", 7.0)])
def test_and_on_its_own_settings_and_privacy_levels_alone(tmp_path, column, other):
    folder = run(tmp_path, {"wbcd_mlp": {"": AHEAD, "grid=widened": AHEAD}})
    path = tmp_path / "reported/wbcd_mlp.csv"
    more = pd.DataFrame(rows("wbcd_mlp", {"": BEHIND})).assign(**{column: other})
    pd.concat([pd.read_csv(path), more]).to_csv(path, index=False)
    found = decide(claims(tmp_path), folder)
    (one,) = changes(found)
    assert (one.protocol, one.variant) == ("confirmed", "confirmed")


def test_what_turns_is_told_with_its_numbers_and_stands_first(tmp_path):
    both = {"": BEHIND, "grid=widened": BEHIND, "split=per_silo": AHEAD}
    found = decide(claims(tmp_path), run(tmp_path, {"wbcd_mlp": both}))
    told = {one.reading: one for one in changes(found)}
    assert {name: one.turns for name, one in told.items()} == {"grid=widened": False, "split=per_silo": True}
    why = "0% → 100% of the parts support; minibatch_sgd − local_sgd +0.0985 → -0.1015 in the mean"
    assert told["split=per_silo"].why == why
    lines = under_variants({"thin": found}).splitlines()
    assert lines[2] == f"| X1 | split=per_silo | thin | refuted | **confirmed** | {why} |"
    assert len(lines) == 4


def test_a_claim_whose_protocol_is_a_reading_is_set_against_that(tmp_path):
    known = claims(tmp_path, "protocol: clip_rule=max_norm\n    variants: ['']")
    both = {"": AHEAD, "clip_rule=max_norm": BEHIND}
    found = decide(known, run(tmp_path, {"wbcd_mlp": both, "mnist_mlp": both}))
    (one,) = changes(found)
    assert (one.reading, one.protocol, one.variant) == ("default", "refuted", "confirmed")


def test_calibrated_noise_is_no_variant_of_the_protocol(tmp_path):
    both = {"": AHEAD, "noise=calibrated": BEHIND, "noise=calibrated;clip_rule=max_norm": BEHIND}
    found = decide(claims(tmp_path), run(tmp_path, {"wbcd_mlp": both}))
    assert changes(found) == []
    assert not found["claim"].str.contains(SAME_ROWS).any()


def test_parts_of_an_average_are_told_apart_too(tmp_path):
    improvement = "{name: relative_improvement, target: minibatch_sgd, stated: {local_sgd: 33}, tolerance: 2}"
    known = claims(tmp_path, statistic=improvement)
    found = decide(known, run(tmp_path, {"wbcd_mlp": {"": BEHIND, "grid=widened": AHEAD}}))
    (one,) = changes(found)
    assert one.turns
    assert one.why.startswith("local_sgd -48.9 → 33.7 (confirmed)")
