"""Bad input and faults of the machine: one line and an exit code, no traceback, nothing half written."""

import errno
import io
import json
import os
import resource
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import runfiles
import yaml
from example_table import results_table
from small import ROOT

from silodp.cli import main
from silodp.files import write_csv, write_parquet, write_text
from silodp.jobs.__main__ import main as run_job
from silodp.partition.partition import Partition, write_partition
from silodp.partition.trial_data import Records, write_records
from silodp.report.figures import error_vs_epsilon, save
from silodp.workflow import engine

SMOKE = ROOT / "config" / "smoke.yaml"
RUN = "--rounds=25 --records=1234 --batch=604"
EPSILON = f"epsilon {RUN} --sigma=0.03 --clip=2"
NOISE = f"noise {RUN}"
AUDIT = "audit minibatch_sgd"
TRAIN = "train run_file={tiny} silos={folder}/silos output={folder}/o.parquet experiment="
TASK = f"{TRAIN}wbcd_mlp algorithm=local_sgd setting=M1_R4"
FIGURE = "figure run_file={tiny} experiment=wbcd_mlp table={folder}/cut.csv reported=x folder={folder} formats=svg"

# Words → a part of the line.
BAD = {
    "epslion": "silodp: No such command 'epslion'. Did you mean 'epsilon'?",
    "qqqq": "silodp: No such command 'qqqq'.",
    "config check": "silodp config: command line: run_file: missing: must name the file to check",
    "config check {folder}/no.yaml": "silodp config: {folder}/no.yaml: file: missing: must be a readable YAML file",
    "config check {wrong}": "silodp config: {wrong}: experiments.wbcd_mlp.epsilom: [1]: unknown key; "
    "silodp config reference lists the keys; did you mean epsilons?",
    "fetch iris": "silodp fetch: command line: dataset: 'iris': must be one of cifar10, ",
    "replicate nonconvx-4": "; did you mean nonconvex-4?",
    "replicate nonconvex-4 --trials 0": "'--trials': 0 is not in the range x>=1.",
    # epsilon, noise
    f"{EPSILON} --algorithm=locl_sgd": "; did you mean local_sgd?",
    f"{EPSILON} --rounds=0": "'--rounds': 0 is not in the range 1<=x<=100000000.",
    f"{EPSILON} --batch=1235": "--batch: 1235: must be at most --records = 1234",
    f"{EPSILON} --sigma=0": "'--sigma': 0.0 is not in the range x>0.",
    f"{EPSILON} --sigma=nan": "'--sigma': nan is not a finite number.",
    f"{EPSILON} --clip=inf": "'--clip': inf is not a finite number.",
    f"{EPSILON} --delta=5e-324": "'--delta': 5e-324 is not in the range 1e-300<=x<1.",
    f"{EPSILON} --records=1 --batch=1": "--delta: missing: the default 1/n^2 needs --records > 1",
    f"{EPSILON} --algorithm=fed_spider": "--sigma-difference: missing: fed_spider also sends differences",
    f"{EPSILON} --person-records=1235": "--person-records: 1235: must be at most the silo's 1234 records",
    "epsilon --messages nobody": "nobody: file: missing: must be a readable YAML file",
    # audit
    "audit sgd": "'sgd': must be an algorithm",
    f"{AUDIT} wbcd_mlp": "takes no experiment",
    "audit config/default.yaml wbcd_mlp": "--silos: missing",
    "audit results/published": "a publication is audited with --output and without --silos",
    "audit results/published --silos x --output y": "is audited with --output and without --silos",
    f"{AUDIT} --batch 400": "--batch: 400: must be at most --records = 169",
    f"{AUDIT} --records 1": "--delta: missing: the default 1/n^2 needs --records > 1",
    f"{AUDIT} --option noise=loud": "command line: --option: noise=loud: could not convert string to float: 'loud'",
    "audit fedprox_spider --option phase_length=0": "--option: phase_length=0: phase_length = 0: must be at least 1",
    "audit fedprox_spider --option phase_length=two": "command line: --option: phase_length=two: ",
    f"{AUDIT} --option speed=3": "--option: 'speed=3': must be NAME=VALUE",
    # own records and silos
    "init {wrong} --target y --type x=colour": "--type: x=colour: must be COLUMN= and one of ",
    "init {wrong} --target y --name north": "--name: north: must be left out without --federation",
    "silo key north --raise 2": "--raise: must be given with budget, and with nothing else",
    "silo budget north.yaml": "--raise: must be given with budget, and with nothing else",
    # amplification
    "epsilon --amplification --epsilon0 1 --reports 9": "--delta: must be given with --amplification",
    f"{EPSILON} --amplification": "--rounds: must be left out with --amplification",
    f"{EPSILON} --reports 9": "--reports: goes with --amplification",
    # theory
    "theory show": "key: None: must be a theorem's key",
    "theory show convex-2.11": "; did you mean convex-2.1?",
    "theory list physics": "key: 'physics': must be one of convex, nonconvex, checkins",
}
# The same of jobs called by hand.
BAD_JOBS = {
    "": "silodp.jobs: command line: job: '': must be one of check, checkins, ",
    "trian": "silodp.jobs trian: command line: job: 'trian': must be one of check, ",
    "select {run}": "'{run}': must be run_file=, digest=, experiment=, trials=, output=",
    "select run_file={run}": "experiment: missing: must be given",
    "select run_file={run} trials= output=o experiment=a b": "experiment: 'a b': must be one value",
    "select run_file={run} trials= output=o experiment=": "experiment: '': must be one value",
    "select run_file={run} output=a experiment=b output=c trials=": "output: given twice: must be given once",
    "merge digest=00 folder={folder} experiments=": "run_file: missing: must be given with digest",
    "report folder={folder}/none output=r.html": "/none: no such run folder",
    "select run_file={run} experiment=digits_logistic trials={folder}/a b output=o": "/a: must be a readable file",
    f"{TRAIN}nope algorithm=local_sgd setting=M1_R4": "experiments.nope: not in this run: must be one of wbcd_mlp",
    f"{TRAIN}wbcd_mlp algorithm=adam setting=M1_R4": "algorithm: 'adam': must be one of minibatch_sgd, ",
    f"{TRAIN}wbcd_mlp algorithm=local_sgd setting=M9_R9": "setting: 'M9_R9': must be one of M1_R4, M2_R3",
    f"{TASK} reading=x": "reading: 'x': must be one of default",
    f"{TASK} trials=2": "trials: '2': must be all",
    f"{TASK} trials=1-0": "trials: '1-0': must be all",
    f"{TASK} threads=two": "threads: 'two': must be a whole number",
    TASK.replace("{folder}/silos", "none"): "none/indices.parquet: no such file",
    f"{TASK} chosen=none.parquet": "none.parquet",
    f"{FIGURE} names=wbcd_mlp_M1_R4": "{folder}/cut.csv: file: damaged (lacks the columns algorithm, ",
}


def error_line(capsys) -> str:
    """The only line on the error stream; nothing is printed."""
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    files = {"run": ("digits_logistic", {"trials": 2})}
    files["tiny"] = ("wbcd_mlp", {"trials": 2, "settings": [{"M": 1, "R": 4}, {"M": 2, "R": 3}]})
    files["wrong"] = ("wbcd_mlp", {"epsilom": [1]})
    for name, (experiment, keys) in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(runfiles.overriding(experiment, **keys) | {"seed": 1}))
    (folder / "cut.csv").write_text("experiment,epsilom\n")
    of = [f"run_file={folder / 'tiny.yaml'}", "experiment=wbcd_mlp"]
    assert run_job(["partition", *of, f"output={folder / 'silos'}"]) == 0
    return {name: folder / f"{name}.yaml" for name in files} | {"folder": folder}


@pytest.mark.parametrize(("words", "said"), [*BAD.items(), *BAD_JOBS.items()])
def test_bad_input_is_one_line_and_exit_code_2(words, said, places, capsys):
    before = list(places["folder"].iterdir())
    assert (run_job if words in BAD_JOBS else main)(words.format(**places).split()) == 2
    line = error_line(capsys)
    assert line.startswith("silodp")
    assert said.format(**places) in line
    assert list(places["folder"].iterdir()) == before


def test_no_command_writes_the_credentials_of_a_mirror(tmp_path, capsys, monkeypatch):
    """Not into a file, and not where a log would keep them."""
    secrets = ("us3r", "p4ss/w0rd", "t0ken")
    mirror = f"http://{secrets[0]}:{secrets[1]}@127.0.0.1:9/data?key={secrets[2]}"
    run_file = tmp_path / "private" / "run.yaml"
    run_file.parent.mkdir()
    text = SMOKE.read_text()
    run_file.write_text(text.replace("seed:", f"data: {{mirror: '{mirror}', cache: {tmp_path / 'cache'}}}\nseed:"))
    written = tmp_path / "written"
    given = f"run_file={run_file}"
    assert run_job(["provenance", given, "listings=", f"output={written / 'provenance.json'}"]) == 0
    broken = run_file.with_name("broken.yaml")
    broken.write_text(run_file.read_text().replace("mirror:", "mirorr:"))
    assert main(["config", "check", str(broken)]) == 2
    monkeypatch.setattr("pooch.HTTPDownloader.__call__", _refused)
    assert run_job(["fetch", given, "names=insurance", f"listing={written / 'insurance.csv'}"]) == 2
    monkeypatch.setenv("SILODP_DATA_MIRROR", mirror.replace("http", "ftp"))
    assert main(["fetch", "mnist"]) == 2
    shown = "".join(capsys.readouterr())
    assert "127.0.0.1:9/data" in shown
    assert json.loads((written / "config.json").read_text())["data"]["mirror"] == "http://127.0.0.1:9/data"
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.parent != run_file.parent:
            shown += path.read_bytes().decode("utf-8", "replace")
    assert [secret for secret in secrets if secret in shown] == []


def _refused(download, url, *_):
    raise ValueError(f"no connection (Max retries exceeded with url: {url})")


def test_characters_that_the_locale_lacks_are_escaped(tmp_path, monkeypatch):
    """As with LC_ALL=C, and as for a file name that is not UTF-8."""
    streams = {name: io.TextIOWrapper(io.BytesIO(), encoding="ascii") for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    assert main(["theory", "list", "convex"]) == 0
    assert main(["config", "check", str(tmp_path / "b\udce4d ö.yaml")]) == 2
    text = {name: stream.buffer.getvalue() for name, stream in streams.items() if not stream.flush()}
    assert b"\\u0175" in text["stdout"]
    assert b"b\\udce4d \\xf6.yaml: file: missing" in text["stderr"]


@contextmanager
def full_disk(most=300):
    """As on a full disk no file can grow beyond some bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_one_line(tmp_path, capsys):
    with full_disk():
        words = [f"run_file={SMOKE}", "listings=", f"output={tmp_path / 'provenance.json'}"]
        assert run_job(["provenance", *words]) == 1
    assert "File too large" in error_line(capsys)


def test_standard_output_on_a_full_disk_is_one_line():
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "silodp", "--version"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "silodp: standard output: No space left on device: must be writable\n"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_read_only_checkout_is_one_line_before_any_job(number, tmp_path, monkeypatch, capsys):
    def refused(path, *_, **__):
        raise OSError(number, os.strerror(number), str(path))

    (tmp_path / "Snakefile").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "mkdir", refused)
    monkeypatch.setattr(engine, "_give_caches", lambda: None)
    assert main(["-q", "rebuild", str(SMOKE)]) == 1
    assert error_line(capsys) == f"silodp rebuild: .snakemake: {os.strerror(number)}"


def test_without_a_home_caches_are_private_and_data_stay_in_place(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    home = tmp_path / "file" / "home"
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CACHE_HOME", "SILODP_DATA_CACHE", "MPLCONFIGDIR", "SILODP_DATA_MIRROR"):
        # Set first, so that what the command sets is undone after the test.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    assert main(["-q", "fetch", "insurance"]) == 2
    assert error_line(capsys) == f"silodp fetch: insurance: cache folder, {home}/.cache/silodp: Not a directory"
    cache = Path(os.environ["XDG_CACHE_HOME"])
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert os.environ["MPLCONFIGDIR"] == str(cache)
    # A job inherits the folder and makes no other.
    engine.set_environment()
    assert os.environ["XDG_CACHE_HOME"] == str(cache)


@pytest.mark.parametrize("place", ["silodp.cli.import_module", "silodp.cli.theory.list_theorems"])
def test_ctrl_c_is_one_line_at_any_moment(place, monkeypatch, capsys):
    """Also while libraries are loading, which takes a second."""

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(place, interrupt)
    assert main(["theory", "list"]) == 130
    assert capsys.readouterr().err.strip() == "silodp: interrupted"


def _silos(folder: Path) -> None:
    part = np.arange(100)
    write_partition(folder, [Partition(((part, part + 100), (part + 200, part + 300)))], y=np.arange(400) % 2)


FRAME = pd.DataFrame({"a": np.arange(5000.0)})
WRITERS = {
    "text": lambda folder: write_text("x" * 5000, folder / "a.txt"),
    "table": lambda folder: write_csv(FRAME, folder / "a.csv"),
    "trials": lambda folder: write_parquet(FRAME, folder / "a.parquet"),
    "records": lambda folder: write_records(folder, [Records(np.ones((50, 20)), np.zeros(50), 20)]),
    "silos": _silos,
    "figure": lambda folder: save(error_vs_epsilon(results_table(), title="t"), folder / "a", ["svg"]),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_full_disk_leaves_no_half_file(kind, tmp_path):
    with full_disk(), pytest.raises(OSError, match="too large") as caught:
        WRITERS[kind](tmp_path)
    assert caught.value.errno in (errno.EFBIG, None)
    left = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    WRITERS[kind](tmp_path)
    whole = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    # A file that is small enough is there, and whole.
    assert left.items() < whole.items()
