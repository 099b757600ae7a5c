"""What a run writes, by name, and how its work is cut into jobs."""

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from silodp.algorithms import ALGORITHMS, families
from silodp.config.board import heterogeneity_axis, on_board
from silodp.config.errors import ConfigError
from silodp.config.loading import PLUGIN_COPIES, Resolved
from silodp.datasets import DATASETS
from silodp.experiments.task import Task, task_of
from silodp.experiments.variants import figure_names, partitioned_as, readings_of, trained_tasks
from silodp.verdicts.checks import CHECKS
from silodp.workflow.digests import SECRET, digest

MANIFEST = "ro-crate-metadata.json"
# Checks whose tables have a figure; `silodp.report.figures.BOUNDS_FIGURES` holds the figures, and loads matplotlib.
DRAWN_CHECKS = (
    *("upper_bounds", "lower_bounds", "rates_convex", "rates_nonconvex", "rates_checkins", "rounds_to_target"),
    *("trust_models", "figure_3", "shuffled_records", "hybrid_privacy"),
)


class Output(NamedTuple):
    """Files of one kind: the job that writes them, what a publication does with them, and what there is a file for.

    A publication has those `kept` of its runs and those `remade` from them; `added` are made in it, and stay when
    others are published beside them; those of a `run` are not in it. `per` is a case of `Outputs.words`.
    """

    pattern: str
    job: str
    fate: Literal["kept", "remade", "added", "run"]
    per: str = "run"

    @property
    def glob(self) -> str:
        """The pattern with `*`, which matches "/" too, in place of words."""
        return re.sub(r"{\w+}", "*", self.pattern)

    @property
    def name(self) -> str:
        """The file's stem, or its folder where the stem is a word of the run."""
        return self.pattern.partition("/")[0] if "{" in Path(self.pattern).stem else Path(self.pattern).stem


# In the order of their making.
OUTPUTS = (
    Output("data/{dataset}.csv", "fetch", "run", "dataset"),
    Output("silos/{experiment}/{reading}/indices.parquet", "partition", "run", "partition"),
    Output("silos/{experiment}/{reading}/labels.csv", "partition", "run", "partition"),
    Output("silos/{experiment}/{reading}/records.npz", "partition", "run", "partition"),
    Output("silos/{experiment}/{reading}/heterogeneity.csv", "partition", "kept", "partition"),
    Output("trials/{experiment}/{algorithm}/{setting}/{reading}_{trials}.parquet", "train", "run", "chunk"),
    Output("trials/{experiment}/{algorithm}/{setting}/{reading}_race{rung}.parquet", "race", "run", "rung"),
    Output("trials/{experiment}/{algorithm}/{setting}/{reading}_fresh{trials}.parquet", "evaluate", "run", "evaluated"),
    Output("selection/{experiment}.parquet", "select", "run", "experiment"),
    Output("privacy/{experiment}.csv", "privacy", "run", "experiment"),
    Output("by_round/{experiment}.csv", "privacy", "run", "experiment"),
    Output("audit/{experiment}.csv", "privacy", "run", "experiment"),
    Output("tables/{experiment}.csv", "table", "kept", "experiment"),
    Output("reported/{experiment}.csv", "table", "kept", "experiment"),
    Output("losses/{experiment}.parquet", "table", "kept", "experiment"),
    Output("study/{experiment}.{suffix}", "study", "run", "study"),
    Output("privacy.csv", "merge", "kept"),
    Output("by_round.csv", "merge", "kept"),
    Output("audit.csv", "merge", "kept"),
    Output("formulas.csv", "formulas", "kept", "papers"),
    Output("comparisons.csv", "comparisons", "remade"),
    Output("figures/{name}.{suffix}", "figures", "remade", "figure"),
    Output("figures/{name}.{suffix}", "redraw", "remade", "redrawn"),
    Output("bounds/{name}.csv", "check", "kept", "asked"),
    Output("checkins/{name}.csv", "checkins", "kept", "asked"),
    Output("bounds/{name}.{suffix}", "redraw", "remade", "asked"),
    Output("checkins/{name}.{suffix}", "redraw", "remade", "asked"),
    Output("board/leaderboard.csv", "leaderboard", "remade", "board"),
    Output("board/leaderboard_best.csv", "leaderboard", "remade", "board"),
    Output("board/leaderboard.{suffix}", "leaderboard", "remade", "board"),
    Output("board/leaderboard_heterogeneity.{suffix}", "leaderboard", "remade", "axis"),
    Output("claims.csv", "claims", "remade", "papers"),
    Output("config.json", "provenance", "kept"),
    Output("provenance.json", "provenance", "kept"),
    Output(f"{PLUGIN_COPIES}/{{plugin}}.py", "provenance", "kept", "plugin"),
    Output("report.html", "report", "remade"),
    Output(MANIFEST, "crate", "run"),
    Output("README.md", "publish", "added", "asked"),
    *(
        Output(f"{table}.csv", "decided", "added", "asked")
        for table in ("decided", "decided_verdicts", "decided_means", "decided_power", "gate")
    ),
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

    def patterns(self, job: str) -> dict[str, str]:
        """Paths of a job's files by `Output.name`, with the words of `Output.pattern`."""
        return {output.name: f"{self.folder}/{output.pattern}" for output in OUTPUTS if output.job == job}

    def files(self, job: str, *experiments: str, name: str = "") -> list[str]:
        """A job's files, or those of one `Output.name`, of some experiments or of all; none that must be asked for."""
        chosen = [output for output in OUTPUTS if output.job == job and name in ("", output.name)]
        paths = (output.pattern.format(**words) for output in chosen for words in self.words(output.per, *experiments))
        return [f"{self.folder}/{path}" for path in dict.fromkeys(paths)]

    def words(self, per: str, *experiments: str) -> Iterator[dict[str, str]]:
        """What stands for the words of a pattern, by file; nothing for `asked`, which `asked_outputs` has."""
        if per == "run" or (per == "papers" and self.is_about_papers()):
            yield {}
        if (per == "board" and self.board()) or (per == "axis" and any(map(heterogeneity_axis, self.board()))):
            yield from ({"suffix": suffix} for suffix in self.formats)
        if per == "plugin":
            yield from ({"plugin": file.stem} for file in self.resolved.plugins)
        if per == "redrawn":
            stems = (Path(stem).name for stems in self.redrawn().values() for stem in stems)
            yield from ({"name": stem, "suffix": suffix} for stem in stems for suffix in self.formats)
        for experiment in experiments or self.experiments:
            yield from ({"experiment": experiment, **words} for words in self._words_of(per, experiment))

    def _words_of(self, per: str, experiment: str) -> Iterator[dict[str, str]]:
        config, cuts = (
            self.experiments[experiment],
            {"chunk": self.chunks, "rung": self.rungs, "evaluated": self.evaluated_cuts},
        )
        if per == "experiment":
            yield {}
        if per == "dataset" and not config.is_own and not DATASETS[str(config.dataset)].embedded:
            yield {"dataset": str(config.dataset)}
        if per == "partition":
            readings = sorted({partitioned_as(config, reading) for reading in self.readings(experiment)})
            yield from ({"reading": reading} for reading in readings)
        if per in cuts and not (per == "chunk" and self.rungs(experiment)):
            for algorithm, setting, reading in trained_tasks(config):
                words = {"algorithm": algorithm, "setting": setting, "reading": reading}
                yield from ({**words, "trials": cut, "rung": cut} for cut in cuts[per](experiment))
        if per == "study" and config.is_own:
            yield from ({"suffix": suffix} for suffix in ("json", *self.formats))
        if per == "figure":
            names = self.figure_names(experiment)
            yield from ({"name": name, "suffix": suffix} for name in names for suffix in self.formats)

    def count_jobs(self) -> int:
        """Jobs as Snakemake counts them, its last too: one draws all figures of an experiment in all formats."""
        shared = {"dataset": {"dataset"}, "evaluated": {"experiment", "trials"}}
        task = {"experiment", "algorithm", "setting", "reading", "trials"}
        counted = {
            (output.job, *(words[word] for word in sorted(shared.get(output.per, task) & set(words))))
            for output in OUTPUTS
            for words in self.words(output.per)
        }
        drawn = {file if file.endswith(".csv") else file.rpartition(".")[0] for file in self.asked_outputs()}
        return len(counted) + len(drawn) + 1

    def rungs(self, experiment: str) -> list[str]:
        """The numbers of an experiment's rungs, in a race; none where whole grids are trained."""
        config = self.experiments[experiment]
        return [f"{number}" for number in range(config.race.rungs)] if config.tuning == "race" else []

    def before(self, experiment: str, algorithm: str, setting: str, reading: str, rung: str) -> list[str]:
        """Trial files of the rungs before the one of number `rung`, in order."""
        words = {"experiment": experiment, "algorithm": algorithm, "setting": setting, "reading": reading}
        pattern = self.patterns("race")["trials"]
        return [pattern.format(**words, rung=earlier) for earlier in self.rungs(experiment)[: int(rung)]]

    def grids(self, experiment: str) -> list[str]:
        """Trial files of the grid runs, or of the rungs of a race over the grid."""
        return self.files("race", experiment) or self.files("train", experiment)

    def evaluated_cuts(self, experiment: str) -> list[str]:
        """Trials of each job at chosen points; none where no report asks for fresh runs."""
        reports = self.experiments[experiment].reports
        return self.chunks(experiment) if any(report.evaluation == "fresh" for report in reports) else []

    def deliverables(self) -> list[str]:
        """Every file that the run makes, in the order of its making: what `all` asks for and `verify` looks for."""
        files = [file for job in dict.fromkeys(output.job for output in OUTPUTS) for file in self.files(job)]
        return list(dict.fromkeys([*files, *self.other_figures(), *self.asked_outputs()]))

    def tables(self) -> list[str]:
        return self.files("table", name="tables")

    def is_own(self, experiment: str) -> bool:
        """Whether the experiment is a study of a user's own file, which shows no paper's figures."""
        return self.experiments[experiment].is_own

    def is_about_papers(self) -> bool:
        """Whether anything is said of the papers: not where all data are a user's own."""
        return self.published or not all(map(self.is_own, self.experiments))

    def board(self) -> list[str]:
        """The experiments by which the leaderboard ranks algorithms."""
        return [name for name in self.experiments if on_board(name)]

    def figure_names(self, experiment: str) -> dict[str, dict]:
        return {} if self.is_own(experiment) else figure_names(experiment, self.experiments[experiment])

    def other_figures(self) -> list[str]:
        """Figures of no experiment's grid, and the leaderboard.

        In a publication, of bounds and check-ins those whose tables are there.
        """
        files = self.files("redraw") + self.files("leaderboard")
        if self.published:
            tables = self.tables_beside()
            drawn = [file for file in tables if file.parent.name == "checkins" or file.stem in DRAWN_CHECKS]
            files += [str(file.with_suffix(f".{suffix}")) for file in drawn for suffix in self.formats]
        return files + [file for file in self.asked_outputs() if not file.endswith(".csv")]

    def paired(self) -> list[str]:
        """Forest plots of the headline's pairs that an experiment trains with noise, without a suffix.

        Of experiments with both noises: of the pairs under calibrated noise, and of each algorithm under both.
        """
        # Loads scipy.stats, which training jobs need not.
        from silodp.report.cells import in_forests
        from silodp.verdicts.comparisons import CALIBRATED, ENDED, HEADLINE, pairs_of

        trained: dict[str, list[set[str]]] = {"paired": [], "certified": [], "equal": []}
        for config in map(self.experiments.__getitem__, in_forests(self.experiments)):
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

    def redrawn(self) -> dict[str, list[str]]:
        """Table of the run that no experiment's grid stands behind → its figures, without a suffix."""
        formulas = [f"{self.folder}/figures/formulas_{paper}" for paper in ("convex", "nonconvex")]
        drawn = {
            "formulas": formulas if self.is_about_papers() else [],
            "by_round": self.by_round(),
            "comparisons": self.paired(),
        }
        return {f"{self.folder}/{name}.csv": stems for name, stems in drawn.items() if stems}

    def bounds(self) -> list[str]:
        """Tables of all checks of the papers' bounds, and their figures."""
        figures = [f"{self.folder}/bounds/{name}.{suffix}" for name in DRAWN_CHECKS for suffix in self.formats]
        return [f"{self.folder}/bounds/{name}.csv" for name in CHECKS] + figures

    def checkins(self) -> list[str]:
        """Tables and figures about random check-ins: Figure 2, and the comparison on every logistic problem.

        Of experiments that differ only in who holds the records one is run, as a client is one record there: that of a
        paper's figure, else the first. What the leaderboard ranks by is none of them.
        """
        # Loads pandas, which planning a training job need not.
        from silodp.report.paper_figures import of_figures

        problems: dict[str, str] = {}
        for name in sorted(self.experiments, key=lambda name: name not in of_figures()):
            one = self.experiments[name]
            if one.model.name == "logistic" and not on_board(name):
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
