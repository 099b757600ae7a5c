"""`silodp release` as an adversary meets it: fresh noise, no stop, nothing undeclared, one ledger."""

import dataclasses
import hashlib
import json
import math

import numpy as np
import pandas as pd
import patients
import pytest
import torch
from example_table import filled

import silodp
from silodp.cli import main
from silodp.config.errors import ConfigError
from silodp.datasets.own.schema import Column, Schema
from silodp.experiments.training import evaluate
from silodp.federation.messages import Messages
from silodp.federation.streams import SecretStreams, Streams, secret_streams
from silodp.files import write_csv, write_parquet
from silodp.own_data import release as releases
from silodp.own_data.released_model import ReleasedModel, load_model
from silodp.privacy.accounting.accountant import delivered_epsilon
from silodp.privacy.person import person_epsilon
from silodp.privacy.selection import selected_epsilon
from silodp.silos.ledger import opened, plans_of
from silodp.silos.ledger_total import total

DATASET = patients.experiment()["dataset"]
AUDIT = dict.fromkeys(("n", "runs", "audited_profile"), 1) | {"delivered_epsilon": 2.0, "mechanism": "as planned"}
AUDIT |= {"holds": True, "profile_holds": True}
audited = releases.audited


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(releases, "audited", lambda asked: AUDIT)
    patients.write_records(tmp_path / "patients.csv")
    return tmp_path


def charges(folder):
    with opened(folder) as ledger:
        return ledger.charges


@pytest.fixture
def release(folder, capsys):
    """Exit code and words of `silodp release` on the patients' run file."""

    def call(*words, algorithm="minibatch_sgd", epsilon="1", changes=None):
        patients.run_file(folder, **(changes or {}))
        point = ["--stepsize", "0.5", "--clip", "1"]
        code = main(["release", "patients.yaml", "--algorithm", algorithm, "--epsilon", epsilon, *point, *words])
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


def weights(path, epsilon, streams, **more):
    run, asked = patients.asked(path, epsilon, **more)
    return releases.trained(asked, run, streams)[1]


def combined(path, streams):
    """The attack on two models at two ε: (noise of one, what is left of it after combining both)."""
    found, sigma = [], []
    for epsilon, own in zip((1.0, 2.0), streams, strict=True):
        run, asked = patients.asked(path, epsilon)
        # Alike in both silos, so that one multiple of one draw is the noise of the mean.
        asked = dataclasses.replace(asked, plans=[asked.plans[0]] * 2)
        found.append(releases.trained(asked, run, own)[1])
        sigma.append(asked.plans[0].releases[0].noise)
    plain = releases.trained(patients.without_noise(asked), run, streams[1])[1]
    rest = (sigma[0] * found[1] - sigma[1] * found[0]) / (sigma[0] - sigma[1]) - plain
    return np.linalg.norm(found[1] - plain), np.linalg.norm(rest)


def test_two_models_do_not_cancel_each_others_noise(folder):
    patients.write_records(folder / "patients.csv", {"North": 40, "South": 40})
    path = patients.run_file(folder, settings=[{"M": 2, "R": 1}])
    noise, left = combined(path, [Streams(1), Streams(1)])
    assert left < 1e-9 < 0.01 < noise, "with the same streams the attack works"
    noise, left = combined(path, [secret_streams(), secret_streams()])
    assert left > 0.3 * noise > 0.003


def test_a_rerun_after_one_corrected_record_has_other_noise_everywhere(folder):
    path = patients.run_file(folder)
    before, again = (weights(path, 1.0, secret_streams()) for _ in range(2))
    patients.write_records(folder / "patients.csv", age=np.r_[99.0, 20.0 + 7 * np.arange(1, 100) % 60])
    after = weights(path, 1.0, secret_streams())
    assert not (before == again).any()
    assert not (before == after).any()


def test_the_secret_is_256_bits_and_is_shown_by_nothing(folder, release):
    first, second = secret_streams(), secret_streams()
    assert first.seed != second.seed
    assert max(first.seed, second.seed) > 2**240
    assert str(first.seed) not in repr(first)
    with pytest.raises(ValueError, match="stream") as caught:
        first.generator("\x1f")
    assert str(first.seed) not in str(caught.value)
    assert first.generator("a").bit_generator.__class__.__name__ == "Philox"


def test_own_data_without_a_seed_are_refused(folder):
    path = patients.run_file(folder)
    path.write_text(path.read_text().replace("seed: 7\n", ""))
    with pytest.raises(ConfigError, match="seed: missing: must be given for data of your own"):
        patients.asked(path)


@pytest.mark.parametrize("stepsize", [0.5, 1e6])
def test_no_round_depends_on_a_loss(folder, monkeypatch, stepsize):
    """A step size with which every loss explodes stops nothing: all rounds' messages are sent."""
    path, sent, total = patients.run_file(folder), [], Messages.message

    def message(self, query, silo, *more):
        sent.append((silo, query.round))
        return total(self, query, silo, *more)

    monkeypatch.setattr(Messages, "message", message)
    monkeypatch.setattr("silodp.federation.simulated.TOGETHER", 0)
    found = weights(path, 1.0, secret_streams(), stepsize=stepsize)
    assert sorted(sent) == [(silo, r) for silo in range(2) for r in range(4)]
    assert stepsize == 0.5 or np.abs(found).max() > 1e3


def test_a_model_that_is_not_finite_is_refused_and_counted(release, folder, monkeypatch):
    monkeypatch.setattr(releases, "trained", lambda asked, *_: (asked, np.array([1.0, math.nan, 0.0])))
    code, said = release()
    assert (code, "the model is not finite: refused" in said) == (2, True)
    assert not (folder / "releases").exists()
    assert [line["about"]["outcome"] for line in charges(folder)] == ["refused: not finite"]


def test_a_release_writes_a_model_a_card_and_a_line(release, folder, monkeypatch):
    monkeypatch.setattr(releases, "_AUDITED", 1)
    monkeypatch.setattr(releases, "audited", audited)
    assert release()[0] == 0
    text = (folder / "releases/patients_1/card.md").read_text()
    assert "ε = 1 at δ" in text
    assert "Not private: sizes of silos." in text
    assert "must not have been chosen on these data" in text
    assert "error: none was computed" in text
    assert "100 runs of either kind): messages as planned" in text
    assert "may be anybody" not in text
    (line,) = charges(folder)
    assert line["about"]["outcome"] == "released"
    assert f"This one\n   is line 1, with the keyed digest (HMAC) {line['mac']}" in text
    digest = hashlib.sha256((folder / "patients.csv").read_bytes()).hexdigest().encode()
    for file in folder.rglob("*"):
        # A digest of the records would tell whoever knows all but one of them the last.
        assert file.is_dir() or digest not in file.read_bytes(), file


def test_the_total_is_composed_whatever_a_file_column_or_silo_is_called(release, folder):
    assert release()[0] == 0
    frame = pd.read_csv("patients.csv")
    patients.write_records(folder / "patients.csv", {"Nord": 60, "Süd": 40}, age=frame["age"] + 1)
    code, said = release(epsilon="2")
    assert code == 0
    first, second = charges(folder)
    assert first["total_epsilon"] <= 1
    assert 2 < second["total_epsilon"] < 2.9
    frame.drop(columns="hospital").to_csv("other.csv", index=False)
    changes = {"dataset": DATASET | {"file": "other.csv", "silo": "smoker", "categories": {}}}
    code, said = release(changes=changes)
    assert code == 0
    assert charges(folder)[2]["total_epsilon"] > second["total_epsilon"]
    assert "releases of patients.csv count too: other records need a folder of their own" in said


def test_a_budget_refuses_before_anything_is_trained(release, folder):
    release()
    code, said = release("--budget", "1.2")
    assert code == 2
    assert "ledger.jsonl: budget: 1.2: with this charge the total would be epsilon = 1.369" in said
    assert len(charges(folder)) == 1


WITHOUT_SILOS = {key: value for key, value in DATASET.items() if key != "silo"} | {"ignore": ["hospital"]}
DIRICHLET = {"dataset": WITHOUT_SILOS, "silos": {"scheme": "dirichlet", "count": 2, "alpha": 5.0}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (DIRICHLET, "silos.scheme: 'dirichlet': must be column or iid"),
        ({"dataset": DATASET | {"missing": "drop"}}, "dataset.missing: 'drop': must be refuse or mean"),
        ({"preprocess": {"standardise": "train"}}, "preprocess.standardise: 'train'"),
    ],
)
def test_what_lets_one_record_move_others_is_refused(release, changes, said):
    code, words = release(changes=changes)
    assert code == 2
    assert said in words


def test_what_is_read_off_the_records_is_counted_unless_accepted(folder, release, capsys):
    words = ["init", "patients.csv", "--target", "readmitted", "--silo", "hospital", "--output", "mine.yaml"]
    assert main(words) == 0
    assert "silodp release" in capsys.readouterr().out
    (folder / "mine.yaml").write_text((folder / "mine.yaml").read_text().replace("R: 25", "R: 2"))
    point = ["--algorithm", "minibatch_sgd", "--epsilon", "1", "--stepsize", "1", "--clip", "1"]
    assert main(["release", "mine.yaml", *point]) == 0
    found = "4 lines of mine.yaml marked `# from the data`"
    assert f"Not private: {found}" in capsys.readouterr().err
    assert main(["release", "mine.yaml", *point, "--accept-data-bounds"]) == 0
    card = (folder / "releases/mine_2/card.md").read_text()
    assert "owner accepts as public what was read off the records: 4 lines" in card
    assert [line["about"]["not_private"] for line in charges(folder)] == [found, ""]
    undeclared = {key: DATASET[key] for key in ("file", "target", "silo")}
    _, said = release(changes={"dataset": undeclared})
    assert "Not private: categories of smoker; classes of readmitted; sizes of silos." in said


def test_declared_categories_take_no_threshold_and_tell_of_no_rare_one(folder):
    i = np.arange(100)
    patients.write_records(folder / "patients.csv", smoker=np.where(i == 0, "rare", np.where(i % 3 == 0, "yes", "no")))
    _, asked = patients.asked(patients.run_file(folder))
    features = asked.data.schema.feature_values
    patients.write_records(folder / "patients.csv")
    _, without = patients.asked(patients.run_file(folder))
    assert features == without.data.schema.feature_values == [("age", None), ("smoker", "yes")]


def test_a_persons_release_costs_a_person_what_it_says(folder):
    patients.write_records(folder / "patients.csv", person=np.arange(100) // 2)
    path = patients.run_file(folder, dataset=DATASET | {"person": "person"})
    _, asked = patients.asked(path, 2.0, person=True)
    assert asked.person == (1, 2)
    found = max(person_epsilon(plan, 1, 2) for plan in asked.plans)
    assert 1.9 < found <= 2.0
    assert total([list(asked.named.values())], 1, 2)[0] == pytest.approx(found)
    assert max(delivered_epsilon(plan, plan.budget.delta).upper for plan in asked.plans) < 1.5


def test_of_a_person_above_the_limit_that_many_records_train_and_the_card_says_so(folder, release):
    patients.write_records(folder / "patients.csv", person=np.arange(100) // 4)
    changes = {"dataset": DATASET | {"person": "person", "person_limit": 3}}
    _, asked = patients.asked(patients.run_file(folder, **changes), person=True)
    assert asked.data.silos == {"North": 45, "South": 30}
    assert [plan.budget.n for plan in asked.plans] == [45, 30]
    assert asked.person == (1, 3)
    assert release("--person", changes=changes)[0] == 0
    said = (folder / "releases/patients_1/card.md").read_text()
    assert "Not private: sizes of silos; how many records a person has, and in which silos." in said


def test_silos_train_on_their_declared_sizes_drawn_anew(folder, release):
    sizes = {"North": 50, "South": 40}
    run, asked = patients.asked(patients.run_file(folder, dataset=DATASET | {"sizes": sizes}))
    assert [plan.budget.n for plan in asked.plans] == [50, 40]
    drawn = [releases._run(asked, run, SecretStreams(seed))[2].train for seed in range(2)]
    assert [[len(y) for _, y in one] for one in drawn] == [[50, 40]] * 2
    assert not torch.equal(drawn[0][0][0], drawn[1][0][0])
    assert torch.equal(drawn[0][1][0], drawn[1][1][0]), "all 40 records of the South"
    assert "sizes" not in str(releases.uncovered(asked, folder / "patients.yaml"))
    for silo, size in (("South", 41), ("West", 3)):
        code, said = release(changes={"dataset": DATASET | {"sizes": {silo: size}}})
        assert code == 2
        assert f"dataset.sizes: {silo}: {size}: must be at most what it has" in said


def test_a_release_takes_the_point_and_the_rounds_that_the_study_speaks_of(folder, capsys):
    """The point of the smallest training loss over all (M, R), and with --setting that of the setting."""
    path = patients.run_file(folder, settings=[{"M": 2, "R": 2}, {"M": 2, "R": 3}])
    rows = [("minibatch_sgd", e, r, r / 10) for e in (1.0, 4.0) for r in (2, 3)]
    rows = pd.DataFrame(rows, columns=["algorithm", "epsilon", "R", "stepsize"])
    rows = rows.assign(experiment="patients", reading="", M=2, phase_length=1, clip=1.0)
    loss = rows["R"].map({2: 0.5, 3: 0.4}).where(rows["epsilon"] == 1, rows["R"] / 10)
    table = filled(rows, 0.1, 0.1, 0.1, N=2, delta=1e-4, train_loss_mean=loss)
    for name in ("selection", "tables"):
        (folder / "results" / "patients" / name).mkdir(parents=True)
    write_parquet(rows.assign(selection="pooled"), folder / "results/patients/selection/patients.parquet")
    write_csv(table, folder / "results/patients/tables/patients.csv")
    words = ["release", str(path), "--algorithm", "minibatch_sgd", "--epsilon"]
    for more, wanted in ((["1"], 3), (["4"], 2), (["1", "--setting", "M2_R2"], 2)):
        assert main([*words, *more]) == 0
        card = max(folder.glob("releases/*/card.md")).read_text()
        assert f"in R = {wanted} rounds over 2 silos; step size 0.{wanted}, clip 1." in card
        assert "A study chose them, and the rounds" in card
    assert main([*words, "2"]) == 2
    assert "no point of minibatch_sgd at epsilon = 2" in capsys.readouterr().err


def test_private_selection_costs_what_the_release_says_and_needs_no_study(folder, release):
    path = patients.run_file(folder)
    words = ["release", str(path), "--algorithm", "minibatch_sgd", "--epsilon", "1", "--selection", "4"]
    assert main(words) == 0
    (line,) = charges(folder)
    for plan in plans_of(line):
        assert (plan.tries, plan.releases[-1].kind, plan.releases[-1].records) == (4, "score", plan.budget.n)
        assert 0.95 < selected_epsilon([plan], plan.budget.delta) <= 1 or plan.budget.n > 40
        assert delivered_epsilon(dataclasses.replace(plan, tries=1), plan.budget.delta).upper < 0.7
        assert math.isinf(delivered_epsilon(plan, plan.budget.delta).upper), "no accountant takes it for one run"
    assert 0.95 < line["total_epsilon"] <= 1
    card = (folder / "releases/patients_1/card.md").read_text()
    assert "the best of a random number of runs, 4 on average" in card
    assert "Audit of one run of this configuration" in card
    assert release()[0] == 0
    assert 1.2 < charges(folder)[1]["total_epsilon"] < 2.3
    assert release("--selection", "4")[0] == 2


def test_the_best_run_is_the_one_of_least_loss_where_scores_have_no_noise(folder, monkeypatch):
    run, asked = patients.asked(patients.run_file(folder, stepsizes={"low": -3, "high": 3, "points": 4}), tries=6)
    asked = dataclasses.replace(patients.without_noise(asked), scores=(0.0, 0.0))
    monkeypatch.setattr(releases, "number_of_tries", lambda *_: 6)
    tried, once = [], releases._run

    def seen(one, *more):
        weights, model, records = once(one, *more)
        tried.append((evaluate(model, torch.from_numpy(weights)[None], records.train)[0].item(), one.point["stepsize"]))
        return weights, model, records

    monkeypatch.setattr(releases, "_run", seen)
    chosen, _ = releases.trained(asked, run, SecretStreams(3))
    assert len(set(tried)) > 2
    assert chosen.point["stepsize"] == min(tried)[1]


def test_one_record_moves_a_score_by_no_more_than_its_plan_says(folder):
    """Losses are cut to [0, most], so one of n moves a silo's mean by most/n; noise is z of that."""
    run, asked = patients.asked(patients.run_file(folder), tries=3)
    most, n = 2 * math.log(2), 40
    weights, model, records = releases._run(asked, run, SecretStreams(1))
    scores = []
    for wrong in (-1.0, 1.0, math.nan, 1e300):
        x, y = (values.clone() for values in records.train[1])
        x[0] = wrong
        other = dataclasses.replace(records, train=[records.train[0], (x, y)])
        scores.append(releases._score(asked, 1e3 * weights, model, other, np.random.default_rng(0)))
    assert 0 < max(scores) - min(scores) <= most / n / 2 * (1 + 1e-12)
    draws = [releases._score(asked, weights, model, records, np.random.default_rng(seed)) for seed in range(2000)]
    wanted = math.hypot(*(z * most / size for z, size in zip(asked.scores, (60, n), strict=True))) / 2
    assert np.std(draws) == pytest.approx(wanted, rel=0.05)


@pytest.mark.parametrize(("small", "words"), [(14, "δ is weak in 1 silo: with 14 records"), (60, None)])
def test_a_card_says_where_delta_is_weak(folder, release, small, words):
    patients.write_records(folder / "patients.csv", {"North": 60, "Tiny": small})
    assert release(changes={"silos": {"least": 10}})[0] == 0
    text = (folder / "releases/patients_1/card.md").read_text()
    assert ("δ is weak" in text) == bool(words)
    assert (words or "") in text


def test_a_silos_plan_is_for_the_records_that_train(folder):
    patients.write_records(folder / "patients.csv", {"North": 60, "Tiny": 5, "South": 40})
    path = patients.run_file(folder, silos={"least": 20})
    _, asked = patients.asked(path)
    assert asked.data.silos == {"North": 60, "South": 40}
    assert [plan.budget.n for plan in asked.plans] == [60, 40]


@pytest.mark.parametrize("algorithm", ["mr_mtl", "silo_only"])
def test_an_algorithm_with_a_model_for_each_silo_is_refused(folder, release, algorithm):
    assert release(algorithm=algorithm, changes={"algorithms": {algorithm: {}}})[0] == 2
    assert not (folder / "ledger.jsonl").exists()


def test_predictions_are_those_of_the_model_and_unseen_categories_are_counted(release, folder, capsys):
    release()
    place = "releases/patients_1/model.npz"
    frame = pd.read_csv("patients.csv")
    model = silodp.load_model(place)
    table = model.predict(frame)
    assert table["P(no)"].to_numpy() + table["P(yes)"].to_numpy() == pytest.approx(np.ones(100))
    x = np.column_stack([2 * frame["age"] / 120 - 1, frame["smoker"] == "yes", np.ones(100)])
    wanted = 1 / (1 + np.exp(-x @ model.weights))
    np.testing.assert_allclose(table["P(yes)"], wanted, atol=1e-12)
    assert ((table["predicted"] == "yes") == (wanted > 0.5)).all()
    frame.loc[:4, "smoker"] = "sometimes"
    frame.to_csv("new.csv", index=False)
    assert main(["predict", place, "new.csv", "--output", "out.csv"]) == 0
    assert "column 'smoker': 5 of 100 values are unknown to the model" in capsys.readouterr().err
    assert pd.read_csv("out.csv")["predicted"].isna().sum() == 5
    frame.drop(columns="age").to_csv("new.csv", index=False)
    assert main(["predict", place, "new.csv", "--output", "out.csv"]) == 2
    assert "new.csv: column 'age': missing" in capsys.readouterr().err
    assert main(["predict", "patients.csv", "new.csv", "--output", "out.csv"]) != 0


WARDS = {"ward": Column("category", ("01", "02", "0A")), "smoker": Column("boolean", ("no", "yes"))}
SCHEMA = Schema("y", {**WARDS, "age": Column("number"), "y": Column("category", ("no", "yes"))}, silo="hospital")
ABOUT = {"model": {"name": "logistic"}, "bounds": {"age": [0, 120]}, "constant_column": True}


def test_a_row_gives_the_same_alone_and_among_others(tmp_path):
    """Only features are needed, and a saved model reads as the one in memory."""
    ReleasedModel(np.arange(1.0, 7.0), ABOUT, SCHEMA).save(tmp_path / "model.npz")
    model, rows = load_model(tmp_path / "model.npz"), ["01,no,50", "02,yes,50", "0A,no,70", "1,yes,50"]
    assert model.schema == SCHEMA

    def predicted(*rows, unknown="empty"):
        (tmp_path / "new.csv").write_text("ward,smoker,age\n" + "\n".join(rows) + "\n")
        return model.predict(model.read(tmp_path / "new.csv"), unknown)

    whole = predicted(*rows)
    for text in (
        "age,smoker,ward\n50,no,01\n",
        "\ufeffward,smoker,age\r\n01,no,50",
        'ward , smoker, age,z\n"01", no,50,\n',
    ):
        (tmp_path / "new.csv").write_text(text)
        found = model.predict(model.read(tmp_path / "new.csv"))
        np.testing.assert_allclose(found["P(yes)"], whole["P(yes)"][[0]], rtol=1e-12)
    for place, row in enumerate(rows):
        np.testing.assert_allclose(predicted(row)["P(yes)"], whole["P(yes)"][[place]], rtol=1e-12)
    assert whole["predicted"].isna().tolist() == [False, False, False, True]
    assert whole.attrs["unknown"] == {"ward": 1}
    zero = predicted("1,yes,50", "01,perhaps,50", unknown="zero")
    assert zero["predicted"].isna().tolist() == [False, True]
    assert zero["P(yes)"][0] == pytest.approx(1 / (1 + np.exp(-(4 + 5 * (2 * 50 / 120 - 1) + 6))))


def test_a_model_without_a_schema_needs_that_of_its_run_file(folder, capsys):
    """Its values are spelled as pandas had them."""
    features = [("age", None), ("smoker", "yes")]
    old = ABOUT | {"features": features, "categories": {"smoker": ["no", "yes"]}, "classes": ["no", "yes"]}
    np.savez(folder / "old.npz", weights=np.arange(3.0), about=np.array(json.dumps(old | {"target": "readmitted"})))
    path, words = patients.run_file(folder), ["predict", "old.npz", "patients.csv", "--output", "out.csv"]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "old.npz: --schema: must be a run file: the model has no schema" in error
    assert error.count("\n") == 1
    assert main([*words, "--schema", str(path)]) == 0
    patients.run_file(folder, dataset=DATASET | {"categories": {"smoker": ["yes", "no"]}})
    assert main([*words, "--schema", str(path)]) == 2
    assert "must have the model's features: age, smoker" in capsys.readouterr().err


def test_a_file_in_another_encoding_is_released_and_predicted(folder, release):
    text = (folder / "patients.csv").read_text().replace("North", "Zürich")
    (folder / "patients.csv").write_bytes(text.encode("latin-1"))
    assert release(changes={"dataset": DATASET | {"encoding": "latin-1"}})[0] == 0
    assert main(["predict", "releases/patients_1/model.npz", "patients.csv", "--output", "out.csv"]) == 0
    assert silodp.load_model("releases/patients_1/model.npz").about["silos"] == ["South", "Zürich"]


def test_released_weights_are_multiples_of_a_step_far_below_the_noise(folder):
    run, asked = patients.asked(patients.run_file(folder))
    found = releases.trained(asked, run, secret_streams())[1]
    model = releases.model_of(asked, found)
    steps = model.weights / asked.lattice
    np.testing.assert_array_equal(steps, np.round(steps))
    noise = min(plan.releases[0].noise for plan in asked.plans) * 0.5 / math.sqrt(2)
    assert noise * 2**-22 < asked.lattice <= noise * 2**-20
    assert np.abs(model.weights - found).max() <= asked.lattice / 2
    assert torch.get_default_dtype() == torch.float32
    assert json.loads(json.dumps(dict(model.about)))["silos"] == ["North", "South"]
