"""What is known of a task before a trial is cut."""

import pytest
import small

from silodp.experiments.task import _ONE_WEIGHT, dimension
from silodp.experiments.validation import load
from silodp.federation.models import MODELS

CONFIG = small.ROOT / "config"


@pytest.mark.parametrize("name", _ONE_WEIGHT)
def test_these_models_have_one_weight_for_each_feature(name):
    assert MODELS[name](7, None if name == "linear" else 2).size == 7


@pytest.mark.parametrize(
    ("experiment", "d"), [("lasso_pvec_insurance", 7), ("mnist_pvec", 50), ("lasso_pl_insurance", 7)]
)
def test_dimension_is_known_before_data_are_fetched(experiment, d):
    config = load(CONFIG / "proximal-paper.yaml").experiments[experiment]
    assert dimension(config) == d


def test_a_model_of_several_layers_is_refused():
    config = load(CONFIG / "default.yaml").experiments["digits_mlp"]
    with pytest.raises(ValueError, match="must be ideal unless the model is one of linear, logistic, sigmoid, so that"):
        dimension(config)
