"""The figure of a study on own data."""

from silodp.report.figures.own_study_picture import WORDS, study_figure


def test_lines_go_by_epsilon_whatever_the_order_of_the_models():
    """Models of other rounds stand in another order; their line must not run backwards."""
    models = [{"name": "minibatch_sgd", "epsilon": e, "error": 0.5 - e / 20} for e in (2.0, 0.5, 8.0, 1.0)]
    axes = study_figure(models, "t", "error").axes[0]
    (drawn,) = (list(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) == 4)
    assert drawn == [0.5, 1.0, 2.0, 8.0]


def test_models_without_noise_are_level_lines_and_those_that_have_a_private_form_are_dashed():
    private = [{"name": "minibatch_sgd", "epsilon": e, "error": 0.5 - e / 20} for e in (1.0, 2.0)]
    without = {"minibatch_sgd": 0.3, "guess": 0.5, "pooled": 0.2, "silo_only": 0.4}
    models = private + [{"name": name, "epsilon": None, "error": error} for name, error in without.items()]
    axes = study_figure([*models, {"name": "best silo", "error": None}], "t", "error").axes[0]
    lines = {line.get_gid().removeprefix("line:"): line for line in axes.lines if "plain" in str(line.get_gid())}
    assert {name.removesuffix("-plain"): line.get_ydata()[0] for name, line in lines.items()} == without
    assert [name for name, line in lines.items() if line.is_dashed()] == ["minibatch_sgd-plain"]
    said = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert said == ["federated", "federated, no noise", "guessing", WORDS["pooled"], WORDS["silo_only"]]
