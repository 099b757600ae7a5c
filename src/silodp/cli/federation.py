"""The commands of a federation between machines: silo, federate."""

import hashlib
import logging
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np
import torch
import yaml

from silodp.cli.options import PATH, POSITIVE, command
from silodp.cli.practitioner import rounded
from silodp.config.errors import ConfigError
from silodp.datasets.own.schema import Form
from silodp.files import write_text
from silodp.models.registry import MODULES
from silodp.own_data.released_model import ReleasedModel
from silodp.silos.coordinator import Registry, RemoteFederation, stored_seed, train
from silodp.silos.federation_file import Federation, read_federation
from silodp.silos.keys import fingerprint, make_key
from silodp.silos.ledger import Ledger, opened
from silodp.silos.run_plan import RunPlan, work_out
from silodp.silos.session import Member, SiloRun, first_budget, held_by_one, take_part
from silodp.workflow.closure import CodeSources

log = logging.getLogger("silodp")

_CARD = """# {federation.title}

{federation.algorithm.name}, {federation.rounds} rounds with {federation.participants} silos each.
SHA-256 of federation.yaml: {digest}.

| silo | records | claimed epsilon | delta | true epsilon, at least | at most |
|---|---|---|---|---|---|
{rows}

Each silo keeps this for one of its records (replace-one), against everybody else, by its own noise.
It is about this run; what a silo's runs cost together stands in its ledger.
"""
# The coordinator's address, its silos' certificates (names on one machine), its key and certificate.
Line = tuple[str, dict[int, str], bytes, bytes]
_HERE = "\nOne curator held all files: noise added once, centrally, would cost less accuracy.\n"


@command(epilog="Example: silodp silo check silo.yaml")
@click.argument("action", type=click.Choice(("key", "check", "join", "budget")))
@click.argument("what", metavar="NAME|SILO_FILE")
@click.option("--again", is_flag=True, help="Of `join`: charge and start another run where this one was run.")
@click.option("--raise", "epsilon", type=POSITIVE, help="Of `budget`: the ledger's largest total epsilon.")
@click.option("--here", metavar="SOCKET", default="", help="Of `join`: a coordinator on this machine, as unix:PATH.")
def silo(action: str, what: str, again: bool, epsilon: float | None, here: str) -> None:
    """Make a key, check what a run would cost and send, take part in a run, or change the budget of a silo.

    A silo's file, silo.yaml, is private; the agreed federation.yaml is public (docs/federate.md).
    """
    for option, given, belongs in (
        ("--again", again, "join"),
        ("--raise", epsilon, "budget"),
        ("--here", here, "join"),
    ):
        if given and action != belongs:
            raise ConfigError(f"command line: {option}: must be left out with {action}")
    if action == "key":
        certificate = make_key(Path(f"{what}.key"))
        print(
            f"{what}.key: keep it; {what}.crt: give it to the others, and compare by telephone\n{spoken(certificate)}"
        )
        return
    member = Member(Path(what))
    if action == "check":
        check(member)
    elif action == "budget":
        with opened(_folder_of(member)) as ledger:
            ledger.set_budget(epsilon or math.nan)
            print(_total_line(ledger))
    else:
        _check_transport()
        with held_by_one(_folder_of(member)):
            run = SiloRun(member, code_digest(member.federation), again)
            lower, upper = member.plan.epsilon(member.number)
            print(f"{member.file.name}: epsilon between {rounded(lower, 'down')} and {rounded(upper, 'up')} is charged")
            model = take_part(run, here)
        print(f"{member.file.name}: the run is over; SHA-256 of the model: {model.hex()}")


def spoken(certificate: str) -> str:
    """A certificate's fingerprint in groups that two people can read to each other."""
    digits = fingerprint(certificate).hex()
    return " ".join(digits[start : start + 4] for start in range(0, len(digits), 4))


def code_digest(federation: Federation) -> bytes:
    """Of all code that questions and replies of a federation hang on."""
    entries = ["silodp.silos.session", "silodp.silos.coordinator", f"silodp.algorithms.{federation.algorithm.name}"]
    return bytes.fromhex(CodeSources().digest([*entries, MODULES[federation.model.name]]))


def _check_transport() -> None:
    if find_spec("grpc") is None:
        raise ConfigError("grpcio: not installed: `pip install --requirement requirements/federate.lock` does it")


def _folder_of(member: Member) -> Path:
    folder = Path(member.file.ledger)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _total_line(ledger: Ledger) -> str:
    epsilon, delta = ledger.total()
    limit = "no budget yet" if ledger.budget is None else f"budget {ledger.budget:g}"
    return f"{ledger.path}: all together: epsilon = {rounded(epsilon, 'up')} at delta = {delta:.3g}; {limit}"


def check(member: Member) -> None:
    """Print what a run would send and cost, and whether file and budget allow it; sends nothing."""
    silo, size = member.federation.silos[member.file.name], member.plan.size
    messages, (lower, upper) = len(member.plan.slots[member.number]), member.plan.epsilon(member.number)
    print(f"{member.file.file}: {len(member.read_all()[1])} records fit the schema; {silo.records} are drawn once")
    print(f"would leave: {messages} messages of {40 + 8 * size} bytes, each a mean with noise of {size} numbers")
    print(f"agreed: epsilon = {silo.epsilon:g} at delta = {silo.delta:g} for one record")
    print(f"true epsilon: between {rounded(lower, 'down')} and {rounded(upper, 'up')}")
    log.setLevel(logging.WARNING)  # of made-up records no slot is told
    seconds = measured_reply(member)
    print(f"reply_after: {member.federation.reply_after:g} s; four times the slowest reply here: {4 * seconds:.3g} s")
    with opened(_folder_of(member)) as ledger:
        total = ledger.check([member.charge], budget=first_budget(ledger, member))
        print(_total_line(ledger))
        print(f"with this run: epsilon = {rounded(total[0], 'up')}: allowed")


def measured_reply(member: Member, most: int = 200) -> float:
    """Seconds of the slowest of a run's first replies, on made-up records in a folder that goes."""
    from silodp.silos.silo import open_silo
    from silodp.silos.wire import pack

    plan, number = member.plan, member.number
    generator = torch.Generator().manual_seed(0)
    features = len(member.federation.records.features) + member.federation.records.constant_column
    x = torch.rand(member.declared, features, generator=generator, dtype=torch.float64) * 2 - 1
    y = (x[:, 0] > 0).to(torch.int64 if member.federation.model.name in ("softmax", "perceptron") else torch.float64)
    slowest, weights = 0.0, np.zeros(plan.size)
    with tempfile.TemporaryDirectory() as folder:
        silo = open_silo(plan, number, (x, y), Path(folder), bytes(32), bytes(32))
        for place, slot in list(enumerate(plan.slots[number]))[:most]:
            begun = time.perf_counter()
            silo.reply(pack(bytes(32), place, *[weights] * (1 + slot.has_pair)))
            slowest = max(slowest, time.perf_counter() - begun)
        silo.store.close()
    return slowest


@command(epilog="Example: silodp federate federation.yaml --key coordinator.key")
@click.argument("federation_file", type=PATH)
@click.option("--key", type=PATH, default="coordinator.key", help="The coordinator's private key.")
@click.option("--here", type=PATH, help="Folder with NAME.csv for each silo: a process a file, no network.")
@click.option("--again", is_flag=True, help="With --here: charge and start another run of a finished federation.")
@click.option("--output", type=PATH, help="Folder to write (default: federations/<digest of the file>).")
def federate(federation_file: Path, key: Path, here: Path | None, again: bool, output: Path | None) -> None:
    """Coordinate a run of silos, each beside its own records, and write model.npz, card.md and the transcript.

    Stopped, it goes on where it was when the same command is given again.
    """
    _check_transport()
    federation = read_federation(federation_file)
    plan, code = work_out(federation, str(federation_file)), code_digest(federation)
    folder = output or Path("federations") / federation.digest.hex()[:8]
    if (folder / "card.md").exists():
        raise ConfigError(f"{folder}: has a finished run: choose another --output")
    (folder / "transcript").mkdir(mode=0o700, parents=True, exist_ok=True)
    if here is not None:
        with _processes_here(federation_file, federation, here, again) as address:
            _conduct(plan, code, folder, here / "marks.json", (address, dict(enumerate(plan.names)), b"", b""), True)
        return
    silos = {number: silo.certificate for number, silo in enumerate(federation.silos.values())}
    for name, certificate in zip(plan.names, silos.values(), strict=True):
        if not certificate.strip():
            raise ConfigError(f"{federation_file}: silos.{name}.certificate: missing: must be its whole certificate")
    own = key.with_suffix(".crt")
    if not (key.is_file() and own.is_file()):
        raise ConfigError(f"command line: --key: {str(key)!r}: missing: `silodp silo key coordinator` makes it")
    if own.read_text().strip() != federation.coordinator.certificate.strip():
        raise ConfigError(f"{own}: another certificate: must be coordinator.certificate of {federation_file}")
    line = (federation.coordinator.address, silos, key.read_bytes(), own.read_bytes())
    _conduct(plan, code, folder, key.with_suffix(".marks.json"), line, False)


def _conduct(plan: RunPlan, code: bytes, folder: Path, marks: Path, line: Line, is_here: bool) -> None:
    from silodp.silos.line import Lines

    federation, begun = plan.federation, time.monotonic()
    registry = Registry(plan, code, folder, marks, lambda text: log.info("%s", text))
    address, silos, key, certificate = line
    lines = Lines(address, silos, key, certificate, plan.size, registry.greet, registry.admit)
    try:
        while len(there := lines.wait(len(plan.names), federation.wait)) < federation.least:
            log.info("waiting for %s", ", ".join(plan.names[silo] for silo in silos if silo not in there))
        ask = lambda number, question: lines.ask(number, question, federation.wait)  # noqa: E731
        remote = RemoteFederation(plan, registry.runs, ask, folder / "transcript", stored_seed(folder / "transcript"))
        models, output = train(remote, lambda r: log.info("round %d of %d", r + 1, federation.rounds))
        digest = _write(plan, folder, models, output, is_here)
        lines.end(digest)
    except BaseException:
        lines.stop()
        raise
    print(f"{folder}: model and card.md after {time.monotonic() - begun:.0f} s; SHA-256 of the model: {digest.hex()}")


def _write(plan: RunPlan, folder: Path, models: torch.Tensor, output: torch.Tensor, is_here: bool) -> bytes:
    """Write the model, or every silo's own, and the card; the SHA-256 that each silo is told."""
    federation, schema = plan.federation, plan.federation.records
    about = {"model": federation.model.model_dump(mode="json"), "constant_column": schema.constant_column}
    promises = {name: {"epsilon": one.epsilon, "delta": one.delta} for name, one in federation.silos.items()}
    bounds = schema.numbers | ({schema.target: schema.target_bounds} if schema.target_bounds else {})
    about |= {"silos": plan.names, "promise": promises, "bounds": bounds}
    weights = (
        {"model.npz": output[0]}
        if models.ndim == 2
        else {f"model_{name}.npz": own for name, own in zip(plan.names, models[0], strict=True)}
    )
    digest = hashlib.sha256()
    for name, values in weights.items():
        ReleasedModel(values.numpy(), about, schema.as_read(Form())).save(folder / name)
        digest.update((folder / name).read_bytes())
    write_text(_card(plan, is_here), folder / "card.md")
    return digest.digest()


def _card(plan: RunPlan, is_here: bool) -> str:
    """What was run and what each silo keeps; nothing in it is read off records."""
    federation, rows = plan.federation, []
    for number, (name, silo) in enumerate(federation.silos.items()):
        lower, upper = plan.epsilon(number)
        ends = f"{rounded(lower, 'down')} | {rounded(upper, 'up')}"
        rows.append(f"| {name} | {silo.records} | {silo.epsilon:g} | {silo.delta:g} | {ends} |")
    return _CARD.format(federation=federation, digest=federation.digest.hex(), rows="\n".join(rows)) + _HERE * is_here


@contextmanager
def _processes_here(federation_file: Path, federation: Federation, folder: Path, again: bool) -> Iterator[str]:
    """A silo's process for each file of a folder; the address of their coordinator's socket."""
    with tempfile.TemporaryDirectory() as private:
        address, processes = f"unix:{private}/line", []
        for name, silo in federation.silos.items():
            files = [file for end in (".csv", ".parquet") if (file := folder / f"{name}{end}").is_file()]
            if not files:
                raise ConfigError(f"{folder}: no {name}.csv: must have a file for each silo of {federation_file}")
            keys: dict[str, str | float] = {
                "name": name,
                "federation": str(federation_file.resolve()),
                "file": str(files[0].resolve()),
            }
            keys |= {"ledger": str((folder / f"{name}.ledger").resolve()), "budget": silo.epsilon}
            own = Path(private) / f"{name}.yaml"
            own.write_text(yaml.safe_dump(keys), encoding="utf-8")
            words = ["-q", "silo", "join", str(own), "--here", address, *["--again"] * again]
            processes.append([sys.executable, "-m", "silodp", *words])
        running = [subprocess.Popen(words) for words in processes]
        try:
            yield address
            codes = [process.wait(60) for process in running]
        finally:
            for process in running:
                process.terminate()
        if any(codes):
            raise ConfigError(f"{folder}: a silo ended with exit code {max(codes)}: its line above says why")
