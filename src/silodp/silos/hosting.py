"""The coordinator's process: it opens its door, admits the silos of the federation, trains, and tells them the end."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from torch import Tensor

from silodp.config.errors import ConfigError
from silodp.silos.coordinator import RemoteFederation, stored_seed, train
from silodp.silos.durable import make_private, write_private
from silodp.silos.federation_file import check_address, read_federation
from silodp.silos.keys import fingerprint, own_pair
from silodp.silos.run_plan import RunPlan, work_out
from silodp.silos.wire import GREETING, MARK, NO_MARK, Hello

log = logging.getLogger("silodp")

# Seconds between two lines that say who is missing.
_REMIND = 60.0


class Host:
    """A run of `federation.yaml` at `path`, whose transcript lies in `folder`; `address` takes the place of its own."""

    def __init__(self, path: Path, folder: Path, key: Path, code: bytes, address: str | None = None):
        self.path, self.folder, self.code = path, folder, code
        self.federation = read_federation(path)
        self.plan: RunPlan = work_out(self.federation, str(path))
        self.address = address or self.federation.coordinator.address
        self.is_local = self.address.startswith("unix:")
        check_address(self.address, self.federation, str(path))
        self.runs: dict[int, bytes] = {}
        # Round → its silos, and whether each replied.
        self.replied: dict[int, dict[int, bool]] = {}
        make_private(folder)
        silos = self.federation.silos
        self.own = b"", b""
        if not self.is_local:
            for name, silo in silos.items():
                fingerprint(silo.certificate, f"{path}: silos.{name}.certificate")
            self.own = own_pair(key, self.federation.coordinator.certificate, f"{path}: coordinator.certificate")
        # A mark outlives a run: it is a silo's, by its name.
        self._marks = [path.parent / ".silodp-marks" / name for name in silos]
        for mark in self._marks:
            if mark.exists() and mark.stat().st_size != MARK.size:
                raise ConfigError(f"{mark}: damaged: must be as silodp wrote it; without it no older ledger is noticed")

    def greet(self, silo: int) -> bytes:
        return GREETING.pack(self.federation.digest, self.code, self._mark(silo))

    def _mark(self, silo: int) -> bytes:
        return self._marks[silo].read_bytes() if self._marks[silo].exists() else NO_MARK

    def take_mark(self, silo: int, reply: bytes | None) -> bytes | None:
        """The reply without the mark in front of it, which is stored unless a longer ledger's is there."""
        if reply is None or len(reply) < MARK.size:
            return reply
        mark, rest = reply[: MARK.size], reply[MARK.size :]
        if MARK.unpack(mark)[0] >= MARK.unpack(self._mark(silo))[0]:
            write_private(self._marks[silo], mark)
        return rest

    def admit(self, silo: int, hello: Hello) -> bool:
        """Whether the silo has the same file and code, and goes on with its run of this transcript."""
        name, nonce = self.plan.names[silo], self.folder / f"{self.plan.names[silo]}-nonce"
        run = self.plan.digest(silo, hello.nonce, self.code)
        why = ""
        if hello.federation != self.federation.digest:
            here = self.federation.digest.hex()[:12]
            why = f"has another {self.path.name} (SHA-256 {hello.federation.hex()[:12]}, here {here})"
        elif hello.code != self.code:
            why = f"runs another version of silodp (code {hello.code.hex()[:12]}, here {self.code.hex()[:12]})"
        elif hello.run != run:
            why = "works out another plan (run's digest): must have the same packages"
        elif nonce.exists() and nonce.read_bytes() != hello.nonce:
            why = f"begins another run than the one of {self.folder}: must go on with it, or --output be another"
        if why:
            log.warning("%s: refused: %s", name, why)
            return False
        write_private(nonce, hello.nonce)
        self.runs[silo] = run
        log.info("%s is here", name)
        return True

    def run(self, finish: Callable[[Tensor, Tensor], dict[int, bytes]], ended: Callable[[], list[str]] = list) -> None:
        """Wait for the silos, train, and send what `finish` gives for (models, output): the SHA-256 of each's.

        Once `at_least` silos are there, the others have `wait` seconds. ConfigError: too few replied in a round, or
        too few can come, as those that `ended` names never will.
        """
        from silodp.silos.line import Lines

        # Also of silos that are not back: what they replied is part of the model.
        for place, name in enumerate(self.plan.names):
            if (nonce := self.folder / f"{name}-nonce").exists():
                self.runs[place] = self.plan.digest(place, nonce.read_bytes(), self.code)
        entries = enumerate(self.federation.silos.items())
        silos = {place: name if self.is_local else silo.certificate for place, (name, silo) in entries}
        try:
            lines = Lines(self.address, silos, *self.own, self.plan.size, self.greet, self.admit)
        except OSError as error:
            allowed = "must be a free port of this machine: `--listen HOST:PORT`, as in 0.0.0.0:8470"
            raise ConfigError(f"{error}: {allowed}") from None
        last, remind, least = None, 5.0 if self.is_local else _REMIND, self.federation.least
        try:
            log.info("%s: waits for %s", self.address, self._silo_names(silos))
            while len(came := lines.wait(least, remind)) < least:
                if len(silos) - len(names := ended()) < least:
                    raise ConfigError(f"{self.path}: at_least: {least}: ended early: {', '.join(names)}")
                if not self.is_local:
                    log.info("still missing: %s", self._silo_names(silos.keys() - came))
            if len(came := lines.wait(len(silos), self.federation.wait)) < len(silos):
                log.warning("goes on without %s", self._silo_names(silos.keys() - came))
            federation = RemoteFederation(
                self.plan,
                self.runs,
                lambda silo, question: self.take_mark(silo, lines.ask(silo, question, self.federation.wait)),
                self.folder,
                stored_seed(self.folder),
                lambda: lines.away,
            )
            self.replied = federation.replied

            def say(round: int) -> None:
                silent = [silo for silo, all_came in self.replied[round].items() if not all_came]
                without = f": no reply of {self._silo_names(silent)}" if silent else ""
                log.info("round %d of %d%s", round + 1, self.plan.algorithm.rounds, without)

            last = finish(*train(federation, say))
        finally:
            lines.end(last)

    def _silo_names(self, silos: Iterable[int]) -> str:
        return ", ".join(self.plan.names[silo] for silo in sorted(silos))
