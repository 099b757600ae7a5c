"""Snakemake's logger plugin `silodp`: a live line a running job with the time left, plain lines where nobody watches.

`snakemake --logger silodp` takes it, and so do the profiles of workflow/profiles; Snakemake keeps its whole log in
.snakemake/log as ever. A dry run speaks as Snakemake does.
"""

import logging
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text
from snakemake.logging import DefaultFilter, DefaultFormatter
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_silodp.progress import Job, Progress, span

# Of Snakemake's own words without an event, what a person needs.
_TOLD = ("Nothing to be done", "Complete log")
_TAIL_LINES = 12
# Rules of which a run says at its start how many jobs they have.
_RULES = 5


class LogHandler(LogHandlerBase):
    """Takes Snakemake's events and shows how far the run is."""

    def __post_init__(self) -> None:
        settings = self.common_settings
        self.progress = Progress()
        self.console = Console(stderr=not settings.dryrun, highlight=False, soft_wrap=True)
        self.live: Live | None = None
        self.failed: list[str] = []
        self.plain = DefaultFormatter(settings.quiet, settings.show_failed_logs)
        self.filtered = DefaultFilter(
            settings.quiet, settings.debug_dag, settings.verbose, settings.dryrun, settings.printshellcmds
        )

    @property
    def writes_to_stream(self) -> bool:
        """It is the one that writes to the terminal."""
        return True

    @property
    def writes_to_file(self) -> bool:
        """Snakemake's own log file stays."""
        return False

    @property
    def has_filter(self) -> bool:
        """It picks what it shows."""
        return True

    @property
    def has_formatter(self) -> bool:
        """It words what it shows."""
        return True

    @property
    def needs_rulegraph(self) -> bool:
        """It shows jobs, not rules."""
        return False

    def emit(self, record: logging.LogRecord) -> None:
        """Take one event; a fault of the display never ends a run."""
        try:
            if self.common_settings.dryrun:
                if self.filtered.filter(record):
                    print(self.plain.format(record), file=sys.stdout, flush=True)
            else:
                self._take(record)
        except BrokenPipeError:
            pass  # whoever read it has left, as `head` does
        except Exception:
            self.handleError(record)

    def _take(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", None)
        if event == LogEvent.RUN_INFO:
            stats = {name: count for name, count in record.stats.items() if name != "total"}  # type: ignore[attr-defined]
            self.progress.planned(stats)
            most = sorted(stats.items(), key=lambda item: -item[1])[:_RULES]
            rest = ", …" if len(stats) > _RULES else ""
            self._say(f"{sum(stats.values())} jobs: {', '.join(f'{count} {name}' for name, count in most)}{rest}")
            self._watch()
        elif event == LogEvent.JOB_INFO:
            self.progress.described(Job.from_record(record))
        elif event == LogEvent.JOB_STARTED:
            ids = record.jobs if isinstance(record.jobs, list) else [record.jobs]  # type: ignore[attr-defined]
            self.progress.started(ids)
        elif event == LogEvent.JOB_FINISHED:
            job = self.progress.finished(record.job_id)  # type: ignore[attr-defined]
            # Rules that only collect others have nothing of their own to tell.
            if job is not None and job.outputs:
                self._say(f"{self.progress.counted}  {job.name}  {span(job.seconds)}")
        elif event in (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR):
            self._fail(record)
        elif record.levelno >= logging.WARNING:
            self._say(record.getMessage(), style="bold" if record.levelno >= logging.ERROR else "")
        elif any(words in str(record.msg) for words in _TOLD):
            self._say(str(record.msg))

    def _fail(self, record: logging.LogRecord) -> None:
        """A job that failed: which, the end of its log, and where the whole log is."""
        job = self.progress.failed(getattr(record, "jobid", None))
        logs = list(getattr(record, "log", None) or (job.logs if job else []))
        name = job.name if job else str(getattr(record, "rule_name", None) or "a job")
        self.failed.append(name)
        self._say(f"failed: {name}", style="bold red")
        for log in map(Path, logs):
            if log.is_file():
                lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:]
                self._say("\n".join(f"    {line}" for line in lines))
                self._say(f"    whole log: {log}")

    def _watch(self) -> None:
        if self.console.is_terminal and self.live is None:
            self.live = Live(self, console=self.console, refresh_per_second=2, transient=True)
            self.live.start()

    def __rich__(self) -> Text:
        """What the terminal shows below the lines of finished jobs."""
        return Text("\n".join(self.progress.lines()), no_wrap=True, overflow="ellipsis")

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style=style))

    def close(self) -> None:
        """End the display, and say what came of the run and where it is."""
        if self.live is not None:
            self.live.stop()
            self.live = None
        if self.progress.total and not self.common_settings.dryrun:
            for line in self.progress.summary(self.failed, time.time()):
                self._say(line)
            self.progress = Progress()
        super().close()
