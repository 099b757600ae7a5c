"""One figure of a paper by itself: its run trains what it shows and nothing else, and its cost is said first."""

import pytest
import small
import yaml

from silodp.cli import main
from silodp.experiments.validation import load
from silodp.report.paper_figures import heading_of, paper_figures
from silodp.report.replication import replication, table_text, words
from silodp.workflow.plan import Plan

NAMES = sorted({one.name for one in paper_figures() if one.experiment and not one.experiment.startswith("cifar")})


@pytest.mark.parametrize("name", NAMES)
def test_a_figures_run_has_its_settings_alone_and_draws_its_file(name, tmp_path):
    found = replication(name, trials=2)
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(found.run_file()))
    plan = Plan(load(path))
    settings = {(one.experiment, one.M, one.R) for one in found.panels}
    assert {
        (experiment, setting.M, setting.R)
        for experiment, config in plan.experiments.items()
        for setting in config.settings
    } == settings
    for config in plan.experiments.values():
        assert config.trials == 2
        assert list(config.variants()) == [""]
    assert {f"{file}.svg" for file in found.files} <= set(plan.figures())
    assert found.seconds(plan.experiments) > 0


def test_every_figure_is_of_an_experiment_that_has_its_setting():
    for one in paper_figures():
        if one.experiment:
            path = small.ROOT / "config" / "experiments" / f"{one.experiment}.yaml"
            settings = yaml.safe_load(path.read_text())["settings"]
            assert any((each["M"], each["R"]) == (one.M, one.R) for each in settings), one
            assert one.file == f"figures/{one.experiment}_M{one.M}_R{one.R}"
            assert heading_of(one.experiment, one.M, one.R) == f"{one.title}: M = {one.M}, R = {one.R}"
    assert heading_of("wbcd_mlp", 7, 7) == "M = 7, R = 7"


def test_a_dry_run_says_what_it_costs_and_trains_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["replicate", "nonconvex-8", "--trials", "2", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "non-convex paper, Figure 8: wbcd_mlp, M = 2, R = 25" in said
    assert "2 trials" in said
    assert "cost: about" in said
    assert "results/figure-nonconvex-8-2-trials/figures/wbcd_mlp_M2_R25.svg" in said
    assert [path.name for path in (tmp_path / "results" / "figure-nonconvex-8-2-trials").iterdir()] == ["run.yaml"]


def test_figure_2_of_the_check_ins_paper_needs_no_workflow(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["-q", "replicate", "checkins-2", "--dry-run"]) == 0
    assert "results/figure-checkins-2/checkins/figure_2.svg" in capsys.readouterr().out


def test_the_page_of_figures_is_what_the_code_prints(capsys):
    assert main(["replicate", "--table"]) == 0
    printed = capsys.readouterr().out
    assert (small.ROOT / "docs" / "figures.md").read_text(encoding="utf-8") == printed, "make docs"
    assert all(f"FIG={one.name}`" in printed for one in paper_figures())
    assert table_text({}).count("\n") == printed.count("\n")


def test_times_in_words():
    assert [words(s) for s in (26, 600, 7000)] == ["26 s", "10 min", "1.9 h"]
