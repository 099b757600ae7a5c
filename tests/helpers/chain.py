"""What the rules of a run call, job by job, in this process."""

import torch

from silodp.audit import audit_rows
from silodp.audit.mechanism_check import Fault, Mechanism
from silodp.experiments.validation import load
from silodp.experiments.variants import figure_names
from silodp.jobs.__main__ import main as run_job


def call(job, **words):
    """The exit code of a job, called with words as its rule calls it."""
    many = {name: word if isinstance(word, list) else [word] for name, word in words.items()}
    return run_job([job, *(str(part) for name, (first, *rest) in many.items() for part in (f"{name}={first}", *rest))])


def done(job, **words):
    assert call(job, **words) == 0


def play_no_audit(patch):
    """Audits are played in tests/audit."""
    fine = Mechanism(Fault("any", "any", 1.0), 1.0, 1)
    patch.setattr(audit_rows, "check_mechanism", lambda algorithm, plans, streams, size: [fine] * len(plans))


def fill(run_file, folder, name, cuts=("all",)):
    """Train an experiment with its trials cut into jobs, judge it, and draw its figures, or a study of own records."""
    threads = torch.get_num_threads()
    config, of, grid, fresh = load(run_file).experiments[name], {"run_file": run_file, "experiment": name}, [], []
    silos = folder / f"silos/{name}/default"
    done("partition", **of, output=silos)
    for algorithm in config.algorithms:
        for setting in (setting.name for setting in config.settings):
            task = {"algorithm": algorithm, "setting": setting, "silos": silos, "threads": 1}
            for trials in cuts:
                grid.append(folder / f"trials/{name}/{algorithm}/{setting}_{trials}.parquet")
                done("train", **of, **task, trials=trials, output=grid[-1])
            fresh.append(folder / f"fresh/{name}/{algorithm}/{setting}/default_fresh.parquet")
    chosen, table = folder / f"selection/{name}.parquet", folder / f"tables/{name}.csv"
    reported, privacy = folder / f"reported/{name}.csv", folder / f"privacy/{name}.csv"
    done("select", **of, trials=grid, output=chosen)
    done("evaluate", **of, chosen=chosen, silos=silos.parent, folder=folder / f"fresh/{name}", threads=1)
    ends = {kind: folder / f"{kind}/{name}.csv" for kind in ("by_round", "audit")}
    done("privacy", **of, chosen=chosen, silos=silos, output=privacy, **ends)
    made = {"output": table, "reported": reported, "losses": folder / f"losses/{name}.parquet"}
    done("table", **of, grid=grid, fresh=fresh, chosen=chosen, privacy=privacy, **made)
    if not isinstance(config.dataset, str):
        output = folder / f"study/{name}.json"
        done("study", **of, chosen=chosen, silos=silos, table=table, formats="svg", output=output)
    else:
        names = list(figure_names(name, config))
        done("figure", **of, names=names, table=table, reported=reported, folder=folder / "figures", formats="svg")
    torch.set_num_threads(threads)
