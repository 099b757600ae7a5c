"""Files of claims: the checked-in ones are whole, and what is wrong in one is a single line."""

import json
import subprocess
import sys
from typing import get_args

import jsonschema
import pandas as pd
import pytest
import yaml
from planted import folder, noisy, trials
from small import ROOT

from silodp.cli import main
from silodp.cli.reference import schema_text
from silodp.config.errors import ConfigError
from silodp.verdicts.claims import expressions
from silodp.verdicts.claims.claim_file import EXPRESSIONS, Claim, Statistic
from silodp.verdicts.claims.claim_files import load_claims
from silodp.verdicts.claims.deciding import STATISTICS, decide
from silodp.verdicts.claims.rows import COLUMNS, is_corrected
from silodp.verdicts.claims.trained import NOTE
from silodp.verdicts.decided_claims import VERDICTS
from silodp.verdicts.words import Verdict

FILES = sorted(set((ROOT / "config" / "claims").glob("*.yaml")) - {ROOT / "config" / "claims" / "decided.yaml"})
# claims.md of the specification: what has to be there.
WANTED = [f"N{i}" for i in range(1, 7)] + [f"C{i}" for i in range(1, 9)] + [f"K{i}" for i in range(1, 7)]
GOOD = """\
paper: a paper
claims:
  - id: X1
    source: here
    statement: this
    rule: that
    experiments: [wbcd_mlp]
    statistic: {name: decided, family: printed, verdict: at_every, pairs: [{first: spider, second: local_sgd}]}
"""


def test_every_claim_of_the_papers_is_there():
    claims = load_claims()
    assert set(WANTED) <= {claim.id for claim in claims}
    for claim in claims:
        assert claim.source.split(",")[0].split(" (")[0] in ("convex paper", "non-convex paper", "check-ins paper")


def test_every_statistic_has_a_model_and_a_function_and_a_claim():
    kinds = get_args(get_args(Statistic)[0])
    named = {kind.model_fields["name"].annotation.__args__[0] for kind in kinds}
    assert named == set(STATISTICS)
    assert {claim.statistic.name for claim in load_claims()} == named


def test_names_that_models_hold_are_those_of_the_code():
    """Models list them, so that reading a file does not load PyTorch."""
    assert set(EXPRESSIONS.__args__) == set(expressions.EXPRESSIONS)
    load = "from silodp.verdicts.claims.claim_files import load_claims; load_claims()"
    code = f"{load}; import sys; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_no_verdict_stands_in_a_file():
    """A verdict's word occurs in rules only, and nothing in the model takes one."""
    assert not {"verdict", "value", "result"} & set(Claim.model_fields)
    for claim in load_claims():
        assert not any(word in claim.statement for word in Verdict)


def test_the_schema_allows_the_files_and_no_unknown_key():
    validator = jsonschema.Draft202012Validator(json.loads(schema_text()))
    for path in FILES:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert validator.is_valid(content), path
        assert not validator.is_valid(content | {"verdicts": []}), path


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("id: X1", "id: x 1", "claims[0].id: 'x 1'"),
        ("rule: that", "kind: theorem", "claims[0].rule: missing"),
        ("rule: that", "rule: that\n    verdict: confirmed", "claims[0].verdict: 'confirmed': unknown key"),
        ("first: spider", "first: spyder", "claims[0].statistic.pairs[0].first: 'spyder': must be one of"),
        # A name of thousands of letters is cut short.
        ("[wbcd_mlp]", f"[{'n' * 5000}]", f"claims[0].experiments[0]: '{'n' * 76}...: must be one of"),
        ("second: local_sgd", "second: local_sgd, never_worse: 2", "claims[0].statistic.pairs[0].never_worse: 2"),
        ("verdict: at_every", "verdict: at_most", "claims[0].statistic.verdict: 'at_most'"),
        ("name: decided", "name: feeling", "claims[0].statistic: "),
        ("paper: a paper", "paper: a paper\npaper: another", "given twice"),
        ("that", "that\n    evidence: ['{nothing}']", "claims[0].evidence"),
        ("that", "that\n    evidence: [/etc/passwd]", "claims[0].evidence[0]: '/etc/passwd'"),
        ("that", "that\n    evidence: ['{check.x}']", "claims[0].evidence[0]: '{check.x}'"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, old, new, said):
    (tmp_path / "a.yaml").write_text(GOOD)
    assert len(load_claims(tmp_path)) == 1
    (tmp_path / "a.yaml").write_text(GOOD.replace(old, new))
    with pytest.raises(ConfigError) as error:
        load_claims(tmp_path)
    assert said in str(error.value)
    assert "a.yaml" in str(error.value)
    assert "\n" not in str(error.value)


def test_an_id_is_given_once_over_all_files(tmp_path):
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text(GOOD)
    with pytest.raises(ConfigError, match=r"b\.yaml: claims\[0\]\.id: 'X1': must be given once"):
        load_claims(tmp_path)
    with pytest.raises(ConfigError, match="must be a folder with claims"):
        load_claims(tmp_path / "none")


def planted(path):
    errors = {("spider", 1.0): noisy(0.5, seed=1), ("minibatch_sgd", 1.0): noisy(0.2, seed=2)}
    row = dict(
        zip(VERDICTS, ["N2", "not reproduced", "open", "not reproduced", 0.3, 0.2, 0.4, "", "cells"], strict=True)
    )
    return folder(path / "run", trials("wbcd_mlp", errors), decided_verdicts=[row])


def test_the_command_writes_a_row_a_claim_and_finds_the_planted_contradiction(tmp_path, capsys):
    run = planted(tmp_path)
    output = tmp_path / "claims.csv"
    assert main(["-q", "claims", str(run.path), "--output", str(output)]) == 0
    table = pd.read_csv(output)
    assert list(table) == COLUMNS
    assert set(table["verdict"]) <= set(Verdict) - {Verdict.ORDER_AGREES}
    assert [claim.id for claim in load_claims()] == table.loc[~is_corrected(table), "claim"].tolist()
    whole = table.set_index("claim")
    assert whole.loc["N2", ["verdict", "at_every", "value"]].tolist() == ["not reproduced", "not reproduced", 0.3]
    assert whole.loc["C1", ["verdict", "note"]].tolist() == ["not testable", NOTE]
    first = output.read_bytes()
    assert main(["-q", "claims", str(run.path), "--output", str(output)]) == 0
    assert output.read_bytes() == first
    assert capsys.readouterr().out == ""


def test_claims_are_printed_as_text(tmp_path, capsys):
    run = planted(tmp_path)
    assert main(["-q", "claims", str(run.path)]) == 0
    assert "not reproduced" in capsys.readouterr().out


def test_a_run_is_named_by_folder_file_or_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    planted(tmp_path / "results")
    assert main(["-q", "claims", "run", "--output", "a.csv"]) == 0
    assert main(["claims", "gone"]) == 2
    assert "run: 'gone': must be a results folder" in capsys.readouterr().err


def test_a_table_that_is_none_is_named(tmp_path):
    run = planted(tmp_path)
    (run.path / "privacy.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"privacy\.csv: file: damaged \(lacks"):
        decide(load_claims(), type(run)(run.path))
