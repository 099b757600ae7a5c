"""Which definitions a job is computed by: all that its entry point reaches through names and imports, and their digest.

The closure is one of top-level statements, not of files, so that what shares a file with a job's code does not concern
it. Of a registry it takes the entries that are chosen, and all where none are: a registry is a dict of strings, a
container that decorators fill, or a package out of which modules are imported by name. What it cannot follow, such as
`eval` or an import by an unknown name, is an error.
"""

import functools
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from silodp.workflow.syntax import Module, Statement, parsed
from silodp.workflow.uses import Target, Use

ROOT = Path(__file__).resolve().parents[1]
# Files beside the code that a definition may name.
_DATA = {".csv", ".css", ".j2", ".js", ".json", ".yaml", ".yml"}
# A statement: module, place in it, and the entry where it is a dict of strings.
Node = tuple[str, int, str]
# A definition (module, name); the module as a whole without a name.
Place = tuple[str, str | None]


class Sources:
    """The package's sources, each read once.

    Args:
        root: the package's folder; its name is the package's.
        replaced: texts to take in place of files, by module, to see what an edit would make stale.
        plugins: other code that is followed: the first word of its modules' names → its file, or its package's folder.
        brought: (registry, entry) → the definition, "module:name", that a plug-in brings for it.
    """

    def __init__(
        self, root: Path = ROOT, replaced: Mapping[str, str] | None = None, plugins: Mapping[str, Path] | None = None,
        brought: Mapping[tuple[str, str], str] | None = None,
    ):  # fmt: skip
        self.root, self.replaced = root, dict(replaced or {})
        self.roots = {root.name: root, **(plugins or {})}
        self.brought = dict(brought or {})
        self._modules: dict[str, Module | None] = {}
        self._closures: dict[tuple, Closure] = {}
        self.shut = functools.cache(self._shut)
        self.links = functools.cache(self._links)
        self.digest = functools.cache(self._digest)
        self.files = functools.cache(self._files)
        self.imported_with = functools.cache(self._imported_with)

    def path(self, module: str) -> Path | None:
        """The module's file; None for one that is not of the package, or not there."""
        first, *rest = module.split(".")
        if first not in self.roots:
            return None
        base = self.roots[first]
        if base.suffix == ".py":
            return None if rest else base
        base = base.joinpath(*rest)
        return next((one for one in (base / "__init__.py", base.with_suffix(".py")) if one.is_file()), None)

    def module(self, name: str) -> Module | None:
        """The module called `name`; None where the package has none of that name."""
        if name not in self._modules:
            path = self.path(name)
            text = "" if path is None else self.replaced.get(name) or path.read_text(encoding="utf-8")
            self._modules[name] = None if path is None else parsed(name, path.name == "__init__.py", text)
        return self._modules[name]

    def below(self, package: str) -> list[str]:
        """Names of all modules of a package."""
        path = self.path(package)
        if path is None or path.name != "__init__.py":
            return []
        files = (file.relative_to(path.parent).with_suffix("") for file in sorted(path.parent.rglob("*.py")))
        parts = (file.parts[:-1] if file.name == "__init__" else file.parts for file in files)
        return [".".join((package, *one)) for one in parts if one]

    def statement(self, node: Node) -> Statement:
        """The statement at a node."""
        module = self.module(node[0])
        if module is None:
            raise ValueError(f"{node[0]}: no such module")
        statement = module.statements[node[1]]
        return statement.entries[node[2]] if node[2] else statement

    def target(self, statement: Statement, use: Use) -> Target | None:
        """What the use's first name stands for; None for a name that is neither imported nor the module's."""
        if use.name in statement.text.imports:
            return statement.text.imports[use.name]
        module = self.module(statement.module)
        if module is None or use.name in module.defined:
            return Target(statement.module, use.name)
        return module.imports.get(use.name)

    def place(self, target: Target | None, path: tuple[str, ...]) -> Place | None:
        """The definition behind an imported name and its attributes.

        None for what is not of the package, and for names that every module has.
        """
        if target is None:
            return None
        module, name, rest = target.module, target.name, list(path)
        while True:
            found = self.module(module)
            if found is None:
                if module.split(".")[0] in self.roots:
                    raise ValueError(f"{module}: no such module")
                return None
            if name is None:
                if not rest:
                    return module, None
                name = rest.pop(0)
            # A package that imports a module of its own by `from` has it under its own name.
            known = found.imports.get(name)
            if name in found.defined:
                return module, name
            if known is not None and known != Target(module, name):
                module, name = known.module, known.name
            elif self.module(f"{module}.{name}") is not None:
                module, name = f"{module}.{name}", None
            elif name.startswith("__"):
                return None
            else:
                raise ValueError(f"{module}:{name}: no such definition")

    def _imported_with(self, name: str) -> tuple[frozenset[str], list[Node]]:
        """Modules that are imported when one is, with the packages around them, and the statements that run then."""
        found: dict[str, Module] = {}
        waiting = [name]
        while waiting:
            one = waiting.pop()
            module = self.module(one) if one not in found else None
            if module is not None:
                found[one] = module
                waiting += [one.rpartition(".")[0], *module.loaded]
        runs = [(one, place, "") for one, module in found.items() for place in module.runs]
        return frozenset(found), runs

    def places(self, definition: str) -> list[tuple[str, int]]:
        """Module and place of each statement that binds "module:name"; none where there is no such definition."""
        name, _, bound = definition.partition(":")
        module = self.module(name)
        return [(name, place) for place in module.defined.get(bound, [])] if module else []

    def keys(self, registry: str) -> list[str]:
        """Keys of a dict of strings, "module:NAME"; ValueError for anything else."""
        name, _, bound = registry.partition(":")
        module = self.module(name)
        places = module.defined.get(bound, []) if module else []
        if module is None or len(places) != 1 or not module.statements[places[0]].entries:
            raise ValueError(f"{registry}: must be a dict of strings, as in silodp.report.figures:FIGURES")
        return list(module.statements[places[0]].entries)

    def scans(self, package: str) -> bool:
        """Whether the package imports modules of its own by names that are not known before."""
        module = self.module(package)
        return module is not None and any(f"{package}.*" in one.text.dynamic for one in module.statements)

    def closure(
        self, entries: Iterable[str], chosen: Mapping[str, Iterable[str]] | None = None, aside: Iterable[str] = ()
    ) -> "Closure":
        """What `entries` ("module:name") are computed by.

        Args:
            entries: the functions that do the job.
            chosen: registry → its entries that the job asks for, beside those that it asks for by a literal.
            aside: functions of which only what they return counts, as their values are known otherwise.

        Raises:
            ValueError: a name that is not there, a choice that the job does not have, or code that cannot be followed.
        """
        picked = {name: frozenset(one) for name, one in (chosen or {}).items()}
        key = (tuple(entries), frozenset(picked.items()), frozenset(aside))
        if key not in self._closures:
            self._closures[key] = Closure(self, key[0], picked, key[2])
        return self._closures[key]

    def _shut(self, place: Place) -> frozenset[Node]:
        """Statements that a definition reaches while registries are shut."""
        return frozenset(Closure(self, [f"{place[0]}:{place[1]}"], shut=True).reached)

    def _links(self, node: Node) -> list[tuple[Place, str | None, bool]]:
        """Definitions that a statement refers to, the words they are subscripted with, and whether they decorate it."""
        statement = self.statement(node)
        found = [(self.place(self.target(statement, use), use.path), use) for use in statement.text.uses]
        return [(place, use.key, use.decorates) for place, use in found if place is not None]

    def _digest(self, node: Node) -> str:
        """Changes with a statement's syntax, and with what its names stand for."""
        statement = self.statement(node)
        uses = [(use.name, self.target(statement, use)) for use in statement.text.uses if not use.annotates]
        stands = sorted({f"{name}={target}" for name, target in uses if target is not None})
        return f"{statement.text.digest} {' '.join(stands)}"

    def _files(self, node: Node) -> frozenset[Path]:
        """Files beside the code that a statement names."""
        words = [word for word in self.statement(node).text.words if Path(word).suffix in _DATA]
        own = self.path(node[0])
        folders = [*([own.parent] if own and words else []), self.root]
        folders += [parent / "config" for parent in self.root.parents[:2] if (parent / "config").is_dir()]
        return frozenset(folder / word for folder in folders for word in words if (folder / word).is_file())


class Closure:
    """What entries reach; made by `Sources.closure`.

    A statement that is reached only because it decorates another is shut: what it calls is followed, but a registry
    that it fills is not read by it, and so not opened.

    Args:
        shut: registries stay shut altogether, and nothing runs on import.
    """

    def __init__(
        self, sources: Sources, entries: Iterable[str], chosen: Mapping[str, frozenset[str]] = MappingProxyType({}),
        aside: frozenset[str] = frozenset(), shut: bool = False,
    ):  # fmt: skip
        self.sources, self.chosen, self.aside = sources, chosen, aside
        self.reached: dict[Node, bool] = {}
        # Registries that are read with keys not known before.
        self.registries: set[str] = set()
        self._imported: set[str] = set()
        self._waiting: list[tuple[Node, bool]] = []
        self._met: set[str] = set()
        self._shut = shut
        self._aside_places = {place for name in aside for place in sources.places(name)}
        for entry in entries:
            module, _, name = entry.partition(":")
            known = sources.module(module)
            if known is None or name not in known.defined:
                raise ValueError(f"{entry}: no such definition: must be module:name, as in silodp.files:write_csv")
            self._push_name(module, name, not shut)
        self._finish()
        where = ", ".join(entries)
        if unknown := sorted(set(chosen) - self.registries):
            known_ones = ", ".join(sorted(self.registries)) or "none"
            raise ValueError(f"{where}: chosen: {unknown[0]}: must be a registry that is read: {known_ones}")
        if missed := sorted(aside - self._met):
            raise ValueError(f"{where}: aside: {missed[0]}: must be a function that is reached")

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of all statements, of what their names stand for, and of the files beside the code that they name."""
        found = hashlib.sha256()
        for node in sorted(self.reached):
            found.update(f"{str(node[0]) if self._is_aside(node) else self.sources.digest(node)}\n".encode())
        for file in sorted(self.files()):
            found.update(f"{file.name}:{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
        return found.hexdigest()

    def modules(self) -> list[str]:
        """Modules of which something is reached."""
        return sorted({node[0] for node in self.reached})

    def names(self) -> set[str]:
        """Definitions that are reached, as "module:name"."""
        return {f"{node[0]}:{name}" for node in self.reached for name in self.sources.statement(node).names}

    def files(self) -> set[Path]:
        """Files beside the code that reached statements name."""
        return {file for node in self.reached if not self._is_aside(node) for file in self.sources.files(node)}

    def _is_aside(self, node: Node) -> bool:
        return (node[0], node[1]) in self._aside_places

    def _finish(self) -> None:
        """Follow what waits, then what fills the containers that were opened, until nothing new comes."""
        seen: set[tuple[str, int]] = set()
        while self._waiting:
            while self._waiting:
                self._visit(*self._waiting.pop())
            opened = {
                node for node, is_open in self.reached.items() if is_open and self.sources.statement(node).container
            }
            for name in sorted(self._imported) if opened else ():
                module = self.sources.module(name)
                for place, statement in enumerate(module.statements if module else ()):
                    if (name, place) not in seen and self._fills(statement, opened):
                        seen.add((name, place))
                        self._push((name, place, ""), True)

    def _fills(self, statement: Statement, opened: set[Node]) -> bool:
        """Whether a statement enters what it binds in one of the containers, under a key that is asked for."""
        for use, key in statement.registers:
            place = self.sources.place(self.sources.target(statement, use), use.path)
            if place is None or place[1] is None:
                continue
            for node in opened & self.sources.shut(place):
                registry = f"{node[0]}:{self.sources.statement(node).names[0]}"
                self.registries.add(registry)
                if registry not in self.chosen or key in self.chosen[registry]:
                    return True
        return False

    def _push(self, node: Node, opened: bool) -> None:
        if node not in self.reached or (opened and not self.reached[node]):
            self.reached[node] = opened
            self._waiting.append((node, opened))

    def _import(self, name: str) -> None:
        """A module is imported: what runs then is reached, in the packages around it and what it imports as well."""
        if name in self._imported or self._shut:
            return
        names, runs = self.sources.imported_with(name)
        self._imported |= names
        for node in runs:
            self._push(node, True)

    def _visit(self, node: Node, opened: bool) -> None:
        statement = self.sources.statement(node)
        self._import(statement.module)
        if self._is_aside(node):
            self._met |= {f"{statement.module}:{name}" for name in statement.names}
            for use in statement.returned:
                self._follow(self.sources.place(self.sources.target(statement, use), ()), None, opened)
            return
        for place, key, decorates in self.sources.links(node):
            self._follow(place, key, opened and not decorates)
        for target in statement.text.imports.values():
            self._import(target.module)
            self._import(f"{target.module}.{target.name}")
        for package in statement.text.dynamic if opened else ():
            self._open_package(package, statement)

    def _open_package(self, package: str, statement: Statement) -> None:
        if not package.endswith(".*"):
            self._push_module(package, True)
            return
        package = package.removesuffix(".*")
        names = self.sources.below(package)
        if statement.runs:
            # A loop of imports at the top of a module, whose values go nowhere.
            for name in names:
                self._import(name)
            return
        self.registries.add(package)
        self._push_brought(package)
        if package in self.chosen:
            wanted = {f"{package}.{one}" for one in self.chosen[package] if (package, one) not in self.sources.brought}
            if unknown := sorted(wanted - set(names)):
                raise ValueError(f"{package}: {unknown[0]}: no such entry")
            names = sorted(wanted)
        for name in names:
            self._push_module(name, True)

    def _push_brought(self, registry: str) -> None:
        """Entries of plug-ins, those chosen or all; each is its definition alone, whatever shares its file."""
        for (of, entry), place in self.sources.brought.items():
            if of == registry and (registry not in self.chosen or entry in self.chosen[registry]):
                module, _, name = place.partition(":")
                self._import(module)
                self._push_name(module, name, True)

    def _push_module(self, name: str, opened: bool) -> None:
        module = self.sources.module(name)
        self._import(name)
        for place, statement in enumerate(module.statements if module else ()):
            for key in ("", *statement.entries):
                self._push((name, place, key), opened)

    def _follow(self, place: Place | None, key: str | None, opened: bool) -> None:
        if place is None:
            return
        module, name = place
        self._import(module)
        if name is None:
            self._push_module(module, opened)
        elif key is not None and self.sources.scans(module) and self.sources.module(f"{module}.{key}"):
            # A registry of modules that is asked for one of them: it stays shut for the others.
            self._push_name(module, name, False)
            self._push_module(f"{module}.{key}", opened)
        else:
            self._push_name(module, name, opened, key)

    def _push_name(self, module: str, name: str, opened: bool, key: str | None = None) -> None:
        found = self.sources.module(module)
        for place in found.defined[name] if found else ():
            self._push((module, place, ""), opened)
            entries = found.statements[place].entries if found else {}
            if entries and key not in entries:
                self._push_brought(f"{module}:{name}")
                for one in self._picked(f"{module}:{name}", list(entries), opened):
                    self._push((module, place, one), opened)
            elif key is not None and entries:
                self._push((module, place, key), opened)

    def _picked(self, registry: str, entries: list[str], opened: bool) -> list[str]:
        """Entries of a dict that is asked for words not known before."""
        if opened:
            self.registries.add(registry)
        if registry not in self.chosen:
            return entries
        wanted = {one for one in self.chosen[registry] if (registry, one) not in self.sources.brought}
        if unknown := sorted(wanted - set(entries)):
            raise ValueError(f"{registry}: {unknown[0]}: no such entry: must be one of {', '.join(entries)}")
        return sorted(wanted)
