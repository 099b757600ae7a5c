"""`silodp epsilon --mechanism`: presets, files, the table by round, budgets, and bad input in one line."""

import json
import math

import pytest
import yaml

from silodp.atlas.mechanism import evaluate
from silodp.cli import main

FILE = {
    "claim": {"epsilon": 1, "delta": 1.0e-5, "scope": "message"},
    "settings": {"C": 1, "n": 100},
    "released": [{"name": "update", "clip": "update", "noise": "gaussian", "sd": "9.69*C*n/100"}],
    "steps": {"rounds": 10},
}
LAPLACE = {"name": "x", "clip": "update", "noise": "laplace", "sd": 1}


@pytest.fixture
def file(tmp_path):
    def written(**changed):
        path = tmp_path / "mechanism.yaml"
        path.write_text(yaml.safe_dump(FILE | changed), encoding="utf-8")
        return str(path)

    return written


def test_reader_s_question_is_one_command(capsys):
    assert main(["epsilon", "--mechanism", "flower-local-dp", "--rounds", "50", "--by-round", "--budget", "8"]) == 0
    text = capsys.readouterr().out
    for words in ("[16.0, 16.1]", "over 50 rounds", "by round 10", "[5.97, 5.98]", "× 1.76"):
        assert words in text


def test_file_with_other_settings(file, capsys):
    assert main(["epsilon", "--mechanism", file(), "--records", "200", "--rounds", "40", "--json"]) == 0
    louder = json.loads(capsys.readouterr().out)
    assert main(["epsilon", "--mechanism", file(), "--set", "n=100", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    # Twice the noise for four times the rounds.
    assert louder["upper"] == pytest.approx(plain["upper"])
    assert (plain["claimed"], plain["rounds"], plain["entry"], plain["witness"]) == (1, 10, "update", None)


def test_infinite_epsilon_in_words_and_as_json(capsys):
    assert main(["epsilon", "--mechanism", "fedml-nbafl", "--budget", "8"]) == 0
    text = capsys.readouterr().out
    assert "∞" in text
    assert "leaves without noise" in text
    assert "none" in text
    assert main(["epsilon", "--mechanism", "fedml-nbafl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["upper"] is None


@pytest.mark.parametrize(
    ("changed", "options", "words"),
    [
        ({"views": "message"}, (), ("views", "unknown key")),
        ({"view": "nobody"}, (), ("view", "'nobody'", "each_step")),
        ({"released": []}, (), ("released", "at least 1")),
        ({"settings": {"C": "1+"}}, (), ("settings.C", "'1+'", "not an arithmetic expression")),
        ({"settings": {"C": "__import__('os')"}}, (), ("settings.C", "allowed")),
        ({"sampling": {"records": "poisson", "rate": 0.1}}, (), ("sampling.records", "add_remove")),
        ({"sampling": {"silos": 0.5}, "released": [LAPLACE]}, (), ("sampling.silos", "Laplace")),
        ({}, ("--set", "K=2"), ("--set", "'K=2'", "C, n")),
        ({}, ("--set", "C=two"), ("--set", "'two'", "number")),
        ({}, ("--set", "C=nan"), ("--set", "'nan'", "finite number")),
        ({}, ("--set", "epsilon=0"), ("--set", "'0'", "epsilon above 0")),
        ({"settings": {"C": 1}, "released": [{"name": "x"}]}, ("--records", "5"), ("--records", "no setting n")),
    ],
)
def test_bad_input_is_one_line(file, capsys, changed, options, words):
    assert main(["epsilon", "--mechanism", file(**changed), *options]) == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    for word in words:
        assert word in error


def test_arithmetic():
    names = {"C": 2.0, "delta": 1e-5}
    assert evaluate("2*C*sqrt(2*ln(1.25/delta))", names) == pytest.approx(4 * math.sqrt(2 * math.log(1.25e5)))
    assert evaluate("-C**2 + max(1, 3) - floor(2.5)", names) == -3
    assert evaluate(0.5, {}) == 0.5
    assert evaluate("twice(C)", names, {"twice": lambda x: 2 * x}) == 4


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os')", "().__class__", "C.real", "C[0]", "[1]", "lambda: 1", "C if C else 1", "'a'", "True"),
        *("open('x')", "sqrt(x=1)", "1 < 2", "C; C", "", "1/0", "exp(1e9)", "1e999", "unknown", "sqrt(-1)", "sqrt()"),
        "(" * 300,
    ],
)
def test_anything_else_is_refused_in_one_line(text):
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        evaluate(text, {"C": 2.0})
    assert "\n" not in str(refused.value)
