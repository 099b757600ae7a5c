"""`python -m silodp.jobs NAME argument=value …`: words come in, and are read by the signature of the job's function.

A list takes every word up to the next argument; `argument=` is an empty list. With `digest=` the job refuses to work
under another digest than the plan's, which `run_file=` names, also where its function takes no run file.
"""

import os
import pkgutil
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from silodp.config.errors import ConfigError, among
from silodp.workflow.ending import exit_code_of, start
from silodp.workflow.engine import JOB_VARIABLE, end_with_parent, prepare_streams

# What a rule passes whatever its function takes.
_OF_RULES: dict[str, Any] = {"run_file": Path, "digest": str}


def main(words: Sequence[str]) -> int:
    """Run one job; returns the exit code: 0 done, 1 failed, 2 bad input, 130 interrupted."""
    if parent := os.environ.get(JOB_VARIABLE):
        end_with_parent(int(parent))
    prepare_streams()
    name, *more = words or [""]
    try:
        return exit_code_of(f"silodp.jobs {name}".strip(), lambda: _run(name, more))
    except KeyboardInterrupt:
        print("silodp: interrupted", file=sys.stderr)
        return 130


def _run(name: str, words: Sequence[str]) -> None:
    start()
    folder = Path(__file__).parent
    among("job", name, (each.name for each in pkgutil.iter_modules([os.fspath(folder)]) if each.name != "__main__"))
    job = getattr(import_module(f"silodp.jobs.{name}"), name)
    values = arguments(job, words)
    if digest := values.pop("digest", None):
        from silodp.workflow.job_digest import hold  # plans the run, which a job by hand need not do

        if "run_file" not in values:
            raise ConfigError("command line: run_file: missing: must be given with digest")
        hold(digest, values["run_file"], name, values)
    if "run_file" not in signature(job).parameters:
        values.pop("run_file", None)
    job(**values)


def arguments(job: Callable, words: Sequence[str]) -> dict[str, Any]:
    """The arguments of `job` and of its rule in `words`; ConfigError for what its signature does not have."""
    kinds = _OF_RULES | {name: kind for name, kind in get_type_hints(job).items() if name != "return"}
    given: dict[str, list[str]] = {}
    for word in words:
        name, mark, value = word.partition("=")
        if mark and name in kinds:
            if name in given:
                raise ConfigError(f"command line: {name}: given twice: must be given once")
            given[name] = [value] if value else []
        elif given:
            given[[*given][-1]].append(word)
        else:
            raise ConfigError(f"command line: {word!r}: must be {'=, '.join(kinds)}=")
    needed = [name for name, of in signature(job).parameters.items() if of.default is Parameter.empty]
    if missing := [name for name in needed if name not in given]:
        raise ConfigError(f"command line: {missing[0]}: missing: must be given")
    return {name: _value(name, kinds[name], values) for name, values in given.items()}


def _value(name: str, kind: Any, words: list[str]) -> Any:
    if get_origin(kind) is UnionType:
        kind = get_args(kind)[0]
    if get_origin(kind) is not None:
        return [_parse_word(name, get_args(kind)[0], word) for word in words]
    if len(words) != 1:
        raise ConfigError(f"command line: {name}: {' '.join(words)!r}: must be one value")
    return _parse_word(name, kind, words[0])


def _parse_word(name: str, kind: Callable[[str], Any], word: str) -> Any:
    try:
        return kind(word)
    except ValueError:
        raise ConfigError(f"command line: {name}: {word!r}: must be a whole number") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
