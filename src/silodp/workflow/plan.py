"""What the workflow needs to know before it runs: names of files, cuts into jobs, digests that say when to redo one.

The Snakefile asks a `Plan` and computes nothing itself.
"""

import hashlib
from pathlib import Path

from silodp.algorithms import families, traits
from silodp.config.experiment import Experiment
from silodp.config.loading import known_titles
from silodp.config.own import OwnData
from silodp.datasets import DATASETS
from silodp.datasets.sources import sources
from silodp.experiments.names import trained_as
from silodp.workflow.closure import ROOT
from silodp.workflow.digests import Asked, checksum, computed_by, digest, from_here, put_aside
from silodp.workflow.outputs import Outputs

# Which variants apply to whom, as algorithms say: in digests by value.
APPLIES = ["silodp.experiments.names:trained_as"]

# Keys of an experiment that say how results are shown, not what is trained.
SHOWN = {"title", "paper", "reports", "trials_per_job", "device", "allow_unproven"}

# Keys that say which points are trained in which trial; a trained point is the same whatever they are.
TUNED = {"tuning", "race"}

# The run file as it was checked: what a job takes from it is in its digest by value.
LOADED = ["silodp.experiments.validation:load"]
# The claims as they were checked: their files are inputs.
CLAIMS = ["silodp.verdicts.claims.loading:load_claims"]


class Plan(Outputs):
    """Names, cuts and digests of one run; its arguments are those of `Outputs`."""

    def comparisons_digest(self) -> str:
        """Changes when the table of paired comparisons would for the same trials and claims."""
        return computed_by("silodp.cli.report:comparisons", Asked(aside=CLAIMS))

    def figure_sources(self, kind: str) -> list[str]:
        """Files that decide how figures of a kind look, where there is no record of what they were drawn by.

        That is in a folder that was published: a clone has its figures, but not Snakemake's notes on them.
        """
        names = ("axes.py", "notes.py", "slices.py", "style.py", "svg.py", "words.py", f"{kind}.py")
        files = [*(ROOT / "report" / "figures" / name for name in names), ROOT / "report" / "numbers.py"]
        return [from_here(file) for file in files] if self.published else []

    def heterogeneity(self, experiment: str) -> list[str]:
        """Files that say how different the silos behind an experiment's figures are."""
        readings = self.readings(experiment)
        return sorted({f"{self.silos(experiment, reading)}/heterogeneity.csv" for reading in readings})

    def _trained_part(self, config: Experiment) -> dict:
        return config.model_dump(mode="json", exclude=SHOWN | TUNED | {"trials", "algorithms", "alternatives"})

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

    def race_digest(self, experiment: str, algorithm: str) -> str:
        """Changes when a rung of a race would train other points, or the same ones otherwise."""
        race = self.experiments[experiment].race.model_dump(mode="json")
        own = computed_by("silodp.experiments.race:points")
        return digest([race, own, self.training_digest(experiment, algorithm)])

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
        """Changes when figures of noise formulas, bounds, comparisons and check-ins would for the same tables."""
        return digest([dict(known_titles()), computed_by("silodp.cli.figures:redraw")])

    def check_digest(self, check: str) -> str:
        """Changes when a check's table would: seed, scale, or the sources behind it."""
        asked = Asked({"silodp.verdicts.checks": [check]}, LOADED)
        return digest([self.run.seed, self.run.bounds.scale, computed_by("silodp.cli.bounds:check", asked)])

    def claims_digest(self) -> str:
        """Changes when verdicts would for the same tables and claims: what is behind them, bounds and check-ins beside.

        Those that the run file does not ask for are read where they are there, and are not made.
        """
        texts = [(file.name, hashlib.sha256(file.read_bytes()).hexdigest()) for file in self._beside()]
        return digest([texts, computed_by("silodp.cli.claims:claims", Asked(aside=[*LOADED, *CLAIMS]))])

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
        places = {name: traits(name) for config in self.experiments.values() for name in config.algorithms}
        return digest([self.digest(), texts, places, computed_by("silodp.cli.report:report", Asked(aside=CLAIMS))])

    def crate_digest(self) -> str:
        """Changes when the description of the same results as an RO-Crate would."""
        return computed_by("silodp.cli.report:crate")

    def digest(self) -> str:
        """Changes with the resolved configuration, and with any word of a plug-in."""
        texts = [hashlib.sha256(file.read_bytes()).hexdigest() for file in self.resolved.plugins]
        return digest([self.resolved.dump(), texts] if texts else self.resolved.dump())
