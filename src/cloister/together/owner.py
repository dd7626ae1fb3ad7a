"""What the owner of a site decides, and sees afterwards: rules by purpose and person, plans that wait, and the site's audit log.

A rule says "always", "ask me" or "never". With "ask me" a question is refused until the owner has said yes to its plan, which is
shown in words; a yes holds for one charge, and for that plan alone: its request (table, columns, conditions, groups, noise), what
it costs a person here, its purpose and its person, under a digest of which nobody finds two. A plan that looks rows up in a
public table has a plan before it, whether the site may open that table for such a purpose and person: what it costs is known
only then, and that yes holds until it is taken back. Purpose and person are what the hub
says they are: a hub that lies about them is not found out here, so a rule "always" trusts the hub that far. What a question
costs, and whether the budget allows it, depends on no rule (`site.py`).

The audit log has a line for each thing that happened, chained by a key that follows from the ledger's: a line that was changed,
put in or left out shows. That lines are missing at the end does not; charges are in the ledger, which notices.
"""

import errno
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from cloister.crypto import canonical_json
from cloister.errors import InvalidDeclaration, InvalidParameter
from cloister.ledger import Ledger
from cloister.ledger.chain import BEGINNING, chained
from cloister.privacy import ZCDP, Guarantee
from cloister.together.journal import Journal
from cloister.together.plan import check_words
from cloister.together.site import Asked
from cloister.together.wording import words_of

ANSWERS = ("always", "ask me", "never")
_MOST_PLANS = 1000
"""Plans that wait for their owner."""
_LONGEST = 100_000
"""Characters of a plan in words: an owner is not asked about one that can't be shown whole."""
_SHORT = 12
"""Digits of a plan's digest that an owner types."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What the owner answers to a purpose and a person; empty: to any.

    >>> Rule(purpose="quality report", answer="always").fits("quality report", "ada")
    True
    """

    answer: str
    purpose: str = ""
    who: str = ""

    def __post_init__(self) -> None:
        if self.answer not in ANSWERS:
            raise InvalidDeclaration(
                f"The answer {self.answer!r} of a rule is invalid", why=f"it is one of {', '.join(ANSWERS)}", instead='"ask me"'
            )
        check_words(purpose=self.purpose, who=self.who)

    def fits(self, purpose: str, who: str) -> bool:
        """Whether it is about this purpose and person."""
        return self.purpose in ("", purpose) and self.who in ("", who)


class OwnersPolicy:
    """Rules, of which the first that fits decides, and the plans that its owner was asked about.

    >>> from cloister.together.journal import MemoryJournal
    >>> OwnersPolicy([], journal=MemoryJournal()).plans()
    []
    """

    def __init__(self, rules: Iterable[Rule], *, journal: Journal) -> None:
        self.rules, self._kept, self._begun = tuple(rules), journal.of("plans"), journal.of("descents")

    def __call__(self, asked: Asked) -> str | None:
        """Why a request is denied; None where it is not."""
        denied = self.denies(asked.purpose, asked.who)
        if denied is not None or self._answer(asked.purpose, asked.who) == "always":
            return denied
        with self._kept.locked():
            return self._asked(asked)

    def denies(self, purpose: str, who: str) -> str | None:
        """Why everything is denied for a purpose and a person, whatever is asked; None where it is not."""
        if self._answer(purpose, who) != "never":
            return None
        return f"its owner allows nothing for the purpose {purpose!r} and the person {who!r}"

    def _answer(self, purpose: str, who: str) -> str:
        return next((rule.answer for rule in self.rules if rule.fits(purpose, who)), "ask me")

    def plans(self, state: str = "") -> list[dict[str, Any]]:
        """All plans that the owner was asked about, or those in a state: waiting, allowed, denied, used."""
        found = [json.loads(self._kept.get(name) or b"{}") for name in self._kept.names()]
        return sorted((each for each in found if state in ("", each["state"])), key=lambda each: float(each["at"]))

    def decide(self, plan: str, state: str) -> dict[str, Any]:
        """The owner's yes ("allowed", for one charge) or no ("denied"), to the one plan whose digest begins so."""
        with self._kept.locked():
            found = [name for name in self._kept.names() if name.startswith(plan) and len(plan) >= _SHORT]
            if len(found) != 1:
                raise InvalidParameter(
                    f"The plan {plan!r} is not known",
                    why="several plans begin so" if found else "nobody asked it",
                    instead="the whole digest, from cloister site plans --json" if found else "cloister site plans",
                )
            return self._put({**json.loads(self._kept.get(found[0]) or b"{}"), "state": state})

    def exact(self, about: Sequence[Any], words: str, purpose: str, who: str, round_id: str = "") -> str | None:
        """Why exact components are denied, which no budget bounds; None where they are not. A rule "always" is about numbers with
        noise: here the owner is asked about each plan."""
        denied = self.denies(purpose, who)
        if denied is not None:
            return denied
        with self._kept.locked():
            return self._put_to_owner(about, lambda: words, round_id, uses=True)

    def _asked(self, asked: Asked) -> str | None:
        fit, request = asked.request.fit, asked.request.under("").canonical()
        about = [request, asked.purpose, asked.who, repr(asked.cost), *([asked.looks_up] if asked.looks_up else [])]
        if fit is not None:  # one yes for all steps
            about = [asked.table, canonical_json(fit.plain()), asked.purpose, asked.who, repr(asked.whole)]
        if asked.label:
            about += ["table", asked.label]
        step = None if fit is None else asked
        return self._put_to_owner(about, lambda: words_of(asked), asked.round, uses=not asked.looks_up, step=step)

    def _put_to_owner(
        self, about: Sequence[Any], in_words: Callable[[], str], round_id: str, *, uses: bool, step: Asked | None = None
    ) -> str | None:
        """The owner's word on a plan: asked for where there is none, and used up by a round, or by the steps of one descent."""
        digest = hashlib.sha256(canonical_json(about).encode()).hexdigest()
        plan, text = digest[:_SHORT], self._kept.get(digest)
        found = {} if text is None else json.loads(text)
        if found.get("state") == "used" and round_id and step is None and found["round"] == round_id:
            return None
        begun = hashlib.sha256(canonical_json([digest, step.request.charge]).encode()).hexdigest() if step is not None else ""
        if step is not None and round_id and found.get("state") != "denied" and self._goes_on(begun, step):
            return None
        if found.get("state") == "allowed":
            if round_id and uses:
                self._put({**found, "state": "used", "round": round_id})
                if step is not None:
                    self._begun.put(begun, canonical_json({round_id: str(_rho(step.cost))}).encode())
            return None
        if found.get("state") == "denied":
            return f"its owner denied the plan {plan}"
        if text is None and len(self.plans("waiting")) >= _MOST_PLANS:
            return f"{_MOST_PLANS} plans wait for its owner already"
        if found.get("state") != "waiting":
            words = in_words()
            if len(words) > _LONGEST:
                return f"its plan takes more than {_LONGEST:,} characters to be shown to its owner"
            told = {"plan": plan, "digest": digest, "state": "waiting", "at": time.time(), "words": words}
            self._put({**told, "before": found.get("round", "")})
        return f"its owner is asked; the plan is {plan}, and the same question can be asked again when it is allowed"

    def _goes_on(self, begun: str, asked: Asked) -> bool:
        """Whether a step is one of a descent that the owner said yes to, under the same charge, and all steps together cost no
        more than was said; it is kept with the others then. What is asked meanwhile about another one changes nothing."""
        found = json.loads(self._begun.get(begun) or b"{}")
        steps = {**found, asked.round: str(_rho(asked.cost))}
        whole = asked.whole
        if not found or whole is None or sum(map(Fraction, steps.values())) > _rho(whole):
            return False
        if asked.round not in found:
            self._begun.put(begun, canonical_json(steps).encode())
        return True

    def _put(self, told: dict[str, Any]) -> dict[str, Any]:
        self._kept.put(told.get("digest", told["plan"]), canonical_json(told).encode())
        return told


def _rho(cost: Guarantee) -> Fraction:
    """Of a descent's step, whose noise is Gaussian."""
    assert isinstance(cost, ZCDP)
    return cost.rho


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
        texts = [found["at"], found["event"], bytes.fromhex(found["seal"]).hex(), canonical_json(found)]
        return found if isinstance(found, dict) and all(isinstance(each, str) for each in texts) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def first_name(ledger: Ledger, name: str) -> str:
    """What a party was called when it opened its ledger: its log and its people keep that name."""
    return next((str(line.payload["who"]) for line in ledger.lines() if line.kind == "opened"), name)


class AuditLog:
    """Lines of JSON in a file, each with a seal of itself and of the one before it; several processes may add some.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     log = AuditLog(Path(folder) / "audit-log.jsonl", bytes(32))
    ...     log.add("joined", {"number": "1"}); log.add("charged", {"about": "7"})
    ...     [each["event"] for each in AuditLog(log.path, bytes(32)).entries()], log.broken()
    (['joined', 'charged'], None)
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self.path, self._key = path, key
        self._last: Mapping[str, str] = {}
        self._count, self._seal, self._read = 0, BEGINNING, 0
        self._read_on()

    def _read_on(self) -> None:
        """What was added since; of lines that are gone it is remembered that they were there."""
        for line in self._lines(self._read):
            entry = _entry(line)
            self._count, self._read = self._count + 1, self._read + len(line)
            self._seal = self._seal if entry is None else bytes.fromhex(entry["seal"])

    def add(self, event: str, details: Mapping[str, str]) -> None:
        """One more line, on disk when this returns, or OSError and none. The same refusal again and again is one line."""
        if event == "refused" and details == self._last:
            return
        self._last = dict(details) if event == "refused" else {}
        payload = canonical_json({"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": event, **details})
        with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._read_on()
            seal = chained(self._key, self._count + 1, self._seal, payload)
            line = f"{canonical_json({**json.loads(payload), 'seal': seal.hex()})}\n".encode()
            gone = self.path.stat().st_size < self._read
            end = sum(map(len, self._lines())) if gone else self._read  # where the last whole line does
            try:
                file.truncate(end)
                if file.write(line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise
            self._count, self._seal, self._read = self._count + 1, seal, end + len(line)

    def entries(self) -> Iterator[dict[str, Any]]:
        """All lines that are entries."""
        yield from (entry for entry in map(_entry, self._lines()) if entry is not None)

    def _lines(self, start: int = 0) -> Iterator[bytes]:
        """Each line from there on. The last may be cut off, where a process was stopped as it wrote: it told nobody anything."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(start)
                yield from (line for line in file if line.endswith(b"\n"))

    def broken(self) -> int | None:
        """The number of the first line that is not as it was written."""
        parent = BEGINNING
        for number, entry in enumerate(map(_entry, self._lines()), 1):
            if entry is None:
                return number
            seal = entry.pop("seal")
            parent = chained(self._key, number, parent, canonical_json(entry))
            if parent.hex() != seal:
                return number
        return None
