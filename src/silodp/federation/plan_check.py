"""The plan is what runs: every message of a silo is held against the plan that the accountant was given."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from silodp.privacy.plan import PrivacyPlan, Release

if TYPE_CHECKING:
    from silodp.federation.messages import Query


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

    def __call__(self, query: "Query", silo: int, release: Release | None, clip: Tensor, noise: Tensor | None) -> None:
        """Raise BrokenPlan unless the plan of `silo` has this message; `noise` is None for shuffled sums alone."""
        planned, kind, plan = self.releases[silo].get(query.kind), query.kind, self.plans[silo]
        place = silo, query.round, kind

        def must(holds: bool, what: str) -> None:
            if not holds:
                where = f"{plan.algorithm}: round {query.round}, silo {silo}, message {kind!r}"
                raise BrokenPlan(f"{where}: {what}")

        must(planned is not None, f"must be of a kind that the plan has: {', '.join(self.releases[silo])}")
        assert planned is not None
        assert release is not None
        must(place not in self._asked, "sent twice: must be once in a round, as the plan has it")
        self._asked.add(place)
        self._sent[silo, kind] += planned.steps
        sent = self._sent[silo, kind]
        must(sent <= planned.count, f"message {sent}: must be at most {planned.count}, the plan's number")
        turned = (query.previous is not None) == (planned.gradients > 1)
        must(turned, f"must be made of {planned.gradients} gradient(s) of a record, the plan's sensitivity")
        # Count and noise are compared for themselves.
        same = replace(release, count=planned.count, noise=planned.noise) == planned and torch.equal(clip, self.clip)
        must(same, "must have the plan's records, sampler, clipping and clip")
        factor = query.noise_factor
        must(factor is None or bool(plan.assumption), "noise_factor: must be left out: the plan states no assumption")
        if noise is None:
            must(self.shuffled, "sent without noise: must have the plan's")
            return
        scale = self.noise[silo][kind]
        must(torch.equal(noise, scale if factor is None else scale * factor), "must have the noise of the plan")

    def keep(self, points: Tensor) -> None:
        """Let all points but those marked in `points` (G,) leave the stack."""
        self.clip = self.clip[points]
        self.noise = [{kind: scale[points] for kind, scale in kinds.items()} for kinds in self.noise]
