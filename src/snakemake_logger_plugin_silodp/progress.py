"""How far a run of the workflow is: jobs, how long they took, and how long the rest may take."""

import logging
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_TRIAL = re.compile(rb": trial (\d+)\s*$", re.MULTILINE)
_PLACES = ("experiment", "algorithm", "setting", "reading", "check", "dataset", "name")
# Bytes of a log's end in which its last trial stands.
_TAIL = 4096


@dataclass
class Job:
    """One job of the workflow; times are seconds since the epoch, 0 where it has not come to that."""

    id: int
    rule: str
    name: str
    first: int | None = None
    last: int | None = None
    logs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    start: float = 0.0
    end: float = 0.0

    @classmethod
    def from_record(cls, record: logging.LogRecord) -> "Job":
        """The job that an event of the kind JOB_INFO is about."""
        wildcards: Mapping[str, str] = getattr(record, "wildcards", None) or {}
        trials = re.fullmatch(r"(\d+)-(\d+)", str(wildcards.get("trials", "")))
        words = [str(wildcards[name]) for name in _PLACES if wildcards.get(name) not in (None, "", "default")]
        if trials:
            words.append(f"trials {trials[0]}")
        rule = str(record.rule_name)  # type: ignore[attr-defined]
        return cls(
            id=int(record.jobid),  # type: ignore[attr-defined]
            rule=rule,
            name=" ".join([rule, *words]),
            first=int(trials[1]) if trials else None,
            last=int(trials[2]) if trials else None,
            logs=list(getattr(record, "log", None) or []),
            outputs=list(getattr(record, "output", None) or []),
        )

    @property
    def seconds(self) -> float:
        """How long it took."""
        return max(0.0, self.end - self.start)

    def trial(self) -> str:
        """Which of its trials a training job is at, by the end of its log; empty where it has said none."""
        for log in map(Path, self.logs):
            try:
                with open(log, "rb") as handle:
                    handle.seek(max(0, log.stat().st_size - _TAIL))
                    found = _TRIAL.findall(handle.read())
            except OSError:
                continue
            if found:
                current = int(found[-1])
                if self.first is None or self.last is None or not self.first <= current <= self.last:
                    return f"trial {current}"
                return f"trial {current - self.first + 1} of {self.last - self.first + 1}"
        return ""


@dataclass
class Progress:
    """All jobs of a run."""

    left: dict[str, int] = field(default_factory=dict)
    total: int = 0
    done: int = 0
    jobs: dict[int, Job] = field(default_factory=dict)
    running: dict[int, Job] = field(default_factory=dict)
    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    began: float = field(default_factory=time.time)
    most_at_once: int = 1
    reports: list[str] = field(default_factory=list)

    def planned(self, counts: Mapping[str, int]) -> None:
        """Take the number of jobs of every rule; Snakemake says it again at the end."""
        if not self.total:
            self.left, self.total, self.began = dict(counts), sum(counts.values()), time.time()

    def described(self, job: Job) -> None:
        """Take what a job is."""
        self.jobs[job.id] = job
        # Snakemake describes a job when it starts it.
        self.started([job.id])

    def started(self, ids: Iterable[int]) -> None:
        """Jobs that run from now on."""
        for number in ids:
            job = self.jobs.get(number)
            if job is not None and number not in self.running and not job.end:
                job.start = time.time()
                self.running[number] = job
        self.most_at_once = max(self.most_at_once, len(self.running))

    def finished(self, number: int) -> Job | None:
        """A job that is done; None for one that was never described."""
        job = self.running.pop(number, None)
        self.done += 1
        if job is None:
            return None
        job.end = time.time()
        self.took[job.rule].append(job.seconds)
        if job.rule in self.left:
            self.left[job.rule] -= 1
        self.reports += [str(file) for file in job.outputs if str(file).endswith("report.html")]
        return job

    def failed(self, number: int | None) -> Job | None:
        """A job that failed: it no longer runs, and may be tried again."""
        return self.running.pop(number, None) if number is not None else None

    @property
    def counted(self) -> str:
        """As in [ 3/12]."""
        return f"[{self.done:>{len(str(self.total))}}/{self.total}]"

    def seconds_left(self, now: float) -> float | None:
        """Time that the rest may take, by the mean time of each rule's jobs so far; None before any is done."""
        known = [seconds for times in self.took.values() for seconds in times]
        if not known:
            return None
        mean = sum(known) / len(known)
        work = 0.0
        for rule, count in self.left.items():
            times = self.took.get(rule)
            work += count * (sum(times) / len(times) if times else mean)
        for job in self.running.values():
            times = self.took.get(job.rule)
            expected = sum(times) / len(times) if times else mean
            work -= min(now - job.start, expected)
        return max(0.0, work / self.most_at_once)

    def lines(self) -> list[str]:
        """A line for the whole, and one for every running job."""
        now = time.time()
        rest = self.seconds_left(now)
        head = f"{self.counted}  {span(now - self.began)} so far" + (
            "" if rest is None else f", about {span(rest)} left"
        )
        jobs = [f"  {job.name}  {job.trial()}  {span(now - job.start)}" for job in self.running.values()]
        return [head, *jobs]

    def summary(self, failed: Sequence[str], now: float) -> list[str]:
        """What came of the run, and where to look."""
        said = [f"{self.done} of {self.total} jobs done in {span(now - self.began)}"]
        said += [f"failed: {name}" for name in failed]
        said += [f"page: {file}" for file in self.reports]
        return said


def span(seconds: float) -> str:
    """A time in words, rounded to what is named last: 8 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min"
