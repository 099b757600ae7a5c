"""The digest of every job of a run: it changes when the job would compute something else (docs/running.md).

The Snakefile asks a `Plan` and computes nothing itself; a job asks the same plan, and refuses where it differs.
A rebuild freezes its plan, so that what runs is what was planned.
"""

import functools
import inspect
import json
import os
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from silodp import files
from silodp.algorithms import families, traits
from silodp.config.errors import ConfigError, project_root
from silodp.config.experiment import Experiment
from silodp.config.loading import PLUGIN_COPIES, known_experiments
from silodp.config.types import OwnData
from silodp.datasets import DATASETS
from silodp.datasets.sources import sources
from silodp.experiments.made_for import DATA, trained_part
from silodp.experiments.validation import load
from silodp.experiments.variants import trained_as
from silodp.extending import plugins
from silodp.models.registry import MODULES
from silodp.workflow.closure import ROOT, CodeSources
from silodp.workflow.digests import checksum, digest, keyed_checksum, package_checksum
from silodp.workflow.outputs import OUTPUTS, Outputs
from silodp.workflow.written import note_written

# Modules whose results are in a digest by value, or that only refuse a run.
BY_VALUE = (
    "silodp.experiments.validation",
    "silodp.experiments.true_epsilon_guard",
    "silodp.datasets.cache",
    "silodp.datasets.fetch",
)
# Read a user's own file, and some registered ones.
OWN_FILE = [f"silodp.datasets.own.{name}" for name in ("encoding", "parsing", "schema")]
# Of each job those whose results it reads; `_read_from` has what hangs on a run's or a rule's own words.
OF_EXPERIMENT = {
    "train": ["partition"],
    "race": ["partition"],
    "evaluate": ["select"],
    "privacy": ["select"],
    "table": ["evaluate", "privacy"],
    "study": ["table"],
    "figure": ["table"],
}
_FIGURES_AND_TABLES = ("table", "merge", "comparisons", "formulas", "figure", "redraw", "leaderboard")
OF_RUN = {
    "merge": ["privacy"],
    "comparisons": ["table", "merge"],
    "leaderboard": ["table"],
    "claims": _FIGURES_AND_TABLES,
    "provenance": (*_FIGURES_AND_TABLES, "claims"),
    "report": (*_FIGURES_AND_TABLES, "claims", "provenance", "study"),
    "crate": (*_FIGURES_AND_TABLES, "claims", "provenance", "study", "report"),
}
# Job → what `OUTPUTS` calls it where that differs.
_LISTED = {"figure": "figures"}
# What a publication makes; the rest is kept there, and what it was made of is not.
REMADE = {output.job for output in OUTPUTS if output.fate == "remade"}


class RunPlan(Outputs):
    """Names, cuts and digests of one run; its arguments are those of `Outputs`."""

    @functools.cached_property
    def sources(self) -> CodeSources:
        return CodeSources(self.plugin_roots())

    def plugin_roots(self) -> dict[str, Path]:
        """The first word of the names of a plug-in's modules → its file or folder."""
        return {entry.place.split(":")[0].split(".")[0]: entry.root for entry in plugins.in_use()}

    def digest_of(self, job: str, **options: Any) -> str:
        """The digest of a job, named as its function; options that the digest does not use are ignored."""
        known: dict[tuple[str, str], str] = {}

        def digest_once(job: str, options: dict) -> str:
            key = (job, str(options))
            if key not in known:
                read = [digest_once(*one) for one in self._read_from(job, **options)]
                known[key] = digest([self.own_digest(job, **options), *read])
            return known[key]

        return digest_once(job, options)

    def own_digest(self, job: str, **options: Any) -> str:
        """The digest of a job's own values, files and code."""
        parts = getattr(self, f"_{job}", lambda: [self._code(job)])
        return digest(parts(**{name: options[name] for name in inspect.signature(parts).parameters}))

    def _read_from(
        self, job: str, experiment: str = "", tables: Iterable[Path | str] = (), **_: Any
    ) -> Iterator[tuple[str, dict]]:
        """The jobs whose results a job reads, with their options: files may be older than what they were made from.

        In a publication those that are made there. Without `tables` a redraw reads those of the run.
        """
        read: list[tuple[str, dict[str, Any]]]
        if job == "select":
            kind, config = "race" if self.rungs(experiment) else "train", self.experiments[experiment]
            read = [(kind, {"experiment": experiment, "algorithm": algorithm}) for algorithm in config.algorithms]
        elif job == "redraw":
            read = [self._job_of(Path(table)) for table in tables or self.redrawn()]
        elif job in OF_RUN:
            names = self.board() if job == "leaderboard" else self.experiments
            options = [(one, {"experiment": name}) for one in OF_RUN[job] if one in OF_EXPERIMENT for name in names]
            options += [(one, {}) for one in OF_RUN[job] if one not in OF_EXPERIMENT]
            read = [(one, words) for one, words in options if self.files(_LISTED.get(one, one), *words.values())]
            if "redraw" in OF_RUN[job]:
                asked = [file for file in self.asked_outputs() if file.endswith(".csv")]
                read += [("redraw", {"tables": [file]}) for file in asked]
        else:
            read = [(one, {"experiment": experiment}) for one in OF_EXPERIMENT.get(job, ())]
        yield from (one for one in read if not self.published or _LISTED.get(one[0], one[0]) in REMADE)

    def _job_of(self, table: Path) -> tuple[str, dict]:
        """The job that writes a table with figures, and its options."""
        kind, name = table.relative_to(self.folder).parent.name, table.stem
        if kind == "bounds":
            return "check", {"name": name}
        if kind == "checkins" and name != "figure_2":
            return "checkins", {"experiment": name}
        return {"by_round": "merge", "figure_2": "checkins_figure_2"}.get(name, name), {}

    def _code(self, job: str, *entries: str, excluded: Iterable[str] = (), data: Collection[str] = ()) -> str:
        """Code of a job on modules of data sets, without the reader of own files where no data set needs it.

        Jobs that read no data need it where one of the run's does.
        """
        known = data or [module for config in self.experiments.values() for module in self._data(config)]
        unused = set(OWN_FILE) - self.sources.closure(known)
        return self.sources.digest([f"silodp.jobs.{job}", *entries, *data], (*BY_VALUE, *excluded, *unused))

    def _entries(self, package: str, names: Iterable[str]) -> list[str]:
        brought = {entry.name: entry.place.split(":")[0] for entry in plugins.in_use() if entry.registry == package}
        return [brought.get(name, f"{package}.{name}") for name in sorted(names)]

    def _data(self, config: Experiment) -> list[str]:
        return OWN_FILE if config.is_own else self._entries("silodp.datasets", [str(config.dataset)])

    def _training_code(self, job: str, config: Experiment, algorithms: Collection[str], device: str = "cpu") -> str:
        """Code of a job on algorithms, without what none of them reaches in any variant of the experiment."""
        options, variants = [config.algorithms[name] for name in algorithms], config.variants().values()
        # What decides which points are trained, and whose files a job takes, decides no training.
        excluded = ["silodp.experiments.made_for"] + ["silodp.experiments.race"] * (job != "race")
        if device == "cpu":
            excluded += ["silodp.models.gpu.convnet_tensors", "silodp.models.gpu.triton_steps"]
        noises = {*(one.noise for one in options), *(one.noise for one in variants)}
        if noises.isdisjoint({"calibrated", "favourable"}):
            excluded += ["silodp.privacy.calibration"]
        if "shuffled" not in [one.summation for one in variants]:
            excluded += ["silodp.privacy.shuffling.shuffled_plan", "silodp.federation.shuffled_sum"]
        if not any(one.schedule for one in options):
            excluded += ["silodp.experiments.prescribed_points", "silodp.theory.convex.schedules"]
        entries = [*self._entries("silodp.algorithms", algorithms), MODULES[config.model.name]]
        return self._code(job, *entries, excluded=excluded, data=self._data(config))

    def _reported_part(self, experiment: str) -> list:
        config = self.experiments[experiment]
        applies = [[trained_as(config, name, label) for label in config.variants()] for name in config.algorithms]
        return [config.model_dump(mode="json", exclude={"title", "short", "paper", "board", "vary"}), applies]

    def data_digest(self, dataset: str | OwnData) -> str:
        """Changes when a data set's files would; of your own file with its content."""
        if not isinstance(dataset, str):
            return digest([keyed_checksum(Path(dataset.file))])
        files = [] if DATASETS[dataset].embedded else sources(dataset).files
        return digest([[source.file, source.digest] for source in files])

    def _fetch(self, names: Sequence[str]) -> list:
        return [self.data_digest(name) for name in names]

    def _partition(self, experiment: str) -> list:
        config = self.experiments[experiment]
        used = [self.run.seed, config.model_dump(mode="json", include=DATA), self.data_digest(config.dataset)]
        # Of the table of downloads the data's digest holds what is used.
        code = self._code("partition", excluded=["silodp.datasets.sources"], data=self._data(config))
        return [*used, code]

    def _train(self, experiment: str, algorithm: str) -> list:
        config = self.experiments[experiment]
        return [
            *(self.run.seed, self.run.dtype, self.device(experiment)),
            trained_part(config),
            config.algorithms[algorithm].model_dump(mode="json"),
            self.data_digest(config.dataset),
            self._training_code("train", config, [algorithm], self.device(experiment)),
        ]

    def _trained(self, experiment: str) -> list:
        return [self._train(experiment, algorithm) for algorithm in self.experiments[experiment].algorithms]

    def _evaluate(self, experiment: str) -> list:
        config = self.experiments[experiment]
        code = self._training_code("evaluate", config, config.algorithms, self.device(experiment))
        return [self._trained(experiment), code]

    def _race(self, experiment: str, algorithm: str) -> list:
        config = self.experiments[experiment]
        code = self._training_code("race", config, [algorithm], self.device(experiment))
        return [config.race.model_dump(mode="json"), self._train(experiment, algorithm), code]

    def _select(self, experiment: str) -> list:
        return [self._reported_part(experiment), self._code("select")]

    def _privacy(self, experiment: str) -> list:
        """What decides the plans of all algorithms, and what the accountant and the audit do with the plans."""
        config = self.experiments[experiment]
        return [
            *(self.run.seed, self.run.dtype),
            trained_part(config),
            config.model_dump(mode="json", include={"algorithms", "alternatives"}),
            self._training_code("privacy", config, config.algorithms),
        ]

    def _table(self, experiment: str) -> list:
        config = self.experiments[experiment]
        return [self._reported_part(experiment), families(config.algorithms), self._code("table")]

    def _study(self, experiment: str) -> list:
        return [self._reported_part(experiment), self._trained(experiment), self._code("study")]

    def _figure(self, experiment: str) -> list:
        config = self.experiments[experiment]
        names = [traits(name) for name in config.algorithms]
        return [config.title, config.short, config.paper, names, self._code("figure")]

    def _redraw(self) -> list:
        return [self._known("title", "short", "board", "dataset"), self._decided_text(), self._code("redraw")]

    def _leaderboard(self) -> list:
        return [self._known("title", "short", "board", "vary", "silos"), self._code("leaderboard")]

    def _comparisons(self) -> list:
        return [self._known("dataset"), self._claims_text(), self._code("comparisons")]

    def _check(self, name: str) -> list:
        code = self._code("check", *self._entries("silodp.verdicts.checks", [name]))
        return [self.run.seed, self.run.bounds.scale, code]

    def _checkins(self, experiment: str) -> list:
        config = self.experiments[experiment]
        keys = {*DATA, "model"}
        used = [config.model_dump(mode="json", include=keys), self.data_digest(config.dataset)]
        code = self._code("checkins", MODULES[config.model.name], data=self._data(config))
        return [self.run.seed, self.run.dtype, self.device(experiment), *used, code]

    def _claims(self) -> list:
        """Bounds and check-ins that the run file does not ask for are read where they are there, and are not made."""
        known = self._known("dataset", "settings", "epsilons")
        return [known, self._claims_text(), self._beside_text(), self._decided_text(), self._code("claims")]

    def _report(self) -> list:
        places = {name: traits(name) for config in self.experiments.values() for name in config.algorithms}
        return [
            *(self._resolved(), self._claims_text(), self._beside_text(), self._decided_text(), places),
            self._known("title", "short", "board", "dataset"),
            self._code("report"),
        ]

    def _provenance(self) -> list:
        return [self._resolved(), self._code("provenance")]

    def _resolved(self) -> list:
        """The resolved configuration, and any word of a plug-in."""
        return [self.resolved.dump(), [checksum(file) for file in self.resolved.plugins]]

    def _claims_text(self) -> list:
        return [[file.name, checksum(file)] for file in sorted((project_root() / "config" / "claims").glob("*.yaml"))]

    def _decided_text(self) -> list:
        """The cells and claims that fresh trials decide, where they are there."""
        decided = (Path(self.folder) / name for name in ("decided.csv", "decided_verdicts.csv"))
        return [[file.name, checksum(file)] for file in decided if file.is_file()]

    def _known(self, *keys: str) -> dict:
        """What config/experiments says of each experiment, of the run or not: figures and verdicts read it there."""
        return {name: {key: about.get(key) for key in keys} for name, about in known_experiments().items()}

    def _beside_text(self) -> list:
        wanted = set(self.asked_outputs())
        return [[file.name, checksum(file)] for file in self.tables_beside() if str(file) not in wanted]


_FOLDER = Path(".snakemake") / "silodp"
_SOURCES = "sources.json"


def frozen_file(plan: RunPlan) -> Path:
    """Where a plan is frozen: a rule's parameter, which no path of the run file may change."""
    return _FOLDER / plan.run.run / _file_name(plan.published)


def _file_name(published: bool) -> str:
    return "published.json" if published else "run.json"


def _link(run_file: Path | str) -> Path:
    """The folder of a run file's frozen plan, by the file's path; a name without any character of the run file's."""
    return _FOLDER / f".{zlib.crc32(os.fspath(run_file).encode()):08x}"


def make_plan(run_file: Path | str, folder: str | None, frozen: bool) -> RunPlan:
    """The plan of a run file, the one that the rebuild froze if `frozen`; ConfigError where the run file is wrong."""
    place = _link(run_file) / _file_name(folder is not None)
    frozen = frozen and place.is_file()
    plan = RunPlan(load(place if frozen else run_file), folder=folder)
    plan.sources = CodeSources(plan.plugin_roots(), snapshot=place.with_name(_SOURCES), frozen=frozen)
    return plan


def freeze(plan: RunPlan, run_file: Path | str) -> None:
    """Write what jobs read: the checked run file, copies of its plug-ins, and the state of the source files."""
    place, link = frozen_file(plan), _link(run_file)
    for plugin in plan.resolved.plugins:
        files.write_text(plugin.read_text(encoding="utf-8"), place.parent / PLUGIN_COPIES / plugin.name)
    place.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(plan.run.run)
    # The address of a mirror may hold a password.
    temporary = place.with_suffix(f".{os.getpid()}")
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(plan.resolved.dump()), encoding="utf-8")
    temporary.replace(place)
    plan.sources.save(place.parent / _SOURCES)


# What the rebuild's package is, for jobs that share no disk with it.
CODE_VARIABLE = "SILODP_CODE"


def unpack(plan: RunPlan, run_file: Path | str) -> None:
    """Freeze a plan where none lies, as in a pod; ConfigError where the pod's package is not the rebuild's."""
    if not frozen_file(plan).is_file():
        if os.environ.get(CODE_VARIABLE) != package_checksum(ROOT):
            allowed = "must be built again, from the code of the rebuild"
            raise ConfigError(f"environment: {CODE_VARIABLE}: this image holds another silodp: {allowed}")
        freeze(plan, run_file)


def hold(digest: str, run_file: Path, job: str, options: Mapping[str, Any]) -> None:
    """Refuse, now and before each write, a job whose digest is not the plan's; `job`, `options` as for `digest_of`."""
    # Of a publication only the folder that a job reads or writes tells where it lies.
    folder = options["folder"] if job in ("claims", "report", "crate") else None
    folder = options["folder"].parent if job == "redraw" else folder
    plan = RunPlan(load(run_file), folder and os.fspath(folder), run_file.name == _file_name(published=True))

    def check() -> None:
        plan.sources = CodeSources(plan.plugin_roots(), snapshot=run_file.parent / _SOURCES)
        if plan.digest_of(job, **options) != digest:
            raise ConfigError(
                f"command line: digest: {digest[:12]}: code, data or claims have changed since the rebuild was "
                "planned: start the rebuild again"
            )

    check()
    files.before_rename.append(check)
    if not plan.published:
        files.after_rename.append(functools.partial(note_written, Path(plan.folder)))
