"""No stale result: edits of the package's own sources, and what they make to be done again."""

import ast
import re
from pathlib import Path

import pytest
import small

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Look
from silodp.config.loading import Resolved
from silodp.workflow import digests
from silodp.workflow.closure import ROOT, Sources
from silodp.workflow.plan import Plan

TRAIN = "silodp.cli.train:train"
HERE = Sources()


def module_path(module: str) -> Path:
    path = HERE.path(module)
    assert path is not None
    return path


def plan_digests(sources: Sources, changes: dict) -> dict[str, str]:
    """All digests of a small plan, by algorithm, figure, check or job."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "_here", lambda: sources)
        plan = Plan(Resolved(Path("run.yaml"), small.run(), {"small": small.experiment(**changes)}))
        found = {name: plan.training_digest("small", name) for name in plan.experiments["small"].algorithms}
        found |= {kind: plan.figure_digest("small", kind) for kind in ("error_vs_epsilon", "delivered_vs_claimed")}
        names = ("partition", "selection", "table", "privacy", "audit")
        found |= {name: getattr(plan, f"{name}_digest")("small") for name in names}
        found |= {f"check {name}": plan.check_digest(name) for name in ("upper_bounds", "participation")}
        return found | {name: getattr(plan, f"{name}_digest")() for name in ("formulas", "claims", "report", "redraw")}


def edited(module: str, old: str, new: str, **changes) -> set[str]:
    """What is to be done again when `old` in a module becomes `new`."""
    text = module_path(module).read_text(encoding="utf-8")
    assert old in text, f"{module}: {old}"
    before = plan_digests(HERE, changes)
    after = plan_digests(Sources(ROOT, {module: text.replace(old, new, 1)}), changes)
    return {name for name in before if before[name] != after[name]}


def trained(changed: set[str]) -> set[str]:
    return {name for name in changed if (ROOT / "algorithms" / f"{name}.py").is_file()}


def test_step_sizes_that_are_worked_out_differently_are_trained_again():
    found = edited("silodp.config.grid", "return np.exp(", "return 2 * np.exp(")
    assert trained(found) == set(small.experiment().algorithms)


def test_comments_docstrings_and_layout_redo_nothing():
    text = module_path("silodp.federation.messages").read_text(encoding="utf-8")
    first = next(line for line in text.splitlines() if line.startswith("class "))
    assert edited("silodp.federation.messages", first, f"# A comment.\n\n\n{first}") == set()
    assert edited("silodp.federation.messages", '"""', '"""Other words. ') == set()


def test_an_algorithms_own_file_retrains_that_algorithm_alone():
    found = edited("silodp.algorithms.local_sgd", '    name = "local_sgd"\n', '    name = "local_sgd"\n    more = 1\n')
    assert trained(found) == {"local_sgd"}
    assert "partition" not in found


def test_looks_of_figures_redraw_and_retrain_nothing():
    text = module_path("silodp.report.figures.style").read_text(encoding="utf-8")
    size = re.search(r'"font.size": [\d.]+', text)
    assert size is not None
    found = edited("silodp.report.figures.style", size.group(), '"font.size": 99')
    assert found == {"error_vs_epsilon", "delivered_vs_claimed", "redraw", "report"}


def test_the_look_of_an_algorithm_redraws_its_figures_and_retrains_nothing(monkeypatch):
    assert edited("silodp.algorithms.local_sgd", "look = Look(1, ", "look = Look(5, ") == set()
    before = plan_digests(HERE, {})
    monkeypatch.setattr(ALGORITHMS["local_sgd"], "look", Look(1, "#000000", "o"))
    after = plan_digests(HERE, {})
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"error_vs_epsilon", "delivered_vs_claimed", "report"}


def test_the_accountant_retrains_only_what_is_calibrated_by_it():
    edit = ("silodp.privacy.accounting.accountant", "\ndef upper_epsilon(", "\n@print\ndef upper_epsilon(")
    assert not trained(edited(*edit))
    calibrated = edited(*edit, alternatives=[{"noise": "calibrated"}])
    assert trained(calibrated) == set(small.experiment().algorithms)
    assert {"privacy", "audit"} <= calibrated


def test_one_check_alone_is_made_again_when_its_file_changes():
    edit = ("silodp.verdicts.checks.upper_bounds", "EPSILONS = (", "EPSILONS = (0.5, ")
    assert edited(*edit) == {"check upper_bounds"}


def test_subcommands_that_make_no_result_concern_no_job():
    assert edited("silodp.cli.practitioner", "\ndef ", "\ndef more():\n    return 1\n\n\ndef ") == set()


def test_every_module_behind_training_counts_and_its_comments_do_not():
    """In every module of the closure: another number changes the digest; comments and docstrings anywhere do not."""
    aside = ["silodp.experiments.validation:load"]
    closure = HERE.closure([TRAIN], aside=aside)
    texts = {module: module_path(module).read_text(encoding="utf-8") for module in closure.modules()}
    assert len(texts) > 40
    quiet = {name: re.sub(r'^(\s*)"""(?=\w)', r'\1"""Other: ', text, flags=re.M) for name, text in texts.items()}
    quiet = {name: f"# More.\n{text}# More.\n" for name, text in quiet.items()}
    assert Sources(ROOT, quiet).closure([TRAIN], aside=aside).digest == closure.digest
    looked_at = 0
    for module, text in texts.items():
        places = {node[1] for node in closure.reached if node[0] == module}
        statements = [one for place, one in enumerate(HERE.module(module).statements) if place in places]
        number = _number([one for one in statements if f"{module}:{''.join(one.names)}" not in aside])
        if number is not None:
            lines = text.splitlines(keepends=True)
            line = lines[number.lineno - 1].encode()
            lines[number.lineno - 1] = (line[: number.col_offset] + b"77.5" + line[number.end_col_offset :]).decode()
            other = Sources(ROOT, {module: "".join(lines)})
            differ = [node for node in closure.reached if node[0] == module and other.digest(node) != HERE.digest(node)]
            assert differ, f"{module}:{number.lineno}"
            looked_at += 1
            # The digest of the closure is one of all its statements': that is tried out a few times.
            if looked_at % 20 == 0:
                assert other.closure([TRAIN], aside=aside).digest != closure.digest
    assert looked_at > 30


def _number(statements) -> ast.Constant | None:
    """The first number in definitions, annotations of functions and looks of algorithms aside."""
    nodes = [node for one in statements for part in one.nodes for node in ast.walk(part) if not one.entries]
    notes = {id(one) for node in nodes for one in ast.walk(getattr(node, "annotation", None) or ast.Pass())}
    notes |= {id(one) for node in nodes for one in ast.walk(getattr(node, "returns", None) or ast.Pass())}
    looks = [node for node in nodes if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "look"]
    notes |= {id(one) for node in looks for one in ast.walk(node)}
    numbers = (node for node in nodes if isinstance(node, ast.Constant) and type(node.value) in (int, float))
    return next((one for one in numbers if id(one) not in notes and one.lineno == one.end_lineno), None)


def test_every_module_can_be_followed():
    """Anything that names its modules or definitions at run time is a registry, or an error here."""
    dynamic = set()
    # Brings in files that it is told of: their code is followed from the registries, and no job's own code reaches it.
    names = [name for name in HERE.below("silodp") if name != "silodp.experiments.plugins"]
    reached = HERE.closure([TRAIN], aside=["silodp.experiments.validation:load"]).names()
    assert not any(one.startswith("silodp.experiments.plugins:") for one in reached)
    for name in names:
        for statement in HERE.module(name).statements:
            for one in (statement, *statement.entries.values()):
                dynamic |= one.text.dynamic
                for use in one.text.uses:
                    HERE.place(HERE.target(one, use), use.path)
    scanned = {
        name
        for name in HERE.below("silodp")
        if re.search(r"pkgutil|import_module|__path__", module_path(name).read_text(encoding="utf-8"))
        and not name.startswith("silodp.workflow.")
    }
    assert {f"{name}.*" for name in scanned} == dynamic
    assert {"silodp.algorithms.*", "silodp.datasets.*", "silodp.verdicts.checks.*"} <= dynamic
