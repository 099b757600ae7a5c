"""The files that a job imports decide its digest; comments, docstrings and files that it does not import do not."""

import pytest

from silodp.workflow.closure import CodeSources

TOY = {
    "__init__": '"""A package."""',
    "job": """
        from __future__ import annotations
        from typing import TYPE_CHECKING
        from toy.parts import Part
        from . import tools
        if TYPE_CHECKING:
            from toy.typed import Typed

        def run(options):
            \"\"\"Docstring.\"\"\"
            from toy.late import late
            return Part(options), tools.sharpen(1), late()
    """,
    "parts.__init__": "from .part import Part",
    "parts.part": "class Part:\n    size = 8\n",
    "tools": "def sharpen(x, by=5):\n    return x * by\n",
    "late": 'def late():\n    return open("late.csv")\n',
    "typed": "class Typed:\n    size = 1\n",
    "registry": "from importlib import import_module\ndef entry(name): return import_module('toy.entries.' + name)\n",
    "entries.__init__": "",
    "entries.one": "SIZE = 15",
    "entries.two": "SIZE = 16",
    "other": "SIZE = 17",
}


@pytest.fixture
def digest(tmp_path):
    """(entries, edits: module → (old, new)) → the digest of the toy package with these edits."""
    root = tmp_path / "toy"

    def digest_of(*entries, excluded=(), **edits):
        for name, text in TOY.items():
            old, new = edits.get(name.replace(".", "_"), ("", ""))
            assert old in text
            path = root / f"{name.replace('.', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = text.replace(old, new, 1).splitlines()
            path.write_text("\n".join(line.removeprefix("        ") if name == "job" else line for line in lines))
        return CodeSources(root=root).digest(entries or ["toy.job"], excluded)

    root.mkdir()
    (root / "late.csv").write_text("1")
    return digest_of


@pytest.mark.parametrize(
    ("changes", "module", "old", "new"),
    [
        (True, "job", "options)", "options, more=0)"),
        (True, "tools", "by=5", "by=6"),
        (True, "parts_part", "8", "9"),
        (True, "late", "def late():", "def late(more=0):"),
        (True, "__init__", '"""A package."""', "SIZE = 1"),
        (False, "job", "        def run", "        # A comment.\n\n        def run"),
        (False, "job", "Docstring.", "Other words."),
        (False, "parts_part", "    size = 8", '    """More."""\n    size   =   8'),
        (False, "typed", "1", "2"),
        (False, "other", "17", "18"),
    ],
)
def test_an_edit_changes_the_digest_where_it_is_code_of_an_imported_file(digest, changes, module, old, new):
    before = digest()
    assert (digest(**{module: (old, new)}) != before) == changes


def test_a_registry_counts_by_the_entries_that_a_job_names(digest):
    before = digest("toy.registry", "toy.entries.one")
    assert digest("toy.registry", "toy.entries.one", entries_one=("15", "17")) != before
    assert digest("toy.registry", "toy.entries.one", entries_two=("16", "17")) == before


def test_an_excluded_module_and_what_it_alone_imports_do_not_count(digest):
    before = digest(excluded=["toy.parts"])
    assert digest(excluded=["toy.parts"], parts_part=("8", "9")) == before


def test_data_files_that_code_names_count(digest, tmp_path):
    before = digest()
    (tmp_path / "toy" / "late.csv").write_text("2")
    assert digest() != before


def test_a_module_that_does_not_exist_is_an_error(digest):
    with pytest.raises(ValueError, match=r"toy\.nowhere: no such module"):
        digest("toy.nowhere")


def test_a_snapshot_keeps_the_sources_as_they_were(digest, tmp_path):
    before, snapshot, root = digest(), tmp_path / "sources.json", tmp_path / "toy"
    CodeSources(root=root).save(snapshot)
    edited = digest(tools=("by=5", "by=6"))
    assert CodeSources(root=root, snapshot=snapshot, frozen=True).digest(["toy.job"]) == before
    # Where it only spares parsing, files count as they are.
    assert CodeSources(root=root, snapshot=snapshot).digest(["toy.job"]) == edited != before
