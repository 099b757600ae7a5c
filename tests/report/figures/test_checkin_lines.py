"""Figures about random check-ins: what is drawn, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from silodp.privacy.shuffling.local_reports import amplification_table
from silodp.report.figures.checkin_lines import BAND, LINES, amplified_epsilon


def drawn(figure) -> dict[str, np.ndarray]:
    return {line.get_gid(): np.asarray(line.get_xydata()) for line in figure.axes[0].lines if line.get_gid()}


@pytest.fixture(scope="module")
def bounds() -> pd.DataFrame:
    return amplification_table([0.3, 0.6, 2.0], [1000, 10_000], [1e-6], bounds=[*LINES, *BAND])


def test_every_bound_and_population_is_a_line_and_no_amplification_is_exactly_the_diagonal(bounds):
    lines = drawn(amplified_epsilon(bounds, title="t"))
    assert set(lines) == {f"{bound}:{n}" for bound in LINES for n in (1000, 10_000)} | {"none"}
    assert np.allclose(lines["none"][:, 0], lines["none"][:, 1])
    rows = bounds[(bounds["bound"] == "earlier bound") & (bounds["reports"] == 1000)]
    assert np.allclose(lines["earlier bound:1000"], rows[["epsilon0", "epsilon"]])


def test_random_allocation_is_a_band_between_its_ends(bounds):
    bands = {band.get_gid(): band for band in amplified_epsilon(bounds, title="t").axes[0].collections}
    assert set(bands) == {"random allocation:1000", "random allocation:10000"}
    corners = bands["random allocation:1000"].get_paths()[0].vertices
    ends = bounds[bounds["bound"].isin(BAND) & (bounds["reports"] == 1000)]
    assert set(ends["epsilon"]) <= set(corners[:, 1])
