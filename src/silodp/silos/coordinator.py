"""The coordinator: one more `Federation`, whose answers come off the silos' lines.

It keeps its seed, and every reply or absence, so that after a stop it asks equal bytes and gets equal answers.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from silodp.config.errors import ConfigError
from silodp.federation.interface import Federation, Query
from silodp.federation.streams import Streams
from silodp.files import write_atomically
from silodp.silos.run_plan import RunPlan
from silodp.silos.slots import Slot
from silodp.silos.wire import FAULT, Refused, pack, unpack

# Sends a question to a silo: its reply, or None where none came.
Ask = Callable[[int, bytes], bytes | None]


class Absent(Exception):
    """A silo that gave no reply in time, or refused."""


class RemoteFederation(Federation):
    """Silos that are asked through `ask`; `runs` are their runs' digests, `folder` keeps what was answered."""

    def __init__(self, plan: RunPlan, runs: Mapping[int, bytes], ask: Ask, folder: Path, seed: int):
        stepsize, self.clip = plan.point()
        self.stepsize, self.prox, self.streams = stepsize[:, None], plan.prox, Streams(seed)
        self.releases = [{release.kind: release for release in one.releases} for one in plan.plans]
        self.plan, self.runs, self.ask, self.folder = plan, runs, ask, folder
        self._places = [{(slot.round, slot.kind): place for place, slot in enumerate(slots)} for slots in plan.slots]
        self._pool = ThreadPoolExecutor(len(plan.names))

    def answer(self, query: Query, silo: int) -> Tensor:
        expected = Slot(query.round, query.kind, query.previous is not None, query.factors)
        return self._answer(query, silo, expected)

    def local_model(self, weights: Tensor, silo: int, round: int, kind: str = "step") -> Tensor:
        return self._answer(Query(weights, round, kind), silo, Slot(round, kind, is_local=True))

    def average(self, round: int, send: Callable[[int], Tensor], *, add_up: bool = True) -> Tensor:
        """All silos of S_r at once; their messages are added in ascending order, without those that are absent."""

        def send_or_none(silo: int) -> Tensor | None:
            try:
                return send(silo)
            except Absent:
                return None

        cohort, least = self._cohort(round), self.plan.federation.least
        messages = list(self._pool.map(send_or_none, cohort))
        came = [message for message in messages if message is not None]
        if len(came) < least:
            self._forget_absences(round)
            names = ", ".join(self.plan.names[s] for s, one in zip(cohort, messages, strict=True) if one is None)
            said = f"round {round + 1}: no reply of {names}: at_least {least} must reply"
            allowed = "start all again; if it stops here once more, silos must begin another run (--again)"
            raise ConfigError(f"{said}: {allowed}")
        total = came[0]
        for message in came[1:]:
            total = total + message
        return total / len(came)

    def _forget_absences(self, round: int) -> None:
        """So that silos of a round that was not made are asked again after a restart."""
        for name, places in zip(self.plan.names, self._places, strict=True):
            for path in (self.folder / f"{name}-{place}" for (r, _), place in places.items() if r == round):
                if path.exists() and path.read_bytes()[32:] == FAULT:
                    path.unlink()

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
        run = self.runs.get(silo, bytes(32))  # of one that never came
        question = pack(run, place, *(point[0].clamp(-bound, bound).numpy() for point in points))
        reply = self._kept_reply(silo, place, question)
        try:
            number, (values,) = unpack(reply, run, self.plan.size)
            if number != place or not np.isfinite(values).all():
                raise Refused("reply")
        except (Refused, ValueError):
            raise Absent from None
        return torch.from_numpy(values.copy())[None]

    def _kept_reply(self, silo: int, place: int, question: bytes) -> bytes:
        """The stored reply or absence, else the silo's, which is stored first; `FAULT` if absent."""
        path, digest = self.folder / f"{self.plan.names[silo]}-{place}", hashlib.sha256(question).digest()
        if path.exists() and ((kept := path.read_bytes())[:32] == digest or kept[32:] == FAULT):
            return kept[32:]
        reply = self.ask(silo, question) or FAULT
        with write_atomically(path) as temporary:
            temporary.write_bytes(digest + reply)
        return reply


def stored_seed(folder: Path) -> int:
    """The coordinator's seed of a run, drawn when it is first asked for."""
    path = folder / "seed"
    if not path.exists():
        with write_atomically(path) as temporary:
            temporary.write_text(str(int.from_bytes(os.urandom(16))))
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
