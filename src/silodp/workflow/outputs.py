"""What a run writes, by name, and how its work is cut into jobs."""

import itertools
import math
from pathlib import Path

from silodp.algorithms import ALGORITHMS, families
from silodp.config.errors import ConfigError
from silodp.config.loading import PLUGIN_COPIES, Resolved
from silodp.datasets import DATASETS
from silodp.experiments.task import Task, task_of
from silodp.experiments.variants import figure_names, partitioned_as, readings_of, trained_tasks
from silodp.verdicts.checks import CHECKS
from silodp.workflow.digests import SECRET, digest

# What `silodp partition` writes in a folder.
PARTITION_FILES = ("indices.parquet", "labels.csv", "records.npz", "heterogeneity.csv")
# Checks whose tables have a figure; `silodp.report.figures.BOUNDS_FIGURES` holds the figures, and loads matplotlib.
DRAWN_CHECKS = (
    *("upper_bounds", "lower_bounds", "rates_convex", "rates_nonconvex", "rates_checkins", "rounds_to_target"),
    *("trust_models", "shuffled_records", "hybrid_privacy"),
)


class Outputs:
    """Names and cuts of one run, which writes to `folder` (default: results/<run>).

    `published`: nothing but figures and pages is made there; default: where a folder is given.
    """

    def __init__(self, resolved: Resolved, folder: str | None = None, published: bool | None = None):
        self.resolved, self.run, self.experiments = resolved, resolved.run, resolved.experiments
        self.folder = folder or f"results/{resolved.run.run}"
        self.published = folder is not None if published is None else published
        # SVG alone is committed: it is text, and the page and every browser show it.
        self.formats: tuple[str, ...] = ("svg",) if self.published else ("pdf", "png", "svg")

    def readings(self, experiment: str) -> dict[str, str]:
        return readings_of(self.experiments[experiment])

    def task(self, experiment: str, algorithm: str, setting: str, reading: str) -> Task:
        return task_of(experiment, self.experiments[experiment], algorithm, setting, reading)

    def silos(self, experiment: str, reading: str) -> str:
        """Folder of the partition that a reading trains on: the default's, unless silos or preprocessing differ."""
        return f"{self.folder}/silos/{experiment}/{partitioned_as(self.experiments[experiment], reading)}"

    def chunks(self, experiment: str) -> list[str]:
        config = self.experiments[experiment]
        size = config.trials_per_job or self.run.trials_per_job
        jobs = math.ceil(config.trials / size)
        bounds = [config.trials * job // jobs for job in range(jobs + 1)]
        return [f"{first}-{last - 1}" for first, last in itertools.pairwise(bounds)]

    def device(self, experiment: str) -> str:
        return self.experiments[experiment].device or self.run.device

    def gpus(self, experiment: str) -> int | None:
        """GPUs that a training job asks a cluster for; None, which is no request at all, where it trains on the CPU."""
        return 1 if self.device(experiment).startswith("cuda") else None

    def _trained(self, experiment: str, suffixes: list[str]) -> list[str]:
        return [
            f"{self.folder}/trials/{experiment}/{algorithm}/{setting}/{reading}_{suffix}.parquet"
            for algorithm, setting, reading in trained_tasks(self.experiments[experiment])
            for suffix in suffixes
        ]

    def rungs(self, experiment: str) -> list[str]:
        """The rungs of an experiment's race as in names of files; none where whole grids are trained."""
        config = self.experiments[experiment]
        return [f"race{number}" for number in range(config.race.rungs)] if config.tuning == "race" else []

    def before(self, experiment: str, algorithm: str, setting: str, reading: str, rung: str) -> list[str]:
        """Trial files of the rungs before the one of number `rung`, in order."""
        start = f"{self.folder}/trials/{experiment}/{algorithm}/{setting}/{reading}"
        return [f"{start}_{earlier}.parquet" for earlier in self.rungs(experiment)[: int(rung)]]

    def grids(self, experiment: str) -> list[str]:
        """Trial files of the grid runs, or of the rungs of a race over the grid."""
        return self._trained(experiment, self.rungs(experiment) or self.chunks(experiment))

    def fresh_cuts(self, experiment: str) -> list[str]:
        """Trials of each job at chosen points; none where no report asks for fresh runs."""
        reports = self.experiments[experiment].reports
        return self.chunks(experiment) if any(report.evaluation == "fresh" for report in reports) else []

    def fresh(self, experiment: str, *cuts: str) -> list[str]:
        """Trial files of the fresh runs at chosen points, of some cuts or of all."""
        return self._trained(experiment, [f"fresh{cut}" for cut in cuts or self.fresh_cuts(experiment)])

    def partitions(self, experiment: str) -> list[str]:
        folders = sorted({self.silos(experiment, reading) for reading in self.readings(experiment)})
        return [f"{folder}/{name}" for folder in folders for name in PARTITION_FILES]

    def deliverables(self) -> list[str]:
        """Every file that the run makes, in the order of its making: what `all` asks for and `verify` looks for."""
        each = [
            file
            for name in self.experiments
            for file in (
                *self.partitions(name),
                *self.grids(name),
                *self.fresh(name),
                *(f"{self.folder}/{kind}/{name}.parquet" for kind in ("selection", "losses")),
                *self.study(name),
                *(f"{self.folder}/{kind}/{name}.csv" for kind in ("privacy", "by_round", "audit", "reported")),
            )
        ]
        whole: list[str] = ["privacy.csv", "by_round.csv", "audit.csv", *self.papers_tables(), "comparisons.csv"]
        whole += ["config.json", "provenance.json", "report.html", "ro-crate-metadata.json"]
        files = [*self.listings(), *each, *self.tables(), *self.figures(), *self.other_figures(), *self.asked_outputs()]
        files += [*(f"{self.folder}/{name}" for name in whole), *self.plugins()]
        return list(dict.fromkeys(files))

    def tables(self) -> list[str]:
        return [f"{self.folder}/tables/{name}.csv" for name in self.experiments]

    def is_own(self, experiment: str) -> bool:
        """Whether the experiment is a study of a user's own file, which shows no paper's figures."""
        return self.experiments[experiment].is_own

    def study(self, experiment: str) -> list[str]:
        """What a study of a user's own file comes to, and its figure; nothing for other experiments."""
        suffixes = ("json", *self.formats) if self.is_own(experiment) else ()
        return [f"{self.folder}/study/{experiment}.{suffix}" for suffix in suffixes]

    def papers_tables(self) -> list[str]:
        """What is said of the papers; nothing where all data are a user's own."""
        of_papers = self.published or not all(map(self.is_own, self.experiments))
        return ["formulas.csv", "claims.csv"] if of_papers else []

    def figure_names(self, experiment: str) -> dict[str, dict]:
        return {} if self.is_own(experiment) else figure_names(experiment, self.experiments[experiment])

    def figures(self) -> list[str]:
        return [
            f"{self.folder}/figures/{name}.{suffix}"
            for experiment in self.experiments
            for name in self.figure_names(experiment)
            for suffix in self.formats
        ]

    def other_figures(self) -> list[str]:
        """Figures of no experiment's grid; in a publication, of bounds and check-ins those whose tables are there."""
        stems = [stem for drawn in self.redrawn().values() for stem in drawn]
        if self.published:
            tables = self.tables_beside()
            drawn = [file for file in tables if file.parent.name == "checkins" or file.stem in DRAWN_CHECKS]
            stems += [str(file.with_suffix("")) for file in drawn]
        files = [f"{stem}.{suffix}" for stem in stems for suffix in self.formats]
        return files + [file for file in self.asked_outputs() if not file.endswith(".csv")]

    def paired(self) -> list[str]:
        """Forest plots of the headline's pairs that an experiment trains with noise, without a suffix.

        Of experiments with both noises: of the pairs under calibrated noise, and of each algorithm under both.
        """
        # Loads scipy.stats, which training jobs need not.
        from silodp.verdicts.comparisons import CALIBRATED, ENDED, HEADLINE, pairs_of

        trained: dict[str, list[set[str]]] = {"paired": [], "certified": [], "equal": []}
        for config in self.experiments.values():
            names = {name for name, own in config.algorithms.items() if own.private != "non_private"}
            words = {"certified": CALIBRATED, "equal": ENDED}
            for word in [word for word, label in words.items() if label in config.variants()] or ["paired"]:
                trained[word].append(names | set(families(names)))
        stems = [
            f"{word}_{first}-{second}"
            for word, experiments in trained.items()
            for first, second in pairs_of(sorted(ALGORITHMS.own))
            if any({first, second} <= names for names in experiments)
        ]
        each = dict.fromkeys(name for pair in HEADLINE for name in pair)
        stems += [f"noises_{name}" for name in each if any(name in names for names in trained["certified"])]
        return [f"{self.folder}/figures/{stem}" for stem in stems]

    def by_round(self) -> list[str]:
        """ε by round, without a suffix: of each experiment that trains with noise whose ε is proven."""
        drawn = []
        for name, config in self.experiments.items():
            if self.is_own(name):
                continue
            private = any(own.private != "non_private" for own in config.algorithms.values())
            if private and not config.readings.resample and config.readings.clip_rule == "grid":
                drawn.append(f"{self.folder}/figures/{name}_{config.settings[0].name}_by_round")
        return drawn

    def reported(self) -> list[str]:
        return [f"{self.folder}/reported/{name}.csv" for name in self.experiments]

    def redrawn(self) -> dict[str, list[str]]:
        """Table of the run that no experiment's grid stands behind → its figures, without a suffix."""
        formulas = [f"{self.folder}/figures/formulas_{paper}" for paper in ("convex", "nonconvex")]
        drawn = {
            "formulas": formulas if self.papers_tables() else [],
            "by_round": self.by_round(),
            "comparisons": self.paired(),
        }
        return {f"{self.folder}/{name}.csv": stems for name, stems in drawn.items() if stems}

    def listings(self) -> list[str]:
        return sorted({file for experiment in self.experiments for file in self.data_files(experiment)})

    def data_files(self, experiment: str) -> list[str]:
        """Flag files of the data sets that must be fetched first."""
        name = self.experiments[experiment].dataset
        return [f"{self.folder}/data/{name}.csv"] if isinstance(name, str) and not DATASETS[name].embedded else []

    def bounds(self) -> list[str]:
        """Tables of all checks of the papers' bounds, and their figures."""
        figures = [f"{self.folder}/bounds/{name}.{suffix}" for name in DRAWN_CHECKS for suffix in self.formats]
        return [f"{self.folder}/bounds/{name}.csv" for name in CHECKS] + figures

    def checkins(self) -> list[str]:
        """Tables and figures about random check-ins: Figure 2, and the comparison on every logistic problem.

        Of experiments that differ only in who holds the records the first is run, as a client is one record there.
        """
        problems: dict[str, str] = {}
        for name, one in self.experiments.items():
            if one.model.name == "logistic":
                problems.setdefault(digest([one.data_name, one.label, one.preprocess.model_dump(mode="json")]), name)
        names = ["figure_2", *problems.values()]
        return [f"{self.folder}/checkins/{name}.{suffix}" for name in names for suffix in ("csv", *self.formats)]

    def asked_outputs(self) -> list[str]:
        """Tables and figures of bounds and check-ins that the run file asks for; claims and page wait for them."""
        targets = [] if self.published else self.run.targets
        return [file for target in targets for file in {"bounds": self.bounds, "checkins": self.checkins}[target]()]

    def tables_beside(self) -> list[Path]:
        """Tables of bounds and check-ins that are there, whether the run file asks for them or not."""
        return sorted(file for name in ("bounds", "checkins") for file in (Path(self.folder) / name).glob("*.csv"))

    def plugins(self) -> list[str]:
        """Copies of the run's plug-ins, so that its folder can be read without them."""
        return [f"{self.folder}/{PLUGIN_COPIES}/{file.name}" for file in self.resolved.plugins]


def own_data_files(outputs: Outputs) -> list[str]:
    """Your data files, and the secret of their digests, seen from this folder, for jobs that share no disk with it.

    ConfigError for files elsewhere.
    """
    datasets = [config.dataset for config in outputs.experiments.values()]
    files = dict.fromkeys(Path(dataset.file).resolve() for dataset in datasets if not isinstance(dataset, str))
    here = Path.cwd()
    for file in files:
        if not file.is_relative_to(here):
            raise ConfigError(f"{file}: must lie below {here}, as jobs that share no disk get it with the workflow")
    return [str(file.relative_to(here)) for file in files] + ([str(SECRET)] if files else [])
