"""What the workflow needs to know before it runs: names of files, cuts into jobs, digests that say when to redo one.

The Snakefile asks a `Plan` and computes nothing itself.
"""

import hashlib
import itertools
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from silodp.checks import CHECKS
from silodp.config import Resolved, project_root
from silodp.config_models import Experiment, Setting
from silodp.datasets import DATASETS
from silodp.provenance import digest
from silodp.sources import (
    PACKAGE,
    PAGE,
    PARTITIONED_BY,
    SUMMED_BY,
    TRAINED_BY,
    algorithm_files,
    built_on,
    from_here,
    sources_digest,
)

if TYPE_CHECKING:
    from silodp.tasks import Task

# Keys of an experiment that say how results are shown, not what is trained.
SHOWN = {"title", "paper", "reports", "trials_per_job", "device", "allow_unproven"}


def slug(label: str) -> str:
    """A reading's label as part of a file name; the default reading is `default`."""
    return label.replace("=", "-").replace(";", "+").replace("/", "") or "default"


class Plan:
    """Names and cuts of one run.

    Args:
        resolved: the checked run file.
        folder: where the run writes; default: results/<run>.
    """

    def __init__(self, resolved: Resolved, folder: str | None = None):
        self.resolved, self.run, self.experiments = resolved, resolved.run, resolved.experiments
        self.folder = folder or f"results/{resolved.run.run}"
        # Nothing but figures and pages is made in a folder that was published.
        self.published = folder is not None

    def readings(self, experiment: str) -> dict[str, str]:
        """Name in paths → label, for every reading of the experiment."""
        return {slug(label): label for label in self.experiments[experiment].variants()}

    def setting(self, experiment: str, name: str) -> Setting:
        """The setting called `name`, as in M12_R25."""
        return next(setting for setting in self.experiments[experiment].settings if setting.name == name)

    def task(self, experiment: str, algorithm: str, setting: str, reading: str) -> "Task":
        """The task behind a training job's wildcards."""
        from silodp.tasks import Task  # planning alone does not need it

        config = self.experiments[experiment]
        return Task(
            experiment, config, algorithm, self.setting(experiment, setting), self.readings(experiment)[reading]
        )

    def silos(self, experiment: str, reading: str) -> str:
        """Folder of the partition that a reading trains on: the default's, unless silos or preprocessing differ."""
        return f"{self.folder}/silos/{experiment}/{self.partitioned_as(experiment, reading)}"

    def partitioned_as(self, experiment: str, reading: str) -> str:
        """The reading whose partition `reading` trains on, as in paths."""
        config = self.experiments[experiment]
        other = config.variants()[self.readings(experiment)[reading]]
        same = (other.resample, other.standardise) == (config.readings.resample, config.readings.standardise)
        return "default" if same else reading

    def chunks(self, experiment: str) -> list[str]:
        """Trials of each training job, as in 0-4."""
        config = self.experiments[experiment]
        size = config.trials_per_job or self.run.trials_per_job
        jobs = math.ceil(config.trials / size)
        bounds = [config.trials * job // jobs for job in range(jobs + 1)]
        return [f"{first}-{last - 1}" for first, last in itertools.pairwise(bounds)]

    def device(self, experiment: str) -> str:
        """Where the experiment trains: its own device, else the run's."""
        return self.experiments[experiment].device or self.run.device

    def gpus(self, experiment: str) -> int | None:
        """GPUs that a training job asks a cluster for; None, which is no request at all, where it trains on the CPU."""
        return 1 if self.device(experiment).startswith("cuda") else None

    def _trained(self, experiment: str, suffixes: list[str]) -> list[str]:
        config = self.experiments[experiment]
        return [
            f"{self.folder}/trials/{experiment}/{algorithm}/{setting.name}/{reading}_{suffix}.parquet"
            for algorithm in config.algorithms
            for setting in config.settings
            for reading, label in self.readings(experiment).items()
            if config.trained_as(algorithm, label) == label
            for suffix in suffixes
        ]

    def grids(self, experiment: str) -> list[str]:
        """Trial files of the grid runs."""
        return self._trained(experiment, self.chunks(experiment))

    def fresh(self, experiment: str) -> list[str]:
        """Trial files of the fresh runs at chosen points; none where no report asks for them."""
        wanted = any(report.evaluation == "fresh" for report in self.experiments[experiment].reports)
        return self._trained(experiment, ["fresh"]) if wanted else []

    def tables(self) -> list[str]:
        """All tables."""
        return [f"{self.folder}/tables/{name}.csv" for name in self.experiments]

    def figure_names(self, experiment: str) -> dict[str, dict]:
        """Figure → what it shows: kind, M, R, reading."""
        from silodp.figures.slices import figure_name  # loads matplotlib, which training jobs do not need

        found = {}
        for label in self.experiments[experiment].variants():
            for setting in self.experiments[experiment].settings:
                beside = ["calibrated_vs_paper"] if label == "noise=calibrated" else []
                for kind in ("error_vs_epsilon", "delivered_vs_claimed", *beside):
                    name = figure_name(experiment, setting.M, setting.R, label, kind)
                    found[name] = {
                        "experiment": experiment,
                        "M": setting.M,
                        "R": setting.R,
                        "reading": label,
                        "kind": kind,
                    }
        return found

    def figures(self) -> list[str]:
        """All figures, in both formats."""
        return [
            f"{self.folder}/figures/{name}.{suffix}"
            for experiment in self.experiments
            for name in self.figure_names(experiment)
            for suffix in ("pdf", "png")
        ]

    def other_figures(self) -> list[str]:
        """Figures of no experiment's grid: of noise formulas, and of bounds and check-ins that the run file asks for.

        In a folder that was published: of those whose tables are there.
        """
        stems = [f"{self.folder}/figures/formulas_{paper}" for paper in ("convex", "nonconvex")]
        if self.published:
            from silodp.figures import BOUNDS_FIGURES

            tables = [
                *sorted(Path(self.folder).glob("bounds/*.csv")),
                *sorted(Path(self.folder).glob("checkins/*.csv")),
            ]
            drawn = [file for file in tables if file.parent.name == "checkins" or file.stem in BOUNDS_FIGURES]
            stems += [str(file.with_suffix("")) for file in drawn]
        files = [f"{stem}.{suffix}" for stem in stems for suffix in ("pdf", "png")]
        return files + [file for file in self.wanted() if not file.endswith(".csv")]

    def drawn_together(self) -> list[tuple[str, str, list[str]]]:
        """(experiment, kind, names) of the figures that one job draws."""
        return [
            (experiment, kind, [name for name, shows in names.items() if shows["kind"] == kind])
            for experiment, names in ((one, self.figure_names(one)) for one in self.experiments)
            for kind in sorted({shows["kind"] for shows in names.values()})
        ]

    def figure_sources(self, kind: str) -> list[str]:
        """Source files that decide how figures of a kind look."""
        names = ("axes.py", "notes.py", "slices.py", "style.py", f"{kind}.py")
        files = [*(PACKAGE / "figures" / name for name in names), PACKAGE / "report_numbers.py"]
        return [from_here(file) for file in files]

    def heterogeneity(self, experiment: str) -> list[str]:
        """Files that say how different the silos behind an experiment's figures are."""
        readings = self.readings(experiment)
        return sorted({f"{self.silos(experiment, reading)}/heterogeneity.csv" for reading in readings})

    def places(self) -> str:
        """Options of `silodp fetch` for the run's cache and mirror."""
        data = self.run.data
        named = [("--cache", data.cache), ("--mirror", data.mirror)]
        return " ".join(f"{option} {shlex.quote(value)}" for option, value in named if value)

    def listings(self) -> list[str]:
        """Files that say which data files the run was made from."""
        return sorted({file for experiment in self.experiments for file in self.data_files(experiment)})

    def data_files(self, experiment: str) -> list[str]:
        """Flag files of the data sets that must be fetched first."""
        name = self.experiments[experiment].dataset
        return [] if DATASETS[name].embedded else [f"{self.folder}/data/{name}.csv"]

    def _trained_part(self, config: Experiment) -> dict:
        return config.model_dump(mode="json", exclude=SHOWN | {"trials", "algorithms", "alternatives"})

    def partition_digest(self, experiment: str) -> str:
        """Changes when the experiment's silos would."""
        config = self.experiments[experiment]
        keys = {"dataset", "label", "silos", "preprocess", "trials", "readings"}
        return digest([self.run.seed, config.model_dump(mode="json", include=keys), sources_digest(PARTITIONED_BY)])

    def training_digest(self, experiment: str, algorithm: str) -> str:
        """Changes when what a training job computes would: config, seed, precision, or the sources behind it."""
        config = self.experiments[experiment]
        own = config.algorithms[algorithm]
        more = built_on("prescribed.py") if own.schedule or own.stages else ()
        if "calibrated" in (own.noise, *(readings.noise for readings in config.variants().values())):
            more += built_on("privacy/calibration.py")
        if any(readings.summation == "shuffled" for readings in config.variants().values()):
            more += SUMMED_BY + built_on("privacy/shuffled_plan.py")
        return digest(
            [
                self.run.seed,
                self.run.dtype,
                self.device(experiment),
                self._trained_part(config),
                config.algorithms[algorithm].model_dump(mode="json"),
                sources_digest((*TRAINED_BY, *sorted({*algorithm_files(algorithm), *more}))),
            ]
        )

    def reports_digest(self, experiment: str) -> str:
        """Changes when selection or table would."""
        config = self.experiments[experiment]
        return digest([config.model_dump(mode="json", exclude={"title", "paper"}), sources_digest(("tuning.py",))])

    def figure_digest(self, experiment: str) -> str:
        """Changes when a figure would for the same table and sources."""
        config = self.experiments[experiment]
        return digest([config.title, config.paper])

    def bounds(self) -> list[str]:
        """Tables of all checks of the papers' bounds, and their figures."""
        from silodp.figures import BOUNDS_FIGURES  # loads matplotlib, which training jobs do not need

        figures = [f"{self.folder}/bounds/{name}.{suffix}" for name in BOUNDS_FIGURES for suffix in ("pdf", "png")]
        return [f"{self.folder}/bounds/{name}.csv" for name in CHECKS] + figures

    def check_digest(self) -> str:
        """Changes when a check's table would: seed, scale, or the sources behind it."""
        sources = ("algorithms", "checks", "privacy", "prox.py", "rng.py", "statistics.py", "theory")
        return digest([self.run.seed, self.run.bounds.scale, sources_digest(sources)])

    def checkins(self) -> list[str]:
        """Tables and figures about random check-ins: Figure 2, and the comparison on every logistic problem.

        Of experiments that differ only in who holds the records the first is run, as a client is one record there.
        """
        problems: dict[str, str] = {}
        for name, one in self.experiments.items():
            if one.model.name == "logistic":
                problems.setdefault(digest([one.dataset, one.label, one.preprocess.model_dump(mode="json")]), name)
        names = ["figure_2", *problems.values()]
        return [f"{self.folder}/checkins/{name}.{suffix}" for name in names for suffix in ("csv", "pdf", "png")]

    def wanted(self) -> list[str]:
        """Tables and figures of bounds and check-ins that the run file asks for; claims and page wait for them."""
        targets = [] if self.published else self.run.targets
        return [file for target in targets for file in {"bounds": self.bounds, "checkins": self.checkins}[target]()]

    def claims_files(self) -> list[str]:
        """The claims, and the source files of their statistics."""
        files = [*(project_root() / "config" / "claims").glob("*.yaml"), *(PACKAGE / "claims").glob("*.py")]
        return sorted(from_here(file) for file in files)

    def claims_digest(self) -> str:
        """Changes when verdicts would for the same tables and claims: what is behind them, bounds and check-ins beside.

        Those that the run file does not ask for are read where they are there, and are not made.
        """
        texts = [(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in self._beside()]
        sources = sources_digest(("algorithms", "checks", "comparisons.py", "statistics.py", "theory"))
        return digest([texts, sources])

    def _beside(self) -> list[Path]:
        wanted = set(self.wanted())
        found = [file for name in ("bounds", "checkins") for file in (Path(self.folder) / name).glob("*.csv")]
        return sorted(file for file in found if str(file) not in wanted)

    def checkins_digest(self, experiment: str | None = None) -> str:
        """Changes when a table about random check-ins would; without an experiment, Figure 2's."""
        behind = ("checkins_commands.py", "privacy", "theory")
        if experiment is None:
            return sources_digest(behind)
        trained = (
            "checkin_kernel.py",
            "checkin_protocols.py",
            "checkins_table.py",
            *PARTITIONED_BY,
            "models",
            "training.py",
        )
        keys = {"dataset", "label", "silos", "preprocess", "model", "trials", "readings"}
        used = self.experiments[experiment].model_dump(mode="json", include=keys)
        return digest([self.run.seed, self.run.dtype, used, sources_digest((*trained, *behind))])

    def privacy_digest(self, experiment: str) -> str:
        """Changes when delivered ε would for the same chosen points."""
        config = self.experiments[experiment]
        plans = [self.training_digest(experiment, algorithm) for algorithm in config.algorithms]
        return digest([plans, sources_digest(("privacy", "privacy_table.py"))])

    def audit_digest(self, experiment: str) -> str:
        """Changes when the audit's bounds would."""
        config = self.experiments[experiment]
        mechanisms = [self.training_digest(experiment, algorithm) for algorithm in config.algorithms]
        sources = sources_digest(("audit.py", "audit_table.py", "canary.py", "privacy"))
        return digest([mechanisms, self.run.audit_runs, sources])

    def formulas_digest(self) -> str:
        """Changes when what the papers' formulas deliver would."""
        return digest(sources_digest(("algorithms", "formulas.py", "privacy", "theory")))

    def report_digest(self) -> str:
        """Changes when the page would for the same tables and figures."""
        return digest(
            [
                self.digest(),
                [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(PACKAGE.glob("report.*"))],
                sources_digest(PAGE),
                [hashlib.sha256(file.read_bytes()).hexdigest() for file in self._beside()],
            ]
        )

    def digest(self) -> str:
        """Changes with the resolved configuration."""
        return digest(self.resolved.dump())
