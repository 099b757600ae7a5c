"""`silodp theory` lists the theorems and evaluates them."""

from silodp.cli import main
from silodp.theory import THEOREMS

NUMBERS = {"n": "1000", "d": "10", "M": "50", "R": "100", "L": "1", "D": "1", "epsilon": "1", "delta": "1e-6"}
POINT = [word for name, value in NUMBERS.items() for word in (f"--{name}", value)]


def test_list_prints_every_theorem_with_its_place_and_arguments(capsys):
    assert main(["theory", "list"]) == 0
    text = capsys.readouterr().out
    assert all(f"{key} " in text and THEOREMS[key].place in text for key in THEOREMS)
    assert "--n --d --M --R --L --D --epsilon --delta" in text


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


def test_the_list_says_what_decides_a_theorem_or_why_nothing_does(capsys):
    assert main(["theory", "list"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert sum(line.startswith(("decided by ", "no check: ")) for line in lines) == len(THEOREMS)
    assert "decided by N6" in lines
    assert any(line.startswith("no check: two neighbours") for line in lines)
