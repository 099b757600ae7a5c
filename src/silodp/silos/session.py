"""A silo's part of a run: its records, its charge, what it says of itself, and how it goes on after a stop."""

import fcntl
import hashlib
import hmac
import json
import logging
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from silodp.config.errors import ConfigError
from silodp.datasets.own.encoding import read_records
from silodp.datasets.own.schema import Form
from silodp.federation.clipped_sums import Records
from silodp.federation.preprocessing import scale_to_bounds
from silodp.files import read_json, write_text
from silodp.silos.federation_file import Federation, SiloFile, read_federation, read_silo
from silodp.silos.ledger import Ledger, opened
from silodp.silos.run_plan import RunPlan, work_out
from silodp.silos.secret_draws import SecretDraws
from silodp.silos.silo import PunctualReplies, Silo, open_silo
from silodp.silos.slot_store import sync_folder
from silodp.silos.wire import GREETING, HELLO, MARK, NO_MARK

log = logging.getLogger("silodp")


class Member:
    """A silo with its files: `silo.yaml`, what was agreed, and which of the silos it is."""

    def __init__(self, path: Path):
        self.path, self.file = path, read_silo(path)
        self.federation = read_federation(Path(self.file.federation))
        names = list(self.federation.silos)
        if self.file.name not in names:
            raise ConfigError(f"{path}: name: {self.file.name!r}: must be a silo of {self.file.federation}: {names}")
        self.number = names.index(self.file.name)
        self.plan: RunPlan = work_out(self.federation, self.file.federation)

    @property
    def declared(self) -> int:
        """The number of records that the others know."""
        return self.federation.silos[self.file.name].records

    @property
    def charge(self) -> Any:
        """The plan that the ledger counts."""
        return self.plan.accounted[self.number]

    def read_all(self) -> Records:
        """Every record of the file; TableError or ConfigError in one line that shows no cell."""
        found = encode_records(self.federation, self.file)
        if len(found[1]) < self.declared:
            allowed = f"must have the {self.declared} that {self.file.federation} declares"
            raise ConfigError(f"{self.file.file}: {len(found[1])} records: {allowed}")
        return found

    def certificates(self) -> tuple[bytes, bytes, bytes]:
        """The coordinator's certificate, this silo's key and its certificate; ConfigError where they do not fit."""
        key = Path(self.file.key)
        agreed = self.federation.silos[self.file.name].certificate
        for file in (key, key.with_suffix(".crt")):
            if not file.is_file():
                raise ConfigError(f"{self.path}: key: {file}: missing: `silodp silo key` makes it")
        if key.with_suffix(".crt").read_text().strip() != agreed.strip():
            allowed = f"must be the one of silos.{self.file.name} in {self.file.federation}"
            raise ConfigError(f"{key.with_suffix('.crt')}: another certificate: {allowed}")
        if not self.federation.coordinator.certificate.strip():
            raise ConfigError(
                f"{self.file.federation}: coordinator.certificate: missing: must be its whole certificate"
            )
        return self.federation.coordinator.certificate.encode(), key.read_bytes(), agreed.encode()


def encode_records(federation: Federation, silo: SiloFile) -> Records:
    """Records x (n, features), y (n,) of a silo's file, by the agreed schema and nothing that its records tell."""
    schema, form = federation.records, Form(silo.separator, silo.encoding, silo.decimal)
    data, _ = read_records(Path(silo.file), schema.as_read(form))
    x, y = data.x.astype(np.float64), data.y.astype(np.float64)
    for place, (name, value) in enumerate(schema.features):
        if value is None:
            x[:, place] = scale_to_bounds(x[:, place], *schema.numbers[name])
    x = np.nan_to_num(x, nan=0.0)
    if schema.target_bounds is not None:
        y = scale_to_bounds(y, *schema.target_bounds)
    features = torch.from_numpy(np.column_stack([x, *[np.ones(len(x))] * schema.constant_column]))
    labels = torch.from_numpy(y)
    return features, labels.long() if federation.model.name in ("softmax", "perceptron") else labels


class SiloRun:
    """One run of a member, in a folder of its ledger's: charged once, whatever stops; `again` charges another."""

    def __init__(self, member: Member, code: bytes, again: bool):
        self.member, self.code, self.stop, self.records = member, code, "", member.read_all()
        self.ledger_folder = Path(member.file.ledger)
        place = self.ledger_folder / "runs" / member.federation.digest.hex()[:16]
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        earlier = sorted(place.iterdir(), key=lambda folder: int(folder.name))
        self.folder = earlier[-1] if earlier and not again else place / str(len(earlier) + 1)
        if self.folder.exists():
            self._resume()
        else:
            self._begin()
        self.digest = member.plan.digest(member.number, self.nonce, code)
        self.silo = self._open()
        self._charge()

    def _begin(self) -> None:
        self.nonce, self.order_key = os.urandom(16), os.urandom(32)
        self.folder.mkdir(mode=0o700)
        key = self.folder / "order.key"
        key.touch(mode=0o600)
        key.write_bytes(self.order_key)
        self._note(ended=False)

    def _resume(self) -> None:
        known, allowed = read_json(self.folder / "run.json"), "`--again` starts, and charges, another run"
        self.nonce, self.order_key = bytes.fromhex(known["nonce"]), (self.folder / "order.key").read_bytes()
        for wrong, what in (
            (known["ended"], "this federation has come to its end here"),
            (known["code"] != self.code.hex(), "silodp has another version than when this run began"),
            (known["file"] != self._file_digest(), f"{self.member.file.file} is not what it was when this run began"),
        ):
            if wrong:
                raise ConfigError(f"{self.folder}: {what}: {allowed}")

    def _file_digest(self) -> str:
        """Of the records' file, under a key that stays here."""
        return hmac.new(self.order_key, Path(self.member.file.file).read_bytes(), hashlib.sha256).hexdigest()

    def _note(self, ended: bool) -> None:
        known = {"format": 1, "nonce": self.nonce.hex(), "code": self.code.hex(), "file": self._file_digest()}
        write_text(json.dumps(known | {"ended": ended}), self.folder / "run.json")
        sync_folder(self.folder)

    def _open(self) -> Silo:
        """The records are drawn down to the declared number by the run's key, once and for all restarts."""
        member = self.member
        x, y = self.records
        draws = SecretDraws(hashlib.sha256(b"declared records" + self.order_key).digest())
        chosen = torch.from_numpy(np.sort(draws.choice(len(y), member.declared, replace=False)))
        records = x[chosen], y[chosen]
        return open_silo(member.plan, member.number, records, self.folder, self.digest, self.order_key)

    def _charge(self) -> None:
        """Durable before the first slot; room for every reply is reserved before."""
        member = self.member
        with opened(self.ledger_folder, wait=True) as ledger:
            if self.digest.hex() not in [line["about"].get("run") for line in ledger.charges]:
                silo, federation = member.federation.silos[member.file.name], member.federation
                about = {"run": self.digest.hex(), "federation": federation.title, "algorithm": member.charge.algorithm}
                about |= {"R": federation.rounds, "epsilon": silo.epsilon, "delta": silo.delta}
                ledger.charge([member.charge], about, budget=first_budget(ledger, member))
            self.total, self.mark = ledger.total(), mark_of(ledger)

    def hello(self, greeting: bytes) -> bytes:
        """What this silo says of itself; `stop` says why it takes no part, where it does not."""
        federation, code, mark = GREETING.unpack(greeting)
        if federation != self.member.federation.digest:
            self.stop = "the coordinator has another federation.yaml: all must have the same"
        elif code != self.code:
            self.stop = "the coordinator has another version of silodp: all must have the same"
        with opened(self.ledger_folder, wait=True) as ledger:
            if is_later_mark(ledger, mark):
                self.stop = f"{ledger.path}: the coordinator has seen later lines: restore the newest copy"
        return HELLO.pack(self.nonce, self.member.federation.digest, self.code, self.digest, self.mark)

    def end(self) -> None:
        self._note(ended=True)


def first_budget(ledger: Ledger, member: Member) -> float | None:
    """silo.yaml's budget for a ledger without one; a ledger keeps its own."""
    return member.file.budget if ledger.budget is None else None


def mark_of(ledger: Ledger) -> bytes:
    """The ledger's last line as a coordinator may keep it: its number and HMAC, under the ledger's secret."""
    number, newest = len(ledger.lines), bytes.fromhex(ledger.lines[-1]["mac"])
    return MARK.pack(number, newest, bytes.fromhex(ledger.keyed(b"mark" + MARK.pack(number, newest, bytes(32)))))


def is_later_mark(ledger: Ledger, mark: bytes) -> bool:
    """Whether a mark is this ledger's own and of a line that it no longer has."""
    number, newest, signed = MARK.unpack(mark)
    if mark == NO_MARK or ledger.key is None:
        return False
    own = bytes.fromhex(ledger.keyed(b"mark" + MARK.pack(number, newest, bytes(32))))
    return hmac.compare_digest(own, signed) and [line["mac"] for line in ledger.lines[number - 1 : number]] != [
        newest.hex()
    ]


@contextmanager
def held_by_one(folder: Path) -> Iterator[None]:
    """ConfigError where another join of this silo runs; no core dump of this process is written."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / ".join.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(f"{folder}: another `silodp silo join` of this silo is running: must end first") from None
        yield


def take_part(run: SiloRun, local: str = "") -> bytes:
    """Answer until the coordinator's end: the model's SHA-256. ConfigError: no line for `answer_within` seconds.

    `local` is the socket of a coordinator on this machine; without it the line has mutual TLS.
    """
    from silodp.silos.line import LineError, join

    member, federation = run.member, run.member.federation
    pins, address = (None, local) if local else (member.certificates(), federation.coordinator.address)
    patience, punctual = member.file.answer_within, PunctualReplies(run.silo, federation.reply_after)
    heard = time.monotonic()

    def reply(question: bytes) -> bytes:
        nonlocal heard
        heard = time.monotonic()
        return punctual.reply(question)

    while True:
        left = heard + patience - time.monotonic()
        try:
            end = join(address, member.file.name, pins, member.plan.size, run.hello, reply, max(left, 0.1))
        except LineError as error:
            raise ConfigError(f"{address}: {error}") from None
        if run.stop:
            raise ConfigError(run.stop)
        if end is not None:
            run.end()
            return end
        if time.monotonic() > heard + patience:
            raise ConfigError(f"{address}: silent for {patience:g} s: run `silodp silo join` again, and it goes on")
        time.sleep(1)
