"""The page of a run: whole, self-contained, escaped, and every figure, file and missing part named on it."""

import base64
import hashlib
import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest
from page_run import Page, privacy, results
from small import ROOT

from silodp.experiments.columns import PRIVACY_COLUMNS
from silodp.files import write_csv
from silodp.report.figures import delivered_vs_claimed, error_vs_epsilon, save, slices
from silodp.report.page import figure_list
from silodp.report.page.build import build
from silodp.report.page.figure_list import anchor
from silodp.report.page.leaderboard_page import board

EVIL = '"><script>alert(1)</script><img src=http://x>'


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A run folder with every part: one experiment of one setting, one of two settings and a reading."""
    folder = tmp_path_factory.mktemp("whole") / "results" / "smoke"
    parts = [results("digits_mlp", 25, 25), results("digits_mlp", 12, 50), results("digits_mlp", 12, 50, "grid=exp")]
    tables = {"wbcd_mlp": results("wbcd_mlp"), "digits_mlp": pd.concat(parts, ignore_index=True)}
    for name, table in tables.items():
        write_csv(table, folder / "tables" / f"{name}.csv")
        for (M, R, reading), rows in slices(table):
            stem = f"{name}_M{M}_R{R}" + (f"_{reading}" if reading else "")
            save(error_vs_epsilon(rows, title=name), folder / "figures" / stem, ["svg", "pdf"])
    over = folder / "figures" / "wbcd_mlp_M2_R25_delivered_vs_claimed"
    save(delivered_vs_claimed(tables["wbcd_mlp"], title="t"), over, ["svg"])
    write_csv(pd.concat(map(privacy, tables.values())), folder / "privacy.csv")
    silos = folder / "silos" / "wbcd_mlp" / "default"
    spread = pd.DataFrame({"trial": [0, 1], "value": [0.01, 0.03], "gradient_norm": 1e-9, "converged": [True, False]})
    write_csv(spread, silos / "heterogeneity.csv")
    held = {"trial": 0, "silo": [0, 0, 1], "part": ["train", "test", "train"], "label": [0, 0, 1], "count": [7, 2, 11]}
    write_csv(pd.DataFrame(held), silos / "labels.csv")
    about = {"wbcd_mlp": {"title": "Breast cancer", "paper": "non-convex paper, Figure 8"}, "digits_mlp": {}}
    (folder / "config.json").write_text(json.dumps({"run": "smoke", "experiments": about}))
    record = {"silodp": "0.1.0", "git": {"commit": "c" * 40, "dirty": True}, "finished": "2025-01-02T03:04:05Z"}
    packages = {"numpy": "2.4.6", "nothing": None}
    (folder / "provenance.json").write_text(json.dumps(record | {"packages": packages, "notes": []}))
    return folder


@pytest.fixture(scope="module")
def page(whole_run):
    """Its page, which tests only read."""
    return built(whole_run, whole_run.parent / "report.html")


@pytest.fixture
def run(whole_run, tmp_path):
    """A copy of the run folder to change at will."""
    return Path(shutil.copytree(whole_run, tmp_path / "results" / "smoke"))


def built(run, output=None):
    output = output or run / "report.html"
    build(run, output)
    return Page(output.read_text(encoding="utf-8"))


def ids_of(run):
    """What a page calls the figures of its run."""
    return sorted(f"figure-figures-{path.stem.replace('=', '-')}" for path in (run / "figures").glob("*.svg"))


def links(page):
    return [unquote(a["href"]) for a in page.all("a") if not a["href"].startswith(("#", "https:", "data:"))]


def shown(page):
    """Figures of a page: drawn, or where an experiment's stand by number, linked."""
    linked = {anchor(Path("figures") / Path(link).name) for link in links(page) if re.search("(^|/)figures/", link)}
    return sorted({figure["id"] for figure in page.all("figure")} | linked)


def test_every_figure_is_on_the_page_once_and_every_link_leads_to_a_file(whole_run, page):
    drawn = [figure["id"] for figure in page.all("figure")]
    assert len(drawn) == len(set(drawn))
    assert shown(page) == ids_of(whole_run)
    assert "figure-figures-wbcd_mlp_M2_R25_delivered_vs_claimed" not in drawn
    drawings = [div for div in page.all("div") if div.get("class") == "drawing"]
    assert all(div["aria-label"] for div in drawings)
    files = [whole_run.parent / link for link in links(page)]
    assert all(file.is_file() for file in files)
    assert {*(whole_run / "figures").iterdir(), *(whole_run / "tables").iterdir()} <= set(files)


def test_every_place_that_is_linked_exists_once(page):
    places = [attributes["id"] for _, attributes in page.tags if attributes.get("id")]
    assert len(places) == len(set(places))
    assert {a["href"][1:] for a in page.all("a") if a["href"].startswith("#")} <= set(places)


def test_links_are_relative_to_where_the_page_is_written(run, tmp_path):
    page = built(run, tmp_path / "pages" / "deep" / "r.html")
    assert links(page)
    assert all((tmp_path / "pages" / "deep" / link).is_file() for link in links(page))


def test_the_page_loads_nothing_and_runs_its_own_script_alone(whole_run, page):
    assert [script for script in page.all("script") if script != {"type": "text/plain"}] == [{}]
    assert not {tag for tag, _ in page.tags} & {"link", "iframe", "object", "embed", "video", "audio", "source", "img"}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "srcset", "action"):
            outside = re.match(r"\s*(?:https?:)?//", attributes.get(name) or "")
            # Nothing is asked of the papers' addresses before a reader goes there.
            assert not outside or (tag == "a" and attributes["href"].startswith("https://arxiv.org/abs/"))
    text = (whole_run.parent / "report.html").read_text(encoding="utf-8")
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    (policy,) = [meta["content"] for meta in page.all("meta") if "default-src 'none'" in (meta.get("content") or "")]
    body = re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


def test_titles_and_values_are_escaped(run):
    about = {"wbcd_mlp": {"title": EVIL, "paper": EVIL}}
    (run / "config.json").write_text(json.dumps({"run": EVIL, "experiments": about}))
    (run / "provenance.json").write_text(json.dumps({"command": EVIL, EVIL: "x"}))
    page = built(run)
    assert [script for script in page.all("script") if script != {"type": "text/plain"}] == [{}]
    assert page.all("img") == []
    assert page.text.count("<script>alert(1)</script>") >= 4


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ("config.json", None),
        ("provenance.json", "provenance.json is not there"),
        ("privacy.csv", "privacy.csv is not there"),
        ("tables/wbcd_mlp.csv", "tables/wbcd_mlp.csv is not there"),
        (
            "figures/wbcd_mlp_M2_R25.svg",
            "No figure: Test error against claimed ε, Figure 8: M = 2, R = 25 is not there",
        ),
        ("figures/wbcd_mlp_M2_R25.pdf", None),
        ("silos/wbcd_mlp/default/labels.csv", None),
        ("audit.csv", "audit.csv is not there"),
    ],
)
def test_a_missing_part_is_named_and_the_others_stay(run, part, line):
    (run / part).unlink(missing_ok=True)
    page = built(run)
    assert line is None or line in page.text
    assert len(shown(page)) == len(list((run / "figures").glob("*.svg")))


@pytest.mark.parametrize(
    ("part", "text", "words"),
    [
        ("config.json", "{", "not JSON"),
        ("tables/wbcd_mlp.csv", "a,b\n1,2\n", "lacks the columns experiment"),
        ("privacy.csv", ",".join(PRIVACY_COLUMNS) + "\n" + ",".join(["1"] * 13 + ["perhaps"]) + "\n", "column holds"),
        ("figures/wbcd_mlp_M2_R25.svg", "<svg>", "not a whole SVG picture"),
        ("claims.csv", "a\n1\n", "lacks the columns claim"),
    ],
)
def test_a_damaged_file_is_named(run, part, text, words):
    (run / part).write_text(text)
    with pytest.raises(ValueError, match=words) as caught:
        built(run)
    assert Path(part).name in str(caught.value)
    assert not (run / "report.html").exists()


def test_the_same_run_gives_the_same_page(whole_run, page):
    first = (whole_run.parent / "report.html").read_bytes()
    build(whole_run, whole_run.parent / "again.html")
    assert (whole_run.parent / "again.html").read_bytes() == first


def test_the_papers_figures_are_there_without_a_script(whole_run, page):
    """At the claimed ε, with one legend; a line says what needs the script."""
    text = (whole_run.parent / "report.html").read_text(encoding="utf-8")
    before = re.sub(r'(?s)<script type="text/plain">.*?</script>', "", text)
    (figure,) = re.findall(r'(?s)<figure id="figure-figures-wbcd_mlp_M2_R25".*?</figure>', before)
    whole, cut = (re.search(rf'{name}="0 0 [\d.]+ ([\d.]+)"', figure)[1] for name in ("data-whole", "viewBox"))
    assert 0 < float(whole) - float(cut) < 40
    (key,) = re.findall(r'(?s)<div class="drawing key".*?</div>', before)
    assert re.findall(r"<text[^>]*>([^<]*)", key) == ["MB-SGD", "SPIDER (better of 2)"]
    assert "Without JavaScript" in re.search(r"(?s)<noscript>(.*?)</noscript>", before)[1]
    assert (
        re.search("<title>(.*?)</title>", text)[1] == "Differentially private federated learning, replicated | silodp"
    )


def test_contents_fold_under_their_paper(whole_run):
    text = (whole_run.parent / "report.html").read_text(encoding="utf-8")
    nav = re.search(r"(?s)<nav.*?</nav>", text)[0]
    (folded,) = re.findall(r"(?s)<li><details><summary>(.*?)</details>", nav)
    assert "Figures of the non-convex paper" in folded
    assert "Figure 8" in folded


def test_a_plug_ins_run_opens_with_its_curve(run):
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"plugins": ["source/plugins/mine.py"]}))
    page = built(run)
    assert shown(page) == ids_of(run)
    places = [tag.get("id") for _, tag in page.tags]
    curve = places.index("figure-figures-wbcd_mlp_M2_R25")
    assert curve < places.index("finding-true") < places.index("experiments")


def test_a_board_is_a_section_with_counts_best_models_and_figure(tmp_path):
    folder = tmp_path / "board"
    folder.mkdir()
    ahead = "1.0,dp_scaffold,minibatch_sgd,ahead"
    (folder / "leaderboard.csv").write_text(
        "experiment,epsilon,first,second,outcome,axis,holm\n"
        f"wbcd_leaderboard,{ahead},,True\ntv16_leaderboard,{ahead},,False\nmnist_share_p0,{ahead},silos.mixed,False\n"
    )
    (folder / "leaderboard_best.csv").write_text(
        "experiment,epsilon,best,test_error\nwbcd_leaderboard,1.0,minibatch_sgd,0.06\ntv16_leaderboard,3.0,local_sgd,0.05\n"
    )
    (folder / "leaderboard.svg").write_text("<svg>drawn</svg>\n")
    build(tmp_path, tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text())
    text, cells = page.text, [row["cells"] for row in page.rows]
    assert "Leaderboard" in text
    assert ["DP-SCAFFOLD", "MB-SGD", "data sets", "2", "2 (1)", "0 (0)"] in cells
    assert ["DP-SCAFFOLD", "MB-SGD", "share of records from all digits", "1", "1 (0)", "0 (0)"] in cells
    assert ["data", "ε = 1", "ε = 3"] in cells
    assert any(row[1:] == ["MB-SGD 0.060", ""] for row in cells)
    assert "tv16" not in text
    assert "Test error against certified ε, by data set" in text
    assert "with a correction minus without it" not in text


def test_every_published_figure_is_on_its_page():
    """Both ways: the page names no figure that is not there."""
    for folder in sorted((ROOT / "results").glob("published*")):
        page = Page((folder / "report.html").read_text(encoding="utf-8"))
        drawn = {anchor(path.relative_to(folder)) for path in folder.rglob("*.svg")}
        linked = {anchor(Path(link)) for link in links(page) if link.startswith("figures/") and link.endswith(".svg")}
        assert {figure["id"] for figure in page.all("figure")} | linked == drawn


def test_a_run_without_a_board_has_no_section(tmp_path):
    assert board(figure_list.Page(tmp_path, tmp_path)) == []
