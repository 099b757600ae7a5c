"""Names in paths: readings, the partitions that they train on, tasks and figures."""

import small

from silodp.experiments.variants import figure_names, partitioned_as, readings_of, slug, trained_as, trained_tasks

ALTERNATIVES = [{"noise": "calibrated"}, {"resample": False}, {"noise_at": "end"}]
CONFIG = small.experiment(
    settings=[{"M": 2, "R": 3}, {"M": 1, "R": 4}],
    algorithms={"minibatch_sgd": {}, "local_sgd": {}},
    alternatives=[*ALTERNATIVES, {"log_term": "1/delta", "algorithms": ["local_sgd"]}],
    readings={"resample": True},
)


def test_a_readings_name_fits_a_path():
    assert (slug(""), slug("noise=calibrated;batch=per_eps"), slug("log_term=1/delta")) == (
        "default",
        "noise-calibrated+batch-per_eps",
        "log_term-1delta",
    )
    assert readings_of(CONFIG) == {slug(label): label for label in CONFIG.variants()}
    assert list(readings_of(CONFIG))[:2] == ["default", "noise-calibrated"]
    assert len(readings_of(CONFIG)) == 5


def test_a_reading_that_cuts_silos_otherwise_has_a_partition_of_its_own():
    cut = {reading: partitioned_as(CONFIG, reading) for reading in readings_of(CONFIG)}
    apart = [reading for reading in cut if reading.startswith("resample")]
    assert len(apart) == 1
    assert cut == {reading: reading if reading in apart else "default" for reading in cut}


def test_tasks_are_what_a_reading_speaks_of():
    both = list(CONFIG.algorithms)
    run = {label: [name for name in both if trained_as(CONFIG, name, label) == label] for label in CONFIG.variants()}
    labels = {slug(label): label for label in run}
    ends = next(label for label in run if label.startswith("noise_at"))
    terms = next(label for label in run if label.startswith("log_term"))
    assert run == dict.fromkeys(run, both) | {ends: ["local_sgd"], terms: []}
    assert trained_as(CONFIG, "minibatch_sgd", ends) == ""
    assert trained_as(CONFIG, "local_sgd", terms) == ""
    assert trained_as(CONFIG, "minibatch_sgd", terms) is None
    tasks = trained_tasks(CONFIG)
    assert tasks[:2] == [("minibatch_sgd", "M2_R3", "default"), ("minibatch_sgd", "M2_R3", "noise-calibrated")]
    assert len(tasks) == len(set(tasks)) == 2 * (3 + 4)
    assert all(name in run[labels[reading]] for name, _, reading in tasks)


def test_figures_of_every_reading_and_setting():
    """At equal true ε by default alone; both noises side by side where one is calibrated, which say what each would."""
    shown = figure_names("small", CONFIG)
    kinds = {}
    for name, shows in shown.items():
        assert name.startswith(f"small_M{shows['M']}_R{shows['R']}")
        kinds.setdefault((shows["M"], shows["reading"]), []).append(shows["kind"])
    alone = {"": ["delivered_vs_claimed"], "noise=calibrated": ["both_noises", "delivered_vs_claimed"]}
    assert kinds == {(M, label): alone.get(label, ["error_vs_epsilon"]) for label in CONFIG.variants() for M in (2, 1)}
    assert shown["small_M1_R4_delivered_vs_claimed"] == {
        "experiment": "small",
        "M": 1,
        "R": 4,
        "reading": "",
        "kind": "delivered_vs_claimed",
    }
    plain = small.experiment(alternatives=[{"noise_at": "end"}])
    usual = ["error_vs_epsilon", "delivered_vs_claimed"]
    found = [(shows["reading"], shows["kind"]) for shows in figure_names("small", plain).values()]
    wanted = [*(("", kind) for kind in [*usual, "error_vs_delivered"]), *(("noise_at=end", kind) for kind in usual)]
    assert found == wanted
