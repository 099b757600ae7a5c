"""Figures about random check-ins: what is drawn, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from silodp.privacy.shuffling.amplification import amplification_table
from silodp.report.figures.checkin_lines import BAND, LINES, amplified_epsilon, error_at_equal_epsilon
from silodp.report.figures.svg import words


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


def test_a_table_without_bounds_or_with_two_deltas_is_refused(bounds):
    for table in (bounds[:0], pd.concat([bounds, bounds.assign(delta=1e-5)])):
        with pytest.raises(ValueError, match="one delta"):
            amplified_epsilon(table, title="t")


def comparison() -> pd.DataFrame:
    errors = {"test_error_mean": 0.3, "test_error_p05": 0.2, "test_error_p95": 0.35}
    rows = [
        {"protocol": name, "epsilon": epsilon, "amplified": epsilon < 2, "delta": 1e-6, "n": 1438} | errors
        for name in ("a_fix", "shuffling")
        for epsilon in (1.0, 4.0)
    ]
    return pd.DataFrame([*rows, rows[0] | {"protocol": "non_private", "epsilon": np.nan, "test_error_mean": 0.1}])


def test_points_without_amplification_have_no_mark_and_the_noiseless_run_is_a_line():
    figure = error_at_equal_epsilon(comparison(), title="t")
    marked = {line.get_gid(): line.get_markevery() for line in figure.axes[0].lines if "line:" in str(line.get_gid())}
    assert marked == {"line:a_fix": [0], "line:shuffling": [0]}
    assert [len(words(figure)[name]) for name in marked] == [1, 1]
    assert [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_label() == "no noise"] == [0.1]
    assert "1,438 clients" in figure.axes[0].get_xlabel()


def test_a_comparison_without_private_rows_is_refused():
    with pytest.raises(ValueError, match="no private row"):
        error_at_equal_epsilon(comparison()[-1:], title="t")
