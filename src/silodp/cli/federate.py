"""The command `federate`, and what `silodp silo check` and `join` do."""

import hashlib
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import yaml

from silodp.cli.options import PATH, command
from silodp.cli.practitioner import rounded
from silodp.config.errors import ConfigError
from silodp.config.yaml_file import read_yaml
from silodp.extending.plugins import activate, command_line_files
from silodp.models.registry import MODULES
from silodp.own_data.federation_output import marked_lines, write_model
from silodp.silos.federation_file import Federation, check_address, read_federation, read_silo
from silodp.silos.hosting import Host
from silodp.silos.ledger import opened
from silodp.silos.run_plan import work_out
from silodp.silos.silo_records import read_silo_records
from silodp.silos.taking_part import Participation, fingerprints, membership, time_replies
from silodp.silos.wire import HEAD, MARK
from silodp.workflow.closure import CodeSources

log = logging.getLogger("silodp")


def code_digest(federation: Federation) -> bytes:
    """Of all that computes a run of this federation."""
    entries = ["silodp.silos.taking_part", "silodp.silos.coordinator", MODULES[federation.model.name]]
    # A plug-in's file is bound by its SHA-256 in the federation's file.
    entries += [] if federation.plugin else [f"silodp.algorithms.{federation.algorithm.name}"]
    return bytes.fromhex(CodeSources().digest(entries))


def enter_plugin(path: Path) -> None:
    """Enter the plug-in that `federation.yaml` at `path` names; ConfigError, before it runs, for any other file."""
    keys, given = read_yaml(path), command_line_files()
    agreed = keys.get("plugin") if isinstance(keys, dict) else None
    for file in given:
        if file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() != agreed:
            raise ConfigError(f"{path}: plugin: {agreed or 'missing'}: must be the SHA-256 of {file}")
    if agreed and not given:
        raise ConfigError(f"{path}: plugin: {agreed}: must be the SHA-256 of a file given with --plugin")
    activate()


def _require_line() -> None:
    try:
        import grpc  # noqa: F401
    except ModuleNotFoundError:
        allowed = "must be installed: python -m pip install --requirement requirements/federate.lock"
        raise ConfigError(f"grpcio: missing: {allowed}") from None


def raise_budget(path: Path, epsilon: float) -> None:
    with opened(Path(read_silo(path).ledger)) as ledger:
        if ledger.budget is not None and epsilon <= ledger.budget:
            raise ConfigError(f"command line: --raise: {epsilon:g}: must be above the budget {ledger.budget:g}")
        ledger.set_budget(epsilon)
        print(f"{ledger.path}: budget {epsilon:g}")


def take_part(path: Path, socket: str | None, again: bool, is_check: bool) -> None:
    """What `silodp silo check` and `join` do."""
    enter_plugin(Path(read_silo(path).federation))
    part = Participation(path, socket)
    if is_check:
        _check(part)
    else:
        _join(part, again)


def _check(part: Participation) -> None:
    plan, number, silo = part.plan, part.number, part.silo
    declared, slots = part.federation.silos[silo.name], plan.slots[number]
    if declared.certificate and silo.key and Path(silo.key).is_file():
        part.own_pair()
    _, departures = read_silo_records(silo, part.federation)
    lower, upper = plan.epsilon(number)
    sent = len(slots) * (MARK.size + HEAD.size + 8 * plan.size)
    print(f"{part.path}: {silo.name}, {declared.records} records; nothing was sent")
    print(f"would leave: {len(slots)} messages of {plan.size} numbers, {sent} bytes, each with this silo's noise")
    ends = f"{rounded(lower, 'down')} to {rounded(upper, 'up')}"
    print(f"promise: epsilon = {declared.epsilon:g} at delta = {declared.delta:g}; true epsilon {ends}")
    with opened(part.ledger) as ledger:
        before, after = ledger.total()[0], ledger.check(plan.accounted[number], silo.budget)[0]
        budget = silo.budget if ledger.budget is None else ledger.budget
        print(f"ledger: epsilon = {rounded(before, 'up')} before, {rounded(after, 'up')} after; budget {budget:g}")
    if part.federation.plugin:
        print(f"plugin: {part.federation.algorithm.name} is foreign code, which runs with all rights of this process")
    for departure in departures:
        print(f"{silo.file}: {departure}")
    if marked := marked_lines(part.where):
        print(f"{part.where}: {marked} lines are marked as read off records, which no epsilon counts: replace them")
    print(*fingerprints(plan, code_digest(part.federation), part.where), sep="\n")
    longest = rounded(time_replies(part), "up")
    print(f"reply_after: {part.federation.reply_after:g} s; a reply took {longest} s here")


def _join(part: Participation, again: bool) -> None:
    _require_line()
    with membership(part, code_digest(part.federation), again) as member:
        slots = len(part.plan.slots[part.number])
        said = "is charged" if member.is_charged else "is charged with the first question"
        print(f"{part.silo.name}: {part.silo.ledger} {said}; {slots} messages at most", flush=True)
        end = member.answer()
        is_open = not member.silo.store.is_used_up()
    said = "the plan is used up; no end came"
    if end is not None:
        said = f"the end; the coordinator's word for the SHA-256 of the model: {end.hex()}"
        said += "\nslots are open: `join` goes on with this run, `--again` starts and charges another" * is_open
    print(said, flush=True)


@command(epilog="Example: silodp federate federation.yaml --key coordinator.key")
@click.argument("file", metavar="FEDERATION", type=PATH)
@click.option("--key", type=PATH, help="The coordinator's private key (default: coordinator.key beside the file).")
@click.option(
    "--here", type=PATH, help="Folder with a file NAME.csv for each silo: a process for each, on this machine."
)
@click.option("--listen", metavar="HOST:PORT", help="Where to listen, if not at the address that silos dial.")
@click.option("--check", "is_check", is_flag=True, help="Print what all parties compare, and start nothing.")
@click.option("--output", type=PATH, help="Folder to write (default: federations/<name of the file>).")
def federate(
    file: Path, key: Path | None, here: Path | None, listen: str | None, is_check: bool, output: Path | None
) -> None:
    """Coordinate a run of FEDERATION: wait for its silos, train, write model.npz, card.md and provenance.json.

    After a stop the same command goes on. The folder `transcript` is private by the silos' promises alone.
    """
    if is_check:
        enter_plugin(file)
        federation = read_federation(file)
        check_address(federation.coordinator.address, federation, str(file))
        print(*fingerprints(work_out(federation, str(file)), code_digest(federation), file), sep="\n")
        return
    if listen and listen.startswith("unix:"):
        raise ConfigError(f"command line: --listen: {listen}: must be HOST:PORT")
    _require_line()
    output = output or Path("federations") / file.stem
    if (output / "card.md").exists():
        raise ConfigError(f"{output}: holds a finished run; remove it or choose another --output")
    with tempfile.TemporaryDirectory(prefix="silodp-") as sockets:  # of mode 0700
        address = f"unix:{sockets}/line" if here else listen
        enter_plugin(file)
        host = Host(file, output / "transcript", key or file.with_name("coordinator.key"), b"", address)
        host.code = code_digest(host.federation)
        names = host.plan.names if here else []
        silos = [_silo_file(file, here or Path(), name) for name in names]
        join = [sys.executable, "-m", "silodp", "silo", "join"]
        words = [[*join, str(silo), "--socket", str(address)] for silo in silos]
        children = {name: subprocess.Popen(of) for name, of in zip(names, words, strict=True)}
        try:
            host.run(
                lambda models, last: write_model(host, models, last, output, lambda value: rounded(value, "up")),
                lambda: [name for name, child in children.items() if child.poll() is not None],
            )
        except BaseException:
            # No coordinator comes back to them.
            for child in children.values():
                child.terminate()
            raise
        finally:
            for child in children.values():
                child.wait()
    print(f"{output}: model and card.md; give the model to the silos by hand")


def _silo_file(file: Path, here: Path, name: str) -> Path:
    """The silo.yaml of a silo of this machine, written where there is none."""
    found = [path for path in (here / f"{name}.csv", here / f"{name}.parquet") if path.is_file()]
    own = here / f"{name}.yaml"
    if not found and not own.is_file():
        raise ConfigError(f"{here / name}.csv: no such file: must be there for each silo of {file}")
    if not own.is_file():
        keys: dict[str, str | float] = {"name": name, "federation": os.path.relpath(file, here), "file": found[0].name}
        keys |= {"ledger": f"{name}.ledger", "budget": 9999.0, "delta": 0.5}
        own.write_text(yaml.safe_dump(keys, sort_keys=False))
    if not Path(read_silo(own).federation).samefile(file):
        raise ConfigError(f"{own}: federation: {read_silo(own).federation}: must be {file}, or {own} be removed")
    return own
