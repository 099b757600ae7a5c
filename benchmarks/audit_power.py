"""What the audit finds: every plant by either test, and false alarms of honest audits; the table of docs/audit.md.

`python benchmarks/audit_power.py --output docs/audit.md` takes about half an hour on two cores.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm
from silodp.experiments.audit.lower_bound import scores
from silodp.experiments.audit.mechanism import mechanism_test
from silodp.experiments.audit.plants import PLANTS
from silodp.experiments.audit.profile import ALARM, profile_exceeded
from silodp.federation.messages import Messages
from silodp.federation.rng import Streams
from silodp.privacy.plan import Budget, PrivacyPlan

# The smaller silo of the breast cancer runs, its batch and its smallest claim; few rounds, so that 1,000 audits end.
N, K, ROUNDS, QUIET_ROUNDS, CLAIM = 169, 82, 6, 2, 0.75
PLANTED = ("minibatch_sgd", "fed_spider")
RUNS, ATTACKS = 300, 5000
BEGIN, END = "<!-- written by benchmarks/audit_power.py -->", "<!-- end -->"


def made(name: str, rounds: int = ROUNDS) -> tuple[Algorithm, PrivacyPlan]:
    """The algorithm and its plan."""
    algorithm = ALGORITHMS[name].with_options({"rounds": rounds}).fitted(N, K)
    return algorithm, algorithm.plan(Budget(N, rounds, CLAIM, N**-2.0, 24.0, K))


def exceeded(algorithm: Algorithm, plan: PrivacyPlan, runs: int, streams: Streams, mechanism: type[Messages]) -> bool:
    """Whether the ε bound refutes the plan's profile."""
    ((present, absent),) = scores(algorithm, [plan], runs, streams, mechanism)
    return profile_exceeded(plan, present, absent)


def planted(job: tuple[str, str, int]) -> tuple[int, bool | None]:
    """Audits of a plant that the mechanism test caught, and whether the ε bound did; None where it cannot be played."""
    torch.set_num_threads(1)
    fault, name, repeats = job
    algorithm, plan = made(name)
    plant, streams, caught = PLANTS[fault], Streams(2023).child("power", fault, name), 0
    for number in range(repeats):
        runs, place = 60 if plant.alone else RUNS, streams.child(number)
        found = mechanism_test(algorithm, [plan], place, runs=runs, messages=plant.mechanism, together=not plant.alone)
        caught += found[0].broken
    return caught, None if plant.alone else exceeded(algorithm, plan, ATTACKS, streams.child("bound"), plant.mechanism)


def honest(job: tuple[str, int, int]) -> tuple[int, int, int]:
    """(audits, alarms of the mechanism test, alarms of the ε bound) of the trainer's own messages."""
    torch.set_num_threads(1)
    name, first, last = job
    algorithm, plan = made(name, QUIET_ROUNDS)
    alarms = beyond = 0
    for number in range(first, last):
        streams = Streams(2023).child("honest", name, number)
        alarms += mechanism_test(algorithm, [plan], streams.child("mechanism"), runs=RUNS, together=True)[0].broken
        beyond += exceeded(algorithm, plan, 1000, streams.child("bound"), Messages)
    return last - first, alarms, beyond


def jobs(repeats: int, audits: int) -> tuple[list[tuple[str, str, int]], list[tuple[str, int, int]]]:
    """Arguments of `planted` and of `honest`."""
    faulty = []
    for name in PLANTED:
        kinds = frozenset(release.kind for release in made(name)[1].releases if release.count)
        faulty += [(fault, name, repeats) for fault in PLANTS if PLANTS[fault].applies(kinds)]
    each = -(-audits // len(PLANTED))
    return faulty, [(name, start, min(start + 25, each)) for start in range(0, each, 25) for name in PLANTED]


def table(told: dict[tuple[str, str], tuple[int, bool | None]], left: list[tuple[int, int, int]], repeats: int) -> str:
    """The table in Markdown, from what `planted` gave for (plant, algorithm), and `honest`."""
    total, alarms, beyond = (sum(part[k] for part in left) for k in range(3))
    lines = [
        f"n = {N}, K = {K}, R = {ROUNDS}, claimed ε = {CLAIM:g}, δ = 1/n². Mechanism test: of {repeats} audits from",
        f"{RUNS} runs each (60 where runs have to be played one by one), how many caught the plant. ε bound: whether",
        f"{ATTACKS:,} runs of either kind refute the profile. Both at the level {ALARM:g}. A dash: the fault cannot",
        "be in these messages, cannot show there, or its runs cannot be stacked.",
        "",
        "| plant |" + "".join(f" {name}: mechanism test | ε bound |" for name in PLANTED),
        "| --- |" + " --- | --- |" * len(PLANTED),
    ]
    words = {True: "caught", False: "no", None: "–"}
    for fault in PLANTS:
        cells = [told.get((fault, name)) for name in PLANTED]
        row = " | ".join("– | –" if cell is None else f"{cell[0]}/{repeats} | {words[cell[1]]}" for cell in cells)
        lines.append(f"| {fault} | {row} |")
    lines += [
        "",
        f"Honest audits, R = {QUIET_ROUNDS}: {total:,}, as many of each algorithm. False alarms of the mechanism test,",
        f"from {RUNS} runs: {alarms}; of the ε bound, from 1,000 runs of either kind: {beyond}.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the table between its marks in a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/audit.md"))
    parser.add_argument("--repeats", type=int, default=2, help="audits of each plant")
    parser.add_argument("--honest", type=int, default=1000, help="honest audits")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    page = options.output.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    faulty, quiet = jobs(options.repeats, options.honest)
    with ProcessPoolExecutor(options.processes) as pool:
        told = {job[:2]: found for job, found in zip(faulty, pool.map(planted, faulty), strict=True)}
        written = table(told, list(pool.map(honest, quiet)), options.repeats)
    options.output.write_text(f"{before}{BEGIN}\n{written}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
