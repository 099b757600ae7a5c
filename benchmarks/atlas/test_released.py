"""The released classes of docs/atlas.md on toy updates: each test asserts what a preset of config/atlas says.

Run by `make atlas` in an environment of its own (requirements/atlas.lock); not part of `make test`.
"""

import importlib
import importlib.util
import math
import sys
import types

import numpy as np
import pytest
import torch

from silodp.atlas.bounds import FUNCTIONS, bound_mechanism
from silodp.atlas.mechanism import load_mechanism, mechanism_path

MANY = 200_000  # coordinates: a deviation is within 1 % of the stated one


def preset(name: str):
    return load_mechanism(mechanism_path(name))


def deviation(name: str, place: int = 0, **changed: float) -> float:
    """What the preset says that the noise's deviation (or scale) is."""
    mechanism = preset(name)
    names = mechanism.names(None, changed, FUNCTIONS)
    return mechanism.numbers(place, "sd", names)[0]


@pytest.fixture
def show(capsys):
    """Print what a released class did, beside the dots."""

    def printed(text: str) -> None:
        with capsys.disabled():
            print(f"\n  {text}")

    return printed


def close(values: np.ndarray, stated: float) -> bool:
    return bool(abs(np.std(values) / stated - 1) < 0.01)


# Flower


def flower_message(**arrays):
    from flwr.app import Array, ArrayRecord, Message, RecordDict
    from flwr.app.message_type import MessageType
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1

    content = RecordDict({"arrays": ArrayRecord({name: Array(value) for name, value in arrays.items()})})
    return Message(content=content, dst_node_id=1, message_type=MessageType.TRAIN)


def flower_sent(S: float = 1.0, metrics: dict | None = None, epsilon: float = 1.0, **update):
    """What LocalDpMod hands on of an update from zero; `metrics` go with it."""
    from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.clientapp.mod import LocalDpMod

    def train(message, _context):
        content = RecordDict({"arrays": ArrayRecord({name: Array(value) for name, value in update.items()})})
        if metrics:
            content["metrics"] = MetricRecord(metrics)
        return Message(content=content, reply_to=message)

    mod = LocalDpMod(clipping_norm=1.0, sensitivity=S, epsilon=epsilon, delta=1e-5)
    message = flower_message(**{name: np.zeros_like(value) for name, value in update.items()})
    reply = mod(message, None, train)
    return {name: array.numpy() for name, array in reply.content["arrays"].items()}, reply.content


def test_flower_local_dp_noise_has_the_stated_deviation_and_is_fresh():
    for name, S in (("flower-local-dp", 1.0), ("flower-local-dp-twice", 2.0)):
        first, second = (flower_sent(S, w=np.full(MANY, 1e-12))[0]["w"] for _ in range(2))
        assert close(first, deviation(name))
        assert close(first - second, math.sqrt(2) * deviation(name))


def test_flower_local_dp_clips_all_tensors_together():
    sent, _ = flower_sent(1e-9, a=np.full(50, 3.0), b=np.full(50, 4.0))
    assert math.hypot(*(np.linalg.norm(value) for value in sent.values())) == pytest.approx(1, abs=1e-3)


def test_flower_local_dp_does_not_clip_an_update_with_a_nan():
    sent, _ = flower_sent(1e-9, w=np.array([np.nan, 1e6]))
    assert np.isnan(sent["w"][0])
    assert sent["w"][1] == pytest.approx(1e6)


def test_flower_local_dp_divides_by_the_norm_of_a_zero_update():
    with pytest.raises(ZeroDivisionError):
        flower_sent(w=np.zeros(3))


def test_flower_central_noise_is_for_equal_weights():
    from flwr.app import Array, ArrayRecord
    from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

    strategy = DifferentialPrivacyServerSideFixedClipping(FedAvg(), 1.0, 1.0, 4)
    noised = strategy._add_noise_to_aggregated_arrays(ArrayRecord({"w": Array(np.zeros(MANY))}))
    assert close(noised["w"].numpy(), deviation("flower-central"))
    assert deviation("flower-central") == deviation("flower-accounted")


def test_flower_accountant_reports_what_the_preset_says_and_refuses_unequal_weights():
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
    from flwr.supercore import privacy_accounting as p
    from flwr.supercore.privacy_accounting.rdp_accountant import RdpAccountant

    relation, sampling = p.NeighboringRelation.ADD_OR_REMOVE_ONE, p.SamplingMethod.NO_AMPLIFICATION
    accountant = RdpAccountant(p.PrivacyConfig(1e-5, 4, relation, sampling))
    strategy = DifferentialPrivacyServerSideFixedClipping(FedAvg(), 1.0, 1.0, 4, accountant=accountant)
    replies = [
        Message(
            content=RecordDict({"arrays": ArrayRecord(), "metrics": MetricRecord({"num-examples": n})}),
            reply_to=flower_message(w=np.zeros(1)),
        )
        for n in (199, 172)
    ]
    with pytest.raises(ValueError, match="equal client weights"):
        strategy._validate_uniform_weights(replies)
    accountant.compose(p.GaussianPrivacyEvent(1.0, 4, 4))
    result = bound_mechanism(preset("flower-accounted"))
    assert accountant.get_epsilon(1e-5) == pytest.approx(result.claimed, rel=1e-6)
    assert result.interval.upper <= accountant.get_epsilon(1e-5)


# NVFlare


def nvflare_sent(which, **update):
    from nvflare.apis.dxo import DXO, DataKind
    from nvflare.apis.fl_context import FLContext
    from nvflare.apis.shareable import Shareable

    return which.process_dxo(DXO(DataKind.WEIGHT_DIFF, data=dict(update)), Shareable(), FLContext())


def test_nvflare_percentile_is_deterministic():
    from nvflare.app_common.filters.percentile_privacy import PercentilePrivacy

    update = np.linspace(-0.02, 0.02, 101)
    first, second = (nvflare_sent(PercentilePrivacy(), w=update.copy()).data["w"] for _ in range(2))
    assert np.array_equal(first, second)
    assert np.abs(first).max() == 0.01


# FedML: its package imports a whole platform; the classes are loaded without the packages' own __init__.


def fedml(module: str):
    for name in ("fedml", "fedml.core", "fedml.core.alg_frame"):
        if name not in sys.modules:
            bare = types.ModuleType(name)
            parent, _, last = name.rpartition(".")
            spec = None if parent else importlib.util.find_spec(name)
            places = spec.submodule_search_locations if spec else [f"{p}/{last}" for p in sys.modules[parent].__path__]
            bare.__path__ = list(places)
            sys.modules[name] = bare
    # Simulated attacks and homomorphic encryption, both off by default.
    for name, held in (("security.fedml_attacker", "FedMLAttacker"), ("fhe.fhe_agg", "FedMLFHE")):
        off = {"get_instance": classmethod(lambda cls: cls()), "init": lambda self, options: None}
        off |= {"is_fhe_enabled": lambda self: False}
        sys.modules[f"fedml.core.{name}"] = types.SimpleNamespace(**{held: type(held, (), off)})
    return importlib.import_module(f"fedml.core.{module}")


def fedml_sent(weights: dict, **arguments) -> dict:
    """What a client sends after local training under dp_args."""
    frame = fedml("alg_frame.client_trainer")
    extra = {"comm_round": 5, "client_num_per_round": 2, "client_num_in_total": 4}
    options = types.SimpleNamespace(enable_dp=True, epsilon=0.5, delta=0.1, **arguments, **extra)

    class Trainer(frame.ClientTrainer):
        def __init__(self):
            super().__init__(None, options)
            self.sent = weights

        def get_model_params(self):
            return self.sent

        def set_model_params(self, model_parameters):
            self.sent = model_parameters

        def train(self, train_data, device, args):
            pass

    trainer = Trainer()
    trainer.on_after_local_training(None, None, None)
    return trainer.sent


def test_fedml_nbafl_sends_what_it_trained(show):
    weights = {"w": torch.linspace(-100, 100, 50)}
    sent = fedml_sent(dict(weights), dp_solution_type="nbafl", C=10)["w"]
    show(f"fedml-nbafl: sent minus trained, the largest of 50 weights: {float((sent - weights['w']).abs().max())}")
    assert torch.equal(sent, weights["w"])
