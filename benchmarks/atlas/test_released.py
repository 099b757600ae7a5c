"""The released classes of docs/atlas.md on toy updates: each test asserts what a preset of config/systems says.

Run by `make atlas` in an environment of its own (requirements/atlas.lock); not part of `make test`.
"""

import importlib
import importlib.util
import math
import subprocess
import sys
import types

import numpy as np
import pytest
import torch

from silodp.atlas.bounds import FUNCTIONS, bound_mechanism
from silodp.atlas.mechanism import SYSTEMS, load_mechanism

MANY = 200_000  # coordinates: a deviation is within 1 % of the stated one


def preset(name: str):
    return load_mechanism(SYSTEMS / f"{name}.yaml")


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


def test_flower_local_dp_lets_a_0_d_tensor_and_metrics_pass(show):
    for batches in (10.0, 11.0):  # n = 320 against 321 at batches of 32
        sent, content = flower_sent(w=np.ones(10), count=np.array(batches), metrics={"num-examples": 32 * batches})
        show(f"flower-local-dp: num_batches_tracked {batches:g} leaves as {float(sent['count']):g}")
        assert sent["count"] == batches
        assert content["metrics"]["num-examples"] == 32 * batches


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
    accountant.compose(p.GaussianPrivacyEvent(1.0, 4, 4), count=10)
    result = bound_mechanism(preset("flower-accounted"))
    assert accountant.get_epsilon(1e-5) == pytest.approx(result.claimed, rel=1e-6)
    assert result.interval.upper <= accountant.get_epsilon(1e-5)


# NVFlare


def nvflare_sent(which, **update):
    from nvflare.apis.dxo import DXO, DataKind
    from nvflare.apis.fl_context import FLContext
    from nvflare.apis.shareable import Shareable

    return which.process_dxo(DXO(DataKind.WEIGHT_DIFF, data=dict(update)), Shareable(), FLContext())


def test_nvflare_svt_ledger_is_that_of_the_table(show):
    from nvflare.app_common.filters import SVTPrivacy

    svt = SVTPrivacy(fraction=0.9, epsilon=0.1, noise_var=0.1, gamma=1e-5)
    for _ in range(2):
        sent = nvflare_sent(svt, w=np.full(62_006, 1.0)).data["w"]
    assert svt.get_privacy_spent() == pytest.approx(2 * 5580.7, abs=1)
    # Distinct coordinates that leave, and the scale of their noise: √2·b is its deviation.
    left = sent[sent != 0]
    show(
        f"nvflare-svt: {len(left):,} values leave; the filter's ledger after two calls: {svt.get_privacy_spent():,.1f}"
    )
    assert len(left) > 35_000
    assert abs(np.std(left) / (math.sqrt(2) * deviation("nvflare-svt")) - 1) < 0.03
    assert abs(np.mean(left) - 1e-5) < 1e-5


def test_nvflare_svt_lets_a_0_d_tensor_pass_and_flags_it():
    from nvflare.app_common.filters import SVTPrivacy

    svt = SVTPrivacy()
    assert nvflare_sent(svt, w=np.ones(100), count=np.array(11.0)).data["count"] == 11
    assert svt.get_privacy_ledger()[0]["has_scalar_passthrough"]


def test_nvflare_svt_does_not_return_from_an_update_of_nans():
    program = (
        "import numpy as np; from nvflare.app_common.filters import SVTPrivacy as S; from nvflare.apis.dxo import *; "
        "from nvflare.apis.shareable import Shareable; from nvflare.apis.fl_context import FLContext; "
        "print('start', flush=True); "
        "S().process_dxo(DXO(DataKind.WEIGHT_DIFF, data={'w': np.full(9, np.nan)}), Shareable(), FLContext())"
    )
    with pytest.raises(subprocess.TimeoutExpired) as stopped:
        subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=8, check=False)
    assert b"start" in stopped.value.stdout


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


def test_fedml_ldp_adds_the_stated_noise_and_clips_nothing():
    ldp = {"dp_solution_type": "ldp", "mechanism_type": "gaussian", "sensitivity": 1}
    sent = fedml_sent({"w": torch.full((MANY,), 1e6, dtype=torch.float64)}, **ldp)["w"].numpy()
    assert close(sent - 1e6, deviation("fedml-ldp"))


# FL4Health


def test_fl4health_accountant_draws_silos_in_every_step():
    accounts = importlib.import_module("fl4health.privacy.fl_accountants")
    for n, silos, rounds in ((50_000, 0.66, 10), (500, 0.1, 100)):
        accountant = accounts.FlInstanceLevelAccountant(silos, 1.0, 1, [64], [n])
        reported = accountant.get_epsilon(rounds, 1 / (3 * n))
        result = bound_mechanism(preset("fl4health-instance"), rounds, {"n": float(n), "silos": silos})
        # The orders of its Rényi accounting are fewer.
        assert result.claimed <= reported <= 1.05 * result.claimed
        assert (result.interval.lower > reported) == (n == 500)


# APPFL


def appfl_trainer(**changed):
    trainers = importlib.import_module("appfl.algorithm.trainer.vanilla_trainer")
    omegaconf = importlib.import_module("omegaconf")
    configs = {"mode": "step", "num_local_steps": 100, "optim": "Adam", "optim_args": {"lr": 0.001}, "use_dp": True}
    configs |= {"epsilon": 1, "clip_grad": False, "clip_value": 1, "clip_norm": 1, "train_batch_size": 64}
    data = torch.utils.data.TensorDataset(torch.zeros(64, 1), torch.zeros(64, 1))
    log = types.SimpleNamespace(log_title=print, set_title=print, log_content=print, info=print)
    return trainers.VanillaTrainer(
        model=torch.nn.Linear(1, MANY, bias=False),
        loss_fn=lambda output, target: output.sum(),
        metric=lambda *_: 0.0,
        train_dataset=data,
        train_configs=omegaconf.OmegaConf.create(configs | changed),
        logger=log,
    )


def test_appfl_noise_has_the_stated_scale_in_every_parameter():
    first, second = (appfl_trainer(num_local_steps=1) for _ in range(2))
    for trainer in (first, second):
        torch.nn.init.zeros_(trainer.model.weight)
        trainer.train()
    sent = first.get_parameters()[0] if isinstance(first.get_parameters(), tuple) else first.get_parameters()
    assert close(sent["weight"].numpy(), math.sqrt(2) * deviation("appfl-laplace"))
    assert not torch.equal(sent["weight"], second.model_state["weight"])


def moved(position: int, scale: float, steps: int = 100) -> float:
    """Learning rates that Adam, as APPFL makes it, moves a parameter when one batch of a round has a gradient."""
    parameter = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = torch.optim.Adam([parameter], lr=0.001)
    for step in range(steps):
        parameter.grad = torch.full_like(parameter, scale if step == position else 0.0)
        optimizer.step()
    return abs(parameter.item()) / 0.001


def test_appfl_adam_moves_as_far_as_the_interval_says():
    assert all(moved(position, 1e6) >= 0.96 for position in (0, 50, 99))
    assert max(moved(position, 1e6) for position in (0, 50, 99)) <= 7.28 * 100
    assert moved(0, 1e12) == pytest.approx(moved(0, 1.0), rel=1e-3)  # the gradient's size does not matter
