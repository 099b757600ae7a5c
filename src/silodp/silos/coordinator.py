"""The coordinator: one more `Federation`, whose answers come off the silos' lines.

It keeps its seed, and every reply or absence, so that after a stop it asks equal bytes and gets equal answers.
"""

import hashlib
import logging
import math
import os
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from silodp.config.errors import ConfigError
from silodp.federation.interface import Federation, Query
from silodp.silos.durable import write_private
from silodp.silos.run_plan import RunPlan
from silodp.silos.slots import Slot
from silodp.silos.wire import FAULT, Refused, pack, unpack
from silodp.streams import Streams

log = logging.getLogger("silodp")

# Sends a question to a silo: its reply, or None where none came.
Ask = Callable[[int, bytes], bytes | None]


class Absent(Exception):
    """A silo that is away, gave no reply in time, refused, or sent what its plan cannot send."""


class RemoteFederation(Federation):
    """Silos that are asked through `ask`; `runs` are their runs' digests, `folder` keeps what was answered.

    `away` says of which silos nothing is expected now. `replied` has for each round its silos, and whether all of a
    silo's messages came.
    """

    def __init__(
        self,
        plan: RunPlan,
        runs: Mapping[int, bytes],
        ask: Ask,
        folder: Path,
        seed: int,
        away: Callable[[], Collection[int]] = tuple,
    ):
        stepsize, self.clip = plan.point()
        self.stepsize, self.prox, self.streams = stepsize[:, None], plan.prox, Streams(seed)
        self.releases = [{release.kind: release for release in one.releases} for one in plan.plans]
        self.plan, self.runs, self.ask, self.folder, self.away = plan, runs, ask, folder, away
        self._places = [{(slot.round, slot.kind): place for place, slot in enumerate(slots)} for slots in plan.slots]
        self._pool = ThreadPoolExecutor(len(plan.names))
        self.replied: dict[int, dict[int, bool]] = {}
        self._round, self._away_now = 0, set[int]()
        self._without: dict[Path, bytes] = {}

    def answer(self, query: Query, silo: int) -> Tensor:
        expected = Slot(query.round, query.kind, query.previous is not None, query.factors)
        return self._answer(query, silo, expected)

    def local_model(self, weights: Tensor, silo: int, round: int, kind: str = "step") -> Tensor:
        return self._answer(Query(weights, round, kind), silo, Slot(round, kind, is_local=True))

    def average(self, round: int, send: Callable[[int], Tensor], *, add_up: bool = True) -> Tensor:
        """All silos of S_r at once; their messages are added in ascending order, without those that are absent.

        ConfigError: fewer than `at_least` replied. Absences are stored once enough did, so that the silos of a round
        that was not made are asked again after a restart.
        """

        def send_or_none(silo: int) -> Tensor | None:
            try:
                return send(silo)
            except Absent:
                return None

        self._round, cohort, least = round, self._cohort(round), self.plan.federation.least
        if round not in self.replied:
            self.replied[round], self._away_now = dict.fromkeys(cohort, True), set(self.away())
        self._without.clear()
        messages = dict(zip(cohort, self._pool.map(send_or_none, cohort), strict=True))
        for silo, message in messages.items():
            self.replied[round][silo] &= message is not None
        # A round may ask twice; who gave no reply is not waited for again.
        self._away_now = {*self._away_now, *(silo for silo, message in messages.items() if message is None)}
        came = [message for message in messages.values() if message is not None]
        if len(came) < least:
            names = ", ".join(self.plan.names[silo] for silo, message in messages.items() if message is None)
            said = f"round {round + 1}: no reply of {names}: at_least {least} must reply"
            allowed = "start all again; if it stops here once more, silos must `join --again`, and --output be another"
            raise ConfigError(f"{said}: {allowed}")
        for path, digest in self._without.items():
            write_private(path, digest + FAULT)
        total = came[0]
        for message in came[1:]:
            total = total + message
        return total / len(came)

    def _cohort(self, round: int) -> list[int]:
        """S_r as `SiloFederation` draws it."""
        total, size = len(self.plan.names), self.plan.federation.participants
        if total == size:
            return list(range(total))
        return sorted(self.streams.generator("silos", size, round).choice(total, size=size, replace=False).tolist())

    def _answer(self, query: Query, silo: int, expected: Slot) -> Tensor:
        place = self._places[silo].get((query.round, query.kind))
        if place is None or self.plan.slots[silo][place] != expected or query.noise_factor is not None:
            raise ConfigError(f"{self.plan.names[silo]}: round {query.round}, {query.kind!r}: not in the silo's plan")
        bound = self.plan.federation.bound
        points = [query.weights, *([] if query.previous is None else [query.previous])]
        if not all(bool(torch.isfinite(point).all()) for point in points):
            raise ConfigError(f"round {query.round}: the model is not finite: must have a smaller step size")
        asked = [point[0].clamp(-bound, bound).numpy() for point in points]
        run, path = self.runs.get(silo, bytes(32)), self.folder / f"{self.plan.names[silo]}-{place}"
        question = pack(run, place, *asked)
        digest, kept = hashlib.sha256(question).digest(), path.read_bytes() if path.exists() else b""
        if kept[32:] not in (b"", FAULT) and kept[:32] != digest:
            allowed = "silodp, its packages and the silo's plan must be as when it came, or --output be another"
            raise ConfigError(f"{path}: replies to another question: {allowed}")
        reply = kept[32:] or (None if silo in self._away_now else self.ask(silo, question)) or FAULT
        try:
            number, (values,) = unpack(reply, run, self.plan.size)
            if number != place:
                raise Refused("slot")
            self._check_norm(values - (asked[0] if expected.is_local else 0), silo, expected)
        except ValueError:
            if kept[32:] not in (b"", FAULT):
                raise ConfigError(f"{path}: damaged: restore it, as the other silos were asked with it") from None
            self._without[path] = digest
            raise Absent from None
        if not kept:
            write_private(path, digest + reply)
        return torch.from_numpy(values.copy())[None]

    def _check_norm(self, sent: np.ndarray, silo: int, slot: Slot) -> None:
        """Refused for what is longer than a reply of the plan can be."""
        share = float(np.linalg.norm(sent)) / largest_norm(self.plan, silo, slot)
        if not share <= 1:  # NaN fails as well
            said = f"{self.plan.names[silo]}: round {self._round + 1}: its reply is {share:.3g} times as long as"
            log.warning("%s its plan allows: taken as none", said)
            raise Refused("norm")


def largest_norm(plan: RunPlan, silo: int, slot: Slot) -> float:
    """Norm of a message, or of a local model less the weights that it began at, that no honest reply exceeds.

    σ√d + 11σ is exceeded by noise with a probability below 10⁻²¹ a reply.
    """
    release = next(kind for kind in plan.plans[silo].releases if kind.kind == slot.kind)
    federation, d = plan.federation, plan.size
    clip, noise = federation.clip, federation.clip * release.noise * (math.sqrt(d) + 11)
    if not slot.is_local:
        tensors = release.tensors if release.clipping == "per_tensor" else 1
        return (1 if release.joint else release.gradients) * math.sqrt(tensors) * clip + noise
    K = release.records_drawn
    moved = K * (clip + noise) if release.steps == 1 else K * clip + math.sqrt(K) * noise
    return federation.stepsize * moved + 2.0**-50 * math.sqrt(d) * federation.bound


def stored_seed(folder: Path) -> int:
    """The coordinator's seed of a run, drawn when it is first asked for."""
    path = folder / "seed"
    if not path.exists():
        write_private(path, str(int.from_bytes(os.urandom(16))).encode())
    return int(path.read_text())


def train(federation: RemoteFederation, progress: Callable[[int], object] = lambda r: None) -> tuple[Tensor, Tensor]:
    """(models, output) after all rounds: of every silo (1, N, d) where each has its own, else (1, d)."""
    plan = federation.plan
    start = torch.from_numpy(plan.model.initial(federation.streams.generator("initial")))
    state = plan.algorithm.start(start[None])
    for r in range(plan.algorithm.rounds):
        state = plan.algorithm.round(r, state, federation)
        progress(r)
    return plan.algorithm.models(state), plan.algorithm.output(state)
