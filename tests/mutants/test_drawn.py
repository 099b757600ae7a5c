"""What is drawn: each kind of change, in statements of any kind and of several lines, and nothing of a message."""

import runpy
from collections import Counter

from small import ROOT

DRAWN = runpy.run_path(str(ROOT / "tests" / "mutants" / "drawn.py"))
SOURCE = '''
def f(x: Literal[3], y):
    """One and 2."""
    if x > y and x:
        raise ValueError(x + 1)
    log.info(x + 1)
    total = g(
        "é", x) - g(x,
        y,
    )
    return min(x, y) * math.sqrt(total), [one for one in y if one], np.argmax(x).max()
'''
WANTED = {
    ("operator", "if (x > y or x):"),
    ("operator", "if (x >= y) and x:"),
    ("condition", "if (not (x > y and x)):"),
    ("operator", "total = (g('é', x) + g(x, y))"),
    ("arguments swapped", '"é", x) - (g(y, x))'),
    ("operator", "return (min(x, y) / math.sqrt(total)), [one for one in y if one], np.argmax(x).max()"),
    ("min and max", "return max(x, y) * math.sqrt(total), [one for one in y if one], np.argmax(x).max()"),
    ("min and max", "return min(x, y) * math.sqrt(total), [one for one in y if one], np.argmin(x).max()"),
    ("min and max", "return min(x, y) * math.sqrt(total), [one for one in y if one], np.argmax(x).min()"),
    ("call dropped", "return (x) * math.sqrt(total), [one for one in y if one], np.argmax(x).max()"),
    ("call dropped", "return min(x, y) * (total), [one for one in y if one], np.argmax(x).max()"),
    ("call dropped", "return min(x, y) * math.sqrt(total), [one for one in y if one], (np.argmax(x))"),
    ("condition", "return min(x, y) * math.sqrt(total), [one for one in y if (not one)], np.argmax(x).max()"),
}


def test_every_kind_of_change_is_seen(tmp_path):
    path = tmp_path / "silodp" / "a" / "f.py"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    assert {(one.kind, one.lines()[1]) for one in DRAWN["changes"](path)} == WANTED
    compile(next(iter(DRAWN["changes"](path))).text(), "f.py", "exec")


def test_rooms_take_turns_and_a_seed_draws_the_same(tmp_path):
    package = tmp_path / "silodp"
    for name in ("a/f.py", "a/g.py", "b/inner/f.py", "top.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(SOURCE)
    drawn = DRAWN["draw"](package, 13, "seed")
    assert drawn == DRAWN["draw"](package, 13, "seed") != DRAWN["draw"](package, 13, "other")
    assert len(set(drawn)) == 13
    assert Counter(one.room for one in drawn) == {"a": 5, "b": 4, "files": 4}
    assert len(DRAWN["draw"](package, 999, "seed")) == 4 * len(WANTED)
