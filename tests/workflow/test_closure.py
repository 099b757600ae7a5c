"""What a job is computed by: edits that count change its digest, others do not; what cannot be followed is an error."""

import ast
import textwrap

import pytest

from silodp.workflow.closure import Sources
from silodp.workflow.uses import Reader

TOY = {
    "job": """
        import math
        from toy import tools
        from toy.parts import Part as Piece, helper
        from .shapes import SHAPES

        STEP = 3

        def run(options):
            \"\"\"Docstring.\"\"\"
            from toy.late import late
            piece: Piece = Piece(math.pi)
            return piece.work(STEP), tools.sharpen(1), late(), SHAPES[options.shape], [helper for helper in options]

        def other():
            return 4
    """,
    "tools": """
        from toy.store import keep

        @keep("sharpen")
        def sharpen(x, by=5):
            return x * by

        @keep("blunt")
        def blunt(x):
            return x / 6
    """,
    "parts": """
        from dataclasses import dataclass
        from toy.base import Base

        def helper():
            return 70

        @dataclass
        class Part(Base):
            size: float = 8
            \"\"\"Docstring of a field.\"\"\"

            def work(self, step):
                def inner(x):
                    return x + self.bonus() + 9
                return inner(step)
    """,
    "base": """
        import toy.effect

        class Base:
            def bonus(self):
                return 10
    """,
    "late": """
        def late():
            try:
                return 11
            except ValueError as error:
                raise RuntimeError("late") from error
    """,
    "shapes": """
        def _round(): return 12
        def _square(): return 13
        SHAPES = {"round": _round, "square": lambda: _square()}
        ROUND = SHAPES["round"]
    """,
    "store": """
        STORE: dict = {}

        def keep(key):
            def enter(function):
                STORE[key] = function
                return function
            return enter

        def kept(key):
            return STORE[key]
    """,
    "effect": """
        import numpy
        numpy.seterr(divide=14)
    """,
    "users": """
        from toy.store import kept
        from toy import tools
        from toy.plugins import PLUGINS, load

        def user(key): return kept(key)
        def named(): return PLUGINS["one"]
        def opened(key): return load(key)
        def both(key): return load(key), ROUND
        from toy.shapes import ROUND
    """,
    "plugins.__init__": """
        import importlib
        import pkgutil

        def load(name):
            return importlib.import_module(f"{__name__}.{name}").RUN

        PLUGINS = {found.name: None for found in pkgutil.iter_modules(__path__)}
    """,
    "plugins.one": "RUN = 15",
    "plugins.two": "RUN = 16",
    "__init__": "",
}


@pytest.fixture
def toy(tmp_path):
    """(edits: module → (old, new)) → the toy package's sources with these edits."""
    for name, text in TOY.items():
        path = tmp_path / "toy" / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def sources(**edits):
        replaced = {}
        for name, (old, new) in edits.items():
            text = textwrap.dedent(TOY[name.replace("__", ".") if name != "__init__" else name])
            assert old in text
            replaced[f"toy.{name.replace('__', '.')}"] = text.replace(old, new)
        return Sources(tmp_path / "toy", replaced)

    return sources


def digest(sources, entry="toy.job:run", **given):
    return sources.closure([entry], **given).digest


def test_a_digest_is_the_same_by_every_python():
    """Python 3.12 ends a nested format with an empty text that 3.11 and 3.13 do not have."""
    tree = ast.parse(
        'def run(x, *, w=1):\n    return f"{x!r:>{w}} {x:.2f}{{}}", [y**-2 for y in x if y], lambda z: z[1:]'
    )
    plain = Reader("toy", "toy").read(("run",), [tree]).digest
    for one in ast.walk(tree):
        if isinstance(one, ast.FormattedValue) and isinstance(one.format_spec, ast.JoinedStr):
            one.format_spec.values.append(ast.Constant(""))
    assert Reader("toy", "toy").read(("run",), [tree]).digest == plain
    # What Python 3.11.7, 3.12.1 and 3.13.0 all give.
    assert plain == "f82386440337f3d01b6cdcf25b4c2aed211b0b7bb444b461bd245c91b04c828e"


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("job", "STEP = 3", "STEP = 4"),
        ("job", "import math\n", "import cmath as math\n"),
        ("job", "import Part as Piece", "import helper as Piece"),
        ("tools", "by=5", "by=6"),
        ("tools", '@keep("sharpen")', '@keep("sharper")'),
        ("parts", "= 8", "= 9"),
        ("parts", "+ 9", "+ 10"),
        ("parts", "size: float", "size: int"),
        ("base", "10", "11"),
        ("late", "11", "12"),
        ("late", '"late"', '"later"'),
        ("shapes", "12", "13"),
        ("shapes", "13", "14"),
        ("store", "return function", "return None"),
        ("effect", "14", "15"),
    ],
)
def test_what_is_reached_counts(toy, module, old, new):
    assert digest(toy(**{module: (old, new)})) != digest(toy())


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("job", "STEP = 3", "# a comment\nSTEP   =   3"),
        ("job", "Docstring.", "Another."),
        ("job", '    """Docstring."""\n', ""),
        ("job", "return 4", "return 5"),
        ("job", "def run(options)", "def run(options: dict[str, int]) -> tuple"),
        ("parts", "Docstring of a field.", "More words."),
        # A name that is only a loop's variable in the job.
        ("parts", "70", "71"),
        ("tools", "/ 6", "/ 7"),
        ("store", "return STORE[key]", "return None"),
    ],
)
def test_what_is_not_reached_or_changes_no_result_does_not_count(toy, module, old, new):
    assert digest(toy(**{module: (old, new)})) == digest(toy())


def test_a_dict_of_strings_counts_by_the_entries_asked_for(toy):
    choice = {"chosen": {"toy.shapes:SHAPES": ["round"]}}
    before = digest(toy(), **choice)
    assert digest(toy(shapes=("13", "14")), **choice) == before
    assert digest(toy(shapes=("12", "14")), **choice) != before
    # A literal is a choice of its own.
    assert digest(toy(shapes=("13", "14")), "toy.shapes:ROUND") == digest(toy(), "toy.shapes:ROUND")
    assert digest(toy(shapes=("12", "14")), "toy.shapes:ROUND") != digest(toy(), "toy.shapes:ROUND")


def test_a_container_that_decorators_fill_counts_by_the_entries_asked_for(toy):
    """Who reads it hears of all entries; who is only entered in it hears of none."""
    assert digest(toy(tools=("/ 6", "/ 7")), "toy.users:user") != digest(toy(), "toy.users:user")
    choice = {"chosen": {"toy.store:STORE": ["sharpen"]}}
    assert digest(toy(tools=("/ 6", "/ 7")), "toy.users:user", **choice) == digest(toy(), "toy.users:user", **choice)
    assert digest(toy(tools=("5", "7")), "toy.users:user", **choice) != digest(toy(), "toy.users:user", **choice)


def test_a_package_that_is_scanned_counts_by_the_modules_asked_for(toy):
    edit = {"plugins__two": ("16", "17")}
    assert digest(toy(**edit), "toy.users:opened") != digest(toy(), "toy.users:opened")
    assert digest(toy(**edit), "toy.users:named") == digest(toy(), "toy.users:named")
    assert digest(toy(plugins__one=("15", "17")), "toy.users:named") != digest(toy(), "toy.users:named")
    choice = {"chosen": {"toy.plugins": ["one"]}}
    assert digest(toy(**edit), "toy.users:opened", **choice) == digest(toy(), "toy.users:opened", **choice)


def test_a_choice_leaves_what_is_asked_for_by_a_literal(toy):
    choice = {"chosen": {"toy.plugins": ["one"], "toy.shapes:SHAPES": ["square"]}}
    job = toy(users=("load(key), ROUND", "load(key), ROUND, SHAPES[key]"))
    job.replaced["toy.users"] = job.replaced["toy.users"].replace("import ROUND", "import ROUND, SHAPES")
    other = toy(shapes=("12", "14"))
    other.replaced["toy.users"] = job.replaced["toy.users"]
    assert digest(job, "toy.users:both", **choice) != digest(other, "toy.users:both", **choice)


def test_of_a_function_that_is_put_aside_only_what_it_returns_counts(toy):
    aside = {"aside": ["toy.tools:sharpen"]}
    assert digest(toy(tools=("5", "6")), **aside) == digest(toy(), **aside)
    typed = ("def sharpen(x, by=5)", "def sharpen(x, by=5) -> Base")
    before = toy(tools=typed)
    before.replaced["toy.tools"] += "\nfrom toy.base import Base\n"
    after = Sources(before.root, before.replaced | {"toy.base": textwrap.dedent(TOY["base"]).replace("10", "11")})
    assert digest(before, **aside) != digest(after, **aside)


def test_files_that_code_names_count(toy):
    sources = toy(late=("return 11", 'return open("late.csv")'))
    (sources.root / "late.csv").write_text("1")
    before = digest(sources)
    (sources.root / "late.csv").write_text("2")
    assert digest(Sources(sources.root, sources.replaced)) != before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("return 11", "return eval('11')", "toy.late:4: eval: cannot be followed"),
        ("return 11", "return globals()['late']", "globals: cannot be followed"),
        ("return 11", "import importlib; return importlib.import_module(error)", "import_module: cannot be followed"),
        ("return 11", "import sys; return sys.modules['toy']", "sys.modules: cannot be followed"),
        ("def late", "from toy.parts import *\ndef late", "import \\*: cannot be followed"),
        ("def late", "def __getattr__(name): return 1\ndef late", "__getattr__: cannot be followed"),
        ("def late", "class Meta(metaclass=type): pass\n@Meta\ndef late", "metaclass: cannot be followed"),
        ("return 11", "from toy.nowhere import x; return x", "toy.nowhere: no such module"),
        ("return 11", "from toy.parts import x; return x", "toy.parts:x: no such definition"),
    ],
)
def test_what_cannot_be_followed_is_an_error(toy, old, new, message):
    with pytest.raises(ValueError, match=message):
        digest(toy(late=(old, new)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"entry": "toy.job:walk"}, "toy.job:walk: no such definition"),
        (
            {"chosen": {"toy.plugins": ["one"]}},
            "chosen: toy.plugins: must be a registry that is read: toy.shapes:SHAPES",
        ),
        ({"chosen": {"toy.shapes:SHAPES": ["flat"]}}, "flat: no such entry: must be one of round, square"),
        ({"aside": ["toy.job:other"]}, "aside: toy.job:other: must be a function that is reached"),
    ],
)
def test_choices_and_names_that_are_not_there_are_errors(toy, given, message):
    with pytest.raises(ValueError, match=message):
        digest(toy(), **given)
