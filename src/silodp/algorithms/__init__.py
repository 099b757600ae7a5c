"""A name comes in; an `Algorithm` goes out: `ALGORITHMS["fedprox_spider"]`, a file for each algorithm.

A file is imported when its algorithm is first asked for, so that commands which train nothing load no PyTorch.
Plug-ins stand beside them (silodp.extending.plugins). Read `base.py` first, then `minibatch_sgd.py`.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from silodp.algorithms.base import Algorithm, Look


class _Registry(Mapping[str, "type[Algorithm]"]):
    def __init__(self, names: list[str]):
        self._names = names
        # Of plug-ins.
        self.own: dict[str, type[Algorithm]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter([*self._names, *self.own])

    def __len__(self) -> int:
        return len(self._names) + len(self.own)

    def __contains__(self, name: object) -> bool:
        return name in self._names or name in self.own

    def __getitem__(self, name: str) -> "type[Algorithm]":
        if name in self.own:
            return self.own[name]
        if name not in self._names:
            raise KeyError(name)
        module = importlib.import_module(f"{__name__}.{name}")
        for item in vars(module).values():
            if isinstance(item, type) and getattr(item, "name", None) == name and item.__module__ == module.__name__:
                return item
        raise TypeError(f"{module.__file__}: must define an Algorithm with name = {name!r}")


ALGORITHMS = _Registry(sorted(file.name for file in pkgutil.iter_modules(__path__) if file.name != "base"))


class Traits(NamedTuple):
    """What tables and figures show of an algorithm: its name there, whether it is for sums, and as `Algorithm` says."""

    label: str
    summed: bool = False
    better_of: tuple[str, int] | None = None
    look: "Look | None" = None


def traits(name: str) -> Traits:
    """Traits of an algorithm; the label of an unknown name, as in results of a plug-in, is the name.

    A best-of family is drawn in its first member's style.
    """
    kind = ALGORITHMS.get(name)
    if kind is None:
        members = families(ALGORITHMS).get(name, [])
        return Traits(name.upper(), look=traits(members[0]).look) if members else Traits(name)
    return Traits(kind.label, kind.trust == "sum", kind.better_of, vars(kind).get("look"))


def families(names: Iterable[str]) -> dict[str, list[str]]:
    """Name under which the better of several is reported → those of `names`, two at least, in the order of a tie."""
    members: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        better_of = traits(name).better_of
        if better_of is not None:
            members.setdefault(better_of[0], []).append((better_of[1], name))
    return {family: [name for _, name in sorted(several)] for family, several in members.items() if len(several) > 1}


__all__ = ["ALGORITHMS", "Traits", "families", "traits"]
