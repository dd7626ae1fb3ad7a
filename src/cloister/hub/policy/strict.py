"""Reading JSON as people write it in forms, strictly: what is not understood is refused, never skipped.

A key that is misspelled would otherwise be a condition that silently does not hold. Messages name the place, what was wrong
there, and what to write instead.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_network
from typing import Any, TypeVar

from cloister.errors import CloisterError, InvalidDeclaration
from cloister.hub.policy.actions import N_
from cloister.hub.policy.facts import Network
from cloister.printable import LONGEST_NAME, is_kept, is_printable, is_text
from cloister.privacy.rational import exact_nonnegative

_LONGEST = 65_536
_MOST = 1_000
_TEXT = 10 * LONGEST_NAME
_PROGRAM = 60_000
_DAY = timedelta(days=1)
_FIRST, _LAST = datetime(2, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
"""Between them, give or take a day, every time zone has a date for a moment."""
_T = TypeVar("_T")


def load(text: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """A JSON object from its text (or as it was read already): numbers exact, no key twice, of bounded length.

    >>> load('{"risk": 0.1}')
    {'risk': Decimal('0.1')}
    """
    if not isinstance(text, str):
        return mapping(text, N_("the text"))
    if len(text) > _LONGEST:
        raise wrong(N_("the text"), f"it is longer than {_LONGEST} characters", "a shorter one")
    try:
        found = json.loads(text, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_once)
    except InvalidDeclaration:
        raise
    except (ValueError, RecursionError):
        raise wrong(N_("the text"), "it is not JSON", '{"purposes": ["research"]}') from None
    return mapping(found, N_("the text"))


def mapping(value: object, place: str) -> Mapping[str, Any]:
    """A JSON object, or a refusal.

    >>> mapping({"a": 1}, "rules")
    {'a': 1}
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong(place, "it is not an object with named parts", "{…}")
    return value


def only(value: Mapping[str, Any], place: str, keys: Sequence[str]) -> None:
    """Refuse keys that are not known.

    >>> only({"purpose": "care"}, "rules", ["actions", "purposes"])
    Traceback (most recent call last):
    cloister.errors.InvalidDeclaration: rules is invalid: 'purpose' is not known there.
      Instead: actions, purposes
    """
    unknown = sorted(set(value) - set(keys))
    if unknown:
        raise wrong(place, f"{_short(unknown[0])} is not known there", ", ".join(keys))


def name(value: object, place: str) -> str:
    """A name that people give, such as a purpose or a label: without blanks around it, normalised (NFC).

    >>> name(" clinical ", "labels")
    'clinical'
    """
    return identifier(unicodedata.normalize("NFC", value).strip() if isinstance(value, str) else value, place)


def identifier(value: object, place: str) -> str:
    """The name of a column, or an id: kept as it is, since another spelling would be another column. Nothing in it is invisible.

    >>> identifier("pay in €", "columns")
    'pay in €'
    """
    if not isinstance(value, str):
        raise wrong(place, "it is not a text", '"…"')
    if not is_text(value):
        raise wrong(place, f"a name has 1 to {LONGEST_NAME} characters, all of them printable", '"…"')
    return value


def text(value: object, place: str) -> str:
    """A free text of bounded length.

    >>> text("age >= 18", "rows")
    'age >= 18'
    """
    if not isinstance(value, str) or not (is_kept() or (len(value) <= _TEXT and is_printable(value))):
        raise wrong(place, f"it is not a text of at most {_TEXT} characters on one line", '"…"')
    return value.strip()


def program(value: object, place: str) -> str:
    """The lines of a program, as they are.

    >>> program("def f(rows):\\n    return [1]", "code").count("\\n")
    1
    """
    if not isinstance(value, str) or len(value) > _PROGRAM or "\0" in value:
        raise wrong(place, f"it is not a text of at most {_PROGRAM} characters", '"def f(rows): …"')
    return value.replace("\r\n", "\n")


def flag(value: object, place: str) -> bool:
    """True or false, and nothing that looks like it.

    >>> flag(True, "deny")
    True
    """
    if not isinstance(value, bool):
        raise wrong(place, "it is neither true nor false", "true")
    return value


def items(value: object, place: str, read: Callable[[object, str], _T]) -> list[_T]:
    """A list, each item read in its own way.

    >>> items(["a", "b"], "labels", name)
    ['a', 'b']
    """
    if not isinstance(value, list | tuple) or (len(value) > _MOST and not is_kept()):
        raise wrong(place, f"it is not a list of at most {_MOST}", "[…]")
    return [read(each, f"{place}[{number}]") for number, each in enumerate(value)]


def names(value: object, place: str) -> frozenset[str]:
    """A list of names, as a set.

    >>> sorted(names(["b", "a", "a"], "labels"))
    ['a', 'b']
    """
    return frozenset(items(value, place, name))


def identifiers(value: object, place: str) -> frozenset[str]:
    """A list of identifiers, as a set.

    >>> identifiers(["age"], "columns")
    frozenset({'age'})
    """
    return frozenset(items(value, place, identifier))


def number(value: object, place: str) -> Fraction:
    """An exact number that is not negative: "0.1", 1, or a JSON decimal as it is written.

    >>> number("0.1", "risk"), number(Decimal("1e-6"), "delta")
    (Fraction(1, 10), Fraction(1, 1000000))
    """
    if isinstance(value, bool | float) or not isinstance(value, int | str | Decimal):
        raise wrong(place, "it is not an exact number", '"0.1"')
    try:
        return exact_nonnegative(value, place)
    except CloisterError as error:
        raise wrong(place, error.why, '"0.1"') from None


def moment(value: object, place: str, *, end: bool = False) -> datetime:
    """A moment with its offset, or a date: its first moment in UTC, or with `end` the moment after its last.

    >>> moment("2026-12-31", "until", end=True), moment("2026-12-31T08:00:00+08:00", "until")
    (datetime.datetime(2027, 1, 1, 0, 0, tzinfo=datetime.timezone.utc),
     datetime.datetime(2026, 12, 31, 0, 0, tzinfo=datetime.timezone.utc))
    """
    written = '"2026-12-31", or "2026-12-31T18:00:00+00:00"'
    if not isinstance(value, str) or len(value) > 40:
        raise wrong(place, "it is not a date", written)
    try:
        if len(value) == len("2026-12-31"):
            found = datetime.combine(date.fromisoformat(value), time(), UTC)
        else:
            found = datetime.fromisoformat(value)
            end = False
        if found.utcoffset() is None:
            raise wrong(place, "a moment needs its offset from UTC", written)
    except ValueError as error:
        raise error if isinstance(error, InvalidDeclaration) else wrong(place, "it is not a date", written) from None
    try:
        whole = found.astimezone(UTC) + timedelta(days=end)
        if is_kept() or _FIRST - _DAY <= whole <= _LAST + _DAY:
            return whole
    except OverflowError:
        pass
    raise wrong(place, "no calendar shows it in every time zone", "a date from 0002-01-01 to 9998-12-31")


def network(value: object, place: str) -> Network:
    """A network in CIDR form, with no bits behind its prefix.

    >>> network("10.0.0.0/8", "networks")
    IPv4Network('10.0.0.0/8')
    """
    try:
        if not isinstance(value, str) or len(value) > 60:
            raise ValueError(value)
        return ip_network(value.strip())
    except ValueError:
        raise wrong(place, "it is not a network", '"10.0.0.0/8", or "2001:db8::/32"') from None


def wrong(place: str, why: str, instead: str) -> InvalidDeclaration:
    """The refusal of one place.

    >>> print(wrong("rules.until", "it is not a date", '"2026-12-31"'))
    rules.until is invalid: it is not a date.
      Instead: "2026-12-31"
    """
    return InvalidDeclaration(f"{place} is invalid", why=why, instead=instead)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise wrong(N_("the text"), f"{_short(key)} stands there twice", "each key once")
        found[key] = value
    return found


def _short(key: str) -> str:
    return repr(key if len(key) <= 40 else f"{key[:37]}…")


def _no_constant(text: str) -> Any:
    raise wrong(N_("the text"), f"{text} is not a finite number", '"0.1"')
