"""Numbers of the accountant at the ends of what is allowed: taken there, and refused beyond."""

import functools
import math

import pytest

from silodp.privacy import message_counts
from silodp.privacy.accounting.mechanisms import gaussian_epsilon, gaussian_mu
from silodp.privacy.calibration import noise_multiplier
from silodp.privacy.message_counts import Whom, draws
from silodp.privacy.person import person_epsilon
from silodp.privacy.plan import MOST_MESSAGES, Budget, PrivacyPlan, Release, check_messages
from silodp.privacy.shuffling.local_reports import clones_epsilon
from silodp.privacy.shuffling.p_vec import SumParameters
from silodp.privacy.shuffling.unit_vectors import best_cap

LEAST, BELOW_1 = math.ulp(0.0), math.nextafter(1.0, 0.0)
POSITIVE = [LEAST, 1.0, math.nextafter(math.inf, 0.0)], [0.0, -1.0, math.inf, math.nan]
SHARE = [1e-300, 0.5, BELOW_1], [0.0, 1.0, -0.1, math.nan]
# Of 5 records with replacement.
MOST_DRAWN = message_counts._OVERDRAWN * 5


def budget(**given):
    return Budget(**{"n": 9, "rounds": 3, "epsilon": 1.0, "delta": 1e-3, "batch_epsilon": 1.0} | given)


def person(**given):
    release = Release("gradient", 3, 2, 4.0)
    return person_epsilon(PrivacyPlan("toy", budget(), (release,)), Whom(**given))


def plain(z):
    return {draws("all", 1, 1, z): 1}


FINITE, BETWEEN, ONE = "must be positive and finite", "must lie (strictly )?between 0 and 1", ".*must be at least 1"
NEEDS, TO_500, WHOLE = (
    "out of .* records: .*(needs|must)",
    "must lie above 0 and be at most 500",
    "must be an integer and",
)
# What is called wrong and how; what takes the number, and which it takes and refuses.
CASES = [
    ("n = ", ONE, lambda n: budget(n=n), [1], [0, -1]),
    ("rounds = ", ONE, lambda rounds: budget(rounds=rounds), [1], [0]),
    ("^epsilon = ", FINITE, lambda epsilon: budget(epsilon=epsilon), *POSITIVE),
    ("^delta = ", BETWEEN, lambda delta: budget(delta=delta), *SHARE),
    ("batch_epsilon = ", FINITE, lambda epsilon: budget(batch_epsilon=epsilon), *POSITIVE),
    ("K = ", "must lie between 1 and n = 9", lambda K: budget(batch_records=K), [1, 9], [0, 10]),
    ("delta = ", BETWEEN, lambda delta: gaussian_epsilon(delta, 1.0), *SHARE),
    ("mu = ", FINITE, lambda mu: gaussian_epsilon(1e-5, mu), [0.0, 1e-9, 1e6], [-1.0, math.inf, math.nan]),
    ("epsilon = ", "must be finite", lambda e: gaussian_mu(e, 1e-5), [0.0, 1e3], [-1e-9, math.inf, math.nan]),
    ("epsilon = ", FINITE, lambda epsilon: noise_multiplier(plain, epsilon, 1e-3), [1e-3, 9.0], POSITIVE[1]),
    ("sample of 1 ", NEEDS, lambda n: draws("with", n, 1, 1.0), [1, 2], [0, -1]),
    ("sample of ", NEEDS, lambda K: draws("without", 5, K, 1.0), [1, 5], [0, 6]),
    ("sample of ", NEEDS, lambda K: draws("with", 5, K, 1.0), [1, 6, MOST_DRAWN], [0, MOST_DRAWN + 1]),
    ("messages: ", "must be at most", check_messages, [0, MOST_MESSAGES], [MOST_MESSAGES + 1]),
    ("records = ", ONE, lambda records: person(records=records), [1, 9], [0, 10]),
    ("silos = ", ONE, lambda silos: person(silos=silos), [1, 2], [0]),
    ("participants = ", ONE, lambda M: SumParameters(M, 1, 1), [1], [0]),
    ("levels = ", ONE, lambda levels: SumParameters(1, levels, 1), [1], [0]),
    ("noise_bits = ", "must be at least 0", lambda bits: SumParameters(1, 1, bits), [0, 1], [-1]),
    ("chance = ", "at most 1/2", lambda p: SumParameters(1, 1, 1, p), [LEAST, 0.5], [0.0, math.nextafter(0.5, 1)]),
    ("epsilon0 = ", TO_500, lambda e: best_cap(e, 2), [1e-3, 500], [0, math.nextafter(500, 501), math.nan]),
    ("epsilon0 = ", TO_500, lambda e: clones_epsilon(e, 9, 0.1), [1e-3, 500], [0, 501, math.nan]),
    ("reports = ", WHOLE, lambda reports: clones_epsilon(1.0, reports, 0.1), [1, 2], [0, 1.5]),
    ("delta = ", BETWEEN, lambda delta: clones_epsilon(1.0, 9, delta), [1e-9, BELOW_1], [0.0, 1.0]),
    ("d = ", WHOLE, lambda d: best_cap(1.0, d), [2, 3], [1, 2.5]),
]
for how, (least, most) in (("without", message_counts._SAMPLED), ("all", message_counts._PLAIN)):
    beyond = [math.nextafter(least, 0.0), math.nextafter(most, math.inf), -1.0, math.nan]
    noise = functools.partial(draws, how, 5, 2)
    CASES.append(("noise multiplier = ", "must be 0, infinite or in", noise, [0.0, least, most, math.inf], beyond))


@pytest.mark.parametrize(("name", "said", "call", "inside", "outside"), CASES)
def test_a_number_at_its_limit_is_taken_and_beyond_refused(name, said, call, inside, outside):
    for value in inside:
        call(value)
    for value in outside:
        with pytest.raises(ValueError, match=f"{name}.*{said}"):
            call(value)
