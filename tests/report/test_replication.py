"""One figure of a paper by itself: its run trains what it shows and nothing else, and its cost is said first."""

import re
from pathlib import Path

import pytest
import small
import yaml

from silodp.cli import main
from silodp.experiments.validation import load
from silodp.report.paper_figures import heading_of, paper_figures, replication
from silodp.workflow.job_digest import RunPlan

NAMES = sorted(
    {figure.name for figure in paper_figures() if figure.experiment and not figure.experiment.startswith("cifar")}
)


@pytest.mark.parametrize("name", NAMES)
def test_run_of_a_figure_has_its_settings_alone_and_draws_its_file(name, tmp_path):
    figure = replication(name, trials=2)
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(figure.run_file()))
    plan = RunPlan(load(path))
    settings = {(panel.experiment, panel.M, panel.R) for panel in figure.panels}
    assert {
        (experiment, setting.M, setting.R)
        for experiment, config in plan.experiments.items()
        for setting in config.settings
    } == settings
    for config in plan.experiments.values():
        assert config.trials == 2
        assert list(config.variants()) == [""]
    assert {f"{file}.svg" for file in figure.files} <= set(plan.files("figures"))


def test_every_figure_is_of_an_experiment_that_has_its_setting():
    for figure in paper_figures():
        if figure.experiment:
            path = small.ROOT / "config" / "experiments" / f"{figure.experiment}.yaml"
            settings = yaml.safe_load(path.read_text())["settings"]
            assert any((each["M"], each["R"]) == (figure.M, figure.R) for each in settings), figure
            assert figure.file == f"figures/{figure.experiment}_M{figure.M}_R{figure.R}"
            heading = f"{figure.title}: M = {figure.M}, R = {figure.R}"
            assert heading_of(figure.experiment, figure.M, figure.R) == heading
    assert heading_of("wbcd_mlp", 7, 7) == "M = 7, R = 7"


def test_dry_run_prints_the_cost_and_trains_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["replicate", "nonconvex-8", "--trials", "2", "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "non-convex paper, Figure 8: wbcd_mlp, M = 2, R = 25" in text
    assert "2 trials" in text
    assert re.search(r"cost: \d+ jobs, 11160 trained runs, .* about \d+ min here", text)
    assert "results/figure-nonconvex-8-2-trials/figures/wbcd_mlp_M2_R25.svg" in text
    assert [path.name for path in (tmp_path / "results" / "figure-nonconvex-8-2-trials").iterdir()] == ["run.yaml"]


def test_a_figure_is_rebuilt_as_far_as_its_files_and_its_tables_are_named(tmp_path, monkeypatch, capsys):
    codes, called = [0, 3], []

    def rebuild(*words):
        called.append(words[:4])
        return codes.pop()

    monkeypatch.setattr("silodp.cli.replicate.run_workflow", rebuild)
    monkeypatch.chdir(tmp_path)
    assert [main(["replicate", "nonconvex-8", "--trials", "2", "--cores", "1"]) for _ in (0, 1)] == [3, 0]
    folder = "results/figure-nonconvex-8-2-trials"
    picture = f"{folder}/figures/wbcd_mlp_M2_R25"
    files = [f"{picture}.{kind}" for kind in ("svg", "pdf", "png")]
    assert called == [(Path(f"{folder}/run.yaml"), called[0][1], "1", files)] * 2
    assert capsys.readouterr().out.splitlines()[-2:] == [f"{picture}.png", f"{folder}/tables/wbcd_mlp.csv"]


def test_figure_2_of_the_check_ins_paper_needs_no_workflow(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["-q", "replicate", "checkins-2", "--dry-run"]) == 0
    assert "results/figure-checkins-2/checkins/figure_2.svg" in capsys.readouterr().out
