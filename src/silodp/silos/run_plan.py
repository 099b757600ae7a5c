"""What `federation.yaml` means for a run: algorithm, model, and each silo's plan, slots and digest."""

import dataclasses
import hashlib
import math
from dataclasses import dataclass

import torch

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm
from silodp.config.errors import ConfigError
from silodp.config.models import CONTRACTING
from silodp.experiments.protocol_plans import Protocol, complete_plan
from silodp.federation.prox import Prox, Regulariser
from silodp.models import MODELS
from silodp.models.base import Model
from silodp.privacy.plan import Budget, PrivacyPlan
from silodp.privacy.true_epsilon import ends, upper_end
from silodp.silos.federation_file import Federation
from silodp.silos.lattice import lattice_step, raise_noise
from silodp.silos.slots import Slot, slots_of


@dataclass(frozen=True)
class RunPlan:
    """A federation worked out.

    Attributes:
        accounted: each silo's plan as the accountant and the ledger have it.
        plans: the same with noise raised for the lattice: what is sent.
        slots: each silo's messages.
    """

    federation: Federation
    algorithm: Algorithm
    model: Model
    accounted: list[PrivacyPlan]
    plans: list[PrivacyPlan]
    slots: list[list[Slot]]

    @property
    def size(self) -> int:
        """d."""
        return self.model.size

    @property
    def names(self) -> list[str]:
        return list(self.federation.silos)

    @property
    def prox(self) -> Prox:
        """Proximal map of the federation's penalty and ball."""
        penalty, radius = self.federation.regulariser, self.federation.radius
        return Regulariser(**({penalty.name: penalty.weight} if penalty else {}), radius=radius).prox

    def point(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(η, L), each (1,)."""
        stepsize, clip = torch.tensor([[self.federation.stepsize], [self.federation.clip]], dtype=torch.float64)
        return stepsize, clip

    def epsilon(self, silo: int) -> tuple[float, float]:
        """Both ends of a silo's true ε at its δ; noisy local steps count as if each were seen."""
        result = ends([self.accounted[silo].with_steps_seen])
        return result.lower, result.upper

    def digest(self, silo: int, nonce: bytes, code: bytes) -> bytes:
        """SHA-256 of all that a reply of a silo hangs on: agreed part, own plan to the bit, code, and the run's nonce.

        Without a nonce it names the run before a silo has begun it.
        """
        plan, federation = self.plans[silo], self.federation
        noise = [(kind.noise * federation.clip).hex() for kind in plan.releases]
        steps = [lattice_step(kind.noise * federation.clip).hex() for kind in plan.releases]
        bits = [self.names[silo], repr(plan), *noise, *steps, "float64", str(self.size), repr(self.slots[silo])]
        parts = [federation.digest, "\n".join(bits).encode(), code, nonce]
        return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()


def work_out(federation: Federation, where: str) -> RunPlan:
    """Plans and slots of a federation; ConfigError, which begins with `where`, for one that keeps no promise."""
    options = federation.model.model_dump(exclude={"name"})
    try:
        schema = federation.records
        model = MODELS[federation.model.name](schema.features, schema.classes, **options).hiding_time()
        algorithm = _algorithm(federation)
        accounted = [_plan(federation, algorithm, name, where) for name in federation.silos]
        plans = [raise_noise(plan, model.size) for plan in accounted]
        slots = slots_of(algorithm, plans)
        _check_rounding(federation, plans, model.size)
    except (ValueError, TypeError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{where}: algorithm: {federation.algorithm.name}: {error}") from None
    return RunPlan(federation, algorithm, model, accounted, plans, slots)


def _algorithm(federation: Federation) -> Algorithm:
    kind, chosen = ALGORITHMS[federation.algorithm.name], federation.algorithm.options
    known = {field.name for field in dataclasses.fields(kind)} - {"rounds", "silos", "cohort", "schedule", "clip"}
    if unknown := sorted(set(chosen) - known):
        raise ValueError(f"option {unknown[0]!r}: must be one of {', '.join(sorted(known)) or 'none'}")
    shape = {"rounds": federation.rounds, "silos": len(federation.silos), "cohort": federation.participants}
    least = min(silo.records for silo in federation.silos.values())
    return kind.with_options(shape | chosen).fitted(least, federation.batch_records)


def _plan(federation: Federation, algorithm: Algorithm, name: str, where: str) -> PrivacyPlan:
    silo = federation.silos[name]
    budget = Budget(silo.records, algorithm.rounds, silo.epsilon, silo.delta, silo.epsilon, federation.batch_records)
    plan = complete_plan(algorithm, budget, Protocol(noise="calibrated", sampler=federation.sampler))
    if plan.assumption or plan.shuffler is not None or plan.trusted_sum is not None:
        raise ValueError(f"its promise needs {plan.assumption or 'others to be trusted'}: must hold by itself")
    if any(kind.contracted for kind in plan.releases) and federation.model.name not in CONTRACTING:
        allowed = f"must be {' or '.join(CONTRACTING)}: local steps of others may expand distances"
        raise ConfigError(f"{where}: model.name: {federation.model.name!r}: {allowed}")
    if any(kind.mixing for kind in plan.releases):
        raise ValueError(
            "mixes the noise of several messages: a silo keeps no noise, so that no stop could be survived"
        )
    upper = upper_end([plan.with_steps_seen])
    if not upper <= silo.epsilon:
        raise ConfigError(f"{where}: silos.{name}.epsilon: {silo.epsilon:g}: not proven to be kept (up to {upper:g})")
    return plan


def rounding(steps: int, size: int, bound: float, step: float) -> float:
    """Share of 2ηL, `step` being ηL, by which K local steps from weights up to B round neighbours apart at most."""
    largest = math.sqrt(size) * bound + steps * step
    return steps * (2 * size + 8) * 2.0**-53 * largest / step


def _check_rounding(federation: Federation, plans: list[PrivacyPlan], size: int) -> None:
    """Rounding of K local steps at weights up to B stays below 2⁻²⁰ of a sensitivity."""
    for kind in (kind for plan in plans for kind in plan.releases if kind.contracted and kind.steps == 1):
        if rounding(kind.records, size, federation.bound, federation.stepsize * federation.clip) > 2.0**-20:
            raise ValueError(f"bound = {federation.bound:g}: too large for {kind.records} local steps in float64")
