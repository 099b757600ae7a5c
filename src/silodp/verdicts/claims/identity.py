"""The claim that FedProx-SPIDER with q = 1 is minibatch SGD: both run with the same draws on a quadratic."""

import numpy as np

from silodp.algorithms import ALGORITHMS
from silodp.algorithms.base import Algorithm
from silodp.privacy.plan import Budget, Release
from silodp.streams import Streams
from silodp.theory.problems.known import Quadratic
from silodp.verdicts.claims.base import ClaimFinding, RunFolder
from silodp.verdicts.claims.claim_file import Claim
from silodp.verdicts.words import Verdict

ROUNDS, TRIALS, SILOS = 20, 8, 6
BUDGET = Budget(400, ROUNDS, 2.0, 1e-6, 4.0)


def same_iterates(claim: Claim, run: RunFolder) -> list[ClaimFinding]:
    """Largest distance of the last iterates under the noise printed for SPIDER; in words, under minibatch SGD's.

    The algorithms are the same, and so are the iterates under equal noise; with the noise as printed they are not.
    """
    minibatch = ALGORITHMS["minibatch_sgd"].with_options({"rounds": ROUNDS})
    distances, ratios = [], []
    for noise in ("own", "minibatch"):
        options = {"rounds": ROUNDS, "phase_length": 1, "spider_q1_noise": noise}
        spider = ALGORITHMS["fedprox_spider"].with_options(options)
        plans = [algorithm.plan(BUDGET).releases for algorithm in (spider, minibatch)]
        releases = [next(release for release in plan if release.kind == "gradient") for plan in plans]
        apart = _last_iterates(spider, releases[0]) - _last_iterates(minibatch, releases[1])
        distances.append(float(np.abs(apart).max()))
        ratios.append(releases[0].noise / releases[1].noise)
    text = (
        f"largest distance of the last iterates after {ROUNDS} rounds in {TRIALS} trials, same draws; σ of SPIDER over "
        f"σ of MB-SGD {ratios[0]:.4g}; at equal σ the distance is {distances[1]:g}"
    )
    verdict = Verdict.REFUTED if distances[0] else Verdict.CONFIRMED
    return [ClaimFinding(text, verdict, distances[0])]


def _last_iterates(algorithm: Algorithm, release: Release) -> np.ndarray:
    """Last iterates (trials, d) on a quadratic over records of six silos."""
    # Load PyTorch, for which every other claim would wait.
    from silodp.federation.prox import no_prox
    from silodp.verdicts.checks.prescribed_runs import run_on, silo_records

    problem, streams = Quadratic(5, bias=0.5), Streams(0).child("claims", "identity")
    records = silo_records(problem, streams, TRIALS, SILOS, BUDGET.n)
    return run_on(
        problem, records, algorithm, streams, trials=TRIALS, N=SILOS, releases=[release], stepsize=0.2, prox=no_prox
    )
