"""What the audit finds: its tables of benchmarks/PRIVACY.md.

How near the audited ε comes to the proven upper end, noise of half its size at every published claim, every plant by
either test, and false alarms of honest audits. `make audit-power` takes some minutes on two cores.
"""

import argparse
import math
import statistics
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
from plants import PLANTS

from marked import write_between
from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm
from silodp.audit.lower_bound import audit, scores
from silodp.audit.mechanism_test import mechanism_test
from silodp.audit.noise_at_size import Size
from silodp.audit.profile import ALARM, profile_bound
from silodp.federation.messages import Messages
from silodp.federation.streams import Streams
from silodp.privacy.plan import Budget, PrivacyPlan
from silodp.privacy.true_epsilon import ends, refuting_epsilon

# The smaller silo of the breast cancer runs, its batch and its smallest claim; few rounds, so that 1,000 audits end.
N, K, ROUNDS, QUIET_ROUNDS, CLAIM = 169, 82, 6, 2, 0.75
PLANTED = ("minibatch_sgd", "fed_spider")
# Plays the plants that these two have no messages for.
OF_STEPS = "local_sgd"
RUNS, ATTACKS = 300, 5000
# The published breast cancer runs: their rounds and claims, of which three are shown; an algorithm's options.
PUBLISHED, CLAIMS, SHOWN, SEEDS = 25, (0.75, 1.0, 1.5, 3.0, 6.0, 12.0, 18.0), (0.75, 3.0, 18.0), 3
AUDITED: dict[str, dict[str, int]] = {
    "minibatch_sgd": {},
    "fed_spider": {},
    "fedprox_spider": {"phase_length": 2},
    "one_pass_accelerated_sgd": {},
    "local_sgd": {},
}
NEAR_RUNS = 20_000
# Of honest audits, each such one tests noise at a run's size too.
AT_SIZE = 10


def made(name: str, rounds: int = ROUNDS, claim: float = CLAIM, **options: int) -> tuple[Algorithm, PrivacyPlan]:
    """The algorithm and its plan."""
    # One pass cannot take 25 batches of 82 from 169 records: it has the batch that it chooses itself.
    batch = None if name.startswith("one_pass") else K
    algorithm = ALGORITHMS[name].with_options({"rounds": rounds, **options}).fitted(N, batch)
    return algorithm, algorithm.plan(Budget(N, rounds, claim, N**-2.0, 24.0, batch))


def proven_ends(plan: PrivacyPlan) -> tuple[float, float]:
    """The proven ends of the plan's true ε, from 0 where no lower end is proven."""
    found = ends([plan])
    lower = refuting_epsilon(plan, found, everyone=True)
    return 0.0 if math.isnan(lower) else lower, found.upper


def near(job: tuple[str, int]) -> list[tuple[float, float, float]]:
    """(lower end, upper end, audited by profile) at each claim that is shown, of one seed."""
    torch.set_num_threads(1)
    name, seed = job
    options = AUDITED[name]
    algorithm = made(name, PUBLISHED, **options)[0]
    plans = [made(name, PUBLISHED, claim, **options)[1] for claim in SHOWN]
    found = audit(algorithm, plans, NEAR_RUNS, Streams(2023).child("near", name, seed))
    return [(*proven_ends(plan), bounds.profile.epsilon) for plan, bounds in zip(plans, found, strict=True)]


def halved(name: str) -> list[tuple[bool, bool]]:
    """Whether (ε bound, mechanism test) catch half of the noise, at each published claim."""
    torch.set_num_threads(1)
    options, mechanism = AUDITED[name], PLANTS["half the noise"].mechanism
    caught = []
    for claim in CLAIMS:
        algorithm, plan = made(name, PUBLISHED, claim, **options)
        streams = Streams(2023).child("halved", name, str(claim))
        (tested,) = mechanism_test(algorithm, [plan], streams.child("mechanism"), messages=mechanism, together=True)
        caught.append((exceeded(algorithm, plan, ATTACKS, streams.child("bound"), mechanism), tested.broken))
    return caught


def exceeded(algorithm: Algorithm, plan: PrivacyPlan, runs: int, streams: Streams, mechanism: type[Messages]) -> bool:
    """Whether the ε bound refutes the plan's profile."""
    ((present, absent),) = scores(algorithm, [plan], runs, streams, mechanism)
    return profile_bound(plan, present, absent, 1 - ALARM).exceeded


def planted(job: tuple[str, str, int]) -> tuple[int, bool | None]:
    """Audits of a plant that the mechanism test caught, and whether the ε bound did; None where it cannot be played."""
    torch.set_num_threads(1)
    fault, name, repeats = job
    algorithm, plan = made(name)
    plant, streams, caught = PLANTS[fault], Streams(2023).child("power", fault, name), 0
    for number in range(repeats):
        runs, place = 60 if plant.alone else RUNS, streams.child(number)
        size, made_by = Size() if plant.at_size else None, plant.mechanism
        together = not plant.alone
        found = mechanism_test(algorithm, [plan], place, runs=runs, messages=made_by, together=together, size=size)
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
        size = None if number % AT_SIZE else Size()
        place = streams.child("mechanism")
        alarms += mechanism_test(algorithm, [plan], place, runs=RUNS, together=True, size=size)[0].broken
        beyond += exceeded(algorithm, plan, 1000, streams.child("bound"), Messages)
    return last - first, alarms, beyond


def jobs(repeats: int, audits: int) -> tuple[list[tuple[str, str, int]], list[tuple[str, int, int]]]:
    """Arguments of `planted` and of `honest`."""
    faulty = []
    for name in PLANTED:
        kinds = frozenset(release.kind for release in made(name)[1].releases if release.count)
        faulty += [(fault, name, repeats) for fault in PLANTS if PLANTS[fault].applies(kinds)]
    played = {fault for fault, *_ in faulty}
    faulty += [(fault, OF_STEPS, repeats) for fault in PLANTS if fault not in played]
    each = -(-audits // len(PLANTED))
    return faulty, [(name, start, min(start + 25, each)) for start in range(0, each, 25) for name in PLANTED]


def _three(value: float) -> str:
    """To three significant digits, thousands set apart."""
    return f"{float(f'{value:.3g}'):,g}"


def ratios(found: dict[str, list[list[tuple[float, float, float]]]], half: dict[str, list[tuple[bool, bool]]]) -> str:
    """The first table in Markdown, from what `near` gave for each seed, and `halved`."""
    lines = [
        f"n = {N}, R = {PUBLISHED}, K = {K} (one pass: its own), δ = 1/n²; FedProx-SPIDER with q = 2;",
        f"{NEAR_RUNS:,} runs of either kind. Brackets: proven ends of the true ε, 0 where no lower one is proven.",
        f"Share: ε by profile over the upper end, least and median of {SEEDS} seeds. Half the noise:",
        "at how many of the published claims from",
        f"{CLAIMS[0]:g} to {CLAIMS[-1]:g} it is caught, by the ε bound ({ATTACKS:,} runs) and the mechanism test "
        f"({RUNS}).",
        "",
        "| algorithm |"
        + "".join(f" claimed {claim:g} | share |" for claim in SHOWN)
        + " half the noise: ε bound | mechanism |",
        "| --- |" + " --- | --- |" * len(SHOWN) + " --- | --- |",
    ]
    for name, seeds in found.items():
        cells = []
        for point in range(len(SHOWN)):
            lower, upper, _ = seeds[0][point]
            shares = [seed[point][2] / upper for seed in seeds]
            middle = statistics.median(shares)
            cells.append(f"[{_three(lower)}, {_three(upper)}] | {min(shares):.2f}, {middle:.2f}")
        caught = (f"{sum(one[kind] for one in half[name])}/{len(CLAIMS)}" for kind in (0, 1))
        lines.append(f"| {name} | {' | '.join([*cells, *caught])} |")
    return "\n".join(lines)


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
        by_steps = told.get((fault, OF_STEPS))
        lines.append(f"| {fault}{f' ({OF_STEPS}: {by_steps[0]}/{repeats})' if by_steps else ''} | {row} |")
    lines += [
        "",
        f"Honest audits, R = {QUIET_ROUNDS}: {total:,}, as many of each algorithm. False alarms of the mechanism test,",
        f"from {RUNS} runs: {alarms}; of the ε bound, from 1,000 runs of either kind: {beyond}.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the tables between their marks in a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/PRIVACY.md"))
    parser.add_argument("--repeats", type=int, default=3, help="audits of each plant")
    parser.add_argument("--honest", type=int, default=1000, help="honest audits")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    faulty, quiet = jobs(options.repeats, options.honest)
    seeded = [(name, seed) for name in AUDITED for seed in range(SEEDS)]
    with ProcessPoolExecutor(options.processes) as pool:
        asked = {job: pool.submit(near, job) for job in seeded}
        half = {name: pool.submit(halved, name) for name in AUDITED}
        told = {job[:2]: pool.submit(planted, job) for job in faulty}
        left = [pool.submit(honest, job) for job in quiet]
        found = {name: [asked[name, seed].result() for seed in range(SEEDS)] for name in AUDITED}
        written = {
            "ratios": ratios(found, {name: one.result() for name, one in half.items()}),
            "plants": table(
                {job: one.result() for job, one in told.items()}, [one.result() for one in left], options.repeats
            ),
        }
    for part, text in written.items():
        mark = f"<!-- {part}: written by benchmarks/audit_power.py -->"
        write_between(options.output, mark, f"<!-- end of {part} -->", text)


if __name__ == "__main__":
    main()
