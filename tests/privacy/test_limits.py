"""Numbers of the accountant at the ends of what is allowed: taken there, and refused beyond."""

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
FIVE = message_counts._OVERDRAWN * 5


def budget(**given):
    return Budget(**{"n": 9, "rounds": 3, "epsilon": 1.0, "delta": 1e-3, "batch_epsilon": 1.0} | given)


def person(**given):
    release = Release("gradient", 3, 2, 4.0)
    return person_epsilon(PrivacyPlan("toy", budget(), (release,)), Whom(**given))


def plain(z):
    return {draws("all", 1, 1, z): 1}


# What takes the number, and which it takes and refuses.
CASES = {
    "n": (lambda value: budget(n=value), [1], [0, -1]),
    "rounds": (lambda value: budget(rounds=value), [1], [0]),
    "epsilon": (lambda value: budget(epsilon=value), *POSITIVE),
    "delta": (lambda value: budget(delta=value), *SHARE),
    "batch epsilon": (lambda value: budget(batch_epsilon=value), *POSITIVE),
    "batch records": (lambda value: budget(batch_records=value), [1, 9], [0, 10]),
    "delta of a Gaussian": (lambda value: gaussian_epsilon(value, 1.0), *SHARE),
    "mu": (lambda value: gaussian_epsilon(1e-5, value), [0.0, 1e-9, 1e6], [-1.0, math.inf, math.nan]),
    "epsilon of a Gaussian": (lambda value: gaussian_mu(value, 1e-5), [0.0, 1e3], [-1e-9, math.inf, math.nan]),
    "records of which": (lambda value: draws("with", value, 1, 1.0), [1, 2], [0, -1]),
    "records drawn": (lambda value: draws("without", 5, value, 1.0), [1, 5], [0, 6]),
    "records drawn again": (lambda value: draws("with", 5, value, 1.0), [1, 6, FIVE], [0, FIVE + 1]),
    "messages": (check_messages, [0, MOST_MESSAGES], [MOST_MESSAGES + 1]),
    "a person's records": (lambda value: person(records=value), [1, 9], [0, 10]),
    "a person's silos": (lambda value: person(silos=value), [1, 2], [0]),
    "participants": (lambda value: SumParameters(value, 1, 1), [1], [0]),
    "levels": (lambda value: SumParameters(1, value, 1), [1], [0]),
    "noise bits": (lambda value: SumParameters(1, 1, value), [0, 1], [-1]),
    "chance": (lambda value: SumParameters(1, 1, 1, value), [LEAST, 0.5], [0.0, math.nextafter(0.5, 1.0), math.nan]),
    "epsilon0": (lambda value: best_cap(value, 2), [1e-3, 500], [0, math.nextafter(500, 501), math.nan]),
    "epsilon0 of reports": (lambda value: clones_epsilon(value, 9, 0.1), [1e-3, 500], [0, 501, math.nan]),
    "reports": (lambda value: clones_epsilon(1.0, value, 0.1), [1, 2], [0, 1.5]),
    "delta of reports": (lambda value: clones_epsilon(1.0, 9, value), [1e-9, BELOW_1], [0.0, 1.0]),
    "calibrated epsilon": (lambda value: noise_multiplier(plain, value, 1e-3), [1e-3, 9.0], POSITIVE[1]),
    "dimension": (lambda value: best_cap(1.0, value), [2, 3], [1, 2.5]),
}
for how, (least, most) in (("without", message_counts._SAMPLED), ("all", message_counts._PLAIN)):
    beyond = [math.nextafter(least, 0.0), math.nextafter(most, math.inf), -1.0, math.nan]
    CASES[f"noise, {how}"] = (lambda value, how=how: draws(how, 5, 2, value), [0.0, least, most, math.inf], beyond)


@pytest.mark.parametrize("name", CASES)
def test_a_number_at_its_limit_is_taken_and_beyond_refused(name):
    call, inside, outside = CASES[name]
    for value in inside:
        call(value)
    for value in outside:
        with pytest.raises(ValueError, match=r"must|needs"):
            call(value)
