"""`silodp decided tables` beside the power of `decided plan`, and before the first trials."""

import pandas as pd

from silodp.cli import main
from silodp.verdicts.decided_claims import MEANS, VERDICTS


def test_tables_without_trials_are_headings_and_open_claims(tmp_path, monkeypatch):
    monkeypatch.setattr("silodp.cli.decided.parts_of", lambda *words: [])
    assert main(["decided", "tables", "printed", "--folder", str(tmp_path)]) == 0
    assert (tmp_path / "decided_means.csv").read_text() == ",".join(MEANS) + "\n"
    assert set(pd.read_csv(tmp_path / "decided_verdicts.csv")["verdict"]) == {"open"}


def test_a_verdict_is_told_the_least_power_that_was_planned_for_its_claim(tmp_path, monkeypatch):
    def verdict(name, asked, cells, power):
        return dict.fromkeys(VERDICTS) | {"claim": name, "note": power}

    monkeypatch.setattr("silodp.cli.decided.parts_of", lambda *words: [])
    monkeypatch.setattr("silodp.cli.decided.decided_verdict", verdict)
    pd.DataFrame({"claim": "C2", "all": [0.7, 0.6]}).to_csv(tmp_path / "decided_power.csv", index=False)
    assert main(["decided", "tables", "printed", "--folder", str(tmp_path)]) == 0
    powers = pd.read_csv(tmp_path / "decided_verdicts.csv").set_index("claim")["note"].dropna()
    assert powers.to_dict() == {"C2": 0.6}
