"""Attacks on models of own data: by a simulation with a public seed, and by silos as `silodp silo join` makes them.

Two silos of 40 made-up records; 60 seeds an attack. `--output benchmarks/PRIVACY.md` writes the table there.
"""

import argparse
import dataclasses
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from unittest.mock import PropertyMock, patch

import numpy as np
import torch

sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers"))

import patients

from marked import write_between
from silodp.algorithms.minibatch_sgd import MinibatchSGD
from silodp.config.errors import ConfigError
from silodp.config.experiment import AlgorithmOptions
from silodp.config.readings import Readings
from silodp.experiments.task import POINT, Task
from silodp.experiments.training import run_trial, train_stack
from silodp.experiments.validation import load
from silodp.federation.interface import Query
from silodp.federation.messages import Messages
from silodp.federation.plan_check import PlanCheck
from silodp.federation.simulated import SiloFederation
from silodp.partition.experiment_data import dataset_of
from silodp.partition.trial_data import partition_and_measure, prepare
from silodp.privacy.accounting import delivered_epsilon
from silodp.privacy.plan import Budget
from silodp.silos.coordinator import RemoteFederation, train
from silodp.silos.federation_file import Federation
from silodp.silos.lattice import lattice_step, put_on_lattice, steps_of_noise
from silodp.silos.run_plan import RunPlan, work_out
from silodp.silos.secret_draws import SecretDraws
from silodp.silos.silo import Silo
from silodp.silos.wire import FAULT, pack
from silodp.streams import Streams

SEEDS = 60
SIZES = {"north": 40, "south": 40}
RUN = b"r" * 32
# A weight that only the canary's record moves is told from 0 by this.
SEEN = 1e-9
_CANARY = 1
OPTIONS = {name: AlgorithmOptions() for name in ("sdp_prox_svrg", "sdp_prox_pl_svrg")}


def made_records(canary: bool, alike: bool = False) -> list:
    """Two silos of an age, a smoker and a constant: the first record alone smokes, or nobody does."""
    i = torch.arange(80)
    smokes = ((i == 0) & canary).double()
    x = torch.stack([(20.0 + 7 * i % 60) / 60 - 1, smokes, torch.ones(80)], dim=1).double()
    # All others are alike, so that a large step suits them.
    y = 1 - smokes if alike else ((i % 3 == 0) | (i % 7 == 0)).double()
    return [(x[:40], y[:40]), (x[40:], y[40:])]


def made_plan(epsilon: float, rounds: int = 1, stepsize: float = 0.5) -> RunPlan:
    columns = {"age": "number", "smoker": {"type": "boolean", "values": ["no", "yes"]}}
    columns |= {"ill": {"type": "category", "values": ["no", "yes"]}}
    silos = {name: {"records": size, "epsilon": epsilon, "delta": 40**-2.0} for name, size in SIZES.items()}
    keys = {"title": "attacks", "schema": {"target": "ill", "columns": columns, "bounds": {"age": [0, 120]}}}
    keys |= {"model": {"name": "logistic"}, "algorithm": {"name": "minibatch_sgd"}, "participants": 2, "clip": 1.0}
    keys |= {"rounds": rounds, "stepsize": stepsize, "batch_records": 8, "reply_after": 0.0, "silos": silos}
    keys |= {"bound": 1e6, "coordinator": {"address": "localhost:1"}}
    return work_out(Federation.model_validate(keys), "federation.yaml")


def simulated(plan: RunPlan, records: list, seed: int, noise: float = 1.0, watched: list | None = None):
    """(weights, the round that a watched loss stopped, or -1) of a simulation, whose draws come from `seed`."""
    kinds = [tuple(dataclasses.replace(kind, noise=noise * kind.noise) for kind in one.releases) for one in plan.plans]
    plans = [dataclasses.replace(one, releases=of) for one, of in zip(plan.plans, kinds, strict=True)]
    messages = Messages(plan.model, records, Streams(seed).child("sent"))
    silos = SiloFederation(messages, [plans], *plan.point(), 2, Streams(seed))
    start = torch.zeros(plan.size, dtype=torch.float64)
    weights, stopped = train_stack(plan.algorithm, silos, plan.model, start, watched, "last")
    return weights[0].numpy(), int(stopped[0])


def by_silos(plan: RunPlan, records: list) -> np.ndarray:
    """Weights of a run with real silos, whose draws come from the operating system."""
    with tempfile.TemporaryDirectory() as folder:
        silos = []
        for place in range(2):
            home = Path(folder) / str(place)
            home.mkdir()
            silos.append(Silo(plan, place, records[place], home, RUN, os.urandom(32)))
        runs = dict.fromkeys(range(2), RUN)
        ask = lambda silo, question: silos[silo].reply(question)  # noqa: E731
        return train(RemoteFederation(plan, runs, ask, Path(folder), 0))[1][0].numpy()


def two_models():
    """A1: models at ε = 4 and 8, combined; (noise, what is left, runs in which the canary shows) of both designs."""
    rows = []
    for design in ("seed", "silos"):
        noise, left, found = [], [], {True: 0, False: 0}
        for seed, canary in ((seed, canary) for seed in range(SEEDS) for canary in (True, False)):
            records, plans = made_records(canary), [made_plan(epsilon) for epsilon in (4.0, 8.0)]
            if design == "seed":
                w4, w8 = (simulated(plan, records, seed)[0] for plan in plans)
            else:
                w4, w8 = (by_silos(plan, records) for plan in plans)
            s4, s8 = (plan.plans[0].releases[0].noise for plan in plans)
            both = (s4 * w8 - s8 * w4) / (s4 - s8)
            plain = simulated(plans[1], records, seed, noise=0.0)[0]
            noise.append(np.linalg.norm(w8 - plain))
            left.append(np.linalg.norm(both - plain))
            found[canary] += abs(both[_CANARY]) > SEEN
        rows.append((np.median(noise), np.median(left), f"{found[True]} and {found[False]}"))
    return rows


def corrected():
    """A2: runs after one record was corrected, with the bits of the run before: the record was not drawn."""
    plan, worlds = made_plan(4.0), [made_records(True), made_records(False)]
    by_seed = [np.array_equal(*(simulated(plan, world, seed)[0] for world in worlds)) for seed in range(SEEDS)]
    secret = [np.array_equal(*(by_silos(plan, world) for world in worlds)) for _ in range(SEEDS)]
    return sum(by_seed), sum(secret)


def known_seed():
    """A3: noise made again from the default seed, on records of the adversary's, taken off the model."""
    plan, world, other = made_plan(4.0), made_records(True), made_records(False)
    again = simulated(plan, other, 2023)[0] - simulated(plan, other, 2023, noise=0.0)[0]
    plain = simulated(plan, world, 2023, noise=0.0)[0]
    by_seed = np.linalg.norm(simulated(plan, world, 2023)[0] - again - plain)
    return by_seed, np.median([np.linalg.norm(by_silos(plan, world) - again - plain) for _ in range(SEEDS)])


def stops():
    """A4: runs that end before their last round, with the canary and without, where losses are watched and not."""
    plan, watched, silos = made_plan(8.0, rounds=10, stepsize=300.0), [], []
    for canary in (True, False):
        records = made_records(canary, alike=True)
        probe = [(torch.cat([x[:16] for x, _ in records]), torch.cat([y[:16] for _, y in records]))]
        watched.append(sum(simulated(plan, records, seed, watched=probe)[1] >= 0 for seed in range(SEEDS)))
        ended = 0
        for _ in range(SEEDS):
            try:
                by_silos(plan, records)
            except ConfigError:
                ended += 1
        silos.append(ended)
    return [f"{a} and {b}" for a, b in (watched, silos)]


class Twice(MinibatchSGD):
    """Two messages a round where the plan says one."""

    def round(self, r, state, federation):
        return super().round(r, super().round(r, state, federation), federation)


class Quiet(MinibatchSGD):
    """Noise until round 5."""

    def round(self, r, state, federation):
        factor = torch.zeros(1, dtype=torch.float64) if r >= 6 else None
        gradient = federation.mean(Query(state.w, r, noise_factor=factor))
        return dataclasses.replace(state, w=state.w - federation.stepsize * gradient)


def liars():
    """A6: true ε of the plan and of two messages a round, and what either plug-in gets of silos."""
    plan = MinibatchSGD(25).plan(Budget(200, 25, 3.0, 200**-2.0, 4.0))
    (one,) = plan.releases
    twice = dataclasses.replace(plan, releases=(dataclasses.replace(one, count=2 * one.count),))
    said, true = (delivered_epsilon(of, 200**-2.0) for of in (plan, twice))
    outcomes = []
    for liar in (Twice, Quiet):
        honest = made_plan(4.0, rounds=10)
        lying = dataclasses.replace(honest, algorithm=liar(**vars(honest.algorithm)))
        with patch.object(PlanCheck, "__call__", lambda *_: None):
            simulated(lying, made_records(False), 0)
        outcomes.append("trains")
        try:
            by_silos(lying, made_records(False))
            outcomes.append("trains")
        except ConfigError:
            outcomes.append("stopped")
    return *(f"[{found.lower:.3g}, {found.upper:.3g}]" for found in (said, true)), outcomes


def asked_again():
    """A hostile coordinator's second question for a slot, at other weights: what a silo sends."""
    plan = made_plan(4.0)
    with tempfile.TemporaryDirectory() as folder:
        silo = Silo(plan, 0, made_records(True)[0], Path(folder), RUN, os.urandom(32))
        first, second = (silo.reply(pack(RUN, 0, np.full(plan.size, value))) for value in (0.0, 1.0))
    assert first != FAULT
    return "the constant fault" if second == FAULT else "a second message"


def shuffled(folder: Path):
    """A7: draws of P_vec that two SDP algorithms of a study share, with names as on public data and as on own data."""
    told = []
    patients.write_records(folder / "patients.csv", {"North": 40, "South": 40})
    resolved = load(patients.run_file(folder, settings=[{"M": 2, "R": 12}]))
    run, config = resolved.run, resolved.experiments["patients"]
    config = config.model_copy(update={"readings": Readings(summation="shuffled"), "algorithms": OPTIONS})
    for secret in (False, True):
        names, generator = [], Streams.generator

        def recorded(self, *parts, names=names, generator=generator):
            if parts[0] == "shuffled sum":
                names.append((*self.path, *map(str, parts)))
            return generator(self, *parts)

        with (
            patch.object(Task, "on_own_data", new_callable=PropertyMock, return_value=secret),
            patch.object(Streams, "generator", recorded),
        ):
            for name in OPTIONS:
                data = dataset_of(config).load()
                part = partition_and_measure("patients", config, config.readings, run, data)[0][0]
                task = Task("patients", config, name, config.settings[0])
                point = task.grid()[POINT].dropna().head(1)
                run_trial(task, run, prepare(data, config, config.readings, part, run), 0, point, "fresh")
        counts = Counter(names)
        told.append(f"{sum(count > 1 for count in counts.values())} of {len(names) // 2}")
    return told


def last_bits(draws=100_000):
    """Share of outputs of one coordinate that rule out the neighbour by their bits alone, in float64 and on a lattice.

    An output is ruled out where no draw of the noise takes the neighbour's mean there: no float64 z with m + σz = y, no
    whole number of steps from the neighbour's place on the lattice.
    """
    sigma, shift = 0.37, 0.05
    y = sigma * np.random.default_rng(0).standard_normal(draws)
    guess = (y - shift) / sigma
    near = [guess]
    for way in (-np.inf, np.inf):
        one = guess
        for _ in range(4):
            one = np.nextafter(one, way)
            near.append(one)
    told = [1 - np.mean(np.any([shift + sigma * one == y for one in near], axis=0))]
    noise = SecretDraws(os.urandom(32)).rounded_gaussian(draws, steps_of_noise(sigma))
    sent = put_on_lattice(torch.zeros(draws, dtype=torch.float64), sigma, noise)
    other = put_on_lattice(torch.full((draws,), shift, dtype=torch.float64), sigma, np.zeros(draws))
    steps = (sent - other) / lattice_step(sigma)
    told.append(float((steps != torch.round(steps)).double().mean()))
    return [f"{share:.1%}" for share in told]


def table(folder: Path) -> str:
    """All rows."""
    (noise, left, found), (new_noise, new_left, new_found) = two_models()
    same, rests, ended = corrected(), known_seed(), stops()
    said, true, outcomes = liars()
    rows = [
        (
            "1: two models (ε = 4, 8) combined: noise left of one model's",
            f"{left:.2g} of {noise:.2g}",
            f"{new_left:.2g} of {new_noise:.2g}",
        ),
        ("1: weight of the canary not 0, with and without it", found, new_found),
        ("2: same bits after one record was corrected", str(same[0]), str(same[1])),
        ("3: noise left after the default seed's is taken off", f"{rests[0]:.2g}", f"{rests[1]:.2g}"),
        ("4: stopped before the last round, with and without the canary", *ended),
        (f"6: two messages a round, true ε in {true}, by the plan in {said}", outcomes[0], outcomes[1]),
        ("6: no noise from round 6 on, ε = ∞", outcomes[2], outcomes[3]),
        ("6: a slot asked again at other weights", "a second message", asked_again()),
        ("7: draws of P_vec that two algorithms of a study share", *shuffled(folder)),
        ("outputs whose last bits rule out the neighbour", *last_bits()),
    ]
    head = [f"Medians and counts of {SEEDS} runs, R = 1 (4 and 6: R = 10; 7: R = 12).", ""]
    head += ["| attack | public seed, no check | silos |", "| --- | --- | --- |"]
    return "\n".join(head + [f"| {' | '.join(row)} |" for row in rows])


def main() -> None:
    """Write the table between its marks in a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/PRIVACY.md"))
    output = parser.parse_args().output
    with tempfile.TemporaryDirectory() as folder:
        text = table(Path(folder))
    write_between(output, "<!-- attacks: written by benchmarks/attacks.py -->", "<!-- end of attacks -->", text)


if __name__ == "__main__":
    main()
