"""A silo's part in a run: what `check` says and sends nothing, and `join`, which charges, dials and answers.

A run's folder below the ledger's holds what must outlive a stop: nonce, order of records, slots that were asked, and
replies. It is resumed while neither the agreed file, nor the silo's file, nor the code has changed.
"""

import hashlib
import hmac
import json
import logging
import os
import resource
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import filelock
import numpy as np
import torch

from silodp.config.errors import ConfigError
from silodp.federation.clipped_sums import Records
from silodp.files import write_atomically
from silodp.silos.federation_file import read_federation, read_silo
from silodp.silos.keys import fingerprint
from silodp.silos.ledger import Ledger, opened
from silodp.silos.own_records import read_own
from silodp.silos.run_plan import RunPlan, work_out
from silodp.silos.secret_draws import SecretDraws
from silodp.silos.silo import PunctualReplies, Silo, open_silo
from silodp.silos.slot_store import sync_folder
from silodp.silos.wire import FAULT, GREETING, HELLO, MARK, NO_MARK, pack

log = logging.getLogger("silodp")

# Seconds of one attempt to reach the coordinator.
_DIAL = 10.0
# Made-up replies that `check` times.
_TIMED = 200


class Part:
    """`silo.yaml` and `federation.yaml` worked out; with `address`, a `unix:` socket, no certificate is needed."""

    def __init__(self, path: Path, address: str | None = None):
        self.path, self.silo = path, read_silo(path)
        self.where = Path(self.silo.federation)
        self.federation = read_federation(self.where)
        if self.silo.name not in self.federation.silos:
            allowed = f"must be one of {', '.join(self.federation.silos)}, as {self.where} has it"
            raise ConfigError(f"{path}: name: {self.silo.name!r}: {allowed}")
        self.plan: RunPlan = work_out(self.federation, str(self.where))
        self.number = self.plan.names.index(self.silo.name)
        self.address = address or self.federation.coordinator.address
        self.pins = None if self.address.startswith("unix:") else self._pins()
        if self.federation.silos[self.silo.name].delta > self.silo.delta:
            raise ConfigError(f"{path}: delta: {self.silo.delta:g}: must be at least the run's in {self.where}")

    def _pins(self) -> tuple[bytes, bytes, bytes]:
        """The coordinator's certificate, own key, own certificate."""
        if self.silo.key is None:
            raise ConfigError(f"{self.path}: key: missing: must be the file that `silodp silo key` made")
        key = Path(self.silo.key)
        own, known = key.with_suffix(".crt").read_text(), self.federation.silos[self.silo.name].certificate
        place = f"{self.where}: silos.{self.silo.name}.certificate"
        if certificate_digest(known, place) != fingerprint(own):
            raise ConfigError(f"{place}: is not that of {key}: must be the whole of {key.with_suffix('.crt')}")
        coordinator = self.federation.coordinator.certificate
        certificate_digest(coordinator, f"{self.where}: coordinator.certificate")
        return coordinator.encode(), key.read_bytes(), own.encode()

    def ledger_folder(self) -> Path:
        folder = Path(self.silo.ledger)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def check_budget(self, ledger: Ledger) -> tuple[float, float]:
        """(ε, δ) of all charges with this one; ConfigError where that is above the budget."""
        return ledger.check(self.plan.accounted[self.number], self.budget(ledger))

    def budget(self, ledger: Ledger) -> float | None:
        """What the first charge writes into the ledger."""
        return self.silo.budget if ledger.budget is None else None


def certificate_digest(certificate: str, place: str) -> bytes:
    try:
        return fingerprint(certificate)
    except (ValueError, ssl.SSLError):
        raise ConfigError(f"{place}: must be a whole certificate, as `silodp silo key` printed it") from None


def longest_reply(part: Part) -> float:
    """Seconds of the longest of 200 replies, of a silo of the same size with made-up records."""
    plan, longest, generator = part.plan, 0.0, np.random.default_rng()
    size = part.federation.silos[part.silo.name].records
    x = torch.from_numpy(generator.uniform(-1, 1, (size, part.federation.records.features)))
    classes = part.federation.records.classes
    y = torch.from_numpy(generator.integers(0, classes, size) if classes else generator.uniform(-1, 1, size))
    records = x, y if part.federation.model.name in ("softmax", "perceptron") else y.to(torch.float64)
    slots = plan.slots[part.number]
    for start in range(0, _TIMED, len(slots)):
        with TemporaryDirectory() as folder:
            silo = open_silo(plan, part.number, records, Path(folder), bytes(32), os.urandom(32))
            for place, slot in enumerate(slots[: _TIMED - start]):
                point = generator.uniform(-1, 1, plan.size)
                began = time.monotonic()
                silo.reply(pack(bytes(32), place, *[point] * (1 + slot.has_pair)))
                longest = max(longest, time.monotonic() - began)
    return longest


class Membership:
    """A silo's run between `hello` and the coordinator's end."""

    def __init__(self, part: Part, silo: Silo, about: dict[str, Any], code: bytes, ledger: Ledger):
        self.part, self.code, self.about = part, code, about
        self.replies, self.silo = PunctualReplies(silo, part.federation.reply_after), silo
        self.mark, self._ledger = mark_of(ledger), ledger
        self.why, self._heard = "", time.monotonic()

    def greeted(self, greeting: bytes) -> bytes:
        """The hello; `why` says what keeps this silo from answering."""
        federation, code, mark = GREETING.unpack(greeting)
        self._heard, ours = time.monotonic(), self.part.federation.digest
        if federation != ours:
            self.why = f"{self.part.where}: the coordinator has another one: all must have the same file"
        elif code != self.code:
            self.why = f"silodp: the coordinator runs another version (code {code.hex()[:12]}, here "
            self.why += f"{self.code.hex()[:12]}): all must run the same"
        elif is_older(self._ledger, mark):
            self.why = f"{self._ledger.path}: is older than what this silo told the coordinator: restore the newest"
        hello = bytes.fromhex(self.about["nonce"]), ours, self.code, self.silo.run, self.mark
        return HELLO.pack(*hello)

    def reply(self, question: bytes) -> bytes:
        self._heard = time.monotonic()
        if self.why or (reply := self.replies.reply(question)) == FAULT:
            return FAULT
        log.info("%d of %d slots answered", len(self.silo.store.digests), self.silo.store.slots)
        return reply

    def answer(self) -> bytes | None:
        """Dial until the coordinator's end: the model's SHA-256, or None where the plan was used up before.

        ConfigError: nobody answers, or another file, version or certificate at the other end.
        """
        import grpc

        from silodp.silos.line import join

        part, patience = self.part, self.part.silo.answer_within
        said = ""
        while time.monotonic() - self._heard < patience:
            end = None
            try:
                known = part.address, part.silo.name, part.pins, part.plan.size
                end = join(*known, self.greeted, self.reply, patience, min(_DIAL, patience))
            except grpc.FutureTimeoutError:
                if (now := _unreachable(part.address)) != said:
                    said = now
                    left = patience - (time.monotonic() - self._heard)
                    log.warning("%s; trying for %.1f s more", said, max(left, 0.0))
            except grpc.RpcError:
                said = f"{part.address}: the coordinator does not know this silo's certificate, or closed the line"
            if end is not None:
                return end
            if self.why:
                raise ConfigError(self.why)
            time.sleep(0.5)
        if self.silo.store.is_used_up():
            return None
        raise ConfigError(f"{said or part.address + ': silent'}: must answer within {patience:g} s (answer_within)")


def _unreachable(address: str) -> str:
    """Why no line comes about: nobody listens, or not who is expected."""
    host, _, port = address.rpartition(":")
    if not address.startswith("unix:"):
        with suppress(OSError), socket.create_connection((host, int(port)), 5):
            return f"{address}: who listens there has not the coordinator's certificate, or does not take this silo's"
    return f"{address}: no coordinator is there"


@contextmanager
def membership(part: Part, code: bytes, again: bool) -> Iterator[Membership]:
    """The run of this federation: the unfinished one, or a new one, charged as a whole before its first slot."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    folder = part.ledger_folder()
    lock = filelock.FileLock(folder / ".join.lock")
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        raise ConfigError(f"{folder}: another join of this silo is running: must end first") from None
    with lock:
        (records, departures), content = read_own(part.silo, part.federation), Path(part.silo.file).read_bytes()
        for departure in departures:
            log.warning("%s: %s", part.silo.file, departure)
        with opened(folder, wait=True) as ledger:
            ledger.stop_in_trouble()
            place, about = _run_folder(part, folder / "runs", code, again, ledger)
            run = part.plan.digest(part.number, bytes.fromhex(about["nonce"]), code)
            order = bytes.fromhex(about["order"])
            silo = open_silo(part.plan, part.number, _draw_declared(part, records, order), place, run, order)
            if not any(line["about"].get("run") == run.hex() for line in ledger.charges):
                _charge(part, ledger, run)
            _hold_to_file(place / "file", ledger.keyed(content), part.silo.file)
        yield Membership(part, silo, about, code, ledger)
        silo.store.close()
        (place / "replies").unlink()
        (place / "end").touch()
        sync_folder(place)


def _run_folder(part: Part, runs: Path, code: bytes, again: bool, ledger: Ledger) -> tuple[Path, dict[str, Any]]:
    """The folder of the run that is resumed or begun, and its `run.json`."""
    own = part.federation.digest.hex()
    known = [(path.parent, json.loads(path.read_text())) for path in sorted(runs.glob("*/run.json"))]
    of_this = [(place, about) for place, about in known if about["federation"] == own]
    unfinished = [(place, about) for place, about in of_this if not (place / "end").exists()]
    if unfinished and not again:
        place, about = unfinished[0]
        if about["code"] != code.hex():
            allowed = "must be the same, or `--again` starts and charges another run"
            raise ConfigError(f"{place}: another version of silodp began this run: {allowed}")
        log.info("%s: goes on", place)
        return place, about
    if of_this and not again:
        raise ConfigError(f"{part.path}: the run of {part.where} is over: `--again` starts and charges another")
    part.check_budget(ledger)
    for place, _ in unfinished:
        (place / "end").touch()
    nonce = os.urandom(16)
    about = {"federation": own, "code": code.hex(), "nonce": nonce.hex(), "order": os.urandom(32).hex()}
    place = runs / nonce.hex()
    _write(place / "run.json", json.dumps(about))
    sync_folder(runs)
    return place, about


def _write(path: Path, text: str) -> None:
    """A file of mode 600 that lasts once this returns."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with write_atomically(path) as temporary:
        temporary.chmod(0o600)
        temporary.write_text(text)
    sync_folder(path.parent)


def _draw_declared(part: Part, records: Records, order: bytes) -> Records:
    """As many records as are declared, the same after a restart."""
    x, y = records
    draws = SecretDraws(hashlib.sha256(b"drawn records" + order).digest())
    chosen = np.sort(draws.choice(len(y), part.federation.silos[part.silo.name].records, replace=False))
    return x[chosen], y[chosen]


def _charge(part: Part, ledger: Ledger, run: bytes) -> None:
    federation, silo = part.federation, part.federation.silos[part.silo.name]
    about: dict[str, Any] = {
        "file": Path(part.silo.file).name,
        "run": run.hex(),
        "title": federation.title,
        "silo": part.silo.name,
    }
    about |= {"algorithm": federation.algorithm.name, "M": federation.participants, "R": federation.rounds}
    about |= {"epsilon": silo.epsilon, "delta": silo.delta, "unit": "record"}
    ledger.charge(part.plan.accounted[part.number], about, part.budget(ledger))


def _hold_to_file(path: Path, digest: str, file: str) -> None:
    """The keyed digest of the silo's file is as it was when the run began."""
    if not path.exists():
        _write(path, digest)
    if not hmac.compare_digest(path.read_text(), digest):
        allowed = "must be as it was, or `--again` starts and charges another run"
        raise ConfigError(f"{file}: has changed since the run began: {allowed}")


def mark_of(ledger: Ledger) -> bytes:
    """What the coordinator keeps of a ledger: number and HMAC of its newest line, under an HMAC of both."""
    head = struct.pack("<Q", len(ledger.lines)) + bytes.fromhex(ledger.lines[-1]["mac"])
    return head + bytes.fromhex(ledger.keyed(head))


def is_older(ledger: Ledger, mark: bytes) -> bool:
    """Whether a mark of this ledger tells of a line that the ledger has not."""
    number, newest, proof = MARK.unpack(mark)
    if mark == NO_MARK or not hmac.compare_digest(ledger.keyed(mark[:-32]), proof.hex()):
        return False
    return number > len(ledger.lines) or ledger.lines[number - 1]["mac"] != newest.hex()
