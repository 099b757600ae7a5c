"""What a packager reads: locks, versions and citations that say the same."""

import re
import tomllib
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from small import ROOT

from silodp.cli import doctor
from silodp.config.loading import read_run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAPERS = {"2106.09779", "2203.06735", "2007.06605"}


def pinned(path: Path) -> dict[str, str]:
    """Version by name of a lock file."""
    found = re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)", path.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


LOCKED = pinned(ROOT / "requirements.lock")


def test_the_lock_with_hashes_is_the_lock_and_every_entry_has_a_hash():
    """PyTorch as its CPU build alone: PyPI's asks for libraries that no lock has, and pip would take it first."""
    hashed = ROOT / "requirements/hashes.lock"
    assert pinned(hashed) == LOCKED | {"torch": f"{LOCKED['torch']}+cpu"}
    entries = re.split(r"^(?=[A-Za-z0-9])", hashed.read_text(), flags=re.MULTILINE)[1:]
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)


def test_direct_dependencies_are_locked_at_the_version_that_is_asked_for():
    more = PROJECT["optional-dependencies"]
    wanted = [Requirement(line) for line in [*PROJECT["dependencies"], *more["dev"], *more["cluster"]]]
    assert {one.name.lower(): str(one.specifier) for one in wanted} == {
        one.name.lower(): f"=={LOCKED[one.name.lower()]}" for one in wanted
    }


def test_generated_files_are_as_generated():
    """environment.yml with the pins of the lock, .zenodo.json with the fields of CITATION.cff, the table of figures."""
    loader = SourceFileLoader("derived", str(ROOT / ".ci" / "derived"))
    derived = module_from_spec(spec_from_loader("derived", loader))
    loader.exec_module(derived)
    for path, text in derived.files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: make docs"
    pins = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"][-1]["pip"]
    assert {Requirement(pin).name for pin in pins} >= {"torch", "snakemake", "numpy"}
    assert len(pins) == len(LOCKED)


def test_citation_and_package_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (PROJECT["version"], PROJECT["license"]) == (citation["version"], citation["license"])
    assert "authors" not in PROJECT
    assert {paper["url"].rpartition("/")[2] for paper in citation["references"]} == PAPERS


def test_commands_of_the_artifact_guide_are_there():
    """Its targets of make, its run files and its committed files."""
    guide, targets = (ROOT / "ARTIFACT.md").read_text(), (ROOT / "Makefile").read_text()
    assert len(guide.splitlines()) <= 70
    for target, words in re.findall(r"`make ([a-z-]+)((?: [A-Z]+=\S+)*)`", guide):
        assert re.search(rf"^{target}:", targets, flags=re.MULTILINE), target
        for name in re.findall(r"RUN=(\S+)", words):
            assert read_run(ROOT / "config" / f"{name}.yaml").experiments
    assert all((ROOT / path).exists() for path in re.findall(r"(?<![\w/])(?:docs|results/published)[\w./-]*\w", guide))


def test_every_place_names_the_same_pythons():
    wanted = SpecifierSet(PROJECT["requires-python"])
    minors = [minor for minor in range(30) if f"3.{minor}.1" in wanted]
    assert minors == list(range(minors[0], minors[-1] + 1))
    (tried,) = re.findall(r"for one in ((?:python3\.\d+ ?)+);", (ROOT / "Makefile").read_text())
    assert tried.split() == [f"python3.{minor}" for minor in minors]
    words = f"Python 3.{minors[0]} to 3.{minors[-1]}"
    for file in ("README.md", ".ci/run"):
        assert words in (ROOT / file).read_text(), file
    assert all(doctor.fits((3, minor)) == (minor in minors) for minor in range(30))
