"""Snakemake's logger plugin `silodp`: a line a finished job and, on a terminal, a live line a running job.

Snakemake keeps its whole log in .snakemake/log. A dry run is logged as by Snakemake itself, with the files of each job.
"""

import copy
import logging
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text
from snakemake.logging import DefaultFilter, DefaultFormatter
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

# Wildcards that name a job, and Snakemake's messages without an event that a person needs.
_PLACES = ("experiment", "algorithm", "setting", "reading", "trials", "check", "dataset", "name")
_MESSAGES = ("Nothing to be done", "Complete log")


class LogHandler(LogHandlerBase):
    """Shows how far a run of the workflow is."""

    writes_to_stream, writes_to_file, has_filter, has_formatter, needs_rulegraph = True, False, True, True, False

    def __post_init__(self) -> None:
        settings = self.common_settings
        self.console = Console(stderr=not settings.dryrun, highlight=False, soft_wrap=True)
        self.live = Live(self, console=self.console, refresh_per_second=2, transient=True)
        self.plain = DefaultFormatter(settings.quiet, settings.show_failed_logs)
        self.shown = DefaultFilter(
            settings.quiet, settings.debug_dag, settings.verbose, settings.dryrun, settings.printshellcmds
        )
        self.total, self.done, self.began = 0, 0, time.time()
        self.summary: list[str] = []
        self.took: list[float] = []  # seconds of finished jobs
        self.running: dict[int, tuple[Any, float]] = {}  # number of a job → its record and its start

    def emit(self, record: logging.LogRecord) -> None:
        """Show one event; a display fault never ends a run."""
        try:
            if not self.common_settings.dryrun:
                self._show(record)
            elif self.shown.filter(record):
                print(self.plain.format(_with_files(record)), flush=True)
        except Exception:
            self.handleError(record)

    def _show(self, record: Any) -> None:
        event = getattr(record, "event", None)
        if event == LogEvent.RUN_INFO and not self.total:
            # An experiment has rules of its own, as in evaluate_wbcd_mlp_0.
            kinds: Counter[str] = Counter()
            for name, count in record.stats.items():
                kinds[name.partition("_")[0]] += count
            self.total = kinds.pop("total")
            self._say(f"{self.total} jobs: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}")
            if self.console.is_terminal:
                self.live.start()
        elif event == LogEvent.JOB_INFO:
            self.running[record.jobid] = (record, time.time())
        elif event == LogEvent.JOB_FINISHED:
            self.done += 1
            job, start = self.running.pop(record.job_id, (None, 0.0))
            # Rules without outputs only collect others.
            if job is not None and job.output:
                self.took.append(time.time() - start)
                self._say(f"{self._count()}  {_name(job)}  {timedelta(0, round(self.took[-1]))}")
                self.summary += [f"page: {file}" for file in job.output if str(file).endswith("report.html")]
        elif event in (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR):
            job, _ = self.running.pop(getattr(record, "jobid", -1), (record, 0.0))
            self.summary.append(f"failed: {_name(job)}")
            self._say(self.summary[-1], style="bold red")
            for log in map(Path, getattr(job, "log", None) or []):
                if log.is_file():
                    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
                    self._say("\n".join(f"    {line}" for line in [*lines, f"whole log: {log}"]))
        elif record.levelno >= logging.WARNING or any(words in str(record.msg) for words in _MESSAGES):
            self._say(record.getMessage(), style="bold" if record.levelno >= logging.ERROR else "")

    def __rich__(self) -> Text:
        """The live lines: one for the whole run, one for each running job."""
        now = time.time()
        head = f"{self._count()}  {timedelta(0, round(now - self.began))} so far"
        if self.took and self.running:
            left = (self.total - self.done) * mean(self.took) / len(self.running)
            head += f", about {timedelta(0, round(left))} left"
        jobs = [f"  {_name(job)}  {timedelta(0, round(now - start))}" for job, start in list(self.running.values())]
        return Text("\n".join([head, *jobs]), no_wrap=True, overflow="ellipsis")

    def _count(self) -> str:
        return f"[{self.done:>{len(str(self.total))}}/{self.total}]"

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style=style))

    def close(self) -> None:
        self.live.stop()
        if self.total:
            done = f"{self.done} of {self.total} jobs done in {timedelta(0, round(time.time() - self.began))}"
            self._say("\n".join([done, *self.summary]))
            self.total = 0
        super().close()


def _with_files(record: Any) -> Any:
    """A job's record as one without a message, in whose place Snakemake shows no rule, input and output."""
    if not getattr(record, "rule_msg", None):
        return record
    print(f"\n{record.rule_msg}")
    record = copy.copy(record)
    record.rule_msg = None
    return record


def _name(job: Any) -> str:
    wildcards = getattr(job, "wildcards", None) or {}
    words = [str(wildcards[name]) for name in _PLACES if wildcards.get(name) not in (None, "", "default")]
    return " ".join([str(getattr(job, "rule_name", None) or "a job"), *words])
