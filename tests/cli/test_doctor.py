"""`silodp doctor`: what is installed is held against the lock."""

import sys
from importlib import metadata
from types import SimpleNamespace

import pytest

from silodp.cli import doctor, main
from silodp.datasets.sources import sources


def test_packages_that_are_missing_or_of_another_version_are_named(tmp_path):
    lock = tmp_path / "requirements.lock"
    assert doctor._differing(lock) == []
    numpy, scipy = (metadata.version(name) for name in ("numpy", "scipy"))
    lock.write_text(
        f"# pins\nnumpy=={numpy}+cpu  # arrays\nscipy==0.0.1 ; python_version > '3'\nno-such-package==1.0\n"
    )
    assert doctor._differing(lock) == [f"scipy {scipy}", "no-such-package missing"]


def test_data_sets_are_fetched_once_all_their_files_are_there(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "cache_folder", lambda: tmp_path)
    files = {name: [source.file for source in sources(name).files] for name in ("mnist", "insurance")}
    for file in (*files["insurance"], *files["mnist"][1:]):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    for fetched in ("insurance", "insurance, mnist"):
        works, said = doctor._data()
        assert (works, said.split(" of ")[0]) == (False, f"fetched: {fetched}")
        (tmp_path / files["mnist"][0]).touch()


@pytest.mark.parametrize(("free", "code"), [(10**9, 1), (10**9 + 1, 0)])
def test_a_machine_where_the_default_run_works_has_a_gigabyte_free(free, code, monkeypatch):
    monkeypatch.setattr(doctor, "_differing", lambda lock: [])
    monkeypatch.setattr(doctor, "_writable", lambda folder: (True, "writable"))
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
    assert main(["doctor"]) == code


@pytest.mark.parametrize(("command", "device"), [("/usr/bin/nvidia-smi", False), (None, True)])
def test_pytorch_is_asked_where_there_is_any_sign_of_a_driver(command, device, monkeypatch):
    torch = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(doctor, "_gain", lambda: "a gain")
    monkeypatch.setattr(doctor.shutil, "which", lambda name: command)
    monkeypatch.setattr(doctor.Path, "exists", lambda path: device)
    assert doctor._cuda() == (False, "PyTorch sees no device; a gain")
