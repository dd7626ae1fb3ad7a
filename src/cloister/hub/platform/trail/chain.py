"""The chain: each line's hash seals the line and the hash before it, so that no line can be changed, dropped or moved unseen.

HMAC-SHA-256 under the audit log's key: who can write to the database, and does not have the key, can make no line that fits. What
a chain cannot tell is that its last lines are gone; for that its end is copied to a file (`writing.py`).
"""

import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from cloister.crypto import canonical_json

START = "0" * 64
"""The hash before the first line."""
DATA_SET, ALGORITHM = "data-set", "algorithm"
"""The kinds of a data set and of an algorithm."""
PARTS = ("when", "person", "action", "kind", "object", "purpose", "cost", "outcome", "details")
"""What a line says (`Act`), by the names under which it is stored."""
_LONGEST = 10_000
_KEPT = re.compile(rf"[\x01-\x7f]{{0,{_LONGEST}}}").fullmatch
"""Whether a text is kept as it is, as nearly all are."""
_AS_IT_IS = frozenset({type(None), int, bool})
_SECRET = ("password", "secret", "totp", "cookie")


@dataclass(frozen=True, kw_only=True)
class BrokenLine:
    """The first line that does not fit, and why; false, so that `if verify(hub)` reads as it should.

    >>> bool(BrokenLine(number=7, reason="it was changed")), str(BrokenLine(number=7, reason="it was changed"))
    (False, 'line 7: it was changed')
    """

    number: int
    reason: str

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"line {self.number}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Act:
    """What a line says, its number and hash apart."""

    when: datetime
    person: str
    action: str
    kind: str = ""
    object: str = ""
    purpose: str = ""
    cost: Mapping[str, Any] = field(default_factory=dict)
    outcome: str = "done"
    details: Mapping[str, Any] = field(default_factory=dict)


def seal(key: bytes, before: str, number: int, act: Act) -> str:
    """The hash of a line that follows the hash `before`.

    >>> act = Act(when=datetime(2026, 1, 1, tzinfo=UTC), person="p1", action="question.ask")
    >>> seal(bytes(32), START, 1, act) == seal(bytes(32), START, 2, act)
    False
    """
    when = act.when.astimezone(UTC).isoformat(timespec="microseconds")
    told = [number, when, act.person, act.action, act.kind, act.object, act.purpose, act.cost, act.outcome, act.details]
    text = canonical_json(told)
    return hmac.digest(key, f"{before}\n{text}".encode(), "sha256").hex()


def cleaned(value: Any) -> Any:
    """A value as every database keeps it and gives it back the same: JSON, no float, no character that PostgreSQL refuses.

    >>> cleaned({"sets": ("a", "b"), "share": 0.5, "text": "x\\0y"})
    {'sets': ['a', 'b'], 'share': '0.5', 'text': 'x\ufffdy'}
    """
    if type(value) in _AS_IT_IS or (type(value) is str and _KEPT(value)):
        return value
    if isinstance(value, dict | Mapping):
        told = {}
        for name, each in value.items():
            kept = each if type(each) is str and _KEPT(each) else cleaned(each)
            told[name if type(name) is str and _KEPT(name) else text_of(name)] = kept
        return told
    if isinstance(value, list | tuple):
        return [each if type(each) is str and _KEPT(each) else cleaned(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(text_of(each) for each in value)
    if isinstance(value, int):
        return value
    return text_of(value)


def no_secrets(names: Iterable[str]) -> None:
    """Refuse what code would write under a name such as `password`. Names inside of what is written, such as those of
    populations, are chosen by people, and say nothing of what stands under them.

    >>> no_secrets(["data_sets", "new_password"])
    Traceback (most recent call last):
    ValueError: the trail keeps no secrets: new_password
    """
    for name in names:
        if _of_secret(name):
            raise ValueError(f"the trail keeps no secrets: {name}")


@lru_cache(maxsize=256)
def _of_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET)


def text_of(value: Any, longest: int = _LONGEST) -> str:
    """A text that every database keeps, no longer than so."""
    if type(value) is str and len(value) <= longest and _KEPT(value):
        return value
    text = str(value).replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= longest else text[: longest - 1] + "…"


def key_of(kind: str, number: str) -> str:
    """What an object is found by: its kind and its id. A data set and a population of the same name are two.

    >>> key_of("population", "patients"), key_of("", "")
    ('population:patients', '')
    """
    return text_of(f"{kind}:{number}", 200) if number else ""


def about(kind: str, number: str, details: Mapping[str, Any]) -> list[str]:
    """The objects that a line is found by: its own, and those whose ids `data_sets` and `algorithm` name; each once.

    >>> about("release", "r1", {"data_sets": ["d1", "d2", "d1"], "algorithm": "a1"})
    ['release:r1', 'data-set:d1', 'data-set:d2', 'algorithm:a1']
    """
    sets, by = details.get("data_sets"), details.get("algorithm")
    named = [(kind, number), *[(DATA_SET, each) for each in (sets if isinstance(sets, list) else ())], (ALGORITHM, by)]
    return list(dict.fromkeys([key_of(of, each) for of, each in named if each and isinstance(each, str)]))
