"""Attacks on models of own data, with a release's defences switched off and on: a table of benchmarks/PRIVACY.md.

Two silos of 40 records of a made-up file; 60 seeds an attack. `make attacks` takes about two minutes on two cores.
"""

import argparse
import dataclasses
import tempfile
from collections import Counter
from pathlib import Path
from unittest.mock import PropertyMock, patch

import numpy as np
import patients
import torch

from marked import write_between
from silodp.algorithms.minibatch_sgd import MinibatchSGD
from silodp.config.experiment import AlgorithmOptions
from silodp.config.readings import Readings
from silodp.experiments.task import POINT, Task
from silodp.experiments.training import run_trial, train_stack
from silodp.federation.experiment_data import dataset_of
from silodp.federation.interface import Query
from silodp.federation.plan_check import BrokenPlan, PlanCheck
from silodp.federation.streams import Streams, secret_streams
from silodp.federation.trial_data import partition_and_measure, prepare
from silodp.own_data import release as releases
from silodp.privacy.accounting.accountant import delivered_epsilon
from silodp.privacy.plan import Budget

SEEDS = 60
SIZES = {"North": 40, "South": 40}
# A weight that only the canary's record moves is told from 0 by this.
SEEN = 1e-9
_CANARY = 1  # its column: smoker=yes
OPTIONS = {name: AlgorithmOptions() for name in ("sdp_prox_svrg", "sdp_prox_pl_svrg")}


class World:
    """A file of patients in which the first record alone smokes, or nobody does, and releases of it."""

    def __init__(self, folder: Path, canary: bool, **changes):
        folder.mkdir()
        smoker = np.where((np.arange(80) == 0) & canary, "yes", "no")
        # All others are alike, so that a large step suits them.
        readmitted = np.where((np.arange(80) == 0) & canary, "no", "yes") if changes.pop("alike", False) else None
        columns = {"smoker": smoker} | ({} if readmitted is None else {"readmitted": readmitted})
        patients.write_records(folder / "patients.csv", SIZES, **columns)
        self.path = patients.run_file(folder, **changes)

    def asked(self, epsilon, stepsize=0.5):
        self.run, asked = patients.asked(self.path, epsilon, stepsize=stepsize)
        return asked

    def weights(self, asked, streams):
        return releases.trained(asked, self.run, streams)[1]


def shared(seed):
    """What main had before: streams of a seed in the run file, named without ε."""
    return lambda: Streams(seed)


def two_models(with_canary, without):
    """A1: models at ε = 4 and 8, combined; (noise, what is left, advantage in finding the canary) of both designs."""
    rows = []
    for design in (shared, lambda seed: secret_streams):
        noise, left, found = [], [], {True: 0, False: 0}
        for seed, (present, world) in ((s, w) for s in range(SEEDS) for w in ((True, with_canary), (False, without))):
            four, eight = (world.asked(epsilon) for epsilon in (4.0, 8.0))
            streams = design(seed)(), design(seed)()
            w4, w8 = (world.weights(asked, own) for asked, own in zip((four, eight), streams, strict=True))
            s4, s8 = (asked.plans[0].releases[0].noise for asked in (four, eight))
            both = (s4 * w8 - s8 * w4) / (s4 - s8)
            plain = world.weights(patients.without_noise(eight), streams[1])
            noise.append(np.linalg.norm(w8 - plain))
            left.append(np.linalg.norm(both - plain))
            found[present] += abs(both[_CANARY]) > SEEN
        rows.append((np.median(noise), np.median(left), f"{found[True]} and {found[False]}"))
    return rows


def corrected(with_canary, without):
    """A2: runs after one record was corrected, with the bits of the run before: the record was not drawn."""
    counts = []
    for design in (shared, lambda seed: secret_streams):
        same = [
            np.array_equal(*(world.weights(world.asked(4.0), design(seed)()) for world in (with_canary, without)))
            for seed in range(SEEDS)
        ]
        counts.append(sum(same))
    return counts


def no_seed(world, other):
    """A3: noise made again from the default seed, on records of the adversary's own, taken off the model."""
    left = []
    asked, fake = world.asked(4.0), other.asked(4.0)
    again = other.weights(fake, Streams(2023)) - other.weights(patients.without_noise(fake), Streams(2023))
    for design in (lambda: Streams(2023), secret_streams):
        rests = []
        for _ in range(SEEDS):
            streams = design()
            plain = world.weights(patients.without_noise(asked), streams)
            rests.append(np.linalg.norm(world.weights(asked, streams) - again - plain))
        left.append(np.median(rests))
    return left


def stops(with_canary, without):
    """A4: runs that end before their last round, with the canary and without, where losses are watched and not."""
    told = []
    for watched in (True, False):
        ended = []

        def train(algorithm, federation, model, start, probe, output, watched=watched, ended=ended):
            records = federation.messages.silos
            whole = [(torch.cat([x[:16] for x, _ in records]), torch.cat([y[:16] for _, y in records]))]
            found = train_stack(algorithm, federation, model, start, whole if watched else probe, output)
            ended.append(int(found[1][0]) >= 0)
            return found

        with patch.object(releases, "train_stack", train):
            counts = []
            for world in (with_canary, without):
                ended.clear()
                asked = world.asked(8.0, stepsize=300.0)
                for seed in range(SEEDS):
                    world.weights(asked, Streams(seed))
                counts.append(sum(ended))
        told.append(f"{counts[0]} and {counts[1]}")
    return told


class Twice(MinibatchSGD):
    """Two messages a round where the plan says one."""

    name = "twice"

    def round(self, r, state, federation):
        return super().round(r, super().round(r, state, federation), federation)


class Quiet(MinibatchSGD):
    """Noise until round 5."""

    name = "quiet"

    def round(self, r, state, federation):
        factor = torch.zeros(1, dtype=torch.float64) if r >= 6 else None
        gradient = federation.mean(Query(state.w, r, noise_factor=factor))
        return dataclasses.replace(state, w=state.w - federation.stepsize * gradient)


def liars(world):
    """A6: true ε of the plan and of two messages a round, and whether training stops either plug-in."""
    plan = MinibatchSGD(25).plan(Budget(200, 25, 3.0, 200**-2.0, 4.0))
    (one,) = plan.releases
    twice = dataclasses.replace(plan, releases=(dataclasses.replace(one, count=2 * one.count),))
    said, true = (delivered_epsilon(of, 200**-2.0) for of in (plan, twice))
    outcomes = []
    for liar in (Twice, Quiet):
        for checked in (False, True):
            asked = world.asked(4.0)
            check = PlanCheck.__call__ if checked else lambda *_: None
            made = patch.object(Task, "make", lambda self, *_, liar=liar: liar(self.setting.R))
            with made, patch.object(PlanCheck, "__call__", check):
                try:
                    world.weights(asked, secret_streams())
                    outcomes.append("trains")
                except BrokenPlan:
                    outcomes.append("stopped")
    plan_ends, true_ends = (f"[{found.lower:.3g}, {found.upper:.3g}]" for found in (said, true))
    return plan_ends, true_ends, outcomes


def shuffled(world):
    """A7: draws of P_vec that two SDP algorithms of a study share, with names as on public data and as on own data."""
    told = []
    world.asked(4.0)
    for secret in (False, True):
        names, generator = [], Streams.generator

        def recorded(self, *parts, names=names, generator=generator):
            if parts[0] == "shuffled sum":
                names.append((*self.path, *map(str, parts)))
            return generator(self, *parts)

        with (
            patch.object(Task, "secret", new_callable=PropertyMock, return_value=secret),
            patch.object(Streams, "generator", recorded),
        ):
            for name in OPTIONS:
                config = patients.asked(world.path)[1].task.config
                config = config.model_copy(update={"readings": Readings(summation="shuffled"), "algorithms": OPTIONS})
                setting = config.settings[0].model_copy(update={"R": 12})
                data = dataset_of(config).load()
                part = partition_and_measure("patients", config, config.readings, world.run, data)[0][0]
                task = Task("patients", config, name, setting)
                point = task.grid()[POINT].dropna().head(1)
                run_trial(task, world.run, prepare(data, config, config.readings, part, world.run), 0, point, "fresh")
        counts = Counter(names)
        told.append(f"{sum(count > 1 for count in counts.values())} of {len(names) // 2}")
    return told


def last_bits(draws=100_000):
    """Share of outputs of one coordinate that rule out the neighbour by their bits alone, before and after rounding.

    An output y of m + σz is ruled out at another m where no float z gives it.
    """
    z, sigma, shift, told = np.random.default_rng(0).standard_normal(draws), 0.37, 0.05, []
    for step in (None, 2.0 ** np.floor(np.log2(sigma * 2.0**-20))):

        def released(values, step=step):
            return values if step is None else np.round(values / step) * step

        y = released(sigma * z)
        guess = (y - shift) / sigma
        near = [guess]
        for way in (-np.inf, np.inf):
            one = guess
            for _ in range(4):
                one = np.nextafter(one, way)
                near.append(one)
        told.append(f"{1 - np.mean(np.any([released(shift + sigma * one) == y for one in near], axis=0)):.1%}")
    return told


def table(folder: Path) -> str:
    """All rows."""
    worlds = [World(folder / name, name == "with", settings=[{"M": 2, "R": 1}]) for name in ("with", "without")]
    alike = {"alike": True, "settings": [{"M": 2, "R": 10}]}
    watched = [World(folder / f"{name}_watched", name == "with", **alike) for name in ("with", "without")]
    (noise, left, found), (new_noise, new_left, new_found) = two_models(*worlds)
    same, rests, ended = corrected(*worlds), no_seed(worlds[0], worlds[1]), stops(*watched)
    said, true, outcomes = liars(watched[0])
    sums = shuffled(watched[1])
    rows = [
        (
            "1: two models (ε = 4, 8) combined: noise left of one model's",
            f"{left:.2g} of {noise:.2g}",
            f"{new_left:.2g} of {new_noise:.2g}",
        ),
        ("1: weight of the canary not 0, with and without it", found, new_found),
        ("2: same bits after one record was corrected", str(same[0]), str(same[1])),
        (
            "3: no `seed:`: noise left after the default seed's is taken off",
            f"{rests[0]:.2g}",
            f"{rests[1]:.2g}, refused",
        ),
        ("4: stopped before the last round, with and without the canary", *ended),
        (f"6: two messages a round, true ε in {true}, by the plan in {said}", outcomes[0], outcomes[1]),
        ("6: no noise from round 6 on, ε = ∞", outcomes[2], outcomes[3]),
        ("7: draws of P_vec that two algorithms share", *sums),
        ("float64: outputs whose last bits rule out the neighbour", *last_bits()),
    ]
    head = [f"Medians and counts of {SEEDS} seeds, R = 1 (4: R = 10; 7: R = 12).", ""]
    head += ["| attack | before | now |", "| --- | --- | --- |"]
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
