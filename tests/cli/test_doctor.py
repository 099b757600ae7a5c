"""`silodp doctor`: what is installed is held against the lock."""

from importlib import metadata

from silodp.cli import doctor


def test_packages_that_are_missing_or_of_another_version_are_named(tmp_path):
    lock = tmp_path / "requirements.lock"
    assert doctor._differing(lock) == []
    numpy, scipy = (metadata.version(name) for name in ("numpy", "scipy"))
    lock.write_text(
        f"# pins\nnumpy=={numpy}+cpu  # arrays\nscipy==0.0.1 ; python_version > '3'\nno-such-package==1.0\n"
    )
    assert doctor._differing(lock) == [f"scipy {scipy}", "no-such-package missing"]
