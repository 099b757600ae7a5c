"""Help, overview, common options, and a quick start."""

import shlex
import subprocess
import sys

import pytest
import small

from silodp import __version__
from silodp.cli import COMMANDS, main, silodp

# In the order of need.
NAMES = "init rebuild replicate list epsilon noise audit claims theory verify publish fetch predict cost config doctor "
NAMES += "clean silo federate ledger decided"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_an_example_that_parses(name, capsys):
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: silodp {name}")
    assert "-q, --quiet" in text
    command = silodp.get_command(None, name)
    if command.epilog:
        words = shlex.split(command.epilog.removeprefix("Example: "))
        assert words[:2] == ["silodp", name]
        assert command.make_context(name, words[2:]).params


def test_the_overview_is_a_screen_with_a_line_for_every_command(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[lines.index("Commands:") + 1 :]] == NAMES.split()
    assert len(lines) <= 36
    assert max(map(len, lines)) <= 80
    assert main([]) == 2
    assert "Usage: silodp" in capsys.readouterr().err
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"silodp {__version__}\n"


@pytest.mark.parametrize("words", [["-q", "config", "check"], ["config", "check", "-q"], ["config", "-q", "check"]])
def test_quiet_goes_before_or_after_the_command(words, capsys):
    run_file = str(small.ROOT / "config" / "smoke.yaml")
    assert main([*words, run_file]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["config", "check", run_file]) == 0
    assert "2 experiments, all checks passed" in capsys.readouterr().err


RUN_FILE = str(small.ROOT / "config" / "smoke.yaml")
NO_LIBRARY = "from silodp.cli import main; assert main(['--help']) == 0"
CHECK = f"from silodp.cli import main; assert main(['config', 'check', {RUN_FILE!r}]) == 0"
# What `silodp rebuild` does before it starts Snakemake, and what Snakemake does before the first job.
REBUILD = f"""
import silodp.cli.run
from silodp.workflow import cost, job_digest
cost.cost_here(job_digest.make_plan({RUN_FILE!r}, None, False))
"""
DRY_RUN = f"""
import contextlib, sys
from snakemake.cli import main
with contextlib.suppress(SystemExit):
    main(["--dry-run", "--quiet", "--snakefile", {str(small.ROOT / "Snakefile")!r}, "--configfile", {RUN_FILE!r}])
assert "silodp.workflow.job_digest" in sys.modules
"""
SELECT = "import silodp.jobs.__main__, silodp.jobs.select, silodp.workflow.job_digest"
LIGHT = {"dp_accounting", "matplotlib", "numba", "scipy", "sklearn", "torch"}


@pytest.mark.parametrize(
    ("code", "heavy"),
    # Comparisons, whose names the plan has, and measures of silos, beside which records are kept, load scipy.
    [
        (NO_LIBRARY, LIGHT | {"pandas"}),
        (CHECK, LIGHT),
        (REBUILD, LIGHT - {"scipy"}),
        (DRY_RUN, LIGHT - {"scipy"}),
        (SELECT, LIGHT - {"scipy"}),
    ],
    ids=["help", "check", "rebuild", "dry run", "select"],
)
def test_what_plans_or_checks_loads_no_heavy_library(tmp_path, code, heavy):
    code += f"\nimport sys\nsys.exit(', '.join({heavy} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("cores", [[], ["--cores", "2"]])
def test_a_rebuild_passes_targets_to_snakemake_as_targets(cores, monkeypatch, tmp_path):
    """`--configfile` takes every word up to the next option, so that a target must not follow it."""
    commands = []
    run_file = str(small.ROOT / "config" / "smoke.yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("silodp.workflow.engine.run", lambda command, *_: commands.append(command) or 0)
    assert main(["rebuild", run_file, *cores, "--", "bounds", "--dry-run"]) == 0
    (command,) = commands
    place = command.index("--configfile")
    assert command[place + 1] == run_file
    assert command[place + 2].startswith("--")
    assert command[-2:] == ["bounds", "--dry-run"]
    # In a folder that is no checkout the checkout's workflow and profile are used.
    assert command[command.index("--snakefile") + 1] == str(small.ROOT / "Snakefile")
    assert command[command.index("--profile") + 1] == str(small.ROOT / "workflow" / "profiles" / "default")


def test_lists_name_what_a_run_file_may_name(capsys):
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("mnist_mlp", "wbcd_mlp", "local_sgd", "mnist", "convex-2", "checkins-2"))
    assert main(["list", "figures"]) == 0
    text = capsys.readouterr().out
    assert "nonconvex-10" in text
    assert "algorithms:" not in text
