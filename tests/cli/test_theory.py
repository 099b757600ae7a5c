"""`silodp theory` lists the theorems and evaluates them."""

from silodp.cli import main
from silodp.theory import THEOREMS


def test_list_prints_of_every_theorem_place_arguments_and_what_decides_it_or_why_nothing_does(capsys):
    assert main(["theory", "list"]) == 0
    text = capsys.readouterr().out
    assert all(f"{key} " in text and THEOREMS[key].place in text for key in THEOREMS)
    assert "n d M R L D epsilon delta" in text
    lines = [line.strip() for line in text.splitlines()]
    assert sum(line.startswith(("decided by ", "no check: ")) for line in lines) == len(THEOREMS)
    assert "decided by N6" in lines
    assert any(line.startswith("no check: two neighbours") for line in lines)


def test_show_without_numbers_describes(capsys):
    main(["theory", "show", "convex-2.1"])
    assert "example" in capsys.readouterr().out
