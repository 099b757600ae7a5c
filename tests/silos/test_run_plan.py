"""Rounding of local steps at the largest weights that a federation may have, held against more digits."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from pydantic import BaseModel
from three_silos import SIZES, federation_keys, run_plan

import silodp.silos.run_plan
from silodp.algorithms import ALGORITHMS
from silodp.config.errors import ConfigError
from silodp.experiments.protocol_plans import complete_plan
from silodp.models.linear import Linear
from silodp.silos.federation_file import Coordinator, Federation, RecordSchema, SiloEntry
from silodp.silos.run_plan import rounding

# ηL and the allowed share of a sensitivity.
STEP, ALLOWED = 0.1, 2.0**-20


def worst_record(weights):
    """Features in [−1, 1] whose first half pulls a product up as far as the second takes it down, to 0 at last."""
    x = np.where(np.arange(len(weights)) < len(weights) // 2, 0.8, -0.8) * weights.min() / weights
    for place in (-1, 0):
        x[place] -= float(x.astype(np.longdouble) @ weights) / weights[place]
    return x


@pytest.mark.parametrize("K", [1, 10])
@pytest.mark.parametrize("d", [8, 64, 512, 2048])
def test_steps_at_the_bound_round_by_less_than_is_allowed(d, K):
    """At d = 2,048 weights were accepted at which a step was off by 8.9 times what is allowed."""
    generator, one = np.random.default_rng(d), torch.ones(1, dtype=torch.float64)
    bound = ALLOWED * STEP / (K * (2 * d + 8) * 2.0**-53) / math.sqrt(d)
    assert rounding(K, d, bound, STEP) == pytest.approx(ALLOWED, rel=1e-3)
    worst = 0.0
    for _ in range(20):
        start = bound * generator.uniform(0.9, 1, d)
        x = np.array([worst_record(start)] * K)
        steps = Linear.build(d, None).local_steps
        given = torch.from_numpy(start)[None], torch.from_numpy(x), 0 * torch.from_numpy(x[:, 0])
        found = steps(*given, one, STEP * one, 0 * one, None, contracted=True)[0].numpy()
        exact = start.astype(np.longdouble)
        for record in x.astype(np.longdouble):
            gradient = (record @ exact) * record * min(2 / (STEP * (record @ record)), 1)
            exact = exact - STEP * gradient * min(1, 1 / max(np.sqrt(gradient @ gradient), 1e-30))
        worst = max(worst, float(np.sqrt(((found - exact) ** 2).sum())))
    assert 2 * worst <= ALLOWED * 2 * STEP


@pytest.mark.parametrize(("start", "step"), [(1.0, 2.0**-20 + 0.49 * 2.0**-52), (0.0, 1 / 3)])
def test_rounding_of_steps_in_one_direction_adds_up(start, step):
    """From the largest weight by steps far below it, and from 0 by steps that leave it: what K steps lose."""
    K, w = 100, start
    for _ in range(K):
        w += step
    lost = abs(Fraction(w) - Fraction(start) - K * Fraction(step))
    assert 0 < lost <= Fraction(rounding(K, 1, max(start, 1e-9), step)) * 2 * Fraction(step)


@pytest.mark.parametrize(("factor", "kept"), [(1.0, True), (0.999, False)])
def test_a_promise_has_no_slack(factor, kept, monkeypatch):
    """Of noise that is too small by a thousandth."""

    def planned(*words):
        return complete_plan(*words).with_noise_times(factor)

    monkeypatch.setattr(silodp.silos.run_plan, "complete_plan", planned)
    if kept:
        assert run_plan().epsilon(0)[1] <= 4.0
        return
    with pytest.raises(ConfigError, match=r"silos\.north\.epsilon: 4: not proven to be kept \(up to 4\.0"):
        run_plan()


def test_a_promise_and_a_rounding_are_kept_at_their_limits(monkeypatch):
    options = {"name": "local_sgd", "options": {"noise_at": "end"}}
    for name, limit, said in (("upper_end", 4.0, "not proven to be kept"), ("rounding", ALLOWED, "too large for")):
        with monkeypatch.context() as patched:
            patched.setattr(silodp.silos.run_plan, name, lambda *words, limit=limit: limit)
            run_plan(**options)
            patched.setattr(silodp.silos.run_plan, name, lambda *words, limit=limit: math.nextafter(limit, 9))
            with pytest.raises(ConfigError, match=said):
                run_plan(**options)


@pytest.mark.parametrize("name", [name for name, kind in ALGORITHMS.items() if kind.trust != "nothing"])
def test_a_promise_that_trusts_a_shuffler_or_a_sum_is_refused(name):
    with pytest.raises(ConfigError, match=rf"algorithm: {name}: its promise needs .*: must hold by itself"):
        run_plan(name)


def test_weights_are_refused_above_what_rounding_allows():
    """B in K(2d + 8)2⁻⁵³(√d·B + KηL)/ηL = 2⁻²⁰ for the silo of the most steps."""
    options = {"noise_at": "end"}
    plan = run_plan(name="local_sgd", options=options)
    d, step = plan.model.size, plan.federation.stepsize * plan.federation.clip
    K = max(kind.records for of in plan.plans for kind in of.releases)
    assert d != K
    limit = (ALLOWED * step / (K * (2 * d + 8) * 2.0**-53) - K * step) / math.sqrt(d)
    run_plan(name="local_sgd", options=options, bound=0.999 * limit)
    with pytest.raises(ConfigError, match=rf"bound = [0-9.e+]+: too large for {K} local steps in float64"):
        run_plan(name="local_sgd", options=options, bound=1.001 * limit)


def keys_of(model: type[BaseModel], inside=()):
    """Keys of a section of federation.yaml, with those of sections in it behind a point."""
    for name, field in model.model_fields.items():
        key = field.alias or name
        sections = {"schema": RecordSchema, "coordinator": Coordinator, "silos": SiloEntry} if not inside else {}
        yield from keys_of(sections[key], (key,)) if key in sections else [".".join((*inside, key))]


SCHEMA = federation_keys()["schema"]
OTHER = {
    "title": "another",
    "schema.target": None,
    "schema.columns": SCHEMA["columns"] | {"sex": {"type": "category", "values": ["f", "m"]}},
    "schema.bounds": SCHEMA["bounds"] | {"age": [0, 119]},
    "schema.missing": "mean",
    "schema.constant_column": False,
    "model": {"name": "perceptron", "hidden": 3},
    "radius": 3.0,
    "regulariser": {"name": "l2", "weight": 0.1},
    "algorithm": {"name": "accelerated_minibatch_sgd"},
    "participants": 2,
    "at_least": 2,
    "rounds": 5,
    "stepsize": 0.25,
    "clip": 2.0,
    "bound": 99.0,
    "batch_records": 3,
    "sampler": "subset",
    "reply_after": 1.0,
    "wait": 61.0,
    "coordinator.address": "elsewhere:1",
    "coordinator.certificate": "another",
    "silos.records": 39,
    "silos.epsilon": 3.0,
    "silos.delta": 1e-5,
    "silos.certificate": "another",
    "plugin": "0" * 64,
}
OUTSIDE = {"title", "at_least", "reply_after", "wait", "coordinator.address", "coordinator.certificate"}
OUTSIDE |= {"silos.certificate"}


def changed(key, value):
    """federation.yaml's keys with one of them changed; of the silos north's."""
    keys, (section, _, inner) = federation_keys(), key.partition(".")
    if key == "schema.target":  # with what has to go along
        return keys | {"schema": SCHEMA | {"target": "age"}, "model": {"name": "linear"}}
    if section == "silos":
        return keys | {"silos": keys["silos"] | {"north": keys["silos"]["north"] | {inner: value}}}
    return keys | {section: keys[section] | {inner: value} if inner else value}


def test_every_key_of_the_agreed_file_is_in_the_runs_digest_or_changes_no_reply():
    """Also the keys that are to come: by the model's list of fields."""
    assert set(OTHER) == set(keys_of(Federation))
    nonce, code = b"n" * 16, b"c" * 32
    first = run_plan().digest(0, nonce, code)
    found = {key: run_plan(**changed(key, value)).digest(0, nonce, code) for key, value in OTHER.items()}
    assert {key for key, digest in found.items() if digest == first} == OUTSIDE
    inside = [digest for key, digest in found.items() if key not in OUTSIDE]
    assert len(set(inside)) == len(inside)


@pytest.mark.parametrize("turned", ["columns", "silos"])
def test_the_order_of_columns_and_silos_is_in_the_runs_digest(turned):
    """Weights follow the columns, and the silos of a round are drawn by their numbers."""
    keys = federation_keys()
    schema = keys["schema"] | {"columns": dict(reversed(SCHEMA["columns"].items()))}
    other = {"schema": schema} if turned == "columns" else {"silos": dict(reversed(keys["silos"].items()))}
    first, second = run_plan(), run_plan(**other)
    assert first.federation.digest != second.federation.digest
    numbers = (first.names.index("east"), second.names.index("east"))
    assert first.digest(numbers[0], b"", b"c" * 32) != second.digest(numbers[1], b"", b"c" * 32)


@pytest.mark.parametrize("model", ["softmax", "perceptron", "absolute"])
def test_local_steps_that_may_expand_distances_are_refused_before_a_charge(model):
    """Every reply failed, after the whole plan was charged."""
    changes: dict = {"model": {"name": model} | ({"hidden": 3} if model == "perceptron" else {})}
    if model == "absolute":
        changes |= {"schema": SCHEMA | {"target": "age"}}
    run_plan("local_sgd", {"noise_at": "step"}, **changes)
    for noise_at in ("contracted_step", "end"):
        with pytest.raises(ConfigError, match=rf"model\.name: '{model}': must be linear or logistic: local steps of"):
            run_plan("local_sgd", {"noise_at": noise_at}, **changes)


def test_the_runs_digest_binds_silo_nonce_and_code():
    plan, silos = run_plan(), federation_keys()["silos"]
    alike = run_plan(silos={name: silos["north"] | {"certificate": name} for name in SIZES})
    found = [plan.digest(0, b"n" * 16, b"c" * 32), plan.digest(0, b"m" * 16, b"c" * 32)]
    found += [plan.digest(0, b"n" * 16, b"d" * 32), plan.digest(0, b"", b"c" * 32)]
    found += [alike.digest(silo, b"n" * 16, b"c" * 32) for silo in range(3)]
    assert len(set(found)) == 7
