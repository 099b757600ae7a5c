"""What the audit finds: its table of benchmarks/PRIVACY.md.

Which faults are found by the check of the plan, by the mechanism check and by the property of clipped sums, and false
alarms of honest audits. It takes some minutes on two cores.
"""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers"))

from plants import PLANTS
from sensitivity import broken_bounds

from marked import write_between
from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm
from silodp.audit.mechanism_check import check_mechanism
from silodp.federation.plan_check import BrokenPlan
from silodp.privacy.plan import Budget, PrivacyPlan
from silodp.streams import Streams

# The smaller silo of the breast cancer runs, its batch and its smallest claim; few rounds, so that 1,000 audits end.
N, K, ROUNDS, QUIET_ROUNDS, CLAIM, SILOS = 169, 82, 6, 2, 0.75, 3
# Trained by sums made in one pass, by single messages of two kinds, and by local steps.
PLANTED = ("minibatch_sgd", "fed_spider", "local_sgd")
HONEST = ("minibatch_sgd", "fed_spider")
# Messages of an audit.
MESSAGES, QUIET = 400, 60


def made(name: str, rounds: int = ROUNDS) -> tuple[Algorithm, list[list[PrivacyPlan]]]:
    """The algorithm and the plans of all silos."""
    algorithm = ALGORITHMS[name].with_options({"rounds": rounds}).fitted(N, K)
    return algorithm, [[algorithm.plan(Budget(N, rounds, CLAIM, N**-2.0, 24.0, K))] * SILOS]


def planted(job: tuple[str, str]) -> tuple[str, float]:
    """What finds a plant in an algorithm's messages, and processor seconds."""
    torch.set_num_threads(1)
    began = time.process_time()
    fault, name = job
    algorithm, plans = made(name)
    streams = Streams(2023).child("power", fault, name)
    try:
        (found,) = check_mechanism(algorithm, plans, streams, mechanism=PLANTS[fault], messages=MESSAGES)
        told = found.worst.test if found.broken else "–"
    except BrokenPlan:
        told = "stopped by the plan"
    return told, time.process_time() - began


def bounded(fault: str) -> bool:
    """Whether the property of clipped sums holds all the same."""
    torch.set_num_threads(1)
    return not any(broken_bounds(PLANTS[fault]))


def honest(job: tuple[str, int, int]) -> tuple[int, int, float]:
    """(audits, alarms, processor seconds) of the trainer's own messages."""
    torch.set_num_threads(1)
    began = time.process_time()
    name, first, last = job
    algorithm, plans = made(name, QUIET_ROUNDS)
    places = (Streams(2023).child("honest", name, number) for number in range(first, last))
    alarms = sum(check_mechanism(algorithm, plans, place, messages=QUIET)[0].broken for place in places)
    return last - first, alarms, time.process_time() - began


def table(told: dict[tuple[str, str], str], bounds: dict[str, bool], left: list[tuple[int, int, float]]) -> str:
    """The table in Markdown, from what `planted` gave for (plant, algorithm), `bounded` and `honest`."""
    audits, alarms = sum(one[0] for one in left), sum(one[1] for one in left)
    found = sum(not bounds[fault] or any(told[fault, name] != "–" for name in PLANTED) for fault in PLANTS)
    lines = [
        f"{SILOS} silos, n = {N}, K = {K}, R = {ROUNDS}, d = 2,000, claimed ε = {CLAIM:g}, δ = 1/n². Of each algorithm",
        f"an audit of {MESSAGES} messages, and the test that finds the plant, at the level 1e-05. Clipped sums:",
        "whether their property is broken. A dash: not found, or not in these messages.",
        f"Found by one of them at least: {found} of {len(PLANTS)}.",
        "",
        f"| plant | {' | '.join(PLANTED)} | clipped sums |",
        "| --- |" + " --- |" * (len(PLANTED) + 1),
    ]
    for fault in PLANTS:
        cells = [told[fault, name] for name in PLANTED] + ["–" if bounds[fault] else "broken"]
        lines.append(f"| {fault} | {' | '.join(cells)} |")
    lines += [
        "",
        f"Honest audits of {QUIET} messages, R = {QUIET_ROUNDS}: {audits:,}, as many of {' as of '.join(HONEST)}.",
        f"False alarms: {alarms}.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the table between its marks in a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/PRIVACY.md"))
    parser.add_argument("--honest", type=int, default=1000, help="honest audits")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    each = -(-options.honest // len(HONEST))
    quiet = [(name, start, min(start + 25, each)) for start in range(0, each, 25) for name in HONEST]
    with ProcessPoolExecutor(options.processes) as pool:
        asked = {(f, name): pool.submit(planted, (f, name)) for f in PLANTS for name in PLANTED}
        bounds = {fault: pool.submit(bounded, fault) for fault in PLANTS}
        left = [one.result() for one in [pool.submit(honest, job) for job in quiet]]
        told = {job: one.result() for job, one in asked.items()}
        kept = {fault: one.result() for fault, one in bounds.items()}
    text = table({job: one[0] for job, one in told.items()}, kept, left)
    seconds = sum(one[1] for one in told.values()) + sum(one[2] for one in left)
    print(f"{seconds / 60:.1f} processor minutes of audits")
    mark = "<!-- plants: written by benchmarks/audit_power.py -->"
    write_between(options.output, mark, "<!-- end of plants -->", text)


if __name__ == "__main__":
    main()
