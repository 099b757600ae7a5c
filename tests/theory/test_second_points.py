"""A second point for every formula, with no parameter at 1, and the ends of the assumptions.

The right sides are written from the papers in plain numbers (n = 37, d = 3, N = 11, M = 5, R = 7, …).
"""

from math import exp, expm1, log, sqrt

import pytest

from silodp.theory import THEOREMS, AssumptionError

EPS, DELTA = 0.9, 1e-4
XI = log(2.5 * 7 / DELTA) * log(2 / DELTA) / (37 * EPS) ** 2
SHUFFLE = {"n": 37, "d": 3, "N": 1100, "M": 800, "R": 7, "L": 1.7, "epsilon": EPS, "delta": DELTA}
SHUFFLE_LOGS = log(7 * 800**2 / (1100 * DELTA)) * log(7 / DELTA) * log(1 / DELTA)
SVRG_LOG = log(2 / DELTA)
BASE = {"n": 37, "d": 3, "M": 5, "R": 7, "L": 1.7, "epsilon": EPS, "delta": DELTA}
LOWER = {"n": 37, "d": 3, "N": 1100, "L": 1.7, "D": 2.3, "epsilon": EPS, "delta": 1e-12}
PL = {"n": 37, "d": 3, "N": 11, "M": 5, "L": 1.7, "beta": 3.1, "mu": 0.6, "epsilon": EPS, "delta": DELTA}
KAPPA = 3.1 / 0.6
DRAW = 6 / (10 * 5)  # (N−M)/((N−1)M)
E0 = 0.3
G = expm1(E0)

POINTS = [
    ("convex-2.1", BASE | {"D": 2.3}, 272 * 1.7 * 2.3 / sqrt(5) * max(1 / sqrt(37), sqrt(3 * XI))),
    ("convex-2.1-complete", {"n": 37, "d": 3, "M_tilde": 5, "privacy_term": 1e-4, "L": 1.7, "D": 2.3},
     272 * 1.7 * 2.3 / sqrt(5 * 37)),
    ("convex-2.1-strong", BASE | {"mu": 0.6}, 1.7**2 / (0.6 * 5) * (1 / 37 + 3 * XI)),
    ("convex-2.1-noise", {k: BASE[k] for k in ("n", "R", "L", "epsilon", "delta")}, 256 * 1.7**2 * 7 * XI),
    ("convex-2.1-moments", {k: BASE[k] for k in ("n", "R", "L", "epsilon", "delta")},
     8 * 1.7**2 * 7 * log(1 / DELTA) / (37 * EPS) ** 2),
    ("convex-2.2", BASE | {"D": 2.3}, 545 * 1.7 * 2.3 / sqrt(5) * max(1 / sqrt(37), sqrt(3 * XI))),
    ("convex-2.2-strong", BASE | {"mu": 0.6}, 1.7**2 / (0.6 * 5) * (1 / 37 + 3 * XI)),
    ("convex-2.3", {"n": 37, "d": 3, "M": 5, "L": 1.7, "D": 2.3, "beta": 3.1, "epsilon": EPS, "delta": DELTA},
     3.1 * 2.3**2 / 37**2 + 1.7 * 2.3 * sqrt(3 * log(1e4)) / (EPS * sqrt(5 * 37))),
    ("convex-2.3-strong",
     {"n": 37, "d": 3, "M": 5, "L": 1.7, "D": 2.3, "beta": 3.1, "mu": 0.6, "epsilon": EPS, "delta": DELTA},
     1.7 * 2.3 * exp(-37 * sqrt(0.6 / 3.1)) + 1.7**2 * 3 * log(1e4) / (0.6 * EPS**2 * 5 * 37)),
    ("convex-2.3-noise", {"L": 1.7, "epsilon": EPS, "delta": DELTA}, 8 * 1.7**2 * log(1.25e4) / EPS**2),
    ("convex-2.4", BASE | {"D": 2.3}, 1.7 * 2.3 * sqrt(3 * XI / 5)),
    ("convex-2.4-strong", BASE | {"mu": 0.6}, 1.7**2 * 3 * XI / (0.6 * 5)),
    ("convex-D.1", BASE | {"N": 11, "K": 4, "D": 2.3, "beta": 3.1, "phi": 1.3, "upsilon": 0.8},
     3.1 * 2.3**2 / 49 + 2.3 * sqrt((1.3**2 / 28 + 3 * 1.7**2 * XI) / 5) + 2.3 * sqrt(0.6 * 0.64 / 35)),
    ("convex-D.1-strong", BASE | {"N": 11, "K": 4, "Delta": 2.9, "beta": 3.1, "mu": 0.6, "phi": 1.3, "upsilon": 0.8},
     2.9 * exp(-7 * sqrt(0.6 / 3.1)) + (1.3**2 / 28 + 3 * 1.7**2 * XI) / (5 * 0.6) + 0.6 * 0.64 / (0.6 * 35)),
    ("convex-4.1", SHUFFLE | {"D": 2.3}, 1.7 * 2.3 * (1 / sqrt(37 * 800) + sqrt(3 * SHUFFLE_LOGS) / (EPS * 37 * 1100))),
    ("convex-4.1-strong", SHUFFLE | {"mu": 0.6},
     1.7**2 / 0.6 * (1 / (37 * 800) + 3 * SHUFFLE_LOGS / (EPS * 37 * 1100) ** 2)),
    ("convex-4.1-noise", {k: v for k, v in SHUFFLE.items() if k != "d"} | {"C": 2.5},
     2.5 * 1.7**2 * 7 * 800 * SHUFFLE_LOGS / (EPS * 37 * 1100) ** 2),
    ("convex-gaussian", {"sensitivity": 1.7, "epsilon": EPS, "delta": DELTA}, 1.7 * sqrt(2 * log(1.25e4)) / EPS),
    ("convex-subsampling", {"n": 37, "K": 4, "epsilon_local": 0.3}, 2 * 0.3 * 4 / 37),
    ("convex-C.2", {"n": 5, "epsilon": 0.3, "delta": DELTA}, 1.5),
    ("convex-free", {"n": 37, "d": 3, "R": 7, "epsilon": EPS, "delta": DELTA},
     3 * log(17.5e4) * log(2e4) / EPS**2),
    ("convex-3.1", LOWER, 1.7 * 2.3 * (1 / sqrt(37 * 1100) + sqrt(3) / (EPS * 37 * sqrt(1100)))),
    ("convex-3.1-strong", LOWER | {"mu": 0.6},
     1.7**2 / (0.6 * 37 * 1100) + 1.7 * 2.3 * 3 / (EPS**2 * 37**2 * 1100)),
    ("convex-E.3", LOWER, 1.7 * 2.3 * (1 / sqrt(37 * 1100) + sqrt(3) / (EPS * 37 * 1100))),
    ("convex-E.3-strong", LOWER | {"mu": 0.6},
     1.7**2 / (0.6 * 37 * 1100) + 1.7 * 2.3 * 3 / (EPS * 37 * 1100) ** 2),
    ("convex-E.4", LOWER, 1.7 * 2.3 * sqrt(3) / (EPS * 37 * sqrt(1100))),
    ("convex-E.4-strong", LOWER, 1.7 * 2.3 * 3 / (EPS**2 * 37**2 * 1100)),
    ("convex-E.5", LOWER, 1.7 * 2.3 * sqrt(3) / (EPS * 37 * 1100)),
    ("convex-E.5-strong", LOWER, 1.7 * 2.3 * 3 / (EPS * 37 * 1100) ** 2),
    ("convex-nonprivate", {"n": 37, "N": 11, "phi": 1.3, "D": 2.3}, 1.3 * 2.3 / sqrt(37 * 11)),
    ("convex-nonprivate-strong", {"n": 37, "N": 11, "phi": 1.3, "mu": 0.6}, 1.69 / (0.6 * 37 * 11)),
    ("convex-models", {"n": 37, "d": 3, "N": 11, "epsilon": EPS}, sqrt(3) / (EPS * 37 * sqrt(11))),
    ("convex-lemma-D.2", {"n": 37, "M": 5, "R": 7, "L": 1.7, "beta": 3.1, "eta": 0.3}, 2 * 1.7**2 * 7 * 0.3 / (37 * 5)),
    ("convex-lemma-D.2-strong", {"n": 37, "M": 5, "L": 1.7, "beta": 3.1, "mu": 0.6, "eta": 0.3},
     4 * 1.7**2 / (0.6 * 184)),
    ("convex-lemma-D.4", {"d": 3, "N": 11, "M": 5, "R": 7, "K": 4, "D": 2.3, "beta": 3.1, "eta": 0.07, "sigma": 1.9,
                          "phi": 1.3, "upsilon": 0.8, "gradient": 0.4},
     2.3**2 / 0.49 + 0.14 * (1.69 / 20 + 0.6 * 0.64 / 5 + 0.16 + 3 * 1.9**2 / 10)),
    ("convex-lemma-D.4-shifted", {"d": 3, "N": 11, "M": 5, "R": 7, "K": 4, "D": 2.3, "beta": 3.1, "eta": 0.07,
                                  "sigma": 1.9, "phi": 1.3, "upsilon": 0.8},
     2.3**2 / 0.98 + (1.69 / 20 + 0.6 * 0.64 / 5 + 3 * 1.9**2 / 5) / (2 * (1 / 0.07 - 3.1))),
    ("convex-lemma-D.5", {"d": 3, "N": 11, "M": 5, "K": 4, "phi": 1.3, "upsilon": 0.8, "sigma": 1.9},
     1.69 / 20 + 0.6 * 0.64 / 5 + 3 * 1.9**2 / 5),
    ("convex-lemma-D.5", {"d": 3, "N": 2, "M": 1, "K": 4, "phi": 0.0, "upsilon": 0.8, "sigma": 0.0}, 0.64),
    ("convex-lemma-D.9", {"L": 1.7, "beta": 3.1}, 1.7**2 / 6.2),
    ("convex-lemma-D.10", {"R": 7, "D": 2.3, "beta": 3.1, "V": 1.9}, 3.1 * 2.3**2 / 49 + 1.9 * 2.3 / sqrt(7)),
    ("convex-lemma-D.11", {"R": 7, "Delta": 2.9, "beta": 3.1, "mu": 0.6, "V": 1.9},
     2.9 * exp(-7 * sqrt(0.6 / 3.1)) + 1.9**2 / 4.2),
    ("nonconvex-D.1", {"rho": 0.37, "delta": DELTA}, 0.37 + 2 * sqrt(0.37 * log(1e4))),
    ("nonconvex-D.1-short", {"epsilon": EPS, "delta": DELTA}, EPS**2 / (8 * log(1e4))),
    ("nonconvex-D.2", {"sensitivity": 1.7, "epsilon": EPS, "delta": DELTA}, 4 * 1.7**2 * log(1e4) / EPS**2),
    ("nonconvex-composition", {"R": 7, "epsilon": EPS, "delta": DELTA, "delta_slack": 1e-3},
     sqrt(14 * log(1e3)) * EPS + 7 * EPS * expm1(EPS)),
    ("nonconvex-2.1-noise", {"K": 4, "L": 1.7, "epsilon": EPS, "delta": DELTA},
     16 * 1.7**2 * log(1e4) / (4 * EPS) ** 2),
    ("nonconvex-2.2-noise", {"n": 37, "S": 3, "E": 5, "Q": 2, "L": 1.7, "epsilon": EPS, "delta": DELTA},
     1024 * 1.7**2 * 30 * SVRG_LOG * log(150 / DELTA) / (37 * EPS) ** 2),
    ("nonconvex-2.2-shuffled-noise",
     {"n": 37, "N": 11, "M": 5, "K": 4, "E": 5, "Q": 2, "S": 1, "epsilon": EPS, "delta": DELTA},
     EPS * 11 * 37 / (8 * 5 * 4 * sqrt(40 * SVRG_LOG))),
    ("nonconvex-2.2-shuffled-noise",
     {"n": 37, "N": 11, "M": 5, "K": 4, "E": 5, "Q": 2, "S": 3, "epsilon": EPS, "delta": DELTA},
     EPS / (2 * sqrt(6 * SVRG_LOG)) * 11 * 37 / (8 * 5 * 4 * sqrt(40 * log(12 / DELTA)))),
    ("nonconvex-3.1-noise", {"n": 37, "R": 7, "q": 3, "L": 1.7, "beta": 3.1, "epsilon": EPS, "delta": DELTA},
     16 * 1.7**2 * log(1e4) * (7 / 3) / (37 * EPS) ** 2 * (3 / (7 / 3) + 4 / 7)),
    ("nonconvex-3.2-budget", {"N": 11, "M": 5, "R": 7, "q": 3, "epsilon": EPS, "delta": DELTA},
     EPS * 11 / (20 * sqrt(14 * log(1e4)))),
    ("nonconvex-vector-sum", {"d": 3, "L": 1.7, "epsilon": EPS, "delta": DELTA}, 3 * 1.7**2 * log(3e4) ** 2 / EPS**2),
    ("nonconvex-vector-sum", {"d": 2, "L": 3.0, "epsilon": 2.0, "delta": 2 * exp(-3)}, 2 * 9 * 9 / 4),
    ("nonconvex-scalar-sum", {"N": 11, "g": 5, "b": 6, "p": 0.3, "width": 2.3}, (2.3 / 5) ** 2 * 11 * (0.25 + 1.26)),
    ("nonconvex-G", {"n": 37, "epsilon": EPS, "delta": DELTA}, EPS / 37),
    ("nonconvex-2.1", PL | {"upsilon": 0.8},
     1.7**2 / 0.6 * (KAPPA**2 * 3 * log(1e4) / ((37 * EPS) ** 2 * 5) + KAPPA / 185) + DRAW * 0.64 / 0.6),
    ("nonconvex-2.1", PL | {"N": 2, "M": 1, "upsilon": 0.8},
     1.7**2 / 0.6 * (KAPPA**2 * 3 * log(1e4) / (37 * EPS) ** 2 + KAPPA / 37) + 0.64 / 0.6),
    ("nonconvex-2.1-shuffled", PL, 1.7**2 / 0.6 * (KAPPA**2 * 3 * log(3e4) ** 2 / (EPS * 37 * 11) ** 2 + KAPPA / 185)),
    ("nonconvex-2.1-recursion",
     {"d": 3, "M": 5, "R": 7, "K": 4, "L": 1.7, "Delta": 2.9, "beta": 3.1, "mu": 0.6, "sigma": 1.9},
     2.9 * (1 - 0.6 / 6.2) ** 7 + 3 * 1.9**2 / 3 + 2 * 1.7**2 / (0.6 * 20)),
    ("nonconvex-2.2", PL | {"upsilon": 0.8},
     KAPPA * 1.7**2 * 3 * log(1e4) / (0.6 * (37 * EPS) ** 2 * 5) + DRAW * 0.64 / 0.6),
    ("nonconvex-2.2-shuffled", PL | {"upsilon": 0.8},
     KAPPA * 1.7**2 * 3 * log(1e4) / (0.6 * (37 * EPS * 11) ** 2) + DRAW * 0.64 / 0.6),
    ("nonconvex-2.2-restart", {"n": 37, "d": 3, "N": 11, "M": 5, "R": 7, "K": 4, "Delta": 2.9, "beta": 3.1, "mu": 0.6,
                               "upsilon": 0.8, "sigma": 1.9},
     24 * KAPPA * 2.9 / 7 * 37 / (8 * sqrt(5)) + 3 * DRAW * 0.64 / 0.6 + 3 * 3 * 1.9**2 / (2 * 0.6 * 5)),
    ("nonconvex-2.2-restart", {"n": 37, "d": 3, "N": 2, "M": 1, "R": 7, "K": 37, "Delta": 2.9, "beta": 3.1, "mu": 0.6,
                               "upsilon": 0.8, "sigma": 0.0}, 24 * KAPPA * 2.9 / 7 + 3 * 0.64 / 0.6),
    ("nonconvex-3.1", {"n": 37, "d": 3, "N": 11, "M": 5, "L": 1.7, "Delta": 2.9, "beta": 3.1, "epsilon": EPS,
                       "delta": DELTA, "upsilon": 0.8},
     (sqrt(1.7 * 3.1 * 2.9 * 3 * log(1e4)) / (EPS * 37 * sqrt(5))) ** (4 / 3)
     + 1.7**2 * 3 * log(1e4) / ((37 * EPS) ** 2 * 5)
     + 1.7 * sqrt(3.1 * 2.9 * 3 * log(1e4)) / (EPS * 37 * 5) + DRAW * 0.64),
    ("nonconvex-3.1-claim", {"d": 3, "M": 5, "R": 7, "Delta": 2.9, "beta": 3.1, "sigma": 1.9},
     20 * 2.9 * 2 * 3.1 / 7 + 12 * 3 * 1.9**2 / 5),
    ("nonconvex-3.1-phase", {"n": 37, "d": 3, "M": 5, "R": 7, "epsilon": EPS, "delta": DELTA},
     (37 * EPS) ** 2 * 5 / (128 * 3 * 7 * log(1e4))),
    ("nonconvex-3.2", {"n": 37, "d": 3, "N": 11, "M": 5, "L": 1.7, "Delta": 2.9, "beta": 3.1, "epsilon": EPS,
                       "delta": DELTA, "upsilon": 0.8},
     (sqrt(1.7 * 3.1 * 2.9 * 3 * log(3 * 37 * 11 / DELTA) ** 3) / (EPS * 37 * 11)) ** (4 / 3)
     + 3 * 1.7**2 * log(3 * 37 * 11 / DELTA) ** 3 / (EPS * 37 * 11) ** 2
     + 1.7 * sqrt(3.1 * 2.9 * 3 * log(3 * 37 * 11 / DELTA) ** 3) / (EPS * 37 * 11 * sqrt(5)) + DRAW * 0.64),
    ("nonconvex-3.3", {"n": 37, "d": 3, "N": 11, "L": 1.7, "epsilon": EPS, "delta": 1e-9},
     1.7**2 * 3 * log(1e9) / ((37 * EPS) ** 2 * 11 * log(1e9 / 407) ** 2)),
    ("nonconvex-3.3-shuffled", {"n": 37, "d": 3, "N": 11, "L": 1.7, "epsilon": EPS, "delta": 1e-9},
     1.7**2 * 3 * log(1e9) / (37 * EPS * 11) ** 2),
    ("nonconvex-G-risk", {"n": 37, "d": 3, "N": 11, "L": 1.7, "beta": 3.1, "mu": 0.6, "epsilon": EPS, "delta": DELTA},
     1.7**2 / 0.6 * (KAPPA**2 * 3 * log(148e4) / (EPS**2 * 11) + KAPPA / 407)),
    ("nonconvex-figure-3", {"n": 37, "d": 3, "N": 11, "beta": 3.1, "mu": 0.6, "epsilon": EPS},
     KAPPA * 3 / (EPS**2 * 37**2 * 11)),
    ("nonconvex-lemma-E.1", {"beta": 3.1, "noise": 1.3}, 1.3 / 6.2),
    ("nonconvex-lemma-E.2", {"value_z": -0.5, "inner": -0.2, "yw": 0.4, "zw": 0.7, "yz": 0.9, "beta": 3.1, "eta": 0.2},
     -0.7 + (1.55 - 2.5) * 0.4 + (1.55 + 2.5) * 0.7 - 2.5 * 0.9),
    ("nonconvex-lemma-E.3", {"n": 37, "d": 3, "N": 11, "M": 5, "K": 4, "beta": 3.1, "upsilon": 0.8, "sigma": 1.9,
                             "distance": 0.3}, 8 * 3.1**2 * 0.3 / 20 + 2 * DRAW * 0.64 + 3 * 1.9**2 / 5),
    ("nonconvex-lemma-F.1", {"tau1": 0.7, "tau2": 1.3, "distance": 0.3}, 1.69 * 0.3 + 0.49),
    ("nonconvex-lemma-F.2", {"population": 11, "sample": 5, "size": 2.3}, 6 / 50 * 2.3 / 11),
    ("nonconvex-clusters", {"n": 37, "N": 11, "M": 5, "L": 1.7, "upsilon": 0.8}, DRAW * 0.64),
    ("checkins-3.2", {"p0": 0.7, "m": 13, "epsilon0": E0, "delta": DELTA},
     0.7 * G * sqrt(2 * exp(E0) * log(1e4) / 13) + 0.49 * exp(E0) * G**2 / 26),
    ("checkins-3.2-short", {"p0": 0.7, "m": 13, "epsilon0": E0, "delta": DELTA}, 7 * 0.7 * E0 * sqrt(log(1e4) / 13)),
    ("checkins-3.3", {"n": 3700, "m": 13, "epsilon0": E0, "delta": DELTA}, exp(1.5 * E0) / sqrt(3700)),
    ("checkins-3.5", {"n": 37, "m": 13, "p0": 0.7, "p": 3, "sigma": 1.9, "L": 1.7, "width": 2.3},
     sqrt(3 * 1.9**2 + 1.7**2) * 2.3 / ((1 - 2 * exp(-37 * 0.7 / 13)) * sqrt(13))),
    ("checkins-4.2", {"n": 37, "m": 13, "p": 3, "sigma": 1.9, "L": 1.7, "width": 2.3},
     2.3 * sqrt(39 * 1.9**2 + 37 * 1.7**2) / sqrt(13 * 37)),
    ("checkins-4.2-smooth", {"n": 37, "m": 13, "p": 3, "sigma": 1.9, "L": 1.7, "beta": 3.1, "width": 2.3},
     2.3 * sqrt((1.7**2 + 3 * 1.9**2) / 37) + 3.1 * 2.3**2 / 13),
    ("checkins-4.1", {"n": 37, "m": 13, "epsilon0": E0, "delta": DELTA, "delta2": 1e-3},
     exp(4 * E0) * G**2 * (sqrt(1 / 37 + 1 / 13) + sqrt(log(1e3) / 37)) ** 2 / 2
     + exp(2 * E0) * G * (sqrt(1 / 37 + 1 / 13) + sqrt(log(1e3) / 37)) * sqrt(2 * log(1e4))),
    ("checkins-4.3", {"m": 13, "epsilon0": E0, "delta": DELTA},
     exp(E0) * G**2 / 26 + G * sqrt(2 * exp(E0) * log(1e4) / 13)),
    ("checkins-5.1", {"n": 37, "epsilon0": E0, "delta": DELTA},
     exp(3 * E0) * G**2 / 74 + exp(1.5 * E0) * G * sqrt(2 * log(1e4) / 37)),
    ("checkins-5-earlier", {"n": 37, "epsilon0": E0, "delta": DELTA},
     2 * exp(2 * E0) * G * (expm1(2 * exp(2 * E0) * G / 37) + sqrt(2 * log(1e4) / 37))),
    ("checkins-table-1", {"n": 37, "epsilon0": 1.3}, exp(1.95) / sqrt(37)),
    ("checkins-3.4", {"n": 37, "m": 13, "p0": 0.7}, 13 * (1 - 0.7 / 13) ** 37),
    ("checkins-3.4-short", {"n": 37, "m": 13, "c": 1.3}, 13 * exp(-1.3)),
    ("checkins-4.4", {"n": 37, "m": 13}, 25 * exp(-1)),
]  # fmt: skip


@pytest.mark.parametrize(("key", "point", "expected"), POINTS, ids=[f"{p[0]}-{i}" for i, p in enumerate(POINTS)])
def test_second_point(key, point, expected):
    assert THEOREMS[key](**point).value == pytest.approx(expected, rel=1e-12)


def test_terms_at_the_second_point():
    got = THEOREMS["nonconvex-2.2-noise"](n=37, S=3, E=5, Q=2, L=1.7, epsilon=EPS, delta=DELTA).terms
    assert got["sigma1_squared"] == pytest.approx(256 * 1.7**2 * 15 * SVRG_LOG * log(75 / DELTA) / (37 * EPS) ** 2)
    got = THEOREMS["nonconvex-2.2-shuffled-noise"](
        n=37, N=11, M=5, K=4, E=5, Q=2, S=3, epsilon=EPS, delta=DELTA).terms  # fmt: skip
    assert (got["delta_restart"], got["delta"]) == pytest.approx((DELTA / 6, DELTA / 120))
    got = THEOREMS["nonconvex-3.1-noise"](
        n=37, R=7, q=3, L=1.7, beta=3.1, epsilon=EPS, delta=DELTA, reading="printed"
    ).terms
    unit = log(1e4) * 7 / (37 * EPS) ** 2
    assert got["sigma2_squared"] == pytest.approx(16 * 3.1**2 * unit)
    assert got["sigma2_hat_squared"] == pytest.approx(64 * 1.7**2 * unit)
    got = THEOREMS["nonconvex-3.2"](n=37, d=3, N=11, M=5, L=1.7, Delta=2.9, beta=3.1, epsilon=EPS, delta=DELTA).terms
    ratio = 1.7 / sqrt(3.1 * 2.9)
    assert got["least_M"] == pytest.approx((EPS * 11 * 9 / 37**2 * ratio) ** (1 / 3) * (1 + ratio ** (1 / 3)))
    logs = 3 * log(3 * 407 / DELTA) ** 3
    X = EPS * 407 * ratio / sqrt(logs)
    assert got["rounds"] == pytest.approx(EPS * 407 / 1.7 * sqrt(3.1 * 2.9 / logs) * X ** (1 / 3))
    assert got["phase"] == pytest.approx(X ** (2 / 3) / 2)
    got = THEOREMS["nonconvex-lemma-F.1"](tau1=0.7, tau2=1.3, distance=0.3).terms
    assert got == pytest.approx({"moves": 0.507, "fresh": 0.49})
    got = THEOREMS["convex-2.3"](n=37, d=3, M=5, L=1.7, D=2.3, beta=3.1, epsilon=EPS, delta=DELTA).terms
    assert got["sampling"] == pytest.approx(1.7 * 2.3 * sqrt(5 / 185))
    got = THEOREMS["convex-free"](n=37, d=3, R=7, epsilon=EPS, delta=DELTA).terms
    assert got["short"] == pytest.approx(3 / EPS**2)
    got = THEOREMS["checkins-4.2-smooth"](n=37, m=13, p=3, sigma=1.9, L=1.7, beta=3.1, width=2.3).terms
    size = sqrt(1.7**2 + 3 * 1.9**2)
    assert got["step"] == pytest.approx(2.3 * sqrt(37) / (3.1 * 2.3 * sqrt(37) + 13 * size))


def test_composed_privacy_at_the_second_point():
    point = {"p0": 13 / 3700, "m": 13, "epsilon0": E0, "delta": DELTA / 2 * 13 / 3700}
    one = THEOREMS["checkins-3.2"](**point).value
    runs = 3700 / 13
    composed = runs * one * expm1(one) / (exp(one) + 1) + one * sqrt(2 * runs * log(2 / DELTA))
    got = THEOREMS["checkins-3.3"](n=3700, m=13, epsilon0=E0, delta=DELTA).terms
    assert got["composed"] == pytest.approx(composed)
    rounds = {"N": 20_000, "n": 6, "epsilon0": 0.01, "delta0": 1e-15}
    each = THEOREMS["convex-E.2"](**rounds, delta=1.2e-10)
    clones = 8 * sqrt(exp(0.06) * log(4 / 1.2e-10) / 20_000) + 8 * exp(0.06) / 20_000
    assert each.value == pytest.approx(log(1 + expm1(0.01) / (exp(0.01) + 1) * clones))
    assert each.terms["delta_tilde"] == pytest.approx(1.2e-10 + (exp(each.value) + 1) * 2.4e-10 * exp(0.05))
    got = THEOREMS["convex-E.1-corollary"](**rounds, R=5)
    assert got.value == pytest.approx(10 * each.value**2 + each.value * sqrt(10 * log(1 / 6e-10)))
    assert got.terms["delta"] == pytest.approx(5 * (1.2e-10 + each.terms["delta_tilde"]))
    assert got.terms["rate"] == pytest.approx(sqrt(5) * 0.01 * log(1 / 1.2e-10) / sqrt(20_000))
    printed = THEOREMS["convex-E.1-corollary"](**rounds, R=5, reading="printed")
    assert printed.terms["delta"] == pytest.approx(14 * 5 * 1.2e-10)


# (theorem, point, parameter, last value allowed, direction in which it stops being allowed)
ENDS = [
    ("convex-gaussian", {"sensitivity": 1.7, "delta": DELTA}, "epsilon", 1.0, 1),
    ("convex-2.1", {k: v for k, v in BASE.items() if k != "epsilon"} | {"D": 2.3}, "epsilon", log(2 / DELTA), 1),
    ("convex-2.1-moments", {"n": 37, "R": 7, "L": 1.7, "delta": DELTA}, "epsilon", 2 * log(1 / DELTA), 1),
    ("convex-2.3-noise", {"L": 1.7, "delta": DELTA}, "epsilon", 1.0, 1),
    ("convex-subsampling", {"n": 37, "K": 4}, "epsilon_local", 1.0, 1),
    ("convex-4.1", {k: v for k, v in SHUFFLE.items() if k != "M"} | {"D": 2.3}, "M", 1100, 1),
    ("convex-3.1", {k: v for k, v in LOWER.items() if k != "epsilon"}, "epsilon", sqrt(1100), 1),
    ("convex-3.1-strong", LOWER, "mu", 1.7 / 2.3, 1),
    ("convex-E.2", {"N": 20_000, "n": 6, "delta0": 1e-15, "delta": 1e-6}, "epsilon0",
     log(20_000 / (16 * log(2e6))) / 6, 1),
    ("convex-lemma-D.2", {"n": 37, "M": 5, "R": 7, "L": 1.7, "beta": 3.1}, "eta", 1 / 3.1, 1),
    ("convex-lemma-D.4-shifted", {"d": 3, "N": 11, "M": 5, "R": 7, "K": 4, "D": 2.3, "beta": 3.1, "sigma": 1.9,
                                  "phi": 1.3, "upsilon": 0.8}, "eta", 1 / 12.4, 1),
    ("convex-lemma-D.2-strong", {"n": 37, "M": 5, "L": 1.7, "beta": 3.1, "mu": 0.6}, "eta", 1 / 3.1, 1),
    ("nonconvex-2.1", {k: v for k, v in PL.items() if k != "epsilon"}, "epsilon", 15.0, 1),
    ("nonconvex-D.2", {"sensitivity": 1.7, "delta": DELTA}, "epsilon", 2 * log(1 / DELTA), 1),
    ("nonconvex-2.1-noise", {"K": 4, "L": 1.7, "delta": DELTA, "reading": "printed"}, "epsilon", 15.0, 1),
    ("nonconvex-2.1-noise", {"K": 4, "L": 1.7, "delta": 0.3, "reading": "printed"}, "epsilon", 8 * log(1 / 0.3), 1),
    ("nonconvex-2.2-noise", {"n": 37, "S": 3, "E": 5, "Q": 2, "L": 1.7, "delta": DELTA}, "epsilon", 15.0, 1),
    ("nonconvex-2.2-noise", {"n": 37, "S": 3, "E": 5, "Q": 2, "L": 1.7, "delta": 0.1}, "epsilon", 2 * log(20), 1),
    ("nonconvex-2.2", {k: v for k, v in PL.items() if k != "epsilon"} | {"upsilon": 0.8}, "epsilon", 15.0, 1),
    ("nonconvex-2.1-shuffled", {k: v for k, v in PL.items() if k != "M"}, "M", 11 * 0.45, -1),
    ("nonconvex-2.1", {k: v for k, v in PL.items() if k != "mu"}, "mu", 3.1, 1),
    ("nonconvex-3.3", {"n": 37, "d": 3, "N": 11, "L": 1.7, "epsilon": EPS}, "delta", 1 / 407 * (1 - 1e-9), 1),
    ("nonconvex-3.3-shuffled", {"n": 37, "d": 3, "N": 11, "L": 1.7, "epsilon": EPS}, "delta", 1 / 407 * (1 - 1e-9), 1),
    ("nonconvex-G-risk", {"n": 37, "d": 3, "N": 11, "L": 1.7, "beta": 3.1, "mu": 0.6, "delta": DELTA}, "epsilon", 1.0,
     1),
    ("checkins-3.3", {"n": 3700, "m": 13, "delta": 0.99}, "epsilon0", 2 * log(3700 / (8 * sqrt(13))) / 3, 1),
    ("checkins-3.4-short", {"n": 37, "m": 13}, "c", 37 / 13, 1),
]  # fmt: skip


@pytest.mark.parametrize(("key", "point", "parameter", "last", "direction"), ENDS,
                         ids=[f"{end[0]}-{i}" for i, end in enumerate(ENDS)])  # fmt: skip
def test_assumptions_end_where_they_say(key, point, parameter, last, direction):
    inside, outside = last * (1 - direction * 1e-6), last * (1 + direction * 1e-6)
    THEOREMS[key](**point, **{parameter: inside})
    with pytest.raises(AssumptionError, match=rf"^{key}: .*{parameter} = "):
        THEOREMS[key](**point, **{parameter: outside})


def test_enough_silos_for_the_shuffler_and_for_the_lower_bound():
    least = 16 * log(18 * 7 * 800**2 / (1100 * DELTA))
    assert least < 800
    # M enters its own limit, so the smallest M is the fixed point of 16 ln(18RM²/(Nδ)).
    M = 800.0
    for _ in range(100):
        M = 16 * log(18 * 7 * M**2 / (1100 * DELTA))
    for theorem in ("convex-4.1", "convex-4.1-noise"):
        point = {k: v for k, v in SHUFFLE.items() if not (k == "d" and theorem.endswith("noise"))}
        extra = {} if theorem.endswith("noise") else {"D": 2.3}
        THEOREMS[theorem](**(point | extra | {"M": M * 1.001}))
        with pytest.raises(AssumptionError, match="enough shuffled messages"):
            THEOREMS[theorem](**(point | extra | {"M": M * 0.999}))
    least = 16 * log(2 / (1e-12 * 37))
    THEOREMS["convex-3.1"](**(LOWER | {"N": int(least) + 1}))
    with pytest.raises(AssumptionError, match="enough silos"):
        THEOREMS["convex-3.1"](**(LOWER | {"N": int(least)}))
    with pytest.raises(AssumptionError, match=r"δ = o\(1/\(nN\)²\)"):
        THEOREMS["convex-3.1"](**(LOWER | {"delta": 1.001 / (37 * 1100) ** 2}))
    with pytest.raises(AssumptionError, match=r"δ = o\(1/\(nN\)\)"):
        THEOREMS["convex-E.3"](**(LOWER | {"delta": 1.001 / (37 * 1100)}))


def test_vacuous_failure_probabilities_are_noted():
    assert THEOREMS["convex-C.2"](n=37, epsilon=0.9, delta=0.01).notes
    assert not THEOREMS["convex-C.2"](n=2, epsilon=0.9, delta=0.01).notes
    point = {"m": 10**6, "epsilon0": 0.05, "delta": 1e-6, "delta0": 1e-12}
    assert THEOREMS["checkins-4.3-approximate"](**point, delta1=5.5e-7).notes  # δ' = 1.1
    assert not THEOREMS["checkins-4.3-approximate"](**point, delta1=1e-8).notes


def test_figure_3_row_by_row():
    """κ = 2, d = 4, ε = 1, n = 5, N = 2: d/(ε²n²N) = 0.08, d/(εnN)² = 0.04, 1/(nN) = 0.1."""
    got = THEOREMS["nonconvex-figure-3"](n=5, d=4, N=2, beta=1.2, mu=0.6, epsilon=1.0).terms
    assert got == pytest.approx({
        "isrl_so_upper": 4 * 0.08 + 0.2, "isrl_so_lower": 0.02 + 0.1, "sdp_so_upper": 4 * 0.04 + 0.2,
        "sdp_so_lower": 0.14, "isrl_erm_upper": 0.16, "isrl_erm_lower": 0.08, "sdp_erm_upper": 0.08,
        "sdp_erm_lower": 0.04, "isrl_nonconvex_upper": 0.08 ** (2 / 3), "isrl_nonconvex_lower": 0.08,
        "sdp_nonconvex_upper": 0.04 ** (2 / 3), "sdp_nonconvex_lower": 0.04, "isrl_nonconvex_earlier": sqrt(0.08),
        "sdp_nonconvex_earlier": 0.2,
    })  # fmt: skip


@pytest.mark.parametrize("key", ["convex-3.1", "convex-3.1-strong", "convex-E.3", "convex-E.3-strong", "convex-E.4",
                                 "convex-E.4-strong", "convex-E.5", "convex-E.5-strong"])  # fmt: skip
def test_private_lower_bounds_end_at_the_trivial_risk(key):
    point = LOWER | {"epsilon": 1e-9} | ({"mu": 0.6} if key in ("convex-3.1-strong", "convex-E.3-strong") else {})
    got = THEOREMS[key](**point)
    assert got.terms.get("private", got.value) == pytest.approx(1.7 * 2.3)
