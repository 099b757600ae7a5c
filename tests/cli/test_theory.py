"""`silodp theory`: what it prints, and one line for every wrong argument."""

import pytest

from silodp.cli import main
from silodp.theory import THEOREMS

NUMBERS = {"n": "1000", "d": "10", "M": "50", "R": "100", "L": "1", "D": "1", "epsilon": "1", "delta": "1e-6"}
POINT = [word for name, value in NUMBERS.items() for word in (f"--{name}", value)]


def test_list_prints_every_theorem_with_its_place_and_arguments(capsys):
    assert main(["theory", "list"]) == 0
    text = capsys.readouterr().out
    assert all(f"{key} " in text and THEOREMS[key].place in text for key in THEOREMS)
    assert "--n --d --M --R --L --D --epsilon --delta" in text


def test_list_of_one_paper(capsys):
    main(["theory", "list", "checkins"])
    text = capsys.readouterr().out
    assert "checkins-3.2" in text
    assert "convex-2.1" not in text


def test_show_evaluates_at_the_given_numbers(capsys):
    assert main(["theory", "show", "convex-2.1", *POINT]) == 0
    text = capsys.readouterr().out
    value = THEOREMS["convex-2.1"](n=1000, d=10, M=50, R=100, L=1, D=1, epsilon=1, delta=1e-6).value
    assert f"value   {value:.10g}" in text
    assert "term    statistical = 1.216420" in text
    assert "checked epsilon = 1: privacy loss ε, a number in (0, ∞)" in text


def test_show_without_numbers_describes(capsys):
    main(["theory", "show", "convex-2.1"])
    assert "example" in capsys.readouterr().out


def test_show_takes_a_reading_and_equals_signs(capsys):
    words = "theory show checkins-4.1-short --n=100 --m=10000 --epsilon0=1 --delta=1e-6 --delta2=1e-6 --reading=printed"
    assert main(words.split()) == 0
    assert "value   0.01" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show"], "key: None: must be a theorem's key"),
        (["show", "convex-9"], "key: 'convex-9': must be a theorem's key"),
        (["list", "physics"], "key: 'physics': must be one of convex, nonconvex, checkins"),
        (["show", "convex-2.1", "--n", "1000"], "--d: missing: convex-2.1 needs an integer in [1, ∞)"),
        (["show", "convex-2.1", "--n", "many"], "--n: 'many': must be an integer in [1, ∞)"),
        (["show", "convex-2.1", "--n"], "--n: no value: must be an integer in [1, ∞)"),
        (["show", "convex-2.1", "--n", "5", "--n", "6"], "--n: given twice"),
        (["show", "convex-2.1", "--z", "1"], "--z: unknown: convex-2.1 takes --n, --d"),
        (["show", "convex-2.1", *POINT[:-4], "--epsilon", "100", "--delta", "1e-6"], "it has to be at most ln(2/δ)"),
        (["show", "convex-2.1", *POINT[2:], "--n", "1.5"], "n = 1.5 is not allowed"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(capsys, words, said):
    assert main(["theory", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
