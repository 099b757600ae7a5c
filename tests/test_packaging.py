"""What a packager reads: locks, versions and citations that say the same."""

import json
import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from small import ROOT

from silodp.cli import doctor

PAPERS = {"2106.09779", "2203.06735", "2007.06605"}


def pinned(path: Path) -> dict[str, str]:
    """Version by name of a lock file."""
    found = re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)", path.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def test_the_lock_with_hashes_is_the_lock_and_every_entry_has_a_hash():
    """PyTorch as its CPU build alone: PyPI's asks for libraries that no lock has, and pip would take it first."""
    hashed = ROOT / "requirements-hashes.lock"
    locked = pinned(ROOT / "requirements.lock")
    assert pinned(hashed) == locked | {"torch": f"{locked['torch']}+cpu"}
    entries = re.split(r"^(?=[A-Za-z0-9])", hashed.read_text(), flags=re.MULTILINE)[1:]
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)


def test_direct_dependencies_are_locked_at_the_version_that_is_asked_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    more = project["optional-dependencies"]
    wanted = [Requirement(line) for line in [*project["dependencies"], *more["dev"], *more["cluster"]]]
    locked = pinned(ROOT / "requirements.lock")
    assert {one.name.lower(): str(one.specifier) for one in wanted} == {
        one.name.lower(): f"=={locked[one.name.lower()]}" for one in wanted
    }


def test_citation_deposit_and_package_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    deposit = json.loads((ROOT / ".zenodo.json").read_text())
    assert project["version"] == citation["version"] == deposit["version"]
    assert project["license"] == citation["license"] == deposit["license"]
    assert citation["title"] == deposit["title"]
    assert {one["url"].rpartition("/")[2] for one in citation["references"]} == PAPERS
    assert {one["identifier"].removeprefix("arXiv:") for one in deposit["related_identifiers"]} == PAPERS
    assert set(re.findall(r"\d{4}\.\d{5}", (ROOT / "docs" / "papers.md").read_text())) >= PAPERS


def test_every_place_names_the_same_pythons():
    wanted = SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])
    minors = [minor for minor in range(30) if f"3.{minor}.1" in wanted]
    assert minors == list(range(minors[0], minors[-1] + 1))
    (tried,) = re.findall(r"for one in ((?:python3\.\d+ ?)+);", (ROOT / "Makefile").read_text())
    assert tried.split() == [f"python3.{minor}" for minor in minors]
    words = f"Python 3.{minors[0]} to 3.{minors[-1]}"
    for file in ("README.md", "docs/contributing.md", ".ci/run"):
        assert words in (ROOT / file).read_text(), file
    assert all(doctor.fits((3, minor)) == (minor in minors) for minor in range(30))


def test_types_come_with_the_package():
    assert (ROOT / "src" / "silodp" / "py.typed").is_file()
