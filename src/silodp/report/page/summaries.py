"""The page's summaries of results, privacy, audit and bounds, each with a link to the table that it sums up."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from silodp.audit.audit_columns import AS_PLANNED, AUDIT_COLUMNS
from silodp.experiments.columns import PRIVACY_COLUMNS
from silodp.files import read_table, with_reading
from silodp.privacy.standing import Standing, counts_of
from silodp.report.figures.bound_panels import name_of
from silodp.report.figures.notes import at_edge
from silodp.report.figures.reader_words import title_of
from silodp.report.figures.style import label
from silodp.report.numbers import count, exact, interval, measured, slope_text
from silodp.report.page.blocks import Block, Figures, Section, Table, Text
from silodp.report.page.figure_list import Page
from silodp.verdicts.checks import CHECKS
from silodp.verdicts.checks.bound_columns import BOUNDS_COLUMNS
from silodp.verdicts.words import Verdict

EDGE = (
    "At an end of its grid: the step size or clip that was chosen is an end of its grid in most trials, so that a "
    "better one may lie beyond. No clipping at all is not an end."
)


def summary(tables: Mapping[str, pd.DataFrame]) -> dict[str, int]:
    """Counts over all tables: rows, private ones, how their claims stand, and diverged trials."""
    private = [table[table["private"]] for table in tables.values()]
    return {
        "rows": sum(map(len, tables.values())),
        "private": sum(map(len, private)),
        **{word: sum(counts_of(table)[word] for table in private) for word in Standing},
        "diverged": sum(int(table["diverged"].sum()) for table in tables.values()),
    }


def results(page: Page, tables: Mapping[str, pd.DataFrame], raced: list[str]) -> Section:
    """A row for each experiment. `raced` are the titles of those whose points a race chose."""
    if not any(map(len, tables.values())):
        missing = Text("No results: tables/ is not there, or holds no rows.", "missing")
        return Section("results", "All results", [missing])
    total = summary(tables)
    text = f"{total['rows']} rows, {total['private']} of them private; {total['diverged']} diverged trials."
    blocks: list[Block] = [Text(text)]
    if raced:
        words = "were chosen by a race over the grid: not every point ran in every trial (docs/results.md)."
        of = "all experiments" if len(raced) == len(tables) else "; ".join(raced)
        blocks.append(Text(f"Points of {of} {words}"))
    rows: list[list[str]] = []
    alarms = []
    for name, table in tables.items():
        counts = summary({name: table})
        edges = at_edge(table).sum()
        alarms += [len(rows)] * bool(counts[Standing.VIOLATED])
        errors = table["test_error_mean"]
        ends = f"{measured(errors.min())} to {measured(errors.max())}"
        rows.append([title_of(name, page.titles), *map(str, counts.values()), str(edges), ends])
    heading = ["experiment", "rows", "private", *Standing, "diverged trials", "at an end of its grid"]
    caption = "Results of each experiment; the section of an experiment links to all its rows"
    blocks += [Text(EDGE, "settings"), Table(caption, [*heading, "test error"], rows, alarms)]
    return Section("results", "All results", blocks)


def privacy(page: Page) -> Section:
    """Claimed and true ε of each algorithm in each experiment, and whether its messages are made as planned."""
    path = page.folder / "privacy.csv"
    if not path.is_file():
        blocks: list[Block] = [Text("No privacy table: privacy.csv is not there.", "missing")]
    else:
        text = (
            "The true ε says what a silo's whole transcript reveals about one replaced record. Brackets hold its "
            "proven bounds, rounded outwards; 0 where no lower one is proven. A claim is kept where the upper bound is "
            "at most the claim, violated where the lower one is above it, and not certified otherwise."
        )
        table = with_reading(read_table(path, PRIVACY_COLUMNS))
        groups = list(table[table["reading"] == ""].groupby(["experiment", "algorithm"], sort=False))
        rows = [_privacy_row(str(name), str(algorithm), part, page.titles) for (name, algorithm), part in groups]
        alarms = [place for place, (_, part) in enumerate(groups) if counts_of(part)[Standing.VIOLATED]]
        caption = "Claimed and true ε of the default rows; coloured: a claim is violated"
        heading = ["experiment", "algorithm", "claimed ε", *Standing]
        heading += ["farthest from its claim: true ε for claimed ε", "δ"]
        links = page.csv(path, "Every private point (CSV)")
        blocks = [Text(text, "settings", links), Table(caption, heading, rows, alarms)]
    return Section("privacy", "Privacy", blocks, [audit(page)])


def _privacy_row(experiment: str, algorithm: str, rows: pd.DataFrame, titles: Mapping[str, str]) -> list[str]:
    """Over which claims, how they stand, and the true ε that is surely farthest above, else perhaps."""
    ends = [rows[name] / rows["claimed_epsilon"] for name in ("delivered_lower", "delivered_epsilon") if name in rows]
    ratio = next((end for end in ends if (end > 1).any()), ends[-1])
    worst = rows.loc[ratio.idxmax()] if ratio.notna().any() else rows.iloc[0]
    claims = dict.fromkeys(map(exact, (rows["claimed_epsilon"].min(), rows["claimed_epsilon"].max())))
    return [
        title_of(experiment, titles),
        label(algorithm),
        " to ".join(claims),
        *map(str, counts_of(rows).values()),
        f"{interval(worst.get('delivered_lower'), worst['delivered_epsilon'])} for {exact(worst['claimed_epsilon'])}",
        exact(rows["delta"].max()),
    ]


def audit(page: Page) -> Section:
    """In how many audits messages are made as planned, and which are not."""
    path = page.folder / "audit.csv"
    if not path.is_file():
        return Section("audit", "Audit", [Text("No audit: audit.csv is not there.", "missing")])
    table = read_table(path, AUDIT_COLUMNS)
    broken = table[table["mechanism"] != AS_PLANNED]
    text = (
        "The trainer's own federation plays each algorithm with made-up records, with noise and without. In "
        f"{len(table) - len(broken)} of {len(table)} audits noise, draws and clipping are as planned."
    )
    for row in broken.to_dict("records"):
        text += f" {label(row['algorithm'])} on {title_of(row['experiment'], page.titles)}: {row['mechanism']}."
    link = page.csv(path, "Every audit (CSV)")
    return Section("audit", "Audit", [Text(text, "alarm" if len(broken) else "", link)])


def bounds(page: Page) -> list[Section]:
    """Each check's figure and verdicts by theorem; no section without bounds/."""
    sections = []
    for name, title in CHECKS.items():
        path = page.folder / "bounds" / f"{name}.csv"
        if not path.is_file():
            continue
        table = read_table(path, BOUNDS_COLUMNS).fillna({"verdict": "", "form": ""})
        # Points of a sweep have no verdict of their own: they are in the figure and the CSV file.
        spoken = table[table["verdict"] != ""].assign(verdict=lambda rows: rows["verdict"].map(Verdict))
        rows = [
            [name_of(pd.Series({"theorem": theorem, "form": form})), Verdict(verdict), str(len(part))]
            for (theorem, form, verdict), part in spoken.groupby(["theorem", "form", "verdict"], sort=False)
        ]
        counts = ", ".join(f"{count} {kind}" for kind, count in spoken["verdict"].value_counts().items())
        figure = path.with_suffix(".svg")
        blocks: list[Block] = [
            Text("", "settings", page.csv(path, "All rows (CSV)")),
            Figures([page.picture(figure, title)] if figure.is_file() else []),
            *([_table_1(table)] if name == "table_1" else []),
            Table(title, ["theorem", "verdict", "rows"], rows),
        ]
        sections.append(Section(f"bounds-{name}", f"{title}: {counts}", blocks, folded=True))
    return [Section("bounds", "Bounds and rates", [], sections)] if sections else []


# The entries of the check-ins paper's Table 1, in its order.
SOURCES = {
    "none": "none",
    "subsampling": "uniform subsampling",
    "shuffling_earlier": "shuffling, the earlier bound [19]",
    "shuffling": "shuffling, Theorem 5.1",
    "random_checkins": "random check-ins, Theorem 3.2",
}


def _table_1(table: pd.DataFrame) -> Table:
    """The check-ins paper's Table 1: central ε of an epoch at ε0 = 2, and exponents as stated and by exact forms."""
    cells = table.set_index("parameter")
    exponents = cells[cells.index.str.startswith("exponent")]
    sizes = sorted(cells.loc["n (none, epsilon0 = 2)", "value"])
    rows = []
    for name, words in SOURCES.items():
        entries = cells.loc[f"n ({name}, epsilon0 = 2)"].set_index("value")["upper"]
        row = [words, *(measured(entries[n]) for n in sizes)]
        for axis in ("e^epsilon0", "n"):
            exponent = exponents.reindex([f"exponent in {axis} ({name})"]).iloc[0]
            stated, exact_form = (exponent[column] for column in ("value", "upper"))
            row.append("–" if pd.isna(stated) else f"{slope_text(stated)}, {slope_text(exact_form)}")
        rows.append(row)
    heading = ["source of amplification", *(f"central ε, n = {count(n)}" for n in sizes)]
    heading += [f"exponent in {axis}: stated, exact form" for axis in ("e^ε0", "n")]
    return Table("Table 1: order of the central ε of an epoch at ε0 = 2, constants 1", heading, rows)


def facts(provenance: Mapping[str, Any]) -> list[str]:
    """When, with which version and from which commit, as far as it is recorded; a line for each of several runs."""
    if isinstance(runs := provenance.get("runs"), dict):
        return [f"{name}: {', '.join(facts(record))}" for name, record in runs.items()]
    git = provenance.get("git") or {}
    when, version, commit = provenance.get("finished"), provenance.get("silodp"), git.get("commit")
    changes = " with uncommitted changes" if git.get("dirty") else ""
    return [
        f"finished {when}" if when else "time not recorded",
        f"silodp {version}" if version else "version not recorded",
        f"commit {commit[:12]}{changes}" if commit else "commit not recorded",
    ]
