"""`silodp epsilon` and `silodp noise`: the plan that the options describe, accounted."""

import json
import re

import pytest
from events import delivered_epsilon

from silodp.algorithms import ALGORITHMS
from silodp.cli import main
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.plan import ADJACENCY, Budget, PrivacyPlan, Release

RUN = ["--rounds", "25", "--records", "1234", "--batch", "604"]


def answer(capsys, *arguments) -> dict:
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def hand_made(*releases, n=1234, delta=None) -> float:
    delta = n**-2.0 if delta is None else delta
    return delivered_epsilon(PrivacyPlan("hand", Budget(n, 25, 1.0, delta, 1.0), tuple(releases)), delta).upper


def test_epsilon_of_minibatch_sgd(capsys):
    """σ = 0.03 at L = 2 on a mean of 604 of 1,234 records, 25 times."""
    values = answer(capsys, "epsilon", "--algorithm", "minibatch_sgd", *RUN, "--sigma", "0.03", "--clip", "2")
    assert values["delivered_epsilon"] == hand_made(Release("gradient", 25, 604, 0.015))
    assert 0 < values["lower"] <= values["delivered_epsilon"]
    assert values["delta"] == 1234**-2.0
    assert values["noise_multiplier"] == pytest.approx(0.03 / (2 * 2 / 604))
    assert values["releases"] == 25
    assert values["sampling"] == "604 of 1234 with replacement"
    assert values["adjacency"] == ADJACENCY
    assert values["accountant"]


def test_an_epsilon_far_below_1_has_both_ends(capsys):
    values = answer(capsys, "epsilon", "--algorithm", "minibatch_sgd", *RUN, "--sigma", "3", "--clip", "2")
    assert 0 < values["lower"] <= values["delivered_epsilon"] < 0.1


def test_a_claim_is_kept_violated_or_not_certified(capsys):
    run = ["epsilon", "--algorithm", "minibatch_sgd", *RUN, "--sigma", "0.03", "--clip", "2"]
    ends = answer(capsys, *run)
    claims = (ends["delivered_epsilon"], (ends["lower"] + ends["delivered_epsilon"]) / 2, ends["lower"] * 0.99)
    said = [answer(capsys, *run, "--claimed", repr(claim))["claim"] for claim in claims]
    assert said == ["kept", "not certified", "violated"]


def test_epsilon_counts_every_local_step(capsys):
    options = ["--algorithm", "local_sgd", "--rounds", "5", "--records", "200", "--batch", "8"]
    values = answer(capsys, "epsilon", *options, "--sigma", "6", "--clip", "1", "--delta", "1e-4")
    assert values["releases"] == 40
    assert values["delivered_epsilon"] == hand_made(Release("step", 40, 1, 6.0), n=200, delta=1e-4)
    assert values["delta"] == 1e-4


def test_epsilon_of_two_kinds_of_messages_and_of_one_where_phases_have_one_round(capsys):
    options = ["--algorithm", "fedprox_spider", *RUN, "--clip", "1", "--sigma", "0.02"]
    assert answer(capsys, "epsilon", *options)["delivered_epsilon"] == hand_made(Release("gradient", 25, 604, 0.02))
    values = answer(capsys, "epsilon", *options, "--phase-length", "5", "--sigma-difference", "0.05")
    wanted = hand_made(Release("gradient", 5, 604, 0.02), Release("difference", 20, 604, 0.05, gradients=2))
    assert values["delivered_epsilon"] == wanted
    assert values["releases"] == 25
    assert values["noise_multiplier"] == pytest.approx(min(0.02 * 604 / 2, 0.05 * 604 / 4))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_noise_delivers_the_wanted_epsilon_and_little_less(capsys, name):
    """Fed back into `silodp epsilon` it gives what was wanted, on the private side and within a percent."""
    options = ["--algorithm", name, "--phase-length", "3", "--rounds", "6", "--records", "300", "--batch", "40"]
    values = answer(capsys, "noise", *options, "--epsilon", "2", "--clip", "1.5")
    assert 1.98 <= values["delivered_epsilon"] <= 2
    sigma, *others = (values[key] for key in values if key.startswith("sigma_") and key != "sigma_difference")
    if others:
        return  # phases with noises of their own, where `epsilon` takes one
    more = ["--sigma-difference", repr(values["sigma_difference"])] if "sigma_difference" in values else []
    back = answer(capsys, "epsilon", *options, "--sigma", repr(sigma), "--clip", "1.5", *more)
    assert back["delivered_epsilon"] == pytest.approx(values["delivered_epsilon"], rel=1e-9)
    assert back["delivered_epsilon"] <= 2 * (1 + 1e-12)


def test_text_is_rounded_to_the_side_that_keeps_a_bound(capsys):
    """A rounded noise could be too small, a rounded ε too good."""
    options = ["epsilon", *RUN, "--sigma", "0.03", "--clip", "2"]
    values = answer(capsys, *options)
    assert main(options) == 0
    lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    shown = {name.strip(): text.strip() for name, text in lines.items()}
    assert shown.keys() - {"true ε"} == values.keys() - {"delivered_epsilon", "lower"}
    lower, upper = map(float, re.match(r"\[(.*), (.*)\]", shown["true ε"]).groups())
    assert values["delivered_epsilon"] <= upper <= values["delivered_epsilon"] * (1 + 1e-3)
    assert values["lower"] * (1 - 1e-3) <= lower <= values["lower"]
    assert float(shown["noise_multiplier"].split()[0]) == pytest.approx(values["noise_multiplier"], rel=1e-3)


OF_100 = ["--records", "100", "--batch", "10", "--clip", "1", "--delta", "1e-5"]


@pytest.mark.parametrize(("power", "sigma"), [(18, "2e7"), (24, "1e6"), (11, "1e5")])
def test_more_rounds_than_a_lattice_resolves_are_refused_in_one_line(capsys, power, sigma):
    """[0, 0], [0, 0] and [0, 0.71] were printed where ε is 4.4, 2e8 and 0.2."""
    assert main(["epsilon", "--rounds", str(10**power), *OF_100, "--sigma", sigma, "--claimed", "0.001"]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "--rounds" in said
    assert "100000000" in said


@pytest.mark.filterwarnings("error")
def test_numbers_at_their_limits_get_a_number_and_no_warning(capsys):
    of_many = ["--rounds", "25", "--records", str(2**63), "--batch", "10", "--sigma", "1", "--clip", "1"]
    assert answer(capsys, "epsilon", *of_many, "--delta", "1e-5")["delivered_epsilon"] == 0
    all_drawn = ["--rounds", "1", "--records", "100", "--batch", "100", "--sigma", "1", "--delta", "1e-5"]
    assert answer(capsys, "epsilon", *all_drawn, "--clip", "1")["delivered_epsilon"] > 0
    whole = ["--rounds", "3", *OF_100, "--sigma", "1", "--person-records", "100"]
    exact = gaussian_epsilon(1e-5, 3**0.5 * 2)
    assert answer(capsys, "epsilon", *whole)["epsilon_person"] == pytest.approx(exact, rel=1e-6)


def test_few_draws_decide_from_below(capsys):
    """One draw in a million rounds, and noise that hides nothing: the lower ends were .0656 and 0."""
    rare = ["--rounds", "1000000", "--records", "10000000", "--batch", "1", "--epsilon", "1", "--delta", "1e-9"]
    assert 0.88 < answer(capsys, "noise", *rare)["lower"] < answer(capsys, "noise", *rare)["delivered_epsilon"] <= 1
    found = answer(capsys, "epsilon", "--rounds", "25", *OF_100, "--sigma", "1e-5", "--claimed", "1")
    assert 1 / (2 * 5e-5**2) < found["lower"] <= found["delivered_epsilon"] < 1.001 * found["lower"]
    assert found["claim"] == "violated"
