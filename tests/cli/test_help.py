"""What the command line says of itself: groups, examples, near misses, lists, and numbers as JSON or rounded."""

import json
import shlex

import pytest

from silodp.cli import main, make_parser
from silodp.cli.parser import EXAMPLES, GROUPS, aligned, near
from silodp.cli.practitioner import rounded

RUN = ["--rounds", "2", "--records", "40", "--batch", "10", "--delta", "1e-4"]


def call(*words, code=0):
    try:
        done = main([str(word) for word in words])
    except SystemExit as end:
        done = end.code
    assert done == code


def test_every_subcommand_is_in_the_overview_once_with_an_example_that_parses(capsys):
    parser = make_parser()
    call("--help")
    said = capsys.readouterr().out
    groups = {name for names in GROUPS.values() for name in names}
    for name in parser.commands:
        lines = [line for line in said.splitlines() if line.startswith(f"  {name} ")]
        assert len(lines) == 1, name
        assert name in EXAMPLES or name not in groups, name
    assert said.index("for you:") < said.index("  epsilon ") < said.index("for the workflow") < said.index("  train ")
    for name in set(EXAMPLES) & set(parser.commands):
        words = shlex.split(EXAMPLES[name])
        assert words[:2] == ["silodp", name]
        assert parser.parse_args(words[1:]).command == name


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["epslion"], "silodp: command: 'epslion': unknown; did you mean epsilon?"),
        (["qqqq"], "silodp: command: 'qqqq': unknown; `silodp --help` lists all"),
        (["epsilon", *RUN, "--sigma", "1", "--clip", "1", "--bathc", "2"], "--bathc 2; did you mean --batch?"),
        (["epsilon", *RUN, "--sigma", "1", "--clip", "1", "--algorithm", "locl_sgd"], "; did you mean local_sgd?"),
        (["theory", "show", "convex-2.11"], "; did you mean convex-2.1?"),
        (["list", "figurs"], "; did you mean figures?"),
        (["replicate", "nonconvx-4"], "; did you mean nonconvex-4?"),
        (["replicate", "nonconvex-4", "--trials", "0"], "--trials: 0: must be at least 1"),
    ],
)
def test_a_mistyped_word_is_one_line_with_what_was_meant(capsys, words, told):
    call(*words, code=2)
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


def test_nothing_is_near_a_word_from_elsewhere():
    assert near("zzz", ["epsilon", "noise"]) == ""


def test_numbers_are_rounded_to_the_side_that_keeps_them_true(capsys):
    words = ["epsilon", *RUN, "--sigma", "2", "--clip", "1"]
    call(*words, "--json")
    exact = json.loads(capsys.readouterr().out)
    call(*words)
    shown = dict(line.split()[:2] for line in capsys.readouterr().out.splitlines())
    assert exact["delivered_epsilon"] <= float(shown["delivered_epsilon"]) <= exact["delivered_epsilon"] * (1 + 1e-3)
    assert exact["lower"] * (1 - 1e-3) <= float(shown["lower"]) <= exact["lower"]
    call("noise", *RUN, "--epsilon", "1", "--json")
    least = json.loads(capsys.readouterr().out)["sigma_gradient"]
    call("noise", *RUN, "--epsilon", "1")
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("sigma_gradient"))
    assert float(line.split()[1]) >= least
    assert rounded(1.23456789, "up") == "1.235"
    assert rounded(1.23456789, "down") == "1.234"
    assert rounded(float("inf"), "up") == "inf"


def test_what_the_three_ends_of_an_epsilon_are_is_said_beside_them(capsys):
    call("epsilon", *RUN, "--sigma", "2", "--clip", "1")
    said = capsys.readouterr().out
    assert "delivered_epsilon" in said
    assert "proven upper bound" in said
    assert "claims nothing by itself" in said


def test_lists_name_what_a_run_file_may_name(capsys):
    call("list", "--json")
    found = json.loads(capsys.readouterr().out)
    assert {"mnist_mlp", "wbcd_mlp"} <= {one["name"] for one in found["experiments"]}
    assert "local_sgd" in {one["name"] for one in found["algorithms"]}
    assert "mnist" in {one["name"] for one in found["datasets"]}
    assert {"nonconvex-4", "convex-2", "checkins-2"} <= {one["name"] for one in found["figures"]}
    call("list", "figures")
    said = capsys.readouterr().out
    assert "nonconvex-10" in said
    assert "algorithms:" not in said


def test_theorems_speak_json_too(capsys):
    call("theory", "list", "checkins", "--json")
    listed = json.loads(capsys.readouterr().out)
    assert "checkins-3.4" in {one["key"] for one in listed}
    call("theory", "show", "convex-2.1", "--json")
    about = json.loads(capsys.readouterr().out)
    assert {"n", "d", "epsilon"} <= set(about["parameters"])
    typical = {"n": 1000, "d": 10, "M": 25, "L": 1, "D": 1, "epsilon": 1, "delta": 1e-6, "beta": 1, "R": 100}
    point = [word for name in about["required"] for word in (f"--{name}", typical.get(name, 1))]
    call("theory", "show", "convex-2.1", *point, "--json")
    assert json.loads(capsys.readouterr().out)["value"] > 0


def test_the_examples_that_take_no_time_run(capsys):
    for name in ("theory", "amplification", "list", "epsilon"):
        call(*shlex.split(EXAMPLES[name])[1:])
        assert capsys.readouterr().out
    call("cost", "config/smoke.yaml", "--json")
    assert json.loads(capsys.readouterr().out)["jobs"] > 10


def test_columns_of_a_list_begin_below_each_other(capsys):
    call("list", "algorithms")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert len({line.index(" ISRL-DP") for line in lines if "ISRL-DP" in line}) == 1
    assert aligned([{"a": 1, "b": "x"}, {"a": 10, "b": "yy"}]) == " a  b\n 1  x\n10  yy"
