"""What a job computes decides its digest: code and data of the files that it imports, and no file's name."""

import textwrap

import pytest

from silodp.workflow.closure import CodeSources

TOY = {
    "__init__": '"""A package."""',
    "job": """
        from __future__ import annotations
        from typing import TYPE_CHECKING
        from toy.parts import Part
        from . import tools
        import toy.parts.saw
        if TYPE_CHECKING:
            from toy.typed import Typed

        def run(options):
            \"\"\"Docstring.\"\"\"
            from toy.late import late
            if options is None:
                raise ValueError("no options")
            return Part(options), tools.sharpen(1), toy.parts.saw.cut(2), late()
    """,
    "parts.__init__": "from .part import Part",
    "parts.part": "class Part:\n    size = 8\n",
    "parts.saw": "def cut(x):\n    return x / 2\n",
    "tools": "def sharpen(x, by=5):\n    return x * by\n",
    "late": 'from pathlib import Path\ndef late():\n    return open(Path(__file__).with_name("late.csv"))\n',
    "typed": "class Typed:\n    size = 1\n",
    "registry": "from importlib import import_module\ndef entry(name): return import_module(f'{__name__}.{name}')\n",
    "entries.__init__": "",
    "entries.one": "SIZE = 15",
    "entries.two": "SIZE = 16",
    "both": "from toy.entries.one import SIZE as a\nfrom toy.entries.two import SIZE as b\nTOLD = a - b",
    "hen": "from toy.egg import LAID\ndef hatch():\n    return 1",
    "egg": "LAID = 2\ndef lay():\n    from toy.hen import hatch\n    return hatch()",
    "other": "SIZE = 17",
}


@pytest.fixture
def toy(tmp_path):
    """(module → text) → the sources of a package of these files beside its data file."""
    (tmp_path / "late.csv").write_text("1")

    def sources(files=TOY):
        root = tmp_path / str(len(list(tmp_path.iterdir()))) / "toy"
        for name, text in files.items():
            path = root / f"{name.replace('.', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        (root / "late.csv").write_text((tmp_path / "late.csv").read_text())
        return CodeSources(root=root)

    return sources


def edited(module, old, new):
    assert old in TOY[module]
    return TOY | {module: TOY[module].replace(old, new, 1)}


def moved(module, place):
    """The files with a module at another place, and all imports and uses of it with the new name."""
    room, _, word = place.rpartition(".")
    names = {f"toy.{module}": f"toy.{place}", f"from . import {module}": f"from toy.{room} import {word}"}
    names[f" {module}.sharpen"] = f" {word}.sharpen"
    files = {}
    for name, text in TOY.items():
        for old, new in names.items():
            text = text.replace(old, new)
        files[place if name == module else name] = text
    return files


@pytest.mark.parametrize(
    ("changes", "module", "old", "new"),
    [
        (True, "job", "options)", "options, more=0)"),
        (True, "job", "raise ValueError", "raise KeyError"),
        (True, "job", "Part(options), tools.sharpen(1)", "Part(1), tools.sharpen(options)"),
        (True, "tools", "by=5", "by=6"),
        (True, "parts.part", "8", "9"),
        (True, "parts.saw", "2", "3"),
        (True, "late", "def late():", "def late(more=0):"),
        (True, "parts.__init__", "from .part import Part", "from .part import Part\nPart.size = 3"),
        # Only a parent.
        (False, "__init__", '"""A package."""', "SIZE = 1"),
        (False, "job", "        def run", "        # A comment.\n\n        def run"),
        (False, "job", "Docstring.", "Other words."),
        (False, "job", '"no options"', 'f"{options}: must be options"'),
        (
            False,
            "job",
            "from toy.parts import Part\n        from . import tools",
            "from . import tools\n        from toy.parts import Part",
        ),
        (False, "parts.part", "    size = 8", '    """More."""\n    size   =   8'),
        (False, "typed", "1", "2"),
        (False, "other", "17", "18"),
    ],
)
def test_an_edit_changes_the_digest_where_it_computes_something(toy, changes, module, old, new):
    assert (toy(edited(module, old, new)).digest(["toy.job"]) != toy().digest(["toy.job"])) == changes


@pytest.mark.parametrize(("module", "place"), [("tools", "deep.workshop"), ("parts.saw", "saw"), ("other", "another")])
def test_a_module_that_is_moved_changes_no_digest(toy, module, place):
    assert toy(moved(module, place)).digest(["toy.job"]) == toy().digest(["toy.job"])


def test_files_that_swap_their_contents_change_whoever_imports_them(toy):
    swapped = TOY | {"entries.one": TOY["entries.two"], "entries.two": TOY["entries.one"]}
    assert toy(swapped).digest(["toy.both"]) != toy().digest(["toy.both"])
    entries = ["toy.entries.one", "toy.entries.two"]
    assert toy(swapped).digest(entries) != toy().digest(entries)


def test_modules_that_import_each_other_are_digested_as_one(toy):
    before = [toy().digest([name]) for name in ("toy.hen", "toy.egg")]
    assert toy().digest(["toy.egg", "toy.hen"]) != toy().digest(["toy.hen", "toy.egg"])
    for module, old, new in (("hen", "return 1", "return 3"), ("egg", "2", "3")):
        files = edited(module, old, new)
        assert all(toy(files).digest([name]) != was for name, was in zip(("toy.hen", "toy.egg"), before, strict=True))
    # Which of them is reached first is nobody's business.
    sources = toy()
    assert [sources.digest(["toy.egg"]), sources.digest(["toy.hen"])] == before[::-1]
    files = {name.replace("egg", "ovum"): text.replace("toy.egg", "toy.ovum") for name, text in TOY.items()}
    assert toy(files).digest(["toy.hen"]) == before[0]


def test_a_registry_counts_by_the_entries_that_a_job_names(toy):
    entries = ["toy.registry", "toy.entries.one"]
    assert toy(edited("entries.one", "15", "17")).digest(entries) != toy().digest(entries)
    assert toy(edited("entries.two", "16", "17")).digest(entries) == toy().digest(entries)


def test_an_excluded_module_and_what_it_alone_imports_do_not_count(toy):
    files, excluded = edited("parts.part", "8", "9"), ["toy.parts"]
    assert toy(files).digest(["toy.job"], excluded) == toy().digest(["toy.job"], excluded)
    assert toy().closure(["toy.job"], excluded) == {"toy.job", "toy.tools", "toy.late", "toy.parts.saw"}


def test_a_data_file_that_code_names_counts_and_must_be_there(toy, tmp_path):
    before = toy().digest(["toy.job"])
    (tmp_path / "late.csv").write_text("2")
    assert toy().digest(["toy.job"]) != before
    sources = toy()
    (sources.root / "late.csv").unlink()
    with pytest.raises(ValueError, match=r"late\.csv: missing: .*late\.py names it"):
        sources.digest(["toy.job"])


def test_a_file_of_the_project_that_code_names_counts_and_must_be_there(toy, tmp_path):
    files = TOY | {"other": 'def read():\n    return open(project_root() / "config" / "table.csv")\n'}
    with pytest.raises(ValueError, match=rf"{tmp_path}/config/table\.csv: missing: .*other\.py names it"):
        toy(files).digest(["toy.other"])
    (tmp_path / "config").mkdir()
    digests = []
    for text in "112":
        (tmp_path / "config" / "table.csv").write_text(text)
        digests.append(toy(files).digest(["toy.other"]))
    assert digests[0] == digests[1] != digests[2]


def test_modules_that_do_not_exist_are_an_error(toy):
    for arguments in (["toy.nowhere"],), (["toy.job"], ["toy.nowhere"]):
        with pytest.raises(ValueError, match=r"toy\.nowhere: no such module"):
            toy().digest(*arguments)


def test_a_snapshot_keeps_the_sources_as_they_were(toy, tmp_path):
    sources, snapshot = toy(), tmp_path / "sources.json"
    before, root = sources.digest(["toy.job"]), sources.root
    sources.save(snapshot)
    (root / "tools.py").write_text(TOY["tools"].replace("5", "6"))
    after = CodeSources(root=root).digest(["toy.job"])
    assert CodeSources(root=root, snapshot=snapshot, frozen=True).digest(["toy.job"]) == before
    # Where it only spares parsing, files count as they are.
    assert CodeSources(root=root, snapshot=snapshot).digest(["toy.job"]) == after != before
