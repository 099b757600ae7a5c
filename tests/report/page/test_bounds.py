"""The bounds in the report: rows with a verdict, counts of verdicts, figures, and nothing where there are none."""

import numpy as np
import pandas as pd
import pytest

from silodp.federation.rng import Streams
from silodp.report.figures import BOUNDS_FIGURES, save
from silodp.report.page.build import build
from silodp.verdicts.checks import run_check
from silodp.verdicts.checks.base import Context, Sweep, sweep_rows, table


@pytest.fixture
def folder(tmp_path):
    """A run's folder with one generated table, one rate table, and the figure of the latter."""
    streams, generator = Streams(1), np.random.default_rng(1)
    sweep = Sweep("convex-2.1", "M", "private", -0.5, (-1.0, 0.0), [1.0, 2.0, 4.0],
                  lambda M: generator.normal(1, 0.05, 40) * M**-0.5, lambda M: M**-0.5)  # fmt: skip
    rates = table("rates_convex", sweep_rows(sweep, streams))
    (tmp_path / "bounds").mkdir()
    rates.to_csv(tmp_path / "bounds" / "rates_convex.csv", index=False)
    run_check("figure_3", Context(streams)).to_csv(tmp_path / "bounds" / "figure_3.csv", index=False)
    save(BOUNDS_FIGURES["rates_convex"](rates, title="Rates"), tmp_path / "bounds" / "rates_convex")
    return tmp_path


def test_the_report_shows_verdicts_and_figures_of_the_checks(folder):
    build(folder, folder / "report.html")
    text = (folder / "report.html").read_text()
    assert "Rates of the convex paper" in text
    assert "slope in M (private)" in text
    assert "Rates of the convex paper: 1 confirmed" in text
    assert "40 derivation" in text
    assert 'href="bounds/rates_convex.svg"' in text
    assert 'id="figure-bounds-rates_convex"' in text


def test_without_checks_there_is_no_such_part(tmp_path):
    build(tmp_path, tmp_path / "report.html")
    assert 'id="bounds"' not in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("name", sorted(BOUNDS_FIGURES))
def test_figures_refuse_a_table_without_what_they_draw(name):
    empty = pd.DataFrame({"theorem": ["x"], "form": [""], "parameter": ["n"], "value": [1.0]})
    with pytest.raises(ValueError, match="the table has no"):
        BOUNDS_FIGURES[name](empty, title="Empty")


def test_a_rate_panel_says_claim_measurement_and_verdict(folder):
    rates = pd.read_csv(folder / "bounds" / "rates_convex.csv", keep_default_na=False, na_values=[""])
    rates = rates.fillna({"verdict": "", "form": "", "rivals": ""})
    figure = BOUNDS_FIGURES["rates_convex"](rates, title="Rates")
    heading, said = (text.get_text() for text in figure.axes[0].texts)
    assert heading == "Convex Theorem 2.1\nexcess risk"
    assert "stated −0.5" in said
    assert "rivals −1, 0" in said
    assert "confirmed" in said
    assert figure.axes[0].get_xscale() == "log"
