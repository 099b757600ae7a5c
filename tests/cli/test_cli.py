"""The command line: one chain of commands from a run file to its tables, and errors of one line with exit code 2."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import small
import yaml

from silodp.cli import main, make_parser
from silodp.files import PRIVACY_COLUMNS, PRIVACY_EXTRA, TABLE_COLUMNS, TABLE_EXTRA

COMMANDS = [
    *("fetch", "partition", "train", "select", "privacy", "table", "figure", "report", "provenance", "config"),
    *("epsilon", "noise", "merge-privacy", "audit", "formulas", "merge"),
]
TINY = {
    "run": "tiny",
    "trials_per_job": 2,
    "experiments": {
        "wbcd_mlp": {
            "trials": 2,
            "settings": [{"M": 1, "R": 4}, {"M": 2, "R": 3}],
            "epsilons": [2.0, 8.0],
            "stepsizes": {"low": -2, "high": 0, "points": 2},
            "clips": [1.0],
            "phase_lengths": [1, 2],
            "alternatives": [{"spider_q1_noise": "minibatch"}],
            "reports": [
                {"selection": "pooled", "evaluation": "fresh"},
                {"selection": "per_trial", "evaluation": "same"},
            ],
        }
    },
}


def call(*arguments) -> int:
    return main([str(argument) for argument in arguments])


def one_line(capsys) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err.strip()


@pytest.fixture(autouse=True, scope="module")
def _threads():
    """Training sets the threads of the whole process."""
    import torch

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


# Help


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as caught:
        call(command, "--help")
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: silodp {command}")
    assert "-q, --quiet" in text


def test_the_list_of_commands_has_one_line_for_each(capsys):
    with pytest.raises(SystemExit) as caught:
        call("--help")
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for command in COMMANDS:
        assert re.search(rf"^  {command}\s+\S", text, re.MULTILINE), command


def test_version(capsys):
    from silodp import __version__

    with pytest.raises(SystemExit) as caught:
        call("--version")
    assert caught.value.code == 0
    assert capsys.readouterr().out.strip() == f"silodp {__version__}"


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["train"], ["config", "mend"]])
def test_a_wrong_command_line_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        call(*arguments)
    assert caught.value.code == 2
    assert "silodp" in capsys.readouterr().err


@pytest.mark.parametrize("before", [True, False])
def test_quiet_goes_before_or_after_the_command(before, capsys, tmp_path):
    run_file = tmp_path / "run.yaml"
    run_file.write_text(yaml.safe_dump(TINY))
    parsed = make_parser().parse_args((["-q"] if before else []) + ["config", "check"] + ([] if before else ["-q"]))
    assert parsed.quiet
    assert not make_parser().parse_args(["config", "check"]).quiet
    assert call(*(["-q"] if before else []), "config", *([] if before else ["-q"]), "check", run_file) == 0
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
    assert call("config", "check", run_file) == 0
    assert "1 experiments, all checks passed" in capsys.readouterr().err


# Errors


def check(tmp_path, capsys, **overrides) -> str:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({"run": "r", "experiments": {"wbcd_mlp": overrides}}))
    assert call("config", "check", path) == 2
    text = one_line(capsys)
    assert text.startswith(f"silodp config: {path}: experiments.wbcd_mlp.")
    return text.split("experiments.wbcd_mlp.", 1)[1]


@pytest.mark.parametrize(
    ("overrides", "wanted"),
    [
        ({"epsilom": [1]}, "epsilom: [1]: unknown key; see docs/configuration.md for the keys allowed here"),
        ({"epsilons": [0]}, "epsilons[0]: 0: Input should be greater than 0"),
        ({"settings": [{"M": 3, "R": 5}]}, "settings[0].M: 3: must be at most N = 2, the number of silos"),
        ({"batch_records": 5000}, "batch_records: 5000: K must be at most n = 169, the records of a silo"),
        ({"clips": [-1]}, "clips[0]: -1: Input should be greater than 0"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, capsys, overrides, wanted):
    assert check(tmp_path, capsys, **overrides) == wanted


def test_a_missing_run_file_and_an_unknown_experiment(tmp_path, capsys):
    assert call("config", "check", tmp_path / "none.yaml") == 2
    assert one_line(capsys) == f"silodp config: {tmp_path}/none.yaml: file: missing: must be a readable YAML file"
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({"run": "r", "experiments": {"nope": None}}))
    assert call("config", "check", path) == 2
    text = one_line(capsys)
    assert text.startswith(f"silodp config: {path}: experiments.nope: no such experiment: must be one of cifar10_cnn, ")
    assert call("config", "check") == 2
    assert one_line(capsys) == "silodp config: command line: run_file: missing: must name the file to check"


def test_the_exit_code_of_the_program(tmp_path):
    """In a process of its own, as a rule of the workflow calls it."""
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({"run": "r", "experiments": {"wbcd_mlp": {"epsilons": [-1]}}}))
    command = [sys.executable, "-m", "silodp.cli", "config", "check", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert result.stderr == (
        f"silodp config: {path}: experiments.wbcd_mlp.epsilons[0]: -1: Input should be greater than 0\n"
    )
    assert result.stdout == ""


# The chain


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """Runs every command of the workflow up to the tables; gives the folder."""
    folder = tmp_path_factory.mktemp("chain")
    run_file = folder / "tiny.yaml"
    run_file.write_text(yaml.safe_dump(TINY))
    name, silos = "wbcd_mlp", folder / "silos"
    assert call("partition", run_file, name, "--output", silos, "-q") == 0
    runs = [
        (algorithm, setting, reading)
        for algorithm in ("minibatch_sgd", "local_sgd", "fedprox_spider", "fed_spider")
        for setting in ("M1_R4", "M2_R3")
        for reading in ("default", "spider_q1_noise-minibatch")
        if reading == "default" or algorithm == "fedprox_spider"
    ]

    def train(purpose, *more):
        for algorithm, setting, reading in runs:
            output = folder / purpose / f"{algorithm}_{setting}_{reading}.parquet"
            where = ["--silos", silos, "--reading", reading, "--output", output, "-q"]
            assert call("train", run_file, name, algorithm, setting, *where, *more) == 0
        return sorted((folder / purpose).glob("*.parquet"))

    grid = train("grid")
    chosen, fresh, privacy = folder / "chosen.parquet", None, folder / "privacy.csv"
    assert call("select", run_file, name, "--trials", *grid, "--output", chosen, "-q") == 0
    fresh = train("fresh", "--chosen", chosen)
    assert call("privacy", run_file, name, "--chosen", chosen, "--silos", silos, "--output", privacy, "-q") == 0
    files = ["--grid", *grid, "--fresh", *fresh, "--chosen", chosen, "--privacy", privacy]
    assert call("table", run_file, name, *files, "--output", folder / "table.csv", "-q") == 0
    assert call("merge-privacy", privacy, "--output", folder / "merged.csv", "-q") == 0
    return folder


def test_a_chain_of_commands_ends_in_the_table(chain):
    table = pd.read_csv(chain / "table.csv")
    assert list(table.columns) == [*TABLE_COLUMNS, *TABLE_EXTRA]
    table["reading"] = table["reading"].fillna("")
    assert not table.duplicated(["algorithm", "M", "R", "epsilon", "reading"]).any()
    extra = "selection=per_trial;evaluation=same"
    noise = "spider_q1_noise=minibatch"
    assert set(table["reading"]) == {"", extra, noise, f"{noise};{extra}"}
    # Two settings × two ε × (4 algorithms and spider), and the two baselines without noise, for each reading.
    assert len(table) == 4 * 2 * (2 * 5 + 2)
    assert (table["trials"] == 2).all()
    private = table[table["private"]]
    assert private["delivered_epsilon"].notna().all()
    assert table[~table["private"]]["delivered_epsilon"].isna().all()
    assert (table["n"] == 169).all()
    assert table["delta"].tolist() == [169**-2.0] * len(table)
    assert table["test_error_mean"].between(0, 1).all()


def test_delivered_epsilon_of_the_table_is_that_of_the_privacy_table(chain):
    table, merged = pd.read_csv(chain / "table.csv"), pd.read_csv(chain / "merged.csv")
    assert list(merged.columns) == [*PRIVACY_COLUMNS, *PRIVACY_EXTRA]
    merged["reading"] = merged["reading"].fillna("")
    assert not merged.duplicated(["algorithm", "reading", "M", "R", "epsilon"]).any()
    assert len(merged) == 2 * 2 * 4 * 2
    default = table[table["reading"].isna() & table["private"] & (table["algorithm"] != "spider")]
    both = default.merge(merged[merged["reading"] == ""], on=["algorithm", "M", "R", "epsilon"])
    assert len(both) == 2 * 2 * 4
    assert both["delivered_epsilon_x"].tolist() == both["delivered_epsilon_y"].tolist()
    assert (merged["holds"] == (merged["delivered_epsilon"] <= merged["claimed_epsilon"])).all()
    assert (merged["claimed_epsilon"] == merged["epsilon"]).all()


def test_jobs_of_one_trial_give_the_rows_of_the_whole(chain, tmp_path):
    for trial in (0, 1):
        where = ["--silos", chain / "silos", "--trials", f"{trial}-{trial}", "--output", tmp_path / f"{trial}.parquet"]
        assert call("train", chain / "tiny.yaml", "wbcd_mlp", "fed_spider", "M1_R4", *where, "-q", "--threads", 2) == 0
    parts = pd.concat([pd.read_parquet(tmp_path / f"{trial}.parquet") for trial in (0, 1)], ignore_index=True)
    whole = pd.read_parquet(chain / "grid" / "fed_spider_M1_R4_default.parquet")
    pd.testing.assert_frame_equal(parts.drop(columns="seconds"), whole.drop(columns="seconds"), check_exact=True)


def test_fresh_runs_train_the_chosen_points_only(chain):
    chosen = pd.read_parquet(chain / "chosen.parquet")
    for path in (chain / "fresh").glob("*.parquet"):
        fresh = pd.read_parquet(path)
        first = fresh.iloc[0]
        own = chosen[
            (chosen["algorithm"] == first["algorithm"])
            & (chosen["reading"] == first["reading"])
            & (chosen["M"] == first["M"])
            & (chosen["R"] == first["R"])
        ]
        keys = ["trial", "epsilon", "stepsize", "clip", "phase_length"]
        assert len(fresh) == len(own[keys].drop_duplicates())
        assert len(fresh.merge(own[keys].drop_duplicates(), on=keys)) == len(fresh)


def test_figures_are_drawn_from_the_table(chain, tmp_path):
    picture = tmp_path / "wbcd_mlp_M1_R4.png"
    files = ["--table", chain / "table.csv", "--folder", tmp_path]
    assert (
        call(
            "figure",
            chain / "tiny.yaml",
            "wbcd_mlp",
            "wbcd_mlp_M1_R4",
            "wbcd_mlp_M1_R4_delivered_vs_claimed",
            *files,
            "-q",
        )
        == 0
    )
    assert (tmp_path / "wbcd_mlp_M1_R4_delivered_vs_claimed.pdf").is_file()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.with_suffix(".pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("command", "arguments", "wanted"),
    [
        ("train", ["nope", "local_sgd", "M1_R4"], "experiments.nope: not in this run: must be one of wbcd_mlp"),
        ("train", ["wbcd_mlp", "adam", "M1_R4"], "command line: algorithm: 'adam': must be one of minibatch_sgd, "),
        ("train", ["wbcd_mlp", "local_sgd", "M9_R9"], "command line: setting: 'M9_R9': must be one of M1_R4, M2_R3"),
        (
            "train",
            ["wbcd_mlp", "local_sgd", "M1_R4", "--reading", "x"],
            "command line: reading: 'x': must be one of default",
        ),
        *(
            (
                "train",
                ["wbcd_mlp", "local_sgd", "M1_R4", "--trials", text],
                f"command line: --trials: {text!r}: must be all",
            )
            for text in ("2", "1-0", "0-2", "x", "")
        ),
    ],
)
def test_names_that_a_run_does_not_have(chain, tmp_path, capsys, command, arguments, wanted):
    output = tmp_path / "out.parquet"
    assert call(command, chain / "tiny.yaml", *arguments, "--silos", chain / "silos", "--output", output, "-q") == 2
    assert wanted in one_line(capsys)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_there_are_named(chain, tmp_path, capsys):
    run_file, output = chain / "tiny.yaml", tmp_path / "out"
    train = ["train", run_file, "wbcd_mlp", "local_sgd", "M1_R4", "--output", output, "-q"]
    assert call(*train, "--silos", tmp_path / "none") == 2
    assert f"{tmp_path}/none/indices.parquet" in one_line(capsys)
    assert call(*train, "--silos", chain / "silos", "--chosen", tmp_path / "none.parquet") == 2
    assert "none.parquet" in one_line(capsys)
    assert call("select", run_file, "wbcd_mlp", "--trials", tmp_path / "none.parquet", "--output", output) == 2
    assert "none.parquet" in one_line(capsys)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_figure_or_dataset_is_one_line(chain, tmp_path, capsys):
    files = ["--table", chain / "table.csv", "--folder", tmp_path]
    assert call("figure", chain / "tiny.yaml", "wbcd_mlp", "nope", *files) == 2
    assert "command line: name: 'nope': must be one of wbcd_mlp_M1_R4, " in one_line(capsys)
    (tmp_path / "cut.csv").write_text("experiment,epsilom\n")
    files = ["--table", tmp_path / "cut.csv", "--folder", tmp_path / "figures"]
    assert call("figure", chain / "tiny.yaml", "wbcd_mlp", "wbcd_mlp_M1_R4", *files) == 2
    assert f"{tmp_path}/cut.csv: lacks the columns algorithm, " in one_line(capsys)
    assert call("fetch", "iris") == 2
    assert "command line: dataset: 'iris': must be one of cifar10, " in one_line(capsys)
    assert call("report", tmp_path / "none", "--output", tmp_path / "r.html") == 2
    assert f"command line: folder: '{tmp_path}/none': must be a run's results folder" in one_line(capsys)


def test_embedded_data_need_no_fetch(capsys, tmp_path):
    assert call("fetch", "wbcd", "digits", "--listing", tmp_path / "files.csv") == 0
    assert "ships with scikit-learn, nothing to fetch" in capsys.readouterr().err
    assert (tmp_path / "files.csv").read_text().count("\n") == 1


def test_the_schema_and_the_reference_are_printed(capsys):
    assert call("config", "schema") == 0
    assert json.loads(capsys.readouterr().out)["title"]
    assert call("config", "reference") == 0
    assert capsys.readouterr().out.startswith("# Configuration reference")


def test_the_record_of_a_run(tmp_path, capsys):
    assert call("provenance", small.ROOT / "config" / "smoke.yaml", "--output", tmp_path / "provenance.json", "-q") == 0
    record = json.loads((tmp_path / "provenance.json").read_text())
    resolved = json.loads((tmp_path / "config.json").read_text())
    assert record["run"] == resolved["run"] == "smoke"
    assert "wbcd_mlp" in resolved["experiments"]
    assert math.isfinite(resolved["seed"])


def test_no_command_writes_the_credentials_of_a_mirror(tmp_path, capsys, monkeypatch):
    """Not into a file, and not where a log would keep it."""
    secrets = ("us3r", "p4ss/w0rd", "t0ken")
    mirror = f"http://{secrets[0]}:{secrets[1]}@127.0.0.1:9/data?key={secrets[2]}"
    run_file = tmp_path / "private" / "run.yaml"
    run_file.parent.mkdir()
    text = (small.ROOT / "config" / "smoke.yaml").read_text()
    run_file.write_text(text.replace("seed:", f"data: {{mirror: '{mirror}', cache: {tmp_path / 'cache'}}}\nseed:"))
    written = tmp_path / "written"
    assert call("provenance", run_file, "--output", written / "provenance.json") == 0
    broken = run_file.with_name("broken.yaml")
    broken.write_text(run_file.read_text().replace("mirror:", "mirorr:"))
    assert call("config", "check", broken) == 2
    monkeypatch.setattr("silodp.datasets.fetch.Download.__call__", _refused)
    assert call("fetch", "insurance", "--run-file", run_file, "--listing", written / "insurance.csv") == 2
    assert call("fetch", "mnist", "--mirror", mirror.replace("http", "ftp"), "--cache", tmp_path / "cache") == 2
    said = "".join(capsys.readouterr())
    assert "127.0.0.1:9/data" in said
    assert json.loads((written / "config.json").read_text())["data"]["mirror"] == "http://127.0.0.1:9/data"
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.parent != run_file.parent:
            said += path.read_bytes().decode("utf-8", "replace")
    assert [secret for secret in secrets if secret in said] == []


def _refused(download, url):
    from silodp.datasets.download import TransferError

    raise TransferError(f"no connection (Max retries exceeded with url: {url})")


@pytest.mark.parametrize("cores", [[], ["--cores", "2"]])
def test_a_rebuild_hands_targets_to_snakemake_as_targets(cores, monkeypatch, tmp_path):
    """`--configfile` takes every word up to the next option, so that a target must not follow it."""
    called = []
    run_file = small.ROOT / "config" / "smoke.yaml"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("silodp.workflow.engine.run", lambda command, *_: called.append(command) or 0)
    assert main(["rebuild", str(run_file), *cores, "--", "bounds"]) == 0
    (command,) = called
    place = command.index("--configfile")
    assert command[place + 1] == str(run_file)
    assert command[place + 2].startswith("--")
    assert command[-1] == "bounds"


def test_a_reader_that_leaves_early_is_no_fault():
    command = [sys.executable, "-c", "import sys; from silodp.cli import main; sys.exit(main(['theory', 'list']))"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert said == b""
    assert process.returncode == 1


def test_cheap_commands_load_no_heavy_library():
    """Hundreds of jobs start this way, and PyTorch alone takes seconds to load."""
    code = (
        "import contextlib, io, sys\n"
        "from silodp.cli import main\n"
        "for words in (['--help'], ['config', 'check', 'config/smoke.yaml'], ['theory', 'list']):\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "        main(words)\n"
        "    heavy = {'dp_accounting', 'matplotlib', 'numba', 'scipy', 'sklearn', 'torch'} & set(sys.modules)\n"
        "    assert not heavy, (words, heavy)\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr
