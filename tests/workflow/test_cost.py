"""What a rebuild takes, counted before its first job, and refused where the disk is too small."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from small import ROOT
from threadpoolctl import threadpool_info, threadpool_limits

from silodp.cli import main
from silodp.config.errors import ConfigError
from silodp.experiments.validation import load
from silodp.workflow.cost import Cost, cost_here, estimate, measured_rate, refuse
from silodp.workflow.job_digest import RunPlan


def run_file(folder: Path, trials: int = 2) -> Path:
    path = folder / "run.yaml"
    path.write_text(
        f"run: r\nexperiments:\n  wbcd_mlp: {{trials: {trials}, epsilons: [1, 3], clips: [1],"
        " stepsizes: {low: -1, high: 0, points: 3}, algorithms: {local_sgd: ~, fedprox_spider: ~, fed_spider: ~}}\n"
    )
    return path


def test_runs_are_points_times_trials_and_costs_grow_with_them(tmp_path):
    two, four = (RunPlan(load(run_file(tmp_path, trials=trials))) for trials in (2, 4))
    small, large = (estimate(plan, 2, 1e9) for plan in (two, four))
    # 3 step sizes, at each of 2 epsilons and without noise.
    assert (small.runs, large.runs) == (18, 36)
    assert large.operations == 2 * small.operations > 0
    assert large.disk_mb > small.disk_mb
    assert small.jobs >= len(two.grids("wbcd_mlp")) + len(two.files("evaluate", "wbcd_mlp"))
    assert estimate(two, 2, 1e9).seconds < estimate(two, 1, 1e9).seconds
    assert estimate(two, 2, 1e5).seconds > small.seconds


def test_operations_are_gradients_of_records_two_of_a_difference(tmp_path):
    """One point a run: K records a round, as many local steps, two gradients more after Fed-SPIDER's first round."""
    names, counts = ("minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider"), {}
    for name in names:
        path = tmp_path / f"{name}.yaml"
        path.write_text(
            "run: r\nexperiments:\n  mnist_mlp: {trials: 1, epsilons: [1], clips: [1], settings: [{M: 20, R: 10}],"
            " stepsizes: {low: -1, high: -1, points: 1}, batch_records: 7, alternatives: [], algorithms: {"
            + ", ".join(f"{one}: {'{private: private}' if one == name else '~'}" for one in names)
            + "}}\n"
        )
        counts[name] = estimate(RunPlan(load(path)), 1, 1e9).operations
    # A record's gradient of 50 inputs, 64 hidden units and two classes: benchmarks/RESULTS.md counts as much.
    assert counts["minibatch_sgd"] == counts["local_sgd"] == 13_568 * 7 * 20 * 10
    assert counts["fed_spider"] == 13_568 * 7 * 20 * (10 + 2 * 9)


def test_more_than_the_disk_has_free_is_refused_in_one_line(tmp_path, capsys, monkeypatch):
    path = run_file(tmp_path)
    monkeypatch.setattr("silodp.workflow.cost.shutil.disk_usage", lambda folder: shutil._ntuple_diskusage(1, 1, 10_000))
    monkeypatch.chdir(tmp_path)
    assert main(["rebuild", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"{path}: disk: {tmp_path}: 0 MB are free: must be " in error.splitlines()[-1]
    assert not (tmp_path / ".snakemake").exists()


def test_what_just_fits_on_the_disk_is_not_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("silodp.workflow.cost.shutil.disk_usage", lambda folder: SimpleNamespace(free=2_000_000))
    plan, cost = SimpleNamespace(resolved=SimpleNamespace(path="run.yaml")), Cost(1, 1, 1.0, 1.0, 1, 2.0)
    refuse(plan, cost, tmp_path)
    with pytest.raises(ConfigError, match=rf"run\.yaml: disk: {tmp_path}: 2 MB are free: must be 2 for the results"):
        refuse(plan, replace(cost, disk_mb=2.000001), tmp_path)


@pytest.mark.parametrize(("asked", "counted", "used"), [("3", 8, 3), ("all", 8, 8), (None, 8, 8), (None, None, 1)])
def test_a_cost_is_that_of_the_cores_that_are_asked_for_or_there(asked, counted, used, monkeypatch):
    monkeypatch.setattr("silodp.workflow.cost.os.cpu_count", lambda: counted)
    monkeypatch.setattr("silodp.workflow.cost.measured_rate", lambda: 1e9)
    monkeypatch.setattr("silodp.workflow.cost.estimate", lambda *words: words)
    assert cost_here("a plan", asked) == ("a plan", used, 1e9)


def test_memory_above_the_machines_is_a_word(tmp_path, caplog, monkeypatch):
    plan = RunPlan(load(run_file(tmp_path)))
    cost = estimate(plan, 1, 1e9)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=cost.memory_mb * 1e6))
    refuse(plan, cost, tmp_path)
    assert not caplog.messages
    more = cost.memory_mb + 1
    refuse(plan, replace(cost, memory_mb=more), tmp_path)
    (told,) = caplog.messages
    assert f"jobs side by side may need {more} MB, this machine has {cost.memory_mb}" in told


def cifar_on_both():
    """CIFAR-10's run on cores alone, and with a GPU."""
    found = load(ROOT / "config" / "cifar.yaml")
    ((name, config),) = found.experiments.items()
    return found, replace(found, experiments={name: config.model_copy(update={"device": "cuda"})})


@pytest.mark.parametrize(
    ("name", "cores", "counts", "seconds", "disk_mb", "text"),
    [
        ("smoke", 2, (28, 392, 579152640), (84.75813568, 0), 2.4588, "5.8e+08 operations, about 1 min here"),
        ("default", 3, (62, 92890, 5011701472000), (3161.19403134, 0), 20.3335, "53 min here, memory up to 12000 MB"),
        ("leaderboard", 4, (254, 6345, 18946216079.31531), (293.99987235, 0), 13.07175, "about 5 min here"),
        ("tuning", 1, (58, 75750, 36538962009280), (66811.04330399, 0), 17.1225, "about 18.6 h here"),
        ("cifar", 16, (65, 2285, 2470872547397615), (544.98177591, 501.29427591), 3.54275, "8.4 min on a GPU"),
    ],
)
def test_the_cost_of_committed_runs_is_what_it_was(name, cores, counts, seconds, disk_mb, text):
    """Numbers of this code: a wrong count, rate or unit in any term moves them."""
    run = cifar_on_both()[1] if name == "cifar" else load(ROOT / "config" / f"{name}.yaml")
    cost = estimate(RunPlan(run), cores, 1e9)
    assert (cost.jobs, cost.runs, cost.operations) == pytest.approx(counts, rel=1e-12)
    assert (cost.seconds, cost.gpu_seconds) == pytest.approx(seconds, rel=1e-9)
    assert (cost.disk_mb, cost.memory_mb) == pytest.approx((disk_mb, min(cores, cost.jobs) * 4000))
    assert text in cost.text()


@pytest.mark.parametrize(("seconds", "text"), [(1, "1 min"), (119, "2 min"), (5400, "90 min"), (5401, "1.5 h")])
def test_times_are_minutes_up_to_an_hour_and_a_half(seconds, text):
    assert f"about {text} here" in Cost(1, 1, 1.0, seconds, 1, 1.0).text()


def test_cost_and_doctor_print_what_they_measure(capsys, tmp_path, monkeypatch):
    assert main(["cost", str(run_file(tmp_path)), "--cores", "2"]) == 0
    assert "18 trained runs" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "file" / "home"))
    for name in ("XDG_CACHE_HOME", "SILODP_DATA_CACHE", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(shutil, "which", {"sinfo": "/somewhere/sinfo"}.get)
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "BAD home             not writable: Not a directory" in text
    assert str(tmp_path) not in text
    assert "ok  Slurm            /somewhere/sinfo" in text
    monkeypatch.setattr(shutil, "which", {}.get)
    assert main(["doctor"]) == 1
    assert "no  Slurm            no sinfo" in capsys.readouterr().out


def test_machine_is_measured_by_one_thread_and_processor_time(monkeypatch):
    """So that other work does not make the machine look slow: ten products in .5 s of processor time."""
    threads = []

    def used():
        threads.append({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})
        return 0.5 * (len(threads) - 1)

    monkeypatch.setattr("silodp.workflow.cost.time.process_time", used)
    with threadpool_limits(2):
        assert measured_rate(10) == 2.0 * 256 * 128 * 256 * 10 / 0.5
    assert threads == [{1}, {1}]


def test_a_gpu_takes_its_part_of_the_expected_time(capsys):
    """Where a job trains on it: CIFAR-10's training, and nothing of breast cancer's."""
    cpu, gpu = (estimate(RunPlan(run), 16, 1e9) for run in cifar_on_both())
    assert cpu.gpu_seconds == 0 < gpu.gpu_seconds < gpu.seconds < cpu.seconds / 4
    assert (gpu.operations, gpu.runs) == (cpu.operations, cpu.runs)
    assert "min on a GPU such as an H200" in gpu.text()
    assert "GPU" not in cpu.text()
