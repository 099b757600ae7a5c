"""Rules: one order of their parts, a message each, and jobs whose arguments are those of their functions."""

import inspect
import re
from importlib import import_module

import pytest
from small import ROOT

ORDER = ("input", "output", "log", "threads", "resources", "params", "message", "shell")
TEXTS = {file.name: file.read_text(encoding="utf-8") for file in (ROOT / "workflow").rglob("*.smk")}
TEXTS["Snakefile"] = (ROOT / "workflow" / "Snakefile").read_text(encoding="utf-8")
# Name or place of a rule → its text, up to the first line that stands as far left as `rule`.
RULES = {
    f"{file}: {found[2] or found.start()}": found[3]
    for file, text in TEXTS.items()
    for found in re.finditer(r"(?m)^( *)rule ?(\w*):\n((?:\1 +.*\n|\n)+)", text)
}


@pytest.mark.parametrize("rule", RULES)
def test_parts_of_a_rule_stand_in_one_order_with_a_message(rule):
    margin = min(len(line) - len(line.lstrip()) for line in RULES[rule].splitlines() if line.strip())
    parts = [part for part in re.findall(rf"(?m)^ {{{margin}}}(\w+):", RULES[rule]) if part in ORDER]
    assert parts == sorted(parts, key=ORDER.index)
    assert "message" in parts


@pytest.mark.parametrize("rule", [rule for rule, text in RULES.items() if "shell" in text])
def test_a_rule_gives_its_job_what_the_function_takes(rule):
    text = RULES[rule]
    if "REDRAW" in text:
        text = TEXTS["figures.smk"].partition("REDRAW = ")[2].partition("\n)")[0]
    words = "".join(re.findall(r'(?m)^ +"(.*)"$', text.partition("shell:")[2] or text))
    (name,) = re.findall(r"python -m silodp\.jobs (\w+) ", words)
    given = re.findall(r" (\w+)=\{", words)
    job = getattr(import_module(f"silodp.jobs.{name}"), name)
    known = inspect.signature(job).parameters
    assert {"run_file", "digest"} <= set(given)
    assert set(given) - {"run_file", "digest"} <= set(known)
    assert {key for key, of in known.items() if of.default is inspect.Parameter.empty} <= set(given)
