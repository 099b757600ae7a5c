"""The scale benchmark: all ways make the same round, and every axis is a row for each of them."""

import torch

import scale


def test_all_ways_make_the_same_round_where_nothing_is_random(monkeypatch):
    problem = scale.Size(N=3, n=20, d=5, G=2).problem()
    # Silos of equal records: every batch is the same.
    problem.silos[:] = [(x[:1].expand(20, -1), y[:1].expand(20)) for x, y in problem.silos]
    problem.federation.messages.silos[:] = problem.silos
    problem.noise = 0.0
    monkeypatch.setattr(problem.federation, "noise", [{"gradient": torch.zeros(2)}] * 3)
    assert torch.allclose(problem.loop(), problem.stack(), atol=1e-6)
    try:
        round_of_pfl = problem.pfl_round()
    except ImportError:
        return
    assert torch.allclose(round_of_pfl(), problem.stack()[0], atol=1e-6)


def test_the_tables_have_a_row_for_each_axis_and_way(capsys):
    assert scale.main(["--quick", "--repeats", "1"]) == 0
    out = capsys.readouterr().out
    for axis, words in (("N: 2 to 8", "the stack"), ("N: 2 to 8", "plain loop"), ("G: 1 to 4", "plain loop")):
        assert sum(line.startswith(f"| {axis}") and f"| {words} |" in line for line in out.splitlines()) == 1
