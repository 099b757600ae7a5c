"""Fed-SPIDER's noise by hand (non-convex paper, Appendix H.2), for R releases and for their true number, 2R − 1."""

import math

import pytest

from silodp.algorithms.fed_spider import FedSpider
from silodp.privacy.plan import Budget

R, N, EPSILON, DELTA = 9, 200, 1.5, 1e-4


@pytest.mark.parametrize(("releases", "number"), [("R", R), ("2R-1", 2 * R - 1)])
def test_the_noise_is_for_the_stated_number_of_releases(releases, number):
    plan = FedSpider(R, fed_spider_releases=releases).plan(Budget(N, R, EPSILON, DELTA, EPSILON))
    for kind, constant in (("gradient", 8), ("difference", 32)):
        wanted = math.sqrt(constant * number * math.log(2 / DELTA)) / (N * EPSILON)
        assert plan[kind].noise == pytest.approx(wanted), kind
    assert (plan["gradient"].count, plan["difference"].count) == (R, R - 1)
    assert {release.records for release in plan.releases} == {math.floor(N * math.sqrt(EPSILON) / (2 * math.sqrt(R)))}
