"""The ledger of a folder's records: chained lines, a budget, and what all runs of them may cost together.

`ledger.jsonl` has a JSON object a line: number, a charge's plan, the HMAC of the line before ("previous") and its own.
The secret lies beside it with the number and HMAC of the newest line. All charges count together, whatever a file, a
column, a silo or a run is called.
"""

import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from silodp.config.errors import ConfigError
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.privacy.true_epsilon import upper_end
from silodp.silos.durable import locked, write_private
from silodp.silos.wire import MARK, NO_MARK

FORMAT = 1
NAME, REFUSED, _KEY, _FORMER = "ledger.jsonl", "refused.mark", ".ledger.key", "ledger.csv"
_REPAIR = "`silodp ledger repair` with a bound of what is lost"
_NEWER = f"the coordinator knows a newer copy of it ({REFUSED}): restore the newest, or {_REPAIR}"


class Ledger:
    """Lines that were read and held against their chain. `trouble` is what stops a charge, in one sentence."""

    def __init__(self, folder: Path):
        self.folder, self.path, self.trouble = folder, folder / NAME, ""
        self.key, newest = self._read_key()
        self.lines = self._read_lines()
        self._known = newest["number"]
        lost = self._known - len(self.lines)
        if self.lines and self.key is None:
            self.trouble = f"its secret {_KEY} is lost: restore it, or {_REPAIR}"
        elif lost > 0:
            self.trouble = f"{lost} lines are lost at its end: restore a copy, or {_REPAIR}"
        elif newest["number"] and self.lines[newest["number"] - 1]["mac"] != newest["mac"]:
            raise self._broken(newest["number"], "is not the one that its secret knows")
        elif (folder / _FORMER).exists():
            self.trouble = f"{_FORMER} of an earlier version is read no more: {_REPAIR} if it goes, and remove it"
        elif self._is_contradicted(self._refused()):
            self.trouble = _NEWER

    @property
    def charges(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["kind"] == "charge"]

    @property
    def budget(self) -> float | None:
        """Largest total ε that may be charged; None where nobody set one."""
        return next((line["epsilon"] for line in reversed(self.lines) if line["kind"] == "budget"), None)

    def total(self, *plans: PrivacyPlan) -> tuple[float, float]:
        """(ε, δ) of all charges, of further `plans`, and of bounds that the owner gave.

        All compose at their largest δ. So do those of smaller δ alone at theirs: one more charge lowers no total.
        Noisy local steps count as seen, as in a silo's promise.
        """
        charged = [plan.with_steps_seen for plan in (*map(plan_of, self.charges), *plans)]
        deltas = sorted({plan.budget.delta for plan in charged})
        parts = [[plan for plan in charged if plan.budget.delta <= delta] for delta in deltas]
        given = [line for line in self.lines if line["kind"] == "repair"]
        epsilon = max(map(upper_end, parts), default=0.0) + sum(line["epsilon"] for line in given)
        return epsilon, max(deltas, default=0.0) + sum(line["delta"] for line in given)

    def stop_in_trouble(self) -> None:
        if self.trouble:
            raise ConfigError(f"{self.path}: {self.trouble}")

    def check(self, plan: PrivacyPlan, budget: float | None = None) -> tuple[float, float]:
        """The total with a charge of `plan`; ConfigError for a ledger in trouble, or a total above its budget.

        `budget` counts while the ledger has none.
        """
        self.stop_in_trouble()
        found, limit = self.total(plan), budget if self.budget is None else self.budget
        if limit is not None and not found[0] <= limit:
            words = f"with this charge the total would be epsilon = {math.ceil(found[0] * 1e3) / 1e3:g}"
            allowed = "must be within it (`silodp silo budget --raise`)"
            raise ConfigError(f"{self.path}: budget: {limit:g}: {words}: {allowed}")
        return found

    def charge(self, plan: PrivacyPlan, about: Mapping[str, Any]) -> dict[str, Any]:
        """Check a charge and write it, durable once this returns; the line, with its number and mac.

        `about` is what an owner reads of it; nothing is computed from it. ValueError for a plan that a shuffler hides:
        no silo promises what others must do.
        """
        if plan.is_shuffled:
            raise ValueError(f"{plan.algorithm}: must be a plan that needs no shuffler")
        epsilon, delta = self.check(plan)
        stored = {name: value for name, value in asdict(plan).items() if name not in ("shuffler", "shuffled_sum")}
        return self._write("charge", about=dict(about), plans=[stored], total_epsilon=epsilon, total_delta=delta)

    def set_budget(self, epsilon: float) -> dict[str, Any]:
        self.stop_in_trouble()
        return self._write("budget", epsilon=epsilon)

    def repair(self, epsilon: float, delta: float) -> dict[str, Any]:
        """Count what is lost by the owner's upper bound (ε, δ); without the secret, a new one signs all lines.

        The line counts on from all lines that there were, as the secret and the mark know: later marks follow them.
        """
        if not self.trouble:
            raise ConfigError(f"{self.path}: every line can be read: nothing to repair")
        self.trouble, mark = "", self._refused()
        held: dict[str, Any] = {"lines": self._known}
        if self._is_contradicted(mark):
            # Only a mark of this ledger's secret tells how many lines there were.
            number = MARK.unpack(mark)[0] if self._has_signed(mark) else 0
            held = {"mark": mark.hex(), "lines": max(self._known, number)}
        if self.key is None:
            kept, self.lines = self.lines, []
            for line in kept:
                self._append({name: value for name, value in line.items() if name not in ("number", "previous", "mac")})
        return self._write("repair", epsilon=epsilon, delta=delta, **held)

    def mark(self, run: bytes, slots: int) -> bytes:
        """What a coordinator keeps of this ledger: its newest line, and how many slots of a run were opened."""
        number, newest = list(self._numbered().items())[-1]
        head = MARK.pack(number, bytes.fromhex(newest), run, slots, b"")[:-32]
        return head + bytes.fromhex(self.keyed(head))

    def hold_to(self, mark: bytes) -> None:
        """ConfigError where a coordinator's mark contradicts this ledger, which stays in trouble until it is mended."""
        if self._is_contradicted(mark):
            write_private(self.folder / REFUSED, mark)
            self.trouble = _NEWER
        self.stop_in_trouble()

    def _is_contradicted(self, mark: bytes) -> bool:
        """Whether a mark is of a line that this ledger has not, or of another secret, and no repair holds it."""
        if mark == NO_MARK or any(line.get("mark") == mark.hex() for line in self.lines):
            return False
        if not self._has_signed(mark):
            return True
        (number, newest, *_), numbered = MARK.unpack(mark), self._numbered()
        # A smaller number that no line has is of a line that a repair counts as lost.
        return number > max(numbered, default=0) or numbered.get(number, newest.hex()) != newest.hex()

    def _has_signed(self, mark: bytes) -> bool:
        """Whether a mark is this secret's."""
        if self.key is None or len(mark) != MARK.size:
            return False
        return hmac.compare_digest(self.keyed(mark[:-32]), mark[-32:].hex())

    def _numbered(self) -> dict[int, str]:
        """Number in marks → HMAC of a line: a repair follows the lines that it counts as lost."""
        numbered, number = {}, 0
        for line in self.lines:
            number = max(number, line.get("lines", 0)) + 1
            numbered[number] = line["mac"]
        return numbered

    def _refused(self) -> bytes:
        path = self.folder / REFUSED
        return path.read_bytes() if path.exists() else NO_MARK

    def keyed(self, content: bytes) -> str:
        """HMAC-SHA256 under the ledger's secret: the only digest of records that anything may hold."""
        assert self.key is not None
        return hmac.new(self.key, content, hashlib.sha256).hexdigest()

    def _append(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        self.key = self.key or secrets.token_bytes(32)
        previous = self.lines[-1]["mac"] if self.lines else ""
        line = {"format": FORMAT, "number": len(self.lines) + 1, "previous": previous} | dict(stored)
        self.lines.append(line | {"mac": self._mac(line)})
        return self.lines[-1]

    def _write(self, kind: str, **stored: Any) -> dict[str, Any]:
        """Add a line: replace the ledger and then its secret's file as a whole."""
        line = self._append({"kind": kind, "time": datetime.now(UTC).isoformat(timespec="seconds")} | stored)
        if not (self.folder / _KEY).exists():
            self._write_key(0, "")
        write_private(self.path, "".join(_text(line) + "\n" for line in self.lines).encode())
        self._write_key(line["number"], line["mac"])
        return line

    def _write_key(self, number: int, mac: str) -> None:
        assert self.key is not None
        known = {"format": FORMAT, "key": self.key.hex(), "number": number, "mac": mac}
        write_private(self.folder / _KEY, json.dumps(known).encode())

    def _mac(self, line: Mapping[str, Any]) -> str:
        return self.keyed(_text({name: value for name, value in line.items() if name != "mac"}).encode())

    def _broken(self, number: int, what: str) -> ConfigError:
        return ConfigError(
            f"{self.path}: line {number}: {what}: restore the ledger from a copy, as totals need every line"
        )

    def _read_key(self) -> tuple[bytes | None, dict[str, Any]]:
        if not (self.folder / _KEY).exists():
            return None, {"number": 0, "mac": ""}
        try:
            known = json.loads((self.folder / _KEY).read_text(encoding="utf-8"))
            return bytes.fromhex(known["key"]), {"number": int(known["number"]), "mac": str(known["mac"])}
        except (ValueError, KeyError, TypeError):
            allowed = f"must be as silodp wrote it, or be removed, and {_REPAIR}"
            raise ConfigError(f"{self.folder / _KEY}: damaged: {allowed}") from None

    def _read_lines(self) -> list[dict[str, Any]]:
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace") if self.path.exists() else ""
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}: must be a readable file") from None
        lines: list[dict[str, Any]] = []
        for number, row in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
            try:
                line = json.loads(row)
                previous = lines[-1]["mac"] if lines else ""
                follows = (line["format"], line["number"], line["previous"]) == (FORMAT, number, previous)
                plan_of(line) if line["kind"] == "charge" else float(line["epsilon"])
            except (ValueError, KeyError, TypeError, AttributeError):
                raise self._broken(number, "damaged, or of an earlier version") from None
            if not follows or (self.key is not None and not hmac.compare_digest(self._mac(line), line["mac"])):
                raise self._broken(number, "is not what was written")
            lines.append(line)
        return lines


@contextmanager
def opened(folder: Path) -> Iterator[Ledger]:
    """The ledger of `folder`, as soon and as long as no other process has it; ConfigError where there is no folder."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder: must be a ledger's, which `silodp silo check` makes")
    with locked(folder / ".ledger.lock"):
        yield Ledger(folder)


def _text(line: Mapping[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False)


def plan_of(line: Mapping[str, Any]) -> PrivacyPlan:
    """The plan of a charge; ValueError, KeyError or TypeError where it cannot be read, or is a choice among runs."""
    (stored,) = line["plans"]
    if stored.get("tries", 1) > 1:
        raise ValueError("a choice among runs, as an earlier version made")
    # JSON has no tuples.
    messages: list[dict[str, Any]] = [
        {name: tuple(value) if isinstance(value, list) else value for name, value in release.items()}
        for release in stored["releases"]
    ]
    releases = tuple(Release(**message) for message in messages)
    known = {name: stored[name] for name in ("algorithm", "trusted_sum", "assumption")}
    return PrivacyPlan(budget=Budget(**stored["budget"]), releases=releases, **known)
