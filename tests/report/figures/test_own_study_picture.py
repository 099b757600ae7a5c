"""The figure of a study on own data."""

from silodp.report.figures.own_study_picture import study_figure


def test_lines_go_by_epsilon_whatever_the_order_of_the_models():
    """Models of other rounds stand in another order; their line must not run backwards."""
    models = [{"name": "minibatch_sgd", "epsilon": e, "error": 0.5 - e / 20} for e in (2.0, 0.5, 8.0, 1.0)]
    axes = study_figure(models, "t", "error").axes[0]
    (drawn,) = (list(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) == 4)
    assert drawn == [0.5, 1.0, 2.0, 8.0]
