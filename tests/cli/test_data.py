"""The job `partition`."""

from small import ROOT
from threadpoolctl import threadpool_limits

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
