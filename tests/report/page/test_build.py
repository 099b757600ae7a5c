import base64
import gzip
import hashlib
import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from page_run import Page, privacy, results

from silodp.files import AUDIT_COLUMNS, PRIVACY_COLUMNS, write_csv
from silodp.report import numbers
from silodp.report.figures import delivered_vs_claimed, error_vs_epsilon, figure_name, save, slices
from silodp.report.page import build as report


def unpacked(run):
    """Every packed part of a page: tables as (heading, rows), and figures."""
    text = (run / "report.html").read_text(encoding="utf-8")
    found = re.findall(r'<script type="text/plain">([A-Za-z0-9+/=]+)</script>', text)
    parts = [gzip.decompress(base64.b64decode(part)).decode() for part in found]
    tables = [json.loads(part) for part in parts if part.startswith("{")]
    return [(one["heading"], one["rows"]) for one in tables], [part for part in parts if part.startswith("<svg")]


def audited(lower):
    point = {"experiment": "wbcd_mlp", "algorithm": "minibatch_sgd", "setting": "M2_R25", "phase_length": 1}
    point |= {"claimed_epsilon": 0.75, "delta": 3.5e-5, "delivered_epsilon": 0.5349, "audited_lower": lower}
    return pd.DataFrame([point | {"confidence": 0.99, "runs": 80, "holds": lower <= 0.5349}])[AUDIT_COLUMNS]


@pytest.fixture
def run(whole_run, tmp_path):
    """A run folder to change at will."""
    return Path(shutil.copytree(whole_run, tmp_path / "results" / "smoke"))


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A run folder with every part: one experiment of one setting, one of two settings and a reading."""
    folder = tmp_path_factory.mktemp("whole")
    parts = [results("digits_mlp", 25, 25), results("digits_mlp", 12, 50), results("digits_mlp", 12, 50, "grid=exp")]
    tables = {"wbcd_mlp": results("wbcd_mlp"), "digits_mlp": pd.concat(parts, ignore_index=True)}
    for name, table in tables.items():
        write_csv(table, folder / "tables" / f"{name}.csv")
        for (M, R, reading), rows in slices(table):
            save(error_vs_epsilon(rows, title=name), folder / "figures" / figure_name(name, M, R, reading))
    kind = figure_name("wbcd_mlp", 2, 25, kind="delivered_vs_claimed")
    save(delivered_vs_claimed(tables["wbcd_mlp"], title="t"), folder / "figures" / kind)
    write_csv(pd.concat(map(privacy, tables.values())), folder / "privacy.csv")
    write_csv(audited(0.4), folder / "audit.csv")
    spread = pd.DataFrame({"trial": [0, 1], "value": [0.01, 0.03], "gradient_norm": 1e-9, "converged": [True, False]})
    write_csv(spread, folder / "silos" / "wbcd_mlp" / "default" / "heterogeneity.csv")
    held = {"trial": 0, "silo": [0, 0, 1], "part": ["train", "test", "train"], "label": [0, 0, 1], "count": [7, 2, 9]}
    write_csv(pd.DataFrame(held), folder / "silos" / "wbcd_mlp" / "default" / "labels.csv")
    bounds = {"trial": 0, "silo": [0, 0], "part": ["train", "test"], "count": [8, 2], "min": [25.0, 30.0]}
    targets = pd.DataFrame({**bounds, "mean": 40.0, "max": [90.5, 80.0]})
    write_csv(targets, folder / "silos" / "digits_mlp" / "default" / "labels.csv")
    about = {"wbcd_mlp": {"title": "Breast cancer", "paper": "non-convex paper, Figure 8"}, "digits_mlp": {}}
    (folder / "config.json").write_text(json.dumps({"run": "smoke", "experiments": about}))
    record = {"silodp": "0.1.0", "git": {"commit": "c" * 40, "dirty": True}, "finished": "2025-01-02T03:04:05Z"}
    (folder / "provenance.json").write_text(json.dumps({**record, "packages": {"numpy": "2.4.6"}}))
    return folder


def built(run, output=None):
    output = output or run / "report.html"
    report.build(run, output)
    return Page(output.read_text(encoding="utf-8"))


def test_the_heading_says_which_run_when_and_by_what(run):
    page = built(run)
    assert "Run smoke" in page.text
    assert "finished 2025-01-02T03:04:05Z · silodp 0.1.0 · commit cccccccccccc with uncommitted changes" in page.text
    assert "Breast cancer" in page.text
    assert "non-convex paper, Figure 8" in page.text
    assert "is not there" not in page.text
    assert re.search(r"packages\s*numpy 2\.4\.6", page.text)


@pytest.mark.parametrize(
    ("words", "said"), [("-- --touch", "151 s besides jobs made elsewhere · "), ("--cores 2", "151 s · ")]
)
def test_a_time_does_not_pass_for_that_of_files_that_were_taken_over(run, words, said):
    made = [{"command": f"silodp rebuild run.yaml {words}"}, {"command": "silodp rebuild run.yaml"}]
    (run / "provenance.json").write_text(json.dumps({"seconds": 151.0, "invocations": made}))
    assert said in built(run).text


def test_provenance_is_a_tree_without_nulls(run):
    (run / "provenance.json").write_text(json.dumps({"a": {"b": None, "c": {"d": 3}}, "e": None, "f": {}, "g": []}))
    page = built(run)
    tree = page.text[page.text.index("Code, lock, data") :]
    assert re.search(r"a\s*c\s*d 3", tree)
    assert "null" not in tree
    assert not re.search(r"\b[befg]\b", tree.split("const")[0].split("Code, lock, data and machine behind this run")[1])


def test_the_heading_says_so_for_each_of_several_runs(run):
    records = {name: {"silodp": "0.1.0", "git": {"commit": name * 40}, "finished": name} for name in ("a", "b")}
    (run / "provenance.json").write_text(json.dumps({"runs": records}))
    page = built(run)
    for name in records:
        assert f"{name}: finished {name}, silodp 0.1.0, commit {name * 12}" in page.text


def test_every_figure_is_inside_once_with_links_to_files_that_exist(run):
    page = built(run)
    _, folded = unpacked(run)
    stems = {path.stem for path in (run / "figures").glob("*.svg")}
    shown = [one["id"] for one in page.all("figure")]
    assert sorted(shown) == sorted(f"figure-figures-{stem.replace('=', '-')}" for stem in stems)
    # Those of the default rows stand open, the others are unpacked when a reader asks for them.
    assert len(page.all("svg")) == 3
    assert len(folded) == len(stems) - 3
    assert all(one["aria-label"] for one in page.all("svg"))
    links = {unquote(a["href"]) for a in page.all("a") if not a["href"].startswith(("#", "https:"))}
    files = {f"figures/{path.name}" for path in (run / "figures").iterdir()}
    assert links == files | {"tables/wbcd_mlp.csv", "tables/digits_mlp.csv"}


def test_a_figure_has_its_paper_number_once_and_the_command_that_made_it(run):
    page = built(run)
    where = "results/smoke"
    for stem in ("wbcd_mlp_M2_R25", "wbcd_mlp_M2_R25_delivered_vs_claimed"):
        command = f"silodp figure {where}/config.json wbcd_mlp '{stem}' --table {where}/tables/wbcd_mlp.csv"
        files = f"--reported {where}/reported/wbcd_mlp.csv --silos {where}/silos/wbcd_mlp --folder {where}/figures"
        assert f"{command} {files}" in page.text
    assert page.text.count("Figure 8: M = 2, R = 25") == 1
    assert "M = 12, R = 50" in page.text
    # The picture's own title is left out: the heading says it.
    (svg,) = [one for one in re.findall(r"<svg.*?</svg>", (run / "report.html").read_text()) if "Breast cancer" in one]
    assert ">wbcd_mlp<" not in svg
    assert str(run) not in page.text


def test_a_run_on_ones_own_data_opens_with_its_figures_and_privacy_and_no_claims(run):
    about = {"wbcd_mlp": {"title": "My hospital"}, "digits_mlp": {}}
    (run / "config.json").write_text(json.dumps({"run": "mine", "experiments": about}))
    (run / "claims.csv").write_text("a\n1\n")
    page = built(run)
    text = (run / "report.html").read_text()
    assert "Run mine" in page.text
    assert "arXiv" not in page.text
    assert 'id="claims"' not in text
    assert "replicated" not in page.text.split("const ")[0]
    assert text.index("My hospital") < text.index("<svg") < text.index('id="privacy"')


def test_figures_stand_in_the_papers_order_and_keys_only_where_a_filter_needs_them(run):
    # Figures 4, 5 and 9 of the non-convex paper.
    parts = [results("mnist_mlp", *setting) for setting in ((12, 25), (25, 25), (12, 50))]
    write_csv(pd.concat(parts, ignore_index=True), run / "tables" / "mnist_mlp.csv")
    for (M, R, reading), rows in slices(pd.concat(parts, ignore_index=True)):
        save(error_vs_epsilon(rows, title="t"), run / "figures" / figure_name("mnist_mlp", M, R, reading))
    about = {"wbcd_mlp": {"title": "Breast cancer"}, "mnist_mlp": {"paper": "non-convex paper"}}
    (run / "config.json").write_text(json.dumps({"run": "smoke", "experiments": about}))
    page = built(run)
    places = [page.text.index(heading) for heading in ("Figure 4: M = 25", "Figure 5: M = 12", "Figure 9: M = 12")]
    assert places == sorted(places)
    options = {one["value"] for one in page.all("option") if one.get("value")}
    assert {"wbcd_mlp", "mnist_mlp"} <= options
    summary = [row["cells"][0] for row in page.rows if row["cells"][-1] == "3.46×10⁻⁵"]
    assert "Breast cancer" in summary
    assert "wbcd_mlp" not in summary


def test_points_at_an_end_of_their_grid_are_marked_and_explained(run):
    path = run / "tables" / "wbcd_mlp.csv"
    built(run)
    assert not any("at an end of its grid" in heading for heading, _ in unpacked(run)[0])
    table = pd.read_csv(path)
    table["edge"] = ["lowest stepsize", *[""] * (len(table) - 1)]
    write_csv(table, path)
    page = built(run)
    (heading, rows), *_ = unpacked(run)[0]
    cells = [row[heading.index("at an end of its grid")] for row in rows if row[0] == "wbcd_mlp"]
    assert sorted(set(cells)) == ["–", "✛ lowest step size"]
    assert cells.count("✛ lowest step size") == 1
    assert "✛ The step size or clip that was chosen is an end of its grid" in page.text


def test_links_are_relative_to_where_the_page_is_written(run, tmp_path):
    page = built(run, tmp_path / "pages" / "deep" / "r.html")
    links = [unquote(a["href"]) for a in page.all("a") if not a["href"].startswith(("#", "https:"))]
    assert links
    assert all((tmp_path / "pages" / "deep" / link).is_file() for link in links)


def test_every_row_of_every_table_is_there_with_claimed_and_delivered_epsilon(run):
    built(run)
    ((head, bodies), (privacy_head, privacy_rows)), _ = unpacked(run)
    tables = [pd.read_csv(path) for path in (run / "tables").glob("*.csv")]
    assert len(bodies) == sum(map(len, tables))
    assert head[:8] == ["experiment", "algorithm", "variant", "M", "R", "ε", "delivered ε", "test error"]
    assert head.count("q") == 0  # no SPIDER phase in these tables
    own = [row for row in bodies if row[0] == "wbcd_mlp"]
    # 0.9 × 0.75 = 0.675 and 0.9 × 18 = 16.2; errors 0.1 + 0.0138 i, halved and doubled.
    point = ["2", "25", "0.75", "0.675", "0.100", "0.0500 – 0.200"]
    assert own[0][:9] == ["wbcd_mlp", "ISRL-DP MB-SGD", "as in the paper", *point]
    assert own[1][5:9] == ["18", "16.2", "0.114", "0.0569 – 0.228"]
    assert own[6][1:8] == ["MB-SGD (non-private)", "as in the paper", "2", "25", "–", "–", "0.183"]
    assert "∞" in own[6]
    assert len(privacy_rows) == sum(int(table["private"].sum()) for table in tables)
    expected = ["wbcd_mlp", "ISRL-DP MB-SGD", "as in the paper", "2", "25", "0.75", "0.675", "3.46×10⁻⁵"]
    # What is the same everywhere is said once: that claims hold, noise, accountant, adjacency, sampling.
    assert privacy_head == ["experiment", "algorithm", "variant", "M", "R", "ε", "delivered ε", "δ"][:7]
    assert next(row for row in privacy_rows if row[0] == "wbcd_mlp") == expected[:7]


def test_the_privacy_summary_has_a_line_for_each_algorithm_of_each_experiment(run):
    rows = [row["cells"] for row in built(run).rows]
    assert ["Breast cancer", "ISRL-DP MB-SGD", "0.75 to 18", "2 of 2", "0.675 for 0.75", "3.46×10⁻⁵"] in rows
    # Of the default rows alone: two settings of two ε.
    assert [
        "Digits 8×8, 25 digit pairs, perceptron 32-64-2",
        "ISRL-DP SPIDER",
        "0.75 to 18",
        "4 of 4",
        "0.675 for 0.75",
        "3.46×10⁻⁵",
    ] in rows


def test_a_persons_and_a_chosen_runs_epsilon_are_shown_rounded_up(run):
    rows = pd.read_csv(run / "privacy.csv")
    others = {"epsilon_person": 4.0 * rows["epsilon"], "epsilon_selection": 3.0001, "epsilon_half_rounds": np.nan}
    write_csv(rows.assign(**others), run / "privacy.csv")
    page = built(run)
    (_, (heading, shown)), _ = unpacked(run)
    assert {row[heading.index("ε of a person")] for row in shown} == {"3.00", "72.0"}
    assert "ε with the choice = 3.01" in page.text
    assert "after half of the rounds" not in heading


def test_what_is_alike_in_all_rows_is_said_once(run):
    page = built(run)
    assert "holds = yes; noise multiplier = 3.21; δ = 3.46×10⁻⁵; accountant = pld; adjacency = replace-one" in page.text
    assert "n = 170; K = 83" in page.text
    table = pd.read_csv(run / "tables" / "wbcd_mlp.csv")
    table.loc[0, "K"] = 41
    write_csv(table, run / "tables" / "wbcd_mlp.csv")
    rows = pd.read_csv(run / "privacy.csv")
    rows.loc[3, "accountant"] = "rdp"
    write_csv(rows, run / "privacy.csv")
    built(run)
    ((head, bodies), (privacy_head, privacy_rows)), _ = unpacked(run)
    assert next(row for row in bodies if row[0] == "wbcd_mlp")[head.index("K")] == "41"
    assert next(row for row in privacy_rows if "rdp" in row)[1] == "ISRL-DP SPIDER"
    assert "accountant" in privacy_head


def test_a_delivered_epsilon_over_the_claim_is_marked(run):
    page = built(run)
    assert "No private row delivers a larger ε than it claims." in page.text
    table = pd.read_csv(run / "tables" / "wbcd_mlp.csv")
    table.loc[1, ["delivered_epsilon", "diverged"]] = [18.01, 2]
    write_csv(table, run / "tables" / "wbcd_mlp.csv")
    write_csv(privacy(table), run / "privacy.csv")
    page = built(run)
    assert "The delivered ε exceeds the claim in 1 of 24 private rows" in page.text
    ((_, bodies), (_, privacy_rows)), _ = unpacked(run)
    (in_table,) = [row for row in bodies if any("▲" in cell for cell in row)]
    assert "18.1 ▲" in in_table  # an upper bound is rounded up
    assert "2 of 10" in in_table
    (in_privacy,) = [row for row in privacy_rows if any("▲" in cell for cell in row)]
    assert "▲ no" in in_privacy
    (summed,) = [row for row in page.rows if "exceeds" in row["class"]]
    assert summed["cells"][3:5] == ["1 of 2", "18.1 for 18"]


def test_the_partition_is_summed_up(run):
    page = built(run)
    assert "0.0200 (0.0100 to 0.0300 over 2 trials); Newton's method did not converge in 1" in page.text
    rows = [row["cells"] for row in page.rows]
    assert ["0", "7", "2", "0: 7"] in rows
    assert ["1", "9", "0", "1: 9"] in rows
    assert ["0", "8", "2", "25.0 to 90.5"] in rows


def test_the_page_loads_nothing_and_runs_its_own_script_alone(run):
    page = built(run)
    tags = {tag for tag, _ in page.tags}
    assert [one for one in page.all("script") if one != {"type": "text/plain"}] == [{}]
    assert not tags & {"link", "iframe", "object", "embed", "video", "audio", "source", "img"}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "srcset", "action"):
            outside = re.match(r"\s*(?:https?:)?//", attributes.get(name) or "")
            # Nothing is asked of the papers' addresses before a reader goes there.
            assert not outside or (tag == "a" and attributes["href"].startswith("https://arxiv.org/abs/"))
    text = (run / "report.html").read_text(encoding="utf-8")
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    (policy,) = [meta["content"] for meta in page.all("meta") if "default-src 'none'" in (meta.get("content") or "")]
    body = re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


def test_titles_and_values_are_escaped(run):
    evil = '"><script>alert(1)</script><img src=http://x>'
    config = {"run": evil, "experiments": {"wbcd_mlp": {"title": evil, "paper": evil}}}
    (run / "config.json").write_text(json.dumps(config))
    (run / "provenance.json").write_text(json.dumps({"command": evil, evil: "x"}))
    page = built(run)
    assert len([one for one in page.all("script") if one == {}]) == 1
    assert page.all("img") == []
    assert page.text.count("<script>alert(1)</script>") >= 4


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ("config.json", None),
        ("provenance.json", "provenance.json is not there"),
        ("privacy.csv", "privacy.csv is not there"),
        ("audit.csv", "audit.csv is not there"),
        ("tables/wbcd_mlp.csv", "tables/wbcd_mlp.csv is not there"),
        ("figures/wbcd_mlp_M2_R25.svg", "figures/wbcd_mlp_M2_R25.svg is not there"),
        ("figures/wbcd_mlp_M2_R25.pdf", None),
        ("silos/wbcd_mlp/default/labels.csv", "silos/wbcd_mlp/default/labels.csv is not there"),
        ("silos/digits_mlp/default/labels.csv", "silos/digits_mlp/default has neither"),
        ("silos/wbcd_mlp/default/heterogeneity.csv", "No heterogeneity was computed"),
    ],
)
def test_a_missing_part_is_said_in_a_line(run, part, line):
    (run / part).unlink()
    page = built(run)
    assert line is None or line in page.text
    tables, _ = unpacked(run)
    assert len(tables[0][1]) == (21 if part == "tables/wbcd_mlp.csv" else 28)
    assert len(page.all("figure")) == len(list((run / "figures").glob("*.svg")))


def test_an_empty_run_makes_a_page_and_no_run_none(tmp_path):
    (tmp_path / "empty").mkdir()
    page = built(tmp_path / "empty")
    assert "Run empty" in page.text
    assert "time not recorded" in page.text
    assert "No experiments" in page.text
    with pytest.raises(ValueError, match="no such run folder"):
        report.build(tmp_path / "none", tmp_path / "none.html")
    assert not (tmp_path / "none.html").exists()


@pytest.mark.parametrize(
    ("part", "text", "words"),
    [
        ("config.json", "{", "not JSON"),
        ("provenance.json", "[]", "a JSON list, allowed: an object"),
        ("tables/wbcd_mlp.csv", "a,b\n1,2\n", "lacks the columns experiment"),
        ("tables/wbcd_mlp.csv", "", "not a table"),
        ("privacy.csv", ",".join(PRIVACY_COLUMNS) + "\n" + ",".join(["1"] * 13 + ["perhaps"]) + "\n", "column holds"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(run, part, text, words):
    (run / part).write_text(text)
    with pytest.raises(ValueError, match=words) as caught:
        built(run)
    assert Path(part).name in str(caught.value)
    assert not (run / "report.html").exists()


def test_the_same_run_gives_the_same_page(run, tmp_path):
    built(run)
    first = (run / "report.html").read_bytes()
    built(run)
    assert (run / "report.html").read_bytes() == first


@pytest.mark.parametrize(
    ("value", "exact", "measured", "bounded"),
    [
        (0.5, "0.5", "0.500", "0.500"),
        (10000.0, "10000", "10000", "10000"),
        (1234.56, "1235", "1235", "1235"),
        (0.12345, "0.1234", "0.123", "0.124"),  # half to even at the 4th digit
        (1.0001, "1", "1.00", "1.01"),
        (9.9999, "10", "10.0", "10.0"),
        (1.2345e-5, "1.234×10⁻⁵", "1.23×10⁻⁵", "1.24×10⁻⁵"),
        (2.5e9, "2.5×10⁹", "2.5×10⁹", "2.5×10⁹"),
        (-0.25, "−0.25", "−0.250", "−0.250"),
        (0.0, "0", "0", "0"),
        (float("inf"), "∞", "∞", "∞"),
        (float("nan"), "–", "–", "–"),
    ],
)
def test_numbers(value, exact, measured, bounded):
    assert (numbers.exact(value), numbers.measured(value), numbers.bounded(value)) == (exact, measured, bounded)


@pytest.mark.parametrize(("lower", "shown", "marked"), [(0.4567, "0.456", "yes"), (0.6, "0.600", "▲ no")])
def test_the_audit_stands_beside_what_is_delivered(run, lower, shown, marked):
    """Each bound is rounded to its own safe side; one above what is delivered is an alarm."""
    write_csv(audited(lower), run / "audit.csv")
    page = built(run)
    (row,) = [row for row in page.rows if "M = 2, R = 25" in row["cells"]]
    assert row["cells"] == [
        "Breast cancer",
        "ISRL-DP MB-SGD",
        "M = 2, R = 25",
        "1",
        "0.75",
        shown,
        "0.535",
        "3.5×10⁻⁵",
        marked,
    ]
    assert ("exceeds" in row["class"]) == (marked != "yes")
    assert "confidence 0.99; runs 80" in page.text


def with_every_epsilon(run):
    """The privacy table with the columns that experiments on one's own data have."""
    extra = ("delivered_lower", "epsilon_selection", "epsilon_first_round", "epsilon_half_rounds", "shuffled_bits")
    privacy = pd.read_csv(run / "privacy.csv")
    privacy = privacy.assign(person_silos=2, person_records=3, epsilon_person=77.7, selection_points=28)
    privacy.assign(**dict.fromkeys(extra, 0.5)).to_csv(run / "privacy.csv", index=False)


def test_a_run_on_a_file_of_ones_own_opens_with_what_is_promised_and_what_is_not(run):
    config = json.loads((run / "config.json").read_text())
    config["experiments"] = {"wbcd_mlp": config["experiments"]["wbcd_mlp"]}
    own = {"file": "a.csv", "target": "y", "silo": "s", "person": "p"}
    steps = {"standardise": "bounds", "bounds_from": "file"}
    config["experiments"]["wbcd_mlp"] |= {"dataset": own, "paper": "", "preprocess": steps}
    (run / "config.json").write_text(json.dumps(config))
    with_every_epsilon(run)
    for name in ("wbcd_mlp_M2_R25_by_round", "formulas_convex"):
        shutil.copy(next((run / "figures").glob("wbcd_mlp*.svg")), run / "figures" / f"{name}.svg")
    (run / "models" / "wbcd_mlp").mkdir(parents=True)
    (run / "models" / "wbcd_mlp" / "minibatch_sgd_M2_R25_eps1.md").write_text("card")
    report.build(run, run / "report.html")
    text = (run / "report.html").read_text(encoding="utf-8")
    assert "what is promised, and what is not" in text
    assert "A person has records in 2 silos at most, up to 3 in one" in text
    assert "77.7" in text
    assert "bounds were read off the records" in text
    assert "models/wbcd_mlp/minibatch_sgd_M2_R25_eps1.md" in text
    assert "Private Federated Learning Without a Trusted Server" not in text
    assert "Noise formulas" not in text
    assert "formulas_convex" not in text
    assert re.search(r"ε by round: [^<]+, M = 2, R = 25", text)
    assert "as in the paper" not in "".join(cell for _, rows in unpacked(run)[0] for row in rows for cell in row)


def test_so_does_a_data_set_that_names_its_silos_where_no_papers_figure_is_made_again(run):
    about = {"dataset": "obesity", "title": "Obesity", "silos": {"scheme": "column"}, "preprocess": {}}
    with_every_epsilon(run)
    for paper, wanted in (("", True), ("Figure 2", False)):
        config = {"run": "mine", "experiments": {"wbcd_mlp": about | {"paper": paper}}}
        (run / "config.json").write_text(json.dumps(config))
        report.build(run, run / "report.html")
        assert ("what is promised, and what is not" in (run / "report.html").read_text(encoding="utf-8")) == wanted
