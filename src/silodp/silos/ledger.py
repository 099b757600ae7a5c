"""The ledger of a folder's records: chained lines, a budget, and what each release of them may cost.

`ledger.jsonl` has a JSON object a line: number, kind, plans, the HMAC of the line before ("previous") and its own.
The secret lies beside it with the number and HMAC of the newest line. All charges count together, whatever a file, a
column, a silo or a run is called. Totals need no secret.
"""

import fcntl
import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from silodp.config.errors import ConfigError
from silodp.privacy.plan import Budget, PrivacyPlan, Release
from silodp.silos.durable import write_private
from silodp.silos.ledger_total import total
from silodp.silos.wire import MARK, NO_MARK

FORMAT = 1
NAME, _KEY, _TORN, _FORMER = "ledger.jsonl", ".ledger.key", "ledger.torn", "ledger.csv"
REFUSED = "refused.mark"
_NEWER = (
    f"the coordinator knows a newer copy of it ({REFUSED}): restore the newest, or `silodp ledger repair` with a bound"
)
# Names in a stored plan, which stay when an attribute gets another name. Former ledgers have the same.
_BUDGET = ("n", "rounds", "epsilon", "delta", "batch_epsilon", "batch_records")
_MESSAGE = ["kind", "count", "records", "noise", "gradients", "steps", "sampler", "clipping", "tensors", "contracted"]
_MESSAGE += ["mixing", "joint", "part", "slack"]
_PLAN = ("algorithm", "trusted_sum", "assumption", "tries")


class Ledger:
    """Lines that were read and held against their chain. `trouble` is what stops a charge, in one sentence."""

    def __init__(self, folder: Path):
        self.folder, self.path, self.trouble, self.torn = folder, folder / NAME, "", ""
        self.key, newest = self._read_key()
        self.lines = self._read_lines()
        if self.lines and self.key is None:
            self.trouble = (
                "its secret .ledger.key is lost: restore it, or `silodp ledger rekey` adds a line that says so"
            )
        elif len(self.lines) < newest["number"] and not self.trouble:
            lost = newest["number"] - len(self.lines)
            self.trouble = (
                f"{lost} lines are lost at its end: restore a copy, or `silodp ledger repair` with their bound"
            )
        elif newest["number"] and not self.trouble and self.lines[newest["number"] - 1]["mac"] != newest["mac"]:
            raise self._broken(newest["number"], "is not the one that its secret knows")
        elif self._is_contradicted(self._refused()):
            self.trouble = _NEWER
        self.lines += self._read_former()

    @property
    def charges(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["kind"] == "charge"]

    @property
    def budget(self) -> float | None:
        """Largest total ε that may be charged; None where nobody set one."""
        return next((line["epsilon"] for line in reversed(self.lines) if line["kind"] == "budget"), None)

    def total(self, plans: Sequence[PrivacyPlan] = (), silos: int = 1, records: int = 1) -> tuple[float, float]:
        """(ε, δ) of all charges, bounds that the owner gave, and one more charge of `plans`, for a person."""
        charges = [plans_of(line) for line in self.charges] + ([tuple(plans)] if plans else [])
        epsilon, delta = total(charges, silos, records)
        given = [line for line in self.lines if line["kind"] == "repair"]
        return epsilon + sum(line["epsilon"] for line in given), delta + sum(line["delta"] for line in given)

    def stop_in_trouble(self) -> None:
        if self.trouble:
            raise ConfigError(f"{self.path}: {self.trouble}")

    def check(
        self, plans: Sequence[PrivacyPlan], silos: int = 1, records: int = 1, budget: float | None = None
    ) -> tuple[float, float]:
        """The total with a charge of `plans`; ConfigError where the ledger is in trouble or its budget is exceeded.

        `budget` is set by the first charge that names one; a later one must name the same or none.
        """
        self.stop_in_trouble()
        if None not in (self.budget, budget) and self.budget != budget:
            allowed = "must be the ledger's, or be changed by `silodp ledger budget`"
            raise ConfigError(f"{self.path}: budget: {budget:g}: is {self.budget:g}: {allowed}")
        found, limit = self.total(plans, silos, records), budget if self.budget is None else self.budget
        if limit is not None and not found[0] <= limit:
            words = f"with this charge the total would be epsilon = {math.ceil(found[0] * 1e3) / 1e3:g}"
            raise ConfigError(f"{self.path}: budget: {limit:g}: {words}")
        return found

    def charge(
        self,
        plans: Sequence[PrivacyPlan],
        about: Mapping[str, Any],
        silos: int = 1,
        records: int = 1,
        budget: float | None = None,
    ) -> dict[str, Any]:
        """Check a charge and write it, durable once this returns; the line, with its number and mac.

        `about` is what an owner reads of it; nothing is computed from it.
        """
        found = self.check(plans, silos, records, budget)
        if budget is not None and self.budget is None:
            self._add("budget", {"epsilon": budget})
        epsilon, delta = (value if math.isfinite(value) else str(value) for value in found)
        stored = {"about": dict(about), "plans": [_stored(plan) for plan in dict.fromkeys(plans)]}
        return self._write(self._add("charge", stored | {"total_epsilon": epsilon, "total_delta": delta}))

    def set_budget(self, epsilon: float) -> dict[str, Any]:
        self.stop_in_trouble()
        return self._write(self._add("budget", {"epsilon": epsilon}))

    def replace_key(self) -> dict[str, Any]:
        """Go on with a new secret where the old one is lost; a line says so and holds the HMAC of all before it."""
        if self.key is not None:
            raise ConfigError(f"{self.path}: its secret is there: nothing to replace")
        self.key, self.trouble = secrets.token_bytes(32), "" if "secret" in self.trouble else self.trouble
        self._chain()
        return self._write(
            self._add("key replaced", {"before": self.keyed("\n".join(map(_text, self.lines)).encode())})
        )

    def repair(self, epsilon: float, delta: float) -> dict[str, Any]:
        """Set a torn last line aside, and count what is lost by the owner's upper bound (ε, δ)."""
        if not self.trouble:
            raise ConfigError(f"{self.path}: every line can be read: nothing to repair")
        if self.key is None:
            self.replace_key()
        self.trouble, mark = "", self._refused()
        held = {"mark": mark.hex()} if self._is_contradicted(mark) else {}
        return self._write(self._add("repair", {"epsilon": epsilon, "delta": delta} | held))

    def mark(self, run: bytes, slots: int) -> bytes:
        """What a coordinator keeps of this ledger: its newest line, and how many slots of a run were opened."""
        head = MARK.pack(len(self.lines), bytes.fromhex(self.lines[-1]["mac"]), run, slots, b"")[:-32]
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
        number, newest, *_, proof = MARK.unpack(mark)
        if self.key is None or not hmac.compare_digest(self.keyed(mark[:-32]), proof.hex()):
            return True
        return number > len(self.lines) or self.lines[number - 1]["mac"] != newest.hex()

    def _refused(self) -> bytes:
        path = self.folder / REFUSED
        return path.read_bytes() if path.exists() else NO_MARK

    def keyed(self, content: bytes) -> str:
        """HMAC-SHA256 under the ledger's secret: the only digest of records that anything may hold."""
        assert self.key is not None
        return hmac.new(self.key, content, hashlib.sha256).hexdigest()

    def _add(self, kind: str, stored: Mapping[str, Any]) -> dict[str, Any]:
        self.key = self.key or secrets.token_bytes(32)
        line = {"kind": kind, "time": datetime.now(UTC).isoformat(timespec="seconds")} | dict(stored)
        self.lines.append(line)
        return line

    def _write(self, newest: dict[str, Any]) -> dict[str, Any]:
        """Replace the ledger and then its secret's file as a whole; `newest` is its last line."""
        if self.torn:
            with (self.folder / _TORN).open("a", encoding="utf-8") as aside:
                aside.write(self.torn + "\n")
            self.torn = ""
        if not (self.folder / _KEY).exists():
            self._replace(_KEY, json.dumps({"format": FORMAT, "key": self._key.hex(), "number": 0, "mac": ""}))
        previous = self._chain()
        self._replace(NAME, "".join(_text(line) + "\n" for line in self.lines))
        known = {"format": FORMAT, "key": self._key.hex(), "number": len(self.lines), "mac": previous}
        self._replace(_KEY, json.dumps(known))
        return newest

    def _chain(self) -> str:
        """Number every line that is new, and link it to the one before; the HMAC of the last."""
        previous = ""
        for number, line in enumerate(self.lines, 1):
            if "mac" not in line:
                stored = {name: value for name, value in line.items() if name not in ("format", "number", "previous")}
                line.clear()
                line |= {"format": FORMAT, "number": number, "previous": previous} | stored
                line["mac"] = self._mac(line)
            previous = line["mac"]
        return previous

    @property
    def _key(self) -> bytes:
        assert self.key is not None
        return self.key

    def _mac(self, line: Mapping[str, Any]) -> str:
        return self.keyed(_text({name: value for name, value in line.items() if name != "mac"}).encode())

    def _replace(self, name: str, text: str) -> None:
        write_private(self.folder / name, text.encode())

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
            allowed = "must be as silodp wrote it, or be removed, and `silodp ledger rekey` says so in the ledger"
            raise ConfigError(f"{self.folder / _KEY}: damaged: {allowed}") from None

    def _read_lines(self) -> list[dict[str, Any]]:
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace") if self.path.exists() else ""
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}: must be a readable file") from None
        *rows, tail = text.split("\n")
        lines: list[dict[str, Any]] = []
        for number, row in enumerate(rows, 1):
            try:
                lines.append(self._read_line(row, number, lines))
            except (ValueError, KeyError, TypeError, AttributeError):
                if number < len(rows) or tail:
                    raise self._broken(number, "damaged") from None
                tail = row
        replaced = max((place for place, line in enumerate(lines) if line["kind"] == "key replaced"), default=0)
        for number, line in enumerate(lines[replaced:], replaced + 1):
            if self.key is not None and not hmac.compare_digest(self._mac(line), line["mac"]):
                raise self._broken(number, "is not what was written")
        if self.key is not None and replaced and len(lines) > replaced:
            before = "\n".join(map(_text, lines[:replaced])).encode()
            if lines[replaced]["before"] != self.keyed(before):
                raise self._broken(replaced, "or one before it is not what was written")
        if tail:
            self.torn, (body, _, mac) = tail, tail.rpartition(', "mac"')
            try:
                line = self._read_line(body + "}", len(lines) + 1, lines, whole=False)
                if self.key is not None:
                    line["mac"] = self._mac(line)
                    if not line["mac"].startswith(mac.strip(': "}')):
                        raise ValueError("another line's")
                lines.append(line)
            except (ValueError, KeyError, TypeError, AttributeError):
                self.trouble = "its last line is torn: restore a copy, or `silodp ledger repair` with that line's bound"
        return lines

    @staticmethod
    def _read_line(row: str, number: int, before: Sequence[Mapping[str, Any]], whole: bool = True) -> dict[str, Any]:
        line = json.loads(row)
        previous = before[-1]["mac"] if before else ""
        follows = (line["format"], line["number"], line["previous"]) == (FORMAT, number, previous)
        if not follows or (whole and not line["mac"]):
            raise ValueError("not the line that follows")
        if line["kind"] == "charge":
            plans_of(line)
        elif line["kind"] in ("budget", "repair"):
            float(line["epsilon"])
        return line

    def _read_former(self) -> list[dict[str, Any]]:
        """Lines of a `ledger.csv` of earlier versions that are not in this ledger; the next charge brings them in."""
        path = self.folder / _FORMER
        if not path.exists():
            return []
        try:
            rows = pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")
            # Digests of the file and of its columns have no key, and stay where they are.
            kept = [{key: value for key, value in row.items() if key in _ABOUT} for row in rows]
            plans = [{"plans": json.loads(row["mechanism"])["plans"]} for row in rows]
            found = [
                {"kind": "charge", "time": row["time"], "former": True, "about": about} | stored
                for row, about, stored in zip(rows, kept, plans, strict=True)
            ]
            for line in found:
                plans_of(line)
        except (ValueError, KeyError, TypeError, OSError) as error:
            allowed = "must be as silodp wrote it: restore it from a copy, as totals need every line"
            raise ConfigError(f"{path}: damaged ({type(error).__name__}): {allowed}") from None
        return found[sum("former" in line for line in self.lines) :]


# What an owner reads of a charge that an earlier version wrote.
_ABOUT = ("file", "run", "algorithm", "M", "R", "epsilon", "delta", "unit", "outcome", "not_private")


@contextmanager
def opened(folder: Path, wait: bool = False) -> Iterator[Ledger]:
    """The ledger of `folder`, while no other process has it; ConfigError where one does, unless `wait`."""
    with (folder / ".ledger.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise ConfigError(f"{folder / NAME}: another release of these data is running: must end first") from None
        yield Ledger(folder)


def _text(line: Mapping[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, allow_nan=False)


def _stored(plan: PrivacyPlan) -> dict[str, Any]:
    """ValueError for a plan that a shuffler hides: no silo promises what others must do."""
    if plan.shuffler is not None or plan.shuffled_sum is not None:
        raise ValueError(f"{plan.algorithm}: must be a plan that needs no shuffler")
    budget = {name: getattr(plan.budget, name) for name in _BUDGET}
    releases = [{name: getattr(release, name) for name in _MESSAGE} for release in plan.releases]
    return {name: getattr(plan, name) for name in _PLAN} | {"budget": budget, "releases": releases}


def plans_of(line: Mapping[str, Any]) -> list[PrivacyPlan]:
    """The distinct plans of a charge; ValueError, KeyError or TypeError where they cannot be read."""
    plans = []
    for stored in line["plans"]:
        if stored.get("shuffler") or stored.get("shuffled_sum"):
            raise ValueError("plans: must need no shuffler")
        # JSON has no tuples.
        messages: list[dict[str, Any]] = [
            {name: tuple(value) if isinstance(value, list) else value for name, value in release.items()}
            for release in stored["releases"]
        ]
        releases = tuple(Release(**message) for message in messages)
        known = {name: stored[name] for name in _PLAN}
        plans.append(PrivacyPlan(budget=Budget(**stored["budget"]), releases=releases, **known))
    return plans
