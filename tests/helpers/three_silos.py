"""A federation of three silos of different sizes on made-up records, and its simulation in one process."""

import hashlib

import torch

from silodp.algorithms import ALGORITHMS
from silodp.federation.simulated import SiloFederation
from silodp.silos.federation_file import Federation
from silodp.silos.lattice import LatticeMessages
from silodp.silos.run_plan import work_out
from silodp.streams import Streams

SIZES = {"north": 40, "east": 25, "west": 31}
# (name, options) of every algorithm that silos run, local SGD in its three readings.
# Algorithms that mix the noise of several messages, and those that silos run.
MIXED = ["minibatch_sgd_correlated", "dp_mu2_correlated", "dp_mu2_difference"]
NAMES = [n for n, kind in ALGORITHMS.items() if kind.trust == "nothing" and not kind.alone and n not in MIXED]
CASES: list[tuple[str, dict]] = [(name, {}) for name in NAMES] + [
    ("local_sgd", {"noise_at": at}) for at in ("contracted_step", "end")
]
CASES += [("fedprox_spider", {"phase_length": 2}), ("dp_scaffold", {"phase_length": 2, "warm_start": True})]


def federation_keys(name="minibatch_sgd", options=None, **changes):
    """Keys of federation.yaml for records of three numbers and a class."""
    columns = {"age": "number", "bmi": "number", "ill": {"type": "category", "values": ["no", "yes"]}}
    schema = {"target": "ill", "columns": columns, "bounds": {"age": [0, 120], "bmi": [10, 50]}}
    silos = {
        silo: {"records": size, "epsilon": 4.0, "delta": 1e-4, "certificate": f"{silo}'s"}
        for silo, size in SIZES.items()
    }
    keys = {"title": "three silos", "schema": schema, "model": {"name": "logistic"}, "participants": 3, "rounds": 4}
    keys |= {"algorithm": {"name": name, "options": options or {}}, "stepsize": 0.5, "clip": 0.75, "bound": 100.0}
    return keys | {"reply_after": 0.0, "coordinator": {"address": "127.0.0.1:8470"}, "silos": silos} | changes


def run_plan(name="minibatch_sgd", options=None, **changes):
    return work_out(Federation.model_validate(federation_keys(name, options, **changes)), "federation.yaml")


def records(silo):
    generator = torch.Generator().manual_seed(silo)
    size = list(SIZES.values())[silo]
    x = torch.rand(size, 3, generator=generator, dtype=torch.float64) * 2 - 1
    return x, (x.sum(1) + torch.randn(size, generator=generator) > 0).to(torch.float64)


def seeded_key(*where):
    return hashlib.sha256(repr(where).encode()).digest()


def simulated_weights(plan, seed=0):
    """Weights after all rounds by `SiloFederation`, silo by silo, on the lattice."""
    stepsize, clip = plan.point()
    messages = LatticeMessages(plan.model, [records(silo) for silo in range(3)], seeded_key, plan.federation.bound)
    streams = Streams(seed)
    federation = SiloFederation(
        messages, [plan.plans], stepsize, clip, plan.federation.participants, streams, prox=plan.prox
    )
    federation.together = frozenset()
    federation.hold_to_plans()
    state = plan.algorithm.start(torch.zeros(1, plan.size, dtype=torch.float64))
    for r in range(plan.algorithm.rounds):
        state = plan.algorithm.round(r, state, federation)
    return plan.algorithm.models(state)
