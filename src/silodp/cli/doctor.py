"""The command `silodp doctor`."""

import os
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from silodp import __version__
from silodp.cli.options import command
from silodp.config.errors import project_root
from silodp.datasets import DATASETS
from silodp.datasets.cache import cache_folder
from silodp.datasets.sources import sources
from silodp.experiments.devices import gpu_gain
from silodp.experiments.validation import experiment_of, silo_sizes
from silodp.workflow import provenance


@command()
def doctor() -> int:
    """Show what works on this machine, for a bug report: environment, cores, disk, data, CUDA, Slurm.

    Exit code 0 where the default run will work, else 1. The text names no person and no host.
    """
    root, free = project_root(), shutil.disk_usage(Path.cwd()).free / 1e9
    machine = provenance.machine()
    differing = _differing(root / "requirements.lock")
    packages = f"differ from requirements.lock: {', '.join(differing)}" if differing else "locked"
    checks = {
        "silodp": (True, f"{__version__}, {provenance.git_state(root)['commit'] or 'not a git checkout'}"),
        "python": (fits(sys.version_info[:2]), f"{sys.version.split()[0]} (supported: 3.11 to 3.13)"),
        "packages": (not differing, packages),
        "cores": (True, f"{machine['cores_usable']} of {machine['cores']}, {machine['cpu']}"),
        "memory": (True, f"{machine['memory_gib']} GiB"),
        "disk": (free > 1, f"{free:.1f} GB free"),
        "this folder": _writable(Path.cwd()),
        "temporary files": _writable(Path(tempfile.gettempdir())),
        "home": _writable(Path.home()),
    }
    # What only some runs need.
    slurm = shutil.which("sinfo")
    extras = {"data": _data(), "CUDA": _cuda(), "Slurm": (slurm is not None, slurm or "no sinfo")}
    for name, (works, text) in (checks | extras).items():
        print(f"{'ok' if works else 'no' if name in extras else 'BAD':<4}{name:<16} {text}")
    return 0 if all(works for works, _ in checks.values()) else 1


def _cuda() -> tuple[bool, str]:
    """Whether PyTorch sees a device, and which; loaded where a driver is there alone, as that takes seconds."""
    if not (shutil.which("nvidia-smi") or Path("/dev/nvidiactl").exists()):
        return False, f"no NVIDIA driver; {_gain()}"
    import torch  # takes seconds

    works = torch.cuda.is_available()
    return works, f"{torch.cuda.get_device_name() if works else 'PyTorch sees no device'}; {_gain()}"


def _gain() -> str:
    """What a GPU is expected to bring to two experiments."""
    gains = {}
    for file, name in (("cifar.yaml", "cifar10_cnn"), ("default.yaml", "wbcd_mlp")):
        _, experiment = experiment_of(project_root() / "config" / file, name)
        gains[name] = gpu_gain(experiment, silo_sizes(experiment)[1])
    listed = ", ".join(f"{gain:.2g} times for {name}" for name, gain in gains.items())
    return f"expected of an H200 against 16 cores: {listed} (device: auto with gpus: true takes the faster)"


def fits(version: tuple[int, int]) -> bool:
    """Whether the package supports this version of Python, as pyproject.toml says."""
    return (3, 11) <= version <= (3, 13)


def _differing(lock: Path) -> list[str]:
    """Packages that are missing, or whose version is not the lock's."""
    differing = []
    for line in lock.read_text(encoding="utf-8").splitlines() if lock.is_file() else []:
        name, pinned, version = line.partition("#")[0].partition(";")[0].strip().partition("==")
        if not pinned:
            continue
        try:
            installed = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            installed = "missing"
        if installed != version.partition("+")[0]:
            differing.append(f"{name} {installed}")
    return differing


def _writable(folder: Path) -> tuple[bool, str]:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True, "writable"
    except OSError as error:
        return False, f"not writable: {error.strerror}"


def _data() -> tuple[bool, str]:
    folder = cache_folder()
    files = {name: sources(name).files for name, dataset in DATASETS.items() if not dataset.embedded}
    fetched = [name for name, wanted in files.items() if all((folder / source.file).is_file() for source in wanted)]
    mirror = "a mirror is set" if os.environ.get("SILODP_DATA_MIRROR") else "no mirror is set"
    return len(fetched) == len(files), f"fetched: {', '.join(fetched) or 'none'} of {', '.join(files)}; {mirror}"
