"""The plan is what runs: every message of a silo is held against the plan that the accountant was given."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from silodp.federation.interface import Query
from silodp.privacy.plan import PrivacyPlan, Release


class BrokenPlan(ValueError):
    """A message that the plan does not have: one line with algorithm, silo, round and kind."""


class PlanCheck:
    """Counts the messages of one run, and compares noise, clip and records of each with the plan.

    Args:
        plans: `plans[g][i]` is the plan of silo i at point g.
        clip: L of every point, (G,).
        noise: standard deviation per coordinate (G,) of every silo's messages, by kind.
    """

    def __init__(self, plans: Sequence[Sequence[PrivacyPlan]], clip: Tensor, noise: Sequence[dict[str, Tensor]]):
        self.plans = list(plans[0])
        self.releases = [{release.kind: release for release in plan.releases} for plan in self.plans]
        self.shuffled = any(plan.shuffled_sum is not None for point in plans for plan in point)
        # Copies: what an algorithm writes into the federation's tensors is found.
        self.clip = clip.clone()
        self.noise = [{kind: scale.clone() for kind, scale in kinds.items()} for kinds in noise]
        self._asked: set[tuple[int, int, str]] = set()
        self._sent: Counter[tuple[int, str]] = Counter()

    def __call__(self, query: Query, silos: Sequence[int], releases: Sequence, clip: Tensor, noises: Sequence) -> None:
        """Raise BrokenPlan, and use nothing up, unless plans have all messages; shuffled sums alone have no noise."""
        for place, (silo, release, noise) in enumerate(zip(silos, releases, noises, strict=True)):
            fault = self._slot_fault(query, silo) or self._fault(query, silo, release, clip, noise)
            fault = fault or "silo named twice" * (silo in silos[:place])
            if fault:
                where = f"{self.plans[0].algorithm}: round {query.round!r}, silo {silo!r}, message {query.kind!r}"
                raise BrokenPlan(f"{where}: {fault}")
        for silo in silos:
            self._asked.add((silo, query.round, query.kind))
            self._sent[silo, query.kind] += self.releases[silo][query.kind].steps

    def _slot_fault(self, query: Query, silo: int) -> str:
        """Draws and noise are named by silo, round and kind as text: 7.0 or "7" would repeat those of 7."""
        if type(silo) is not int or not 0 <= silo < len(self.plans):
            return f"silo must be a whole number from 0 to {len(self.plans) - 1}"
        if type(query.kind) is not str or query.kind not in self.releases[silo]:
            return f"must be of a kind that the plan has: {', '.join(self.releases[silo])}"
        planned = self.releases[silo][query.kind]
        numbers = max(self.plans[silo].budget.rounds, planned.count // planned.steps)
        if type(query.round) is not int or not 0 <= query.round < numbers:
            return f"round must be a whole number from 0 to {numbers - 1}, as the plan has it"
        if (silo, query.round, query.kind) in self._asked:
            return "sent twice: must be once in a round, as the plan has it"
        sent = self._sent[silo, query.kind]
        if sent + planned.steps > planned.count:
            return f"message {sent + planned.steps}: must be at most {planned.count}, the plan's number"
        return ""

    def _fault(self, query: Query, silo: int, release: Release | None, clip: Tensor, noise: Tensor | None) -> str:
        kind, factor, planned = query.kind, query.noise_factor, self.releases[silo][query.kind]
        if release is None:
            return f"must be of a kind that the plan has: {', '.join(self.releases[silo])}"
        # More rows than points would share one draw of noise, which their difference takes off.
        if any(len(rows) != len(self.clip) for rows in (query.weights, query.previous) if rows is not None):
            return f"weights: must be of {len(self.clip)} point(s), the plan's"
        if (query.factors is not None) != planned.joint:
            return "factors: must stand where, and only where, the plan clips a record's gradients as a whole"
        if not planned.joint and (query.previous is not None) != (planned.gradients > 1):
            return f"must be made of {planned.gradients} gradient(s) of a record, the plan's sensitivity"
        # Count and noise are compared for themselves.
        same = release is planned or replace(release, count=planned.count, noise=planned.noise) == planned
        if not same or not torch.equal(clip, self.clip):
            return "must have the plan's records, sampler, clipping and clip"
        if factor is not None and not self.plans[silo].assumption:
            return "noise_factor: must be left out: the plan states no assumption"
        if noise is None:
            return "" if self.shuffled else "sent without noise: must have the plan's"
        # Before the query's factor.
        return "" if torch.equal(noise, self.noise[silo][kind]) else "must have the noise of the plan"

    def keep_points(self, points: Tensor) -> None:
        """Let all points but those marked in `points` (G,) leave the stack."""
        self.clip = self.clip[points]
        self.noise = [{kind: scale[points] for kind, scale in kinds.items()} for kinds in self.noise]
