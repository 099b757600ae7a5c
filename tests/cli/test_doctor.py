"""`silodp doctor`: what is installed is held against the lock."""

from importlib import metadata

from silodp.cli import doctor
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
