"""A silo's part in a run: what `check` says and sends nothing, and `join`, which dials, charges and answers.

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
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from silodp.config.errors import ConfigError
from silodp.federation.clipped_sums import Records
from silodp.silos.durable import locked, make_private, sync_folder, write_private
from silodp.silos.federation_file import check_address, form_digest, read_federation, read_silo
from silodp.silos.keys import check_dates, fingerprint, own_pair, spoken
from silodp.silos.ledger import Ledger, opened
from silodp.silos.run_plan import RunPlan, work_out
from silodp.silos.secret_draws import SecretDraws
from silodp.silos.silo import PunctualReplies, Silo
from silodp.silos.silo_records import read_silo_records
from silodp.silos.wire import FAULT, GREETING, HELLO, MARK, RefusedHello, pack

log = logging.getLogger("silodp")

# Seconds of one attempt to reach the coordinator.
_DIAL = 10.0
# Made-up replies that `check` times.
_TIMED = 20


class Participation:
    """`silo.yaml` and `federation.yaml` worked out; with `address`, a `unix:` socket, no certificate is needed."""

    def __init__(self, path: Path, address: str | None = None):
        self.path, self.silo = path, read_silo(path)
        self.where, self.ledger = Path(self.silo.federation), Path(self.silo.ledger)
        if self.ledger.exists() and not self.ledger.is_dir():
            raise ConfigError(f"{path}: ledger: {self.silo.ledger}: must be a folder")
        make_private(self.ledger)
        self.federation = read_federation(self.where)
        if self.silo.name not in self.federation.silos:
            allowed = f"must be one of {', '.join(self.federation.silos)}, as {self.where} has it"
            raise ConfigError(f"{path}: name: {self.silo.name!r}: {allowed}")
        self.plan: RunPlan = work_out(self.federation, str(self.where))
        self.number = self.plan.names.index(self.silo.name)
        self.address = address or self.federation.coordinator.address
        check_address(self.address, self.federation, str(self.where))
        if self.federation.silos[self.silo.name].delta > self.silo.delta:
            raise ConfigError(f"{path}: delta: {self.silo.delta:g}: must be at least the run's in {self.where}")

    def own_pair(self) -> tuple[bytes, bytes]:
        """Own key and certificate; ConfigError where the agreed certificate is another key's."""
        if self.silo.key is None:
            raise ConfigError(f"{self.path}: key: missing: must be the file that `silodp silo key` made")
        agreed = self.federation.silos[self.silo.name].certificate
        return own_pair(Path(self.silo.key), agreed, f"{self.where}: silos.{self.silo.name}.certificate")

    def pins(self) -> tuple[bytes, bytes, bytes] | None:
        """The coordinator's certificate, own key, own certificate; None with a `unix:` socket."""
        if self.address.startswith("unix:"):
            return None
        coordinator, pair = self.federation.coordinator.certificate, self.own_pair()
        fingerprint(coordinator, place := f"{self.where}: coordinator.certificate")
        check_dates(coordinator, place)
        return coordinator.encode(), *pair


def fingerprints(plan: RunPlan, code: bytes, where: Path) -> Iterator[str]:
    """What all parties compare by telephone, a line each: the file, the code, each silo's run and certificate."""
    form = plan.federation.model_dump(mode="json")
    parties = {"coordinator": form["coordinator"]} | {f"silos.{name}": of for name, of in form["silos"].items()}
    for key, party in parties.items():
        if party["certificate"]:
            party["certificate"] = fingerprint(party["certificate"], f"{where}: {key}.certificate").hex()
    named = {"agreed": form_digest(form).hex(), "code": code.hex()}
    named |= {f"run of {name}": plan.digest(silo, b"", code).hex() for silo, name in enumerate(plan.names)}
    named |= {f"certificate of {key.removeprefix('silos.')}": party["certificate"] for key, party in parties.items()}
    for name, digest in named.items():
        yield f"{name}: {spoken(bytes.fromhex(digest)) or 'none yet'}"


def time_replies(part: Participation, is_resumed: bool = False) -> float:
    """Seconds of the longest of 20 replies, of a silo of the same size with made-up records.

    ConfigError: longer than `reply_after`, in a run that is not resumed; near it, a warning.
    """
    plan, longest, generator = part.plan, 0.0, np.random.default_rng()
    size, bound = part.federation.silos[part.silo.name].records, min(part.federation.bound, 1.0)
    x = torch.from_numpy(generator.uniform(-1, 1, (size, part.federation.records.features)))
    y = torch.zeros(size, dtype=torch.int64)
    records = x, y if part.federation.model.name in ("softmax", "perceptron") else y.to(torch.float64)
    slots = plan.slots[part.number]
    for start in range(0, _TIMED, len(slots)):
        with TemporaryDirectory() as folder:
            silo = Silo(plan, part.number, records, Path(folder), bytes(32), os.urandom(32))
            for place, slot in enumerate(slots[: _TIMED - start]):
                point = generator.uniform(-bound, bound, plan.size)
                began = time.monotonic()
                if silo.reply(pack(bytes(32), place, *[point] * (1 + slot.has_pair))) == FAULT:
                    raise ConfigError(f"{part.where}: a question gets no reply: must be a run that silos can answer")
                longest = max(longest, time.monotonic() - began)
    allowed = part.federation.reply_after
    said = f"{part.where}: reply_after: {allowed:g} s: a reply took {longest:.3g} s here"
    if allowed and longest > allowed and not is_resumed:
        raise ConfigError(f"{said}: all must agree on four times as much")
    if allowed and longest > allowed / 4:
        log.warning("%s: on a busy day replies may be missing", said)
    return longest


class Membership:
    """A silo's run between greeting and the coordinator's end; the first question that is wholly right is charged."""

    def __init__(self, part: Participation, silo: Silo, nonce: bytes, code: bytes, ledger: Ledger):
        self.part, self.silo, self.nonce, self.code, self._ledger = part, silo, nonce, code, ledger
        self.is_charged = any(line["about"].get("run") == silo.run.hex() for line in ledger.charges)
        self.replies = PunctualReplies(silo, part.federation.reply_after)
        self.why, self._heard = "", time.monotonic()

    def greeted(self, greeting: bytes) -> bytes:
        """The hello; `why` says what keeps this silo from answering.

        ConfigError, and no hello is sent: the coordinator's mark tells of more than this folder has.
        """
        federation, code, mark = GREETING.unpack(greeting)
        ours = self.part.federation.digest
        if federation != ours:
            self.why = f"{self.part.where}: the coordinator has another one: all must have the same file"
        elif code != self.code:
            self.why = f"silodp: the coordinator runs another version (code {code.hex()[:12]}, here "
            self.why += f"{self.code.hex()[:12]}): all must run the same"
        with opened(self.part.ledger) as self._ledger:
            self._ledger.hold_to(mark)
        _, _, run, slots, _ = MARK.unpack(mark)
        if run == self.silo.run and slots > len(self.silo.store.digests):
            allowed = "restore the newest, or `--again`"
            raise ConfigError(f"{self._ledger.folder}: is older than the coordinator's last reply: {allowed}")
        return HELLO.pack(self.nonce, ours, self.code, self.silo.run)

    def reply(self, question: bytes) -> bytes:
        """The reply behind the ledger's mark, or `FAULT`; ConfigError where the run cannot be charged."""
        self._heard = time.monotonic()
        if self.why or not (self.is_charged or self.silo.is_question(question)):
            return FAULT
        if not self.is_charged:
            with opened(self.part.ledger) as self._ledger:
                _charge(self.part, self._ledger, self.silo.run)
            self.is_charged = True
        if (reply := self.replies.reply(question)) == FAULT:
            return FAULT
        opened_slots = len(self.silo.store.digests)
        log.info("%d of %d slots answered", opened_slots, self.silo.store.slots)
        return self._ledger.mark(self.silo.run, opened_slots) + reply

    def answer(self) -> bytes | None:
        """Dial until the coordinator's end: the model's SHA-256, or None where the plan was used up before.

        ConfigError: nobody answers, or another file, version or certificate at the other end.
        """
        import grpc

        from silodp.silos.line import join

        part, patience = self.part, self.part.silo.answer_within
        said, pins = "", part.pins()
        known = part.address, part.silo.name, pins, part.plan.size
        while time.monotonic() - self._heard < patience:
            end, now = None, f"{part.address}: the coordinator closed the line: its screen says why"
            try:
                end = join(*known, self.greeted, self.reply, patience, min(_DIAL, patience))
            except grpc.FutureTimeoutError:
                now = _unreachable(part.address)
            except RefusedHello:
                allowed = "must go on with the coordinator's run (without `--again`), or its --output be another"
                self.why = self.why or f"{part.address}: the coordinator refused this run: {allowed}"
            except grpc.RpcError:
                now = f"{part.address}: the coordinator does not know this silo's certificate, or closed the line"
            if end is not None:
                return end
            if self.why:
                raise ConfigError(self.why)
            left = patience - (time.monotonic() - self._heard)
            if now != said and left > 0:
                said = now
                log.warning("%s; trying for %.1f s more", said, left)
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
def membership(part: Participation, code: bytes, again: bool) -> Iterator[Membership]:
    """The run of this federation: the unfinished one, or a new one."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    part.pins()
    with locked(part.ledger / ".join.lock", f"{part.ledger}: another join of this silo is running: must end first"):
        records, departures = read_silo_records(part.silo, part.federation)
        for departure in departures:
            log.warning("%s: %s", part.silo.file, departure)
        with opened(part.ledger) as ledger:
            ledger.stop_in_trouble()
            if ledger.budget is None:
                ledger.set_budget(part.silo.budget)
            # In the form in which they are used: a file may be written otherwise, and hold the same records.
            digest = ledger.keyed(b"".join(values.numpy().tobytes() for values in records))
            place, about = _run_folder(part, code, again, ledger, digest)
        nonce, order = bytes.fromhex(about["nonce"]), bytes.fromhex(about["order"])
        run, drawn = part.plan.digest(part.number, nonce, code), _draw_declared(part, records, order)
        silo = Silo(part.plan, part.number, drawn, place, run, order)
        member = Membership(part, silo, nonce, code, ledger)
        if part.federation.reply_after:
            time_replies(part, member.is_charged)
        yield member
        silo.store.close()
        if silo.store.is_used_up():
            (place / "replies").unlink()
            (place / "end").touch()
            sync_folder(place)


def _run_folder(
    part: Participation, code: bytes, again: bool, ledger: Ledger, file: str
) -> tuple[Path, dict[str, Any]]:
    """The folder of the run that is resumed or begun, and its `run.json`; `file` is its records' keyed digest."""
    runs = part.ledger / "runs"
    known = [(path.parent, json.loads(path.read_text())) for path in sorted(runs.glob("*/run.json"))]
    name_under = lambda begun: part.plan.digest(part.number, b"", begun).hex()  # noqa: E731
    of_this = [one for one in known if one[1]["run"] == name_under(bytes.fromhex(one[1]["code"]))]
    unfinished = [(place, about) for place, about in of_this if not (place / "end").exists()]
    if unfinished and not again:
        place, about = unfinished[0]
        if about["code"] != code.hex():
            allowed = "must be the same, or `--again` starts and charges another run"
            raise ConfigError(f"{place}: another version of silodp began this run: {allowed}")
        if not hmac.compare_digest(about["file"], file):
            allowed = "must be as it was, or `--again` starts and charges another run"
            raise ConfigError(f"{part.silo.file}: has changed since the run began: {allowed}")
        log.info("%s: goes on", place)
        return place, about
    if of_this and not again:
        raise ConfigError(f"{part.path}: the run of {part.where} is over: `--again` starts and charges another")
    ledger.check(part.plan.accounted[part.number], part.silo.budget)
    for place, _ in unfinished:
        (place / "end").touch()
    nonce = os.urandom(16)
    about = {"run": name_under(code), "code": code.hex(), "nonce": nonce.hex(), "order": os.urandom(32).hex()}
    about["file"] = file
    place = runs / nonce.hex()
    write_private(place / "run.json", json.dumps(about).encode())
    sync_folder(runs)
    return place, about


def _draw_declared(part: Participation, records: Records, order: bytes) -> Records:
    """As many records as are declared, the same after a restart."""
    x, y = records
    draws = SecretDraws(hashlib.sha256(b"drawn records" + order).digest())
    chosen = np.sort(draws.choice(len(y), part.federation.silos[part.silo.name].records, replace=False))
    return x[chosen], y[chosen]


def _charge(part: Participation, ledger: Ledger, run: bytes) -> None:
    federation, silo = part.federation, part.federation.silos[part.silo.name]
    about: dict[str, Any] = {"file": Path(part.silo.file).name, "run": run.hex(), "title": federation.title}
    about |= {"silo": part.silo.name, "algorithm": federation.algorithm.name, "M": federation.participants}
    about |= {"R": federation.rounds, "epsilon": silo.epsilon, "delta": silo.delta, "unit": "record"}
    ledger.charge(part.plan.accounted[part.number], about)
