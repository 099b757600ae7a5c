"""The page's part about points that were chosen by a race."""

import csv
import json
from pathlib import Path

from page_run import Page, results

from silodp.config.errors import project_root
from silodp.files import write_csv
from silodp.report.page import build, races


def test_the_page_and_the_documentation_show_one_measurement():
    page = (project_root() / "docs" / "tuning.md").read_text(encoding="utf-8")
    with open(Path(races.__file__).parent / "races.csv", encoding="utf-8", newline="") as stream:
        heading, *rows = csv.reader(stream)
    lines = [f"| {' | '.join(row)} |" for row in (heading, ["---"] * len(heading), *rows)]
    assert "\n".join(lines) in page, "write both again: benchmarks/race.py"


def test_a_run_that_tunes_by_race_says_what_races_lose(tmp_path):
    part = races.races_part({"a": {"tuning": "race"}, "b": {"tuning": "full"}}, {"a": "The first"})
    assert part["experiments"] == ["The first"]
    assert part["whole"]["experiment"] == "all"
    assert int(part["whole"]["cells"]) == sum(int(one["cells"][3]) for one in part["rows"][:-1]) > 100
    assert races.races_part({"b": {"tuning": "full"}, "c": {}}, {}) is None


def test_its_page_has_the_table(tmp_path):
    write_csv(results("wbcd_mlp"), tmp_path / "tables" / "wbcd_mlp.csv")
    for tuning, there in (("race", True), ("full", False)):
        about = {"wbcd_mlp": {"title": "Cancer", "paper": "non-convex paper, Figure 8", "tuning": tuning}}
        (tmp_path / "config.json").write_text(json.dumps({"run": "r", "experiments": about}))
        build.build(tmp_path, tmp_path / "report.html")
        page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
        assert ("Points of Cancer were chosen by a race" in page.text) == there
        assert any(row["cells"][0] == "all" for row in page.rows) == there
