"""One way from a plan to both ends of its ε."""

import sys
from pathlib import Path

import silodp
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.privacy.true_epsilon import ends

PACKAGE = Path(silodp.__file__).parent


def test_a_plans_ends_enter_few_files():
    release = Release("gradient", 25, 40, 0.2)
    plan, entered = PrivacyPlan("minibatch_sgd", Budget(200, 25, 1.0, 1e-4, 1.0), (release,)), set()
    sys.setprofile(lambda frame, *_: entered.add(Path(frame.f_code.co_filename)))
    try:
        found = ends([plan])
    finally:
        sys.setprofile(None)
    inside = {str(path.relative_to(PACKAGE)) for path in entered if PACKAGE in path.parents}
    assert 0 < found.lower < found.upper
    assert len(inside) <= 6, sorted(inside)
