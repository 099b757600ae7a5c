"""Files spoiled at random, from a seed: bytes, lines, values and structure."""

import random

# What a slip of the hand, a broken disk or a joker may put in the place of a value.
VALUES = [
    *["true", "null", "~", "-1", "0", "1e400", "-.inf", ".nan", "9" * 20, "1e-320", "''", "[]", "{}", "[[]]", "yes"],
    *["010", "1:30", "2020-01-01", "!!python/object:os.system x", "!!binary aGk=", "!!int x", "&a [*a]", "*b", "<<"],
    *["'${x}'", "'$\\frac{'", "../../etc/passwd", "published", "'`touch x`'", "\u202e", "'\\0'", "{a: {b: {c: 1}}}"],
    *["- -", "1_000", "0x10", "Infinity", "minibatch_sgd", "M2_R5", "1/n^2", "'a b'", "é", "🐍", "x" * 5000, "[" * 400],
]


def _flip(text: bytes, rng: random.Random) -> bytes:
    spoiled = bytearray(text)
    for _ in range(rng.randint(1, 8)):
        spoiled[rng.randrange(len(spoiled))] = rng.randrange(256)
    return bytes(spoiled)


def _cut(text: bytes, rng: random.Random) -> bytes:
    return text[: rng.randrange(len(text))]


def _hole(text: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(text))
    return text[:start] + text[start + rng.randint(1, 40) :]


def _insert(text: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(text) + 1)
    return text[:place] + rng.choice([rng.choice(VALUES).encode(), rng.randbytes(rng.randint(1, 30))]) + text[place:]


def _lines(text: bytes, rng: random.Random) -> bytes:
    lines = text.splitlines(keepends=True)
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    marked = rng.choice([b"  ", b"\t", b"- ", b"? ", b"---\n"]) + lines[first]
    lines[first : first + 1] = rng.choice([[], [lines[first], lines[second]], [lines[second]], [marked]])
    return b"".join(lines)


def _value(text: bytes, rng: random.Random) -> bytes:
    lines = text.splitlines(keepends=True)
    for _ in range(rng.randint(1, 2)):
        number, mark = rng.randrange(len(lines)), rng.choice([b":", b","])
        head, found, tail = lines[number].partition(mark)
        if found:
            rest = tail.partition(b",")[2] if rng.random() < 0.3 else b"\n"
            lines[number] = head + mark + b" " + rng.choice(VALUES).encode() + rest
    return b"".join(lines)


def _swap(text: bytes, rng: random.Random) -> bytes:
    return rng.choice([b"", b"\0" * len(text), rng.randbytes(200), b"\x89PNG", b"<html>", b"PK\x03\x04", text * 3])


KINDS = [_flip, _cut, _hole, _insert, _lines, _value, _value, _value, _swap]


def mutant(text: bytes, rng: random.Random) -> bytes:
    """`text` spoiled once, sometimes twice."""
    for _ in range(rng.choice([1, 1, 1, 2])):
        text = rng.choice(KINDS)(text or b" ", rng)
    return text
