"""`silodp epsilon --messages FILE`: a silo's messages written down."""

import json
import math

import pytest
import yaml

from silodp.cli import main
from silodp.privacy.accounting.mechanisms import gaussian_epsilon
from silodp.privacy.message_counts import draws
from silodp.privacy.true_epsilon import upper_of

ALL = {"count": 4, "sampler": "all", "noise_multiplier": 8.0}
SUBSET = {"count": 100, "records": 50, "sampler": "subset", "noise_multiplier": 1.1}


@pytest.fixture
def file(tmp_path):
    def written(*messages, **changed):
        path = tmp_path / "messages.yaml"
        content = {"records": 1000, "delta": 1e-6, "messages": list(messages)} | changed
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return str(path)

    return written


def answer(capsys, *arguments):
    assert main(["epsilon", "--messages", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_messages_on_all_records_have_a_closed_form(file, capsys):
    found = answer(capsys, file(ALL))
    assert found["delivered_epsilon"] == pytest.approx(gaussian_epsilon(1e-6, math.sqrt(4) / 8))
    twice = answer(capsys, file(ALL), "--person-records", "2")
    assert twice["epsilon_person"] == pytest.approx(gaussian_epsilon(1e-6, 2 * math.sqrt(4) / 8))


def test_each_sampler_is_what_it_says(file, capsys):
    wanted = {"replacement": ("with", 50), "subset": ("without", 50), "disjoint": ("all", 1)}
    for sampler, (how, K) in wanted.items():
        found = answer(capsys, file(SUBSET | {"sampler": sampler, "count": 20}))
        counts = {draws(how, 1000 if how != "all" else 1, K, 1.1): 1 if sampler == "disjoint" else 20}
        assert found["delivered_epsilon"] == pytest.approx(upper_of(counts, 1e-6), rel=1e-9)
    both = answer(capsys, file(SUBSET, ALL), "--claimed", "3", "--tries", "5")
    assert both["releases"] == 104
    assert both["epsilon_selection"] > both["delivered_epsilon"]


@pytest.mark.parametrize(
    ("message", "options", "words"),
    [
        (ALL | {"records": 3}, [], "messages.0.records: must be given, but for sampler all"),
        (SUBSET | {"records": 1001}, [], "messages.0: draws 1001 records: must be at most records = 1000"),
        (SUBSET | {"sampler": "disjoint"}, [], "messages.0: draws 5000 records"),
        (SUBSET | {"sampler": "poisson"}, [], "sampler"),
        (SUBSET | {"noise_multiplier": 0}, [], "noise_multiplier"),
        (SUBSET, ["--rounds", "3"], "--rounds: must be left out with --messages"),
        (SUBSET, ["--by-round"], "--by-round: must be left out with --messages"),
        (SUBSET, ["--person-records", "1001"], "--person-records: 1001: must be at most the silo's 1000 records"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(file, capsys, message, options, words):
    assert main(["epsilon", "--messages", file(message), *options]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert words in said
