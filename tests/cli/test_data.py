"""The job `partition`, and `silodp fetch`."""

from small import ROOT
from threadpoolctl import threadpool_limits

from silodp.cli import main
from silodp.datasets import DATASETS
from silodp.jobs.__main__ import main as run_job


def test_a_partition_by_hand_does_not_depend_on_the_number_of_cores(tmp_path):
    """The heterogeneity of the digits' silos has other last digits where cores share a matrix product."""
    words = ["partition", f"run_file={ROOT / 'config' / 'default.yaml'}", "experiment=digits_logistic"]
    files = []
    for threads in (1, 2):
        output = tmp_path / str(threads)
        with threadpool_limits(threads):
            assert run_job([*words, f"output={output}"]) == 0
        files.append({path.name: path.read_bytes() for path in output.iterdir()})
    assert files[0] == files[1]


def test_all_data_sets_are_fetched_by_one_word(monkeypatch):
    asked = []
    monkeypatch.setattr("silodp.cli.data.get", asked.append)
    assert [main(["fetch", *names]) for names in (["all"], ["mnist", "insurance"])] == [0, 0]
    assert [list(names) for names in asked] == [list(DATASETS), ["mnist", "insurance"]]
