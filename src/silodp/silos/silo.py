"""A silo's answers: `Silo.reply(bytes) → bytes`, free of transport.

Any bytes that are not a question of the plan get one constant reply and change nothing. A slot is answered once:
its line lasts, then noise is drawn from fresh bits, then the reply lasts, then the reply is returned.
"""

import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from silodp.federation.clipped_sums import Records
from silodp.federation.interface import Query
from silodp.silos.lattice import LatticeMessages
from silodp.silos.run_plan import RunPlan
from silodp.silos.slot_store import SlotStore
from silodp.silos.slots import is_ordered
from silodp.silos.wire import FAULT, HEAD, Refused, pack, unpack

log = logging.getLogger("silodp")


class Silo:
    """Silo `number` of a run: its `records`, its part of the plan, and what it has answered, in `folder`.

    Attributes:
        order_key: 32 bytes from which the order of records comes, the same after a restart.
        key_of: tests alone give it; without it every slot has fresh bits of the operating system.
    """

    def __init__(
        self,
        plan: RunPlan,
        number: int,
        records: Records,
        folder: Path,
        run: bytes,
        order_key: bytes,
        key_of: Callable[..., bytes] | None = None,
    ):
        self.plan, self.number, self.run = plan, number, run
        self.slots, self.size = plan.slots[number], plan.size
        self.store = SlotStore(folder, len(self.slots), HEAD.size + 8 * self.size, is_ordered(plan.plans[number]))
        self.releases = {release.kind: release for release in plan.plans[number].releases}
        self.order_key, self._key_of = order_key, key_of
        self.messages = LatticeMessages(plan.model, [records], self._key, plan.federation.bound)

    def _key(self, *where: object) -> bytes:
        if self._key_of is not None:
            return self._key_of(self.number, *where[1:])
        return self.order_key if len(where) == 1 else self._slot_key

    def reply(self, question: bytes, deadline: float = float("inf")) -> bytes:
        """The reply to a question's bytes, or `FAULT`; after the `deadline` of the monotonic clock none is made."""
        try:
            return self._reply(question, deadline)
        except Exception as error:
            log.warning("refused: %s", error or type(error).__name__)
            return FAULT

    def _reply(self, question: bytes, deadline: float) -> bytes:
        number, points = self._read_question(question)
        stored = self.store.find(number, question)
        if stored is not None:
            return stored
        if self.store.is_dead(number) or time.monotonic() > deadline:
            raise Refused(f"slot {number}: dead")
        self.store.open_slot(number, question)
        self._slot_key = os.urandom(32)
        message = self._message(number, points)
        reply = pack(self.run, number, message)
        if time.monotonic() > deadline:
            raise Refused(f"slot {number}: dead: its work took longer than reply_after")
        self.store.keep_reply(number, reply)
        return reply

    def is_question(self, question: bytes) -> bool:
        """Whether the bytes are a question of an open slot of this run, at weights within ±B."""
        try:
            return not self.store.is_dead(self._read_question(question)[0])
        except Refused:
            return False

    def _read_question(self, question: bytes) -> tuple[int, np.ndarray]:
        number, points = unpack(question, self.run, self.size)
        if not number < len(self.slots):
            raise Refused("slot")
        if len(points) != 1 + self.slots[number].has_pair:
            raise Refused("number of points")
        if not (np.abs(points) <= self.plan.federation.bound).all():  # NaN fails as well
            raise Refused("weights")
        return number, points

    def _message(self, number: int, points: np.ndarray) -> np.ndarray:
        slot, (stepsize, clip) = self.slots[number], self.plan.point()
        weights, previous = (torch.from_numpy(point.copy())[None] for point in (points[0], points[-1]))
        query = Query(weights, slot.round, slot.kind, previous if slot.has_pair else None, factors=slot.factors)
        release = self.releases[slot.kind]
        if slot.is_local:
            model = self.messages.local_model(query, 0, release, clip, release.noise * clip, stepsize)
        else:
            model = self.messages.message(query, 0, release, clip, release.noise * clip)
        return model[0].numpy()


class PunctualReplies:
    """Replies that leave `reply_after` seconds after their question, whatever the work took."""

    def __init__(self, silo: Silo, reply_after: float):
        self.silo, self.reply_after = silo, reply_after
        self._pool = ThreadPoolExecutor(1)

    def reply(self, question: bytes) -> bytes:
        if not self.reply_after:
            return self.silo.reply(question)
        deadline = time.monotonic() + self.reply_after
        work = self._pool.submit(self.silo.reply, question, deadline)
        try:
            reply = work.result(max(deadline - time.monotonic(), 0))
        except TimeoutError:
            reply = FAULT
            log.warning("refused: the work took longer than reply_after = %g s", self.reply_after)
        time.sleep(max(deadline - time.monotonic(), 0))
        return reply
