"""`silodp epsilon` and `silodp noise`: the plan that the options describe, accounted; bad options are one line."""

import json

import pytest

from silodp.algorithms import ALGORITHMS
from silodp.cli import main
from silodp.privacy.accounting.accountant import delivered_epsilon
from silodp.privacy.plan import ADJACENCY, Budget, PrivacyPlan, Release

RUN = ["--rounds", "25", "--records", "1234", "--batch", "604"]


def answer(capsys, *arguments) -> dict:
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def refusal(capsys, *arguments) -> str:
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.strip()


def hand_made(*releases, n=1234, delta=None) -> float:
    delta = n**-2.0 if delta is None else delta
    return delivered_epsilon(PrivacyPlan("hand", Budget(n, 25, 1.0, delta, 1.0), tuple(releases)), delta).upper


def test_epsilon_of_minibatch_sgd(capsys):
    """σ = 0.03 at L = 2 on a mean of 604 of 1,234 records, 25 times."""
    found = answer(capsys, "epsilon", "--algorithm", "minibatch_sgd", *RUN, "--sigma", "0.03", "--clip", "2")
    assert found["delivered_epsilon"] == hand_made(Release("gradient", 25, 604, 0.015))
    assert found["lower"] <= found["estimate"] <= found["delivered_epsilon"]
    assert found["delta"] == 1234**-2.0
    assert found["noise_multiplier"] == pytest.approx(0.03 / (2 * 2 / 604))
    assert found["releases"] == 25
    assert found["sampling"] == "604 of 1234 with replacement"
    assert found["adjacency"] == ADJACENCY
    assert found["accountant"]


def test_only_noise_over_clip_counts(capsys):
    one = answer(capsys, "epsilon", *RUN, "--sigma", "0.03", "--clip", "2")
    other = answer(capsys, "epsilon", *RUN, "--sigma", "0.3", "--clip", "20")
    assert one["delivered_epsilon"] == pytest.approx(other["delivered_epsilon"], rel=1e-9)
    assert (
        answer(capsys, "epsilon", *RUN, "--sigma", "0.06", "--clip", "2")["delivered_epsilon"]
        < one["delivered_epsilon"]
    )


def test_epsilon_counts_every_local_step(capsys):
    options = ["--algorithm", "local_sgd", "--rounds", "5", "--records", "200", "--batch", "8"]
    found = answer(capsys, "epsilon", *options, "--sigma", "6", "--clip", "1", "--delta", "1e-4")
    assert found["releases"] == 40
    assert found["delivered_epsilon"] == hand_made(Release("step", 40, 1, 6.0), n=200, delta=1e-4)
    assert found["delta"] == 1e-4


def test_epsilon_of_two_kinds_of_messages(capsys):
    options = ["--algorithm", "fedprox_spider", "--phase-length", "5", *RUN, "--clip", "1", "--sigma", "0.02"]
    found = answer(capsys, "epsilon", *options, "--sigma-difference", "0.05")
    wanted = hand_made(Release("gradient", 5, 604, 0.02), Release("difference", 20, 604, 0.05, gradients=2))
    assert found["delivered_epsilon"] == wanted
    assert found["releases"] == 25
    assert found["noise_multiplier"] == pytest.approx(min(0.02 * 604 / 2, 0.05 * 604 / 4))


def test_phases_of_one_round_send_no_differences(capsys):
    found = answer(capsys, "epsilon", "--algorithm", "fedprox_spider", *RUN, "--clip", "1", "--sigma", "0.02")
    assert found["delivered_epsilon"] == hand_made(Release("gradient", 25, 604, 0.02))


@pytest.mark.parametrize("more", [["--phase-length", "2"], []])
def test_the_noise_of_differences_must_be_given_where_they_are_sent(capsys, more):
    name = "fedprox_spider" if more else "fed_spider"
    text = refusal(capsys, "epsilon", "--algorithm", name, *more, *RUN, "--clip", "1", "--sigma", "0.02")
    assert text == f"silodp epsilon: command line: --sigma-difference: missing: {name} also sends differences"


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        (
            {"--algorithm": "adam"},
            f"--algorithm: 'adam': must be one of {', '.join(sorted(ALGORITHMS))}",
        ),
        ({"--rounds": "0"}, "--rounds: 0: must be at least 1"),
        ({"--records": "0"}, "--records: 0: must be at least 1"),
        ({"--batch": "0"}, "--batch: 0: must be at least 1"),
        ({"--batch": "1235"}, "--batch: 1235: must be at most --records = 1234"),
        ({"--phase-length": "0"}, "--phase-length: 0: must be at least 1"),
        ({"--sigma": "0"}, "--sigma: 0.0: must be positive and finite"),
        ({"--sigma": "nan"}, "--sigma: nan: must be positive and finite"),
        ({"--sigma-difference": "-1"}, "--sigma-difference: -1.0: must be positive and finite"),
        ({"--clip": "-2"}, "--clip: -2.0: must be positive and finite"),
        ({"--clip": "inf"}, "--clip: inf: must be positive and finite"),
        ({"--delta": "0"}, "--delta: 0.0: must lie between 0 and 1 (the default 1/n^2 needs n > 1)"),
        ({"--delta": "1.5"}, "--delta: 1.5: must lie between 0 and 1 (the default 1/n^2 needs n > 1)"),
        ({"--records": "1", "--batch": "1"}, "--delta: 1.0: must lie between 0 and 1 (the default 1/n^2 needs n > 1)"),
    ],
)
def test_options_that_make_no_sense(capsys, changes, wanted):
    options = dict(zip(RUN[::2], RUN[1::2], strict=True)) | {"--sigma": "0.03", "--clip": "2"} | changes
    text = refusal(capsys, "epsilon", *[f"{key}={value}" for key, value in options.items()])
    assert text == f"silodp epsilon: command line: {wanted}"


@pytest.mark.parametrize("wanted", ["0", "-1", "inf", "nan"])
def test_a_wanted_epsilon_must_be_positive(capsys, wanted):
    text = refusal(capsys, "noise", *RUN, f"--epsilon={wanted}")
    assert text == f"silodp noise: command line: --epsilon: {float(wanted)}: must be positive and finite"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_noise_delivers_the_wanted_epsilon_and_little_less(capsys, name):
    """Fed back into `silodp epsilon` it gives what was wanted, on the private side and within a percent."""
    options = ["--algorithm", name, "--phase-length", "3", "--rounds", "6", "--records", "300", "--batch", "40"]
    found = answer(capsys, "noise", *options, "--epsilon", "2", "--clip", "1.5")
    assert 1.98 <= found["delivered_epsilon"] <= 2
    (sigma,) = (found[key] for key in ("sigma_gradient", "sigma_step", "sigma_anchor") if key in found)
    more = ["--sigma-difference", repr(found["sigma_difference"])] if "sigma_difference" in found else []
    back = answer(capsys, "epsilon", *options, "--sigma", repr(sigma), "--clip", "1.5", *more)
    assert back["delivered_epsilon"] == pytest.approx(found["delivered_epsilon"], rel=1e-9)
    assert back["delivered_epsilon"] <= 2 * (1 + 1e-12)


def test_noise_is_shown_beside_the_papers_in_its_proportion(capsys):
    """Fed-SPIDER's differences have twice the noise of its gradients; the paper's σ² is 8L²R ln(2/δ)/(n²ε²)."""
    options = ["--algorithm", "fed_spider", "--rounds", "4", "--records", "100", "--batch", "20", "--delta", "1e-4"]
    found = answer(capsys, "noise", *options, "--epsilon", "2", "--clip", "3")
    assert found["paper_sigma_gradient"] == pytest.approx(3 * (8 * 4 * 9.903487552536127) ** 0.5 / 200)
    assert found["paper_sigma_difference"] == pytest.approx(2 * found["paper_sigma_gradient"])
    assert found["sigma_difference"] == pytest.approx(2 * found["sigma_gradient"])


def test_text_is_rounded_to_the_side_that_keeps_a_bound(capsys):
    """A rounded noise could be too small, a rounded ε too good."""
    options = ["epsilon", *RUN, "--sigma", "0.03", "--clip", "2"]
    values = answer(capsys, *options)
    assert main(options) == 0
    lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    shown = {name.strip(): text.strip() for name, text in lines.items()}
    assert shown.keys() == values.keys()
    upper, lower = (float(shown[name].split()[0]) for name in ("delivered_epsilon", "lower"))
    assert values["delivered_epsilon"] <= upper <= values["delivered_epsilon"] * (1 + 1e-3)
    assert values["lower"] * (1 - 1e-3) <= lower <= values["lower"]
    assert float(shown["noise_multiplier"].split()[0]) == pytest.approx(values["noise_multiplier"], rel=1e-3)
