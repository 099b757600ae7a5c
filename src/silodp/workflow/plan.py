"""What the workflow needs to know before it runs: names of files, cuts into jobs, digests that say when to redo one.

The Snakefile asks a `Plan` and computes nothing itself.
"""

import hashlib
import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING

from silodp.algorithms import families, traits
from silodp.config.errors import project_root
from silodp.config.experiment import Experiment
from silodp.config.loading import PLUGIN_COPIES, Resolved
from silodp.config.own import OwnData
from silodp.datasets import DATASETS
from silodp.datasets.sources import sources
from silodp.experiments.names import figure_names, model_names, partitioned_as, readings_of, trained_as
from silodp.verdicts.checks import CHECKS
from silodp.workflow.closure import ROOT
from silodp.workflow.digests import Asked, checksum, computed_by, digest, from_here, keys_of, put_aside

if TYPE_CHECKING:
    from silodp.experiments.task import Task

# What `silodp partition` writes in a folder.
PARTITION_FILES = ("indices.parquet", "labels.csv", "records.npz", "heterogeneity.csv")
# Which variants apply to whom, as algorithms say: in digests by value.
APPLIES = ["silodp.experiments.names:trained_as"]

# Keys of an experiment that say how results are shown, not what is trained.
SHOWN = {"title", "paper", "reports", "trials_per_job", "device", "allow_unproven"}

# Read off the source: importing it loads matplotlib, which planning alone does not need.
BOUNDS_FIGURES = "silodp.report.figures:BOUNDS_FIGURES"
# The run file as it was checked: what a job takes from it is in its digest by value.
LOADED = ["silodp.experiments.validation:load"]
# The claims as they were checked: their files are inputs.
CLAIMS = ["silodp.verdicts.claims.loading:load_claims"]


class Plan:
    """Names and cuts of one run.

    Args:
        resolved: the checked run file.
        folder: where the run writes; default: results/<run>.
        published: whether nothing but figures and pages is made there; default: where a folder is given.
    """

    def __init__(self, resolved: Resolved, folder: str | None = None, published: bool | None = None):
        self.resolved, self.run, self.experiments = resolved, resolved.run, resolved.experiments
        self.folder = folder or f"results/{resolved.run.run}"
        self.published = folder is not None if published is None else published
        # SVG alone is committed: it is text, and the page and every browser show it.
        self.formats: tuple[str, ...] = ("svg",) if self.published else ("pdf", "png", "svg")

    def readings(self, experiment: str) -> dict[str, str]:
        """Name in paths → label, for every reading of the experiment."""
        return readings_of(self.experiments[experiment])

    def task(self, experiment: str, algorithm: str, setting: str, reading: str) -> "Task":
        """The task behind a training job's wildcards."""
        from silodp.experiments.task import task_of  # loads PyTorch, which planning alone does not need

        return task_of(experiment, self.experiments[experiment], algorithm, setting, reading)

    def silos(self, experiment: str, reading: str) -> str:
        """Folder of the partition that a reading trains on: the default's, unless silos or preprocessing differ."""
        return f"{self.folder}/silos/{experiment}/{self.partitioned_as(experiment, reading)}"

    def partitioned_as(self, experiment: str, reading: str) -> str:
        """The reading whose partition `reading` trains on, as in paths."""
        return partitioned_as(self.experiments[experiment], reading)

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
            if trained_as(config, algorithm, label) == label
            for suffix in suffixes
        ]

    def grids(self, experiment: str) -> list[str]:
        """Trial files of the grid runs."""
        return self._trained(experiment, self.chunks(experiment))

    def fresh(self, experiment: str) -> list[str]:
        """Trial files of the fresh runs at chosen points; none where no report asks for them."""
        wanted = any(report.evaluation == "fresh" for report in self.experiments[experiment].reports)
        return self._trained(experiment, ["fresh"]) if wanted else []

    def partitions(self, experiment: str) -> list[str]:
        """Files of the silos that an experiment's readings train on."""
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
                f"{self.folder}/selection/{name}.parquet",
                *(f"{self.folder}/{kind}/{name}.csv" for kind in ("privacy", "by_round", "audit", "reported")),
                *self.models(name),
            )
        ]
        whole: list[str] = ["privacy.csv", "by_round.csv", "audit.csv", "formulas.csv", "claims.csv", "comparisons.csv"]
        whole += ["config.json", "provenance.json", "source/Snakefile", "report.html", "ro-crate-metadata.json"]
        files = [*self.listings(), *each, *self.tables(), *self.figures(), *self.other_figures(), *self.wanted()]
        files += [*(f"{self.folder}/{name}" for name in whole), *self.plugins()]
        return list(dict.fromkeys(files))

    def models(self, experiment: str) -> list[str]:
        """Saved models of an experiment and their cards; none where its data are not one's own."""
        names = [] if self.published else model_names(self.experiments[experiment])
        return [f"{self.folder}/models/{experiment}/{name}.{suffix}" for name in names for suffix in ("npz", "md")]

    def tables(self) -> list[str]:
        """All tables."""
        return [f"{self.folder}/tables/{name}.csv" for name in self.experiments]

    def figure_names(self, experiment: str) -> dict[str, dict]:
        """Figure → what it shows: kind, M, R, reading."""
        return figure_names(experiment, self.experiments[experiment])

    def figures(self) -> list[str]:
        """All figures, in all formats."""
        return [
            f"{self.folder}/figures/{name}.{suffix}"
            for experiment in self.experiments
            for name in self.figure_names(experiment)
            for suffix in self.formats
        ]

    def other_figures(self) -> list[str]:
        """Figures of no experiment's grid: of formulas, of paired comparisons, of bounds and check-ins if asked for.

        In a folder that was published: of those whose tables are there.
        """
        stems = [f"{self.folder}/figures/formulas_{paper}" for paper in ("convex", "nonconvex")]
        stems += self.paired() + self.by_round()
        if self.published:
            tables = [
                *sorted(Path(self.folder).glob("bounds/*.csv")),
                *sorted(Path(self.folder).glob("checkins/*.csv")),
            ]
            drawn = [file for file in tables if file.parent.name == "checkins" or file.stem in keys_of(BOUNDS_FIGURES)]
            stems += [str(file.with_suffix("")) for file in drawn]
        files = [f"{stem}.{suffix}" for stem in stems for suffix in self.formats]
        return files + [file for file in self.wanted() if not file.endswith(".csv")]

    def paired(self) -> list[str]:
        """Forest plots, without a suffix: of the headline's pairs that an experiment trains with noise."""
        from silodp.verdicts.comparisons import HEADLINE  # loads scipy.stats, which training jobs do not need

        trained = []
        for config in self.experiments.values():
            names = {name for name, own in config.algorithms.items() if own.private != "non_private"}
            trained.append(names | set(families(names)))
        return [
            f"{self.folder}/figures/paired_{first}-{second}"
            for first, second in HEADLINE
            if any({first, second} <= names for names in trained)
        ]

    def by_round(self) -> list[str]:
        """ε by round, without a suffix: of each experiment that trains with noise whose ε is proven."""
        drawn = []
        for name, config in self.experiments.items():
            private = any(own.private != "non_private" for own in config.algorithms.values())
            if private and not config.readings.resample and config.readings.clip_rule == "grid":
                drawn.append(f"{self.folder}/figures/{name}_{config.settings[0].name}_by_round")
        return drawn

    def reported(self) -> list[str]:
        """One row a trial behind the default rows, of every experiment."""
        return [f"{self.folder}/reported/{name}.csv" for name in self.experiments]

    def comparisons_digest(self) -> str:
        """Changes when the table of paired comparisons would for the same trials and claims."""
        return computed_by("silodp.cli.report:comparisons", Asked(aside=CLAIMS))

    def drawn_together(self) -> list[tuple[str, str, list[str]]]:
        """(experiment, kind, names) of the figures that one job draws."""
        return [
            (experiment, kind, [name for name, shows in names.items() if shows["kind"] == kind])
            for experiment, names in ((one, self.figure_names(one)) for one in self.experiments)
            for kind in sorted({shows["kind"] for shows in names.values()})
        ]

    def figure_sources(self, kind: str) -> list[str]:
        """Files that decide how figures of a kind look, where there is no record of what they were drawn by.

        That is in a folder that was published: a clone has its figures, but not Snakemake's notes on them.
        """
        names = ("axes.py", "notes.py", "slices.py", "style.py", "svg.py", f"{kind}.py")
        files = [*(ROOT / "report" / "figures" / name for name in names), ROOT / "report" / "numbers.py"]
        return [from_here(file) for file in files] if self.published else []

    def heterogeneity(self, experiment: str) -> list[str]:
        """Files that say how different the silos behind an experiment's figures are."""
        readings = self.readings(experiment)
        return sorted({f"{self.silos(experiment, reading)}/heterogeneity.csv" for reading in readings})

    def listings(self) -> list[str]:
        """Files that say which data files the run was made from."""
        return sorted({file for experiment in self.experiments for file in self.data_files(experiment)})

    def data_files(self, experiment: str) -> list[str]:
        """Flag files of the data sets that must be fetched first."""
        name = self.experiments[experiment].dataset
        return [f"{self.folder}/data/{name}.csv"] if isinstance(name, str) and not DATASETS[name].embedded else []

    def _trained_part(self, config: Experiment) -> dict:
        return config.model_dump(mode="json", exclude=SHOWN | {"trials", "algorithms", "alternatives"})

    def from_data(self, experiment: str) -> Asked:
        """What a job asks for that reads the experiment's data set: that one alone, and its files as checked."""
        name = self.experiments[experiment].dataset
        if not isinstance(name, str):
            return Asked({"silodp.datasets": []}, [*LOADED])
        fetched = [] if DATASETS[name].embedded else ["silodp.datasets.cache:local_files"]
        return Asked({"silodp.datasets": [name]}, [*LOADED, "silodp.federation.data_of:_own_dataset", *fetched])

    def data_digest(self, dataset: str | OwnData) -> str:
        """Changes when a data set's files would; of a file of one's own with its content."""
        if not isinstance(dataset, str):
            return digest([checksum(Path(dataset.file))])
        return digest([] if DATASETS[dataset].embedded else [[one.file, one.digest] for one in sources(dataset).files])

    def partition_digest(self, experiment: str) -> str:
        """Changes when the experiment's silos would."""
        config = self.experiments[experiment]
        keys = {"dataset", "label", "silos", "preprocess", "trials", "readings"}
        used = [self.run.seed, config.model_dump(mode="json", include=keys), self.data_digest(config.dataset)]
        return digest([*used, computed_by("silodp.cli.data:partition", self.from_data(experiment))])

    def training_digest(self, experiment: str, algorithm: str) -> str:
        """Changes when what a training job computes would: config, seed, precision, or the sources behind it."""
        config = self.experiments[experiment]
        asked = self.from_data(experiment)
        asked.chosen |= {"silodp.algorithms": [algorithm], "silodp.federation.models:MODELS": [config.model.name]}
        asked.aside += ["silodp.experiments.guard:unproven_task"]
        put_aside(asked, config, [algorithm])
        return digest(
            [
                self.run.seed,
                self.run.dtype,
                self.device(experiment),
                self._trained_part(config),
                config.algorithms[algorithm].model_dump(mode="json"),
                self.data_digest(config.dataset),
                computed_by("silodp.cli.train:train", asked),
            ]
        )

    def selection_digest(self, experiment: str) -> str:
        """Changes when the chosen points would."""
        asked = Asked(aside=[*LOADED, *APPLIES])
        return digest([self._reported_part(experiment), computed_by("silodp.cli.train:select", asked)])

    def table_digest(self, experiment: str) -> str:
        """Changes when the table would for the same trials, chosen points and delivered ε."""
        asked = Asked(aside=[*LOADED, *APPLIES, "silodp.algorithms:families"])
        reported = [self._reported_part(experiment), families(self.experiments[experiment].algorithms)]
        return digest([reported, computed_by("silodp.cli.tables:table", asked)])

    def _reported_part(self, experiment: str) -> list:
        config = self.experiments[experiment]
        applies = [[trained_as(config, name, label) for label in config.variants()] for name in config.algorithms]
        return [config.model_dump(mode="json", exclude={"title", "paper"}), applies]

    def figure_digest(self, experiment: str, kind: str) -> str:
        """Changes when a figure would for the same table."""
        config = self.experiments[experiment]
        asked = Asked({"silodp.report.figures:FIGURES": [kind]}, [*LOADED, "silodp.algorithms:traits"])
        names = [traits(name) for name in config.algorithms]
        return digest([config.title, config.paper, names, computed_by("silodp.cli.figures:figure", asked)])

    def redraw_digest(self) -> str:
        """Changes when figures of noise formulas, bounds and check-ins would for the same tables."""
        return computed_by("silodp.cli.figures:redraw")

    def bounds(self) -> list[str]:
        """Tables of all checks of the papers' bounds, and their figures."""
        figures = [
            f"{self.folder}/bounds/{name}.{suffix}" for name in keys_of(BOUNDS_FIGURES) for suffix in self.formats
        ]
        return [f"{self.folder}/bounds/{name}.csv" for name in CHECKS] + figures

    def check_digest(self, check: str) -> str:
        """Changes when a check's table would: seed, scale, or the sources behind it."""
        asked = Asked({"silodp.verdicts.checks": [check]}, LOADED)
        return digest([self.run.seed, self.run.bounds.scale, computed_by("silodp.cli.bounds:check", asked)])

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

    def wanted(self) -> list[str]:
        """Tables and figures of bounds and check-ins that the run file asks for; claims and page wait for them."""
        targets = [] if self.published else self.run.targets
        return [file for target in targets for file in {"bounds": self.bounds, "checkins": self.checkins}[target]()]

    def claims_files(self) -> list[str]:
        """The claims; in a folder that was published also the sources of their statistics (see `figure_sources`)."""
        files = [*(project_root() / "config" / "claims").glob("*.yaml")]
        files += [*(ROOT / "verdicts" / "claims").glob("*.py")] if self.published else []
        return sorted(from_here(file) for file in files)

    def claims_digest(self) -> str:
        """Changes when verdicts would for the same tables and claims: what is behind them, bounds and check-ins beside.

        Those that the run file does not ask for are read where they are there, and are not made.
        """
        texts = [(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in self._beside()]
        return digest([texts, computed_by("silodp.cli.claims:claims", Asked(aside=[*LOADED, *CLAIMS]))])

    def _beside(self) -> list[Path]:
        wanted = set(self.wanted())
        found = [file for name in ("bounds", "checkins") for file in (Path(self.folder) / name).glob("*.csv")]
        return sorted(file for file in found if str(file) not in wanted)

    def checkins_digest(self, experiment: str | None = None) -> str:
        """Changes when a table about random check-ins would; without an experiment, Figure 2's."""
        if experiment is None:
            return computed_by("silodp.cli.checkins:figure_2")
        config = self.experiments[experiment]
        asked = self.from_data(experiment)
        asked.chosen["silodp.federation.models:MODELS"] = [config.model.name]
        keys = {"dataset", "label", "silos", "preprocess", "model", "trials", "readings"}
        used = [config.model_dump(mode="json", include=keys), self.data_digest(config.dataset)]
        return digest([self.run.seed, self.run.dtype, *used, computed_by("silodp.cli.checkins:checkins", asked)])

    def _planned_by(self, experiment: str, entry: str) -> list:
        """What decides the plans of all of an experiment's algorithms, and what a job does with them."""
        config = self.experiments[experiment]
        asked = Asked({"silodp.algorithms": list(config.algorithms)}, [*LOADED])
        put_aside(asked, config, config.algorithms)
        keys = {"algorithms", "alternatives"}
        used = [self._trained_part(config), config.model_dump(mode="json", include=keys)]
        return [*used, computed_by(entry, asked)]

    def privacy_digest(self, experiment: str) -> str:
        """Changes when delivered ε would for the same chosen points."""
        return digest(self._planned_by(experiment, "silodp.cli.tables:privacy"))

    def audit_digest(self, experiment: str) -> str:
        """Changes when the audit's bounds would."""
        planned = self._planned_by(experiment, "silodp.cli.audit:audit")
        return digest([self.run.seed, self.run.dtype, self.run.audit_runs, planned])

    def formulas_digest(self) -> str:
        """Changes when what the papers' formulas deliver would."""
        return computed_by("silodp.cli.tables:formulas")

    def merge_digest(self, command: str) -> str:
        """Changes when the table that `silodp <command>` puts together would for the same parts."""
        return computed_by(f"silodp.cli.tables:{command.replace('-', '_')}")

    def report_digest(self) -> str:
        """Changes when the page would for the same tables and figures."""
        texts = [hashlib.sha256(file.read_bytes()).hexdigest() for file in self._beside()]
        return digest([self.digest(), texts, computed_by("silodp.cli.report:report", Asked(aside=CLAIMS))])

    def crate_digest(self) -> str:
        """Changes when the description of the same results as an RO-Crate would."""
        return computed_by("silodp.cli.report:crate")

    def plugins(self) -> list[str]:
        """Copies of the run's plug-ins, so that its folder can be read without them."""
        return [f"{self.folder}/{PLUGIN_COPIES}/{file.name}" for file in self.resolved.plugins]

    def digest(self) -> str:
        """Changes with the resolved configuration, and with any word of a plug-in."""
        texts = [hashlib.sha256(file.read_bytes()).hexdigest() for file in self.resolved.plugins]
        return digest([self.resolved.dump(), texts] if texts else self.resolved.dump())
