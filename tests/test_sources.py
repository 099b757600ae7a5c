"""Sources behind a result: what a training job imports is in its digest, and digests change with the text."""

import ast
from pathlib import Path

import pytest

from silodp.algorithms import ALGORITHMS
from silodp.sources import (
    PACKAGE,
    PARTITIONED_BY,
    SUMMED_BY,
    TRAINED_BY,
    algorithm_files,
    built_on,
    from_here,
    sources_digest,
)


def test_paths_are_as_seen_from_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert from_here(tmp_path / "config" / "run.yaml") == "config/run.yaml"
    assert from_here("config/run.yaml") == "config/run.yaml"
    assert from_here("/elsewhere/run.yaml") == "/elsewhere/run.yaml"


def imported(path: Path) -> set[str]:
    """Files of the package that `path` imports, `TYPE_CHECKING` blocks aside."""
    found = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or id(node) in guarded or not (node.module or "").startswith("silodp"):
            continue
        base = PACKAGE.joinpath(*node.module.split(".")[1:])
        candidates = [base.with_suffix(".py"), base / "__init__.py", *(base / f"{name.name}.py" for name in node.names)]
        found |= {file.relative_to(PACKAGE).as_posix() for file in candidates if file.is_file()}
    return found


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_source_behind_a_trained_result_is_in_its_digest(algorithm):
    """Follows the imports of a training job; what is left over decides no number of a run by itself."""
    seen: set[str] = set()
    front = {"training.py", f"algorithms/{algorithm}.py"}
    while front:
        name = front.pop()
        seen.add(name)
        front |= imported(PACKAGE / name) - seen
    # What follows a schedule, or calibrates noise, is in the digest of the experiments that ask for it.
    asked = (*built_on("prescribed.py"), *built_on("privacy/calibration.py"), *built_on("privacy/shuffled_plan.py"))
    asked += SUMMED_BY
    covered = (*TRAINED_BY, *PARTITIONED_BY, *algorithm_files(algorithm), *asked)
    rest = {name for name in seen if not any(name == one or name.startswith(f"{one}/") for one in covered)}
    # The registry; the configuration, whose values are in the digest; files and their formats; what only refuses a run.
    rest -= {"guard.py", *built_on("privacy/shuffling.py")}
    assert rest <= {
        "algorithms/__init__.py",
        "theory/__init__.py",
        "config.py",
        "config_check.py",
        "config_models.py",
        "config_parts.py",
        "results.py",
        "__init__.py",
    }


def test_an_algorithm_that_is_built_on_another_hears_of_its_changes():
    assert algorithm_files("local_sgd") == ("algorithms/local_sgd.py",)
    noise = ("theory/convex_privacy.py", "theory/registry.py")
    assert algorithm_files("minibatch_sgd") == ("algorithms/minibatch_sgd.py", *noise)
    assert algorithm_files("fedprox_spider") == (
        "algorithms/fedprox_spider.py",
        "algorithms/minibatch_sgd.py",
        *noise,
    )
    assert {"algorithms/minibatch_sgd.py", "privacy/mechanisms.py"} < set(algorithm_files("one_pass_accelerated_sgd"))


def test_digests_of_sources_change_with_their_text(tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    for name in ("rng.py", "models/a.py", "models/b.py"):
        (tmp_path / name).write_text("x = 1\n")
    monkeypatch.setattr("silodp.sources.PACKAGE", tmp_path)
    fresh = sources_digest.__wrapped__
    before = fresh(("rng.py", "models"))
    assert fresh(("rng.py", "models")) == before
    (tmp_path / "models" / "b.py").write_text("x = 2\n")
    changed = fresh(("rng.py", "models"))
    assert changed != before
    (tmp_path / "models" / "b.py").rename(tmp_path / "models" / "c.py")
    assert fresh(("rng.py", "models")) not in (before, changed)
