"""`silodp ledger`: each action takes the options that it needs and no others."""

import pytest

from silodp.cli import main
from silodp.silos.ledger import Ledger

OPTIONS = {"show": set(), "repair": {"--epsilon", "--delta"}}


@pytest.mark.parametrize("action", OPTIONS)
@pytest.mark.parametrize("given", [(), ("--epsilon",), ("--delta",), ("--epsilon", "--delta")])
def test_an_action_takes_its_options_and_no_others(action, given, tmp_path, capsys):
    words = [part for option in given for part in (option, {"--epsilon": "3", "--delta": "1e-6"}[option])]
    code, said = main(["ledger", action, str(tmp_path), *words]), capsys.readouterr()
    wrong = {option for option in ("--epsilon", "--delta") if (option in given) != (option in OPTIONS[action])}
    if wrong or action == "repair":
        (told,) = said.err.splitlines()
        assert code == 2
        assert any(f"{option}: must be" in told and f"with {action}" in told for option in wrong) == bool(wrong)
        assert ("nothing to repair" in told) != bool(wrong)
        assert not Ledger(tmp_path).lines
        return
    assert code == 0
    assert said.out.endswith("no budget\n")


def test_what_is_lost_may_have_no_delta(tmp_path, capsys):
    (tmp_path / "ledger.csv").touch()
    main(["ledger", "repair", str(tmp_path), "--epsilon", "2", "--delta", "0"])
    assert "all together: epsilon = 2 at delta = 0; no budget" in capsys.readouterr().out
