"""Peak memory of jobs, each a process of its own: `python memory.py train …` runs one and prints its peak.

The peak is that of the process's own address space: `getrusage` would count the parent's peak as a floor on Linux.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from silodp.jobs.__main__ import main

ROOT = Path(__file__).resolve().parents[1]


def own_peak() -> float:
    """Peak resident memory of this process in MB, as Linux has it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 2**10


def peak(arguments: list[str]) -> float:
    """Peak memory in MB of a job with `arguments`; RuntimeError with what it said where it fails."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"silodp.jobs {arguments[0]}: exit code {done.returncode}: {done.stderr}")
    return float(done.stdout.split()[-1])


def job_peaks(
    run_file: dict, experiment: str, setting: str, algorithms: list[str], trials: list[int]
) -> dict[str, list[float]]:
    """Peak memory in MB of the job `train` for every algorithm and number of trials.

    Args:
        run_file: content of the run file.
        experiment: the experiment.
        setting: name of the setting that is trained.
        algorithms: which to train.
        trials: numbers of trials to train in one job.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, silos = f"{folder}/run.yaml", f"{folder}/silos"
        Path(path).write_text(json.dumps(run_file))  # JSON is YAML
        of = [f"run_file={path}", f"experiment={experiment}"]
        peak(["partition", *of, f"output={silos}"])
        task = ["train", *of, f"setting={setting}", f"silos={silos}", f"output={folder}/trials.parquet"]
        return {
            algorithm: [peak([*task, f"algorithm={algorithm}", f"trials=0-{n - 1}"]) for n in trials]
            for algorithm in algorithms
        }


if __name__ == "__main__":
    code = main(sys.argv[1:])
    print(own_peak())
    sys.exit(code)
