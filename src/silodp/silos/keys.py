"""A party's private key and self-signed certificate; a party is known by the SHA-256 of its certificate alone."""

import hashlib
import ssl
import subprocess
import time
from pathlib import Path

from silodp.config.errors import ConfigError

# The name that every certificate carries: parties are told apart by the whole certificate, never by a name in it.
NAME = "silodp"


def make_key(path: Path) -> str:
    """Write `path` (mode 600) and the certificate beside it, by openssl; returns the certificate."""
    certificate = path.with_suffix(".crt")
    for file in (path, certificate):
        if file.exists():
            raise ConfigError(f"{file}: already exists: a key is never replaced; remove it or choose another name")
    path.touch(mode=0o600)
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc"]
    words += ["-days", "3650", "-subj", f"/CN={NAME}", "-addext", "basicConstraints=critical,CA:FALSE"]
    words += ["-addext", f"subjectAltName=DNS:{NAME}", "-keyout", str(path), "-out", str(certificate)]
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        path.unlink(missing_ok=True)
        raise ConfigError(
            f"{path}: openssl made no key ({type(error).__name__}): must be installed, 1.1.1 or later"
        ) from None
    return certificate.read_text()


def fingerprint(certificate: str, place: str = "certificate") -> bytes:
    """SHA-256 of a certificate in PEM; ConfigError, which begins with `place`, where it is none."""
    try:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.strip() + "\n")).digest()
    except ValueError:
        raise ConfigError(f"{place}: must be a whole certificate, as `silodp silo key` printed it") from None


def own_pair(key: Path, agreed: str, place: str) -> tuple[bytes, bytes]:
    """(private key, certificate) of a party; ConfigError where the agreed certificate is another's, or out of date."""
    own = key.with_suffix(".crt")
    if not key.is_file() or fingerprint(agreed, place) != fingerprint(own.read_text(), str(own)):
        raise ConfigError(f"{place}: is not that of {key}: must be the whole of {own}")
    check_dates(agreed, place)
    return key.read_bytes(), agreed.encode()


def check_dates(certificate: str, place: str) -> None:
    """ConfigError for a certificate that is expired, not yet valid, or none."""
    words = ["openssl", "x509", "-noout", "-dates"]
    try:
        done = subprocess.run(words, input=certificate, check=True, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        allowed = "must be a whole certificate, as `silodp silo key` printed it, and openssl be installed"
        raise ConfigError(f"{place}: cannot be read: {allowed}") from None
    begin, end = (date.partition("=")[2] for date in done.stdout.splitlines())
    if time.time() < ssl.cert_time_to_seconds(begin):
        raise ConfigError(f"{place}: not yet valid, before {begin}: must be so by this machine's clock")
    if time.time() > ssl.cert_time_to_seconds(end):
        raise ConfigError(f"{place}: expired on {end}: must be another (`silodp silo key`)")


def spoken(digest: bytes) -> str:
    """A fingerprint in groups of four figures, to be compared by telephone."""
    text = digest.hex()
    return " ".join(text[place : place + 4] for place in range(0, len(text), 4))
