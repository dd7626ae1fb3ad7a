"""Reading JSON as people write it in forms, strictly: what is not understood is refused, never skipped.

A key that is misspelled would otherwise be a condition that silently does not hold. Messages name the place, what was wrong
there, and what to write instead.

A `Shape` is a dataclass that JSON is read into, and written from. The type of a field says how: `purposes: Names | None = None`
is a whole condition of a grant. A field of a plain type is the hub's own and stands in no JSON.
"""

import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from cloister.errors import CloisterError, InvalidDeclaration
from cloister.hub.decisions.policy.actions import N_
from cloister.printable import LONGEST_NAME, is_kept, is_printable, is_text
from cloister.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from cloister.privacy.rational import exact_nonnegative, reads_back, text_of

Network: TypeAlias = IPv4Network | IPv6Network
Reader: TypeAlias = Callable[[object, str], Any]
_LONGEST = 65_536
_MOST = 1_000
_TEXT = 10 * LONGEST_NAME
_PROGRAM = 60_000
_EXAMPLE = '{"purposes": ["research"]}'
_DAY = timedelta(days=1)
_FIRST, _LAST = datetime(2, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
"""Between them, give or take a day, every time zone has a date for a moment."""
_T = TypeVar("_T")


def plain(value: Any) -> Any:
    """A value in its JSON form, which its type says.

    >>> plain(frozenset({"b", "a"})), plain(Fraction(1, 2)), plain(datetime(2026, 1, 1, tzinfo=UTC)), plain(ZCDP("0.1"))
    (['a', 'b'], '0.5', '2026-01-01T00:00:00Z', {'rho': '0.1'})
    """
    if isinstance(value, str | bool):
        return value
    if isinstance(value, Shape):
        return value.to_dict()
    if isinstance(value, frozenset | set):
        return [plain(each) for each in sorted(value, key=lambda each: sorted(each) if isinstance(each, frozenset) else each)]
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return dict(sorted(value.items()))
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Guarantee):
        return guarantee_text(value)
    return text_of(value) if isinstance(value, Fraction) else str(value)


class Form(NamedTuple):
    """How a part of a shape is read and written; its name in JSON, where Python can't have that. The shape adds the rest."""

    read: Reader
    write: Callable[[Any], Any] = plain
    name: str = ""
    field: str = ""
    default: object = MISSING


class Shape:
    """What is read from JSON and written to it, part by part.

    Writing gives the one canonical form: what is written reads back equal. Parts that say nothing are left out; an empty list
    stays, since "no purpose" and "any purpose" are opposites.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Visit(Shape):
    ...     purposes: Names | None = None
    ...     alone: Flag = False
    >>> Visit.read({"purposes": ["care"]}, "visit"), Visit(alone=True).to_dict()
    (Visit(purposes=frozenset({'care'}), alone=False), {'alone': True})
    """

    __slots__ = ()
    called: ClassVar[str] = ""
    """The place of one that stands in no other: "the grant"."""

    @classmethod
    def read(cls, value: object, place: str = "", **known: Any) -> Self:
        """One from its JSON form; `known`: what that need not say, or never says. A part that is missing is None to `_check`."""
        found = mapping(value, place) if place else load(value)  # type: ignore[arg-type]
        place, forms = place or cls.called, cls.forms()
        only(found, place, list(forms))
        said = {forms[key].field: forms[key].read(each, at(place, key)) for key, each in found.items()}
        missing = {each.field: None for each in forms.values() if each.default is MISSING}
        made = cls(**{**missing, **known, **said})
        made._check(place)
        return made

    @classmethod
    @lru_cache
    def forms(cls) -> Mapping[str, Form]:
        """The forms of its parts, by their names in JSON."""
        hints, found = get_type_hints(cls, include_extras=True), {}
        for each in fields(cls):  # type: ignore[arg-type]
            parts = (hints[each.name], *get_args(hints[each.name]))  # `Names`, or the first of `Names | None`
            form = next((part.__metadata__[0] for part in parts if get_origin(part) is Annotated), None)
            if form is not None:
                default = each.default if each.default_factory is MISSING else each.default_factory()
                found[form.name or each.name] = form._replace(field=each.name, default=default)
        return found

    def _check(self, place: str) -> None:
        """Refuse parts that are missing, or contradict one another."""

    def to_dict(self) -> dict[str, Any]:
        """Its JSON form: plain dictionaries and lists, sorted, exact numbers as texts, moments in UTC."""
        told = {}
        for key, form in self.forms().items():
            value = getattr(self, form.field)
            if value != form.default:
                told[key] = value if form.write is plain and type(value) is str else form.write(value)
        return told

    def to_keep(self) -> dict[str, Any]:
        """Its JSON form for the database, once it was read back: what would be another one, or none, is refused."""
        kept = self.to_dict()
        own = {each.name for each in fields(self)} - {each.field for each in self.forms().values()}  # type: ignore[arg-type]
        if self.read(kept, **{name: getattr(self, name) for name in own}) != self:
            raise wrong(self.called, "storing it would change it", "the same in fewer or plainer words")
        return kept


def at(place: str, key: str) -> str:
    """A part of a place.

    >>> at("rules", "until"), at("the rule", "delta")
    ('rules.until', 'delta')
    """
    return key if place.startswith("the ") else f"{place}.{key}"


def load(text: str | Mapping[str, Any], place: str = N_("the text"), example: str = _EXAMPLE) -> Mapping[str, Any]:
    """A JSON object from its text (or as it was read already): numbers exact, no key twice, of bounded length.

    >>> load('{"risk": 0.1}')
    {'risk': Decimal('0.1')}
    """
    if not isinstance(text, str):
        return mapping(text, place)
    if len(text) > _LONGEST:
        raise wrong(place, f"it is longer than {_LONGEST} characters", "a shorter one")
    try:
        found = json.loads(text, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_once)
    except InvalidDeclaration:
        raise
    except (ValueError, RecursionError):
        raise wrong(place, "it is not JSON", example) from None
    return mapping(found, place)


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
    """The lines of a program, as they are, without a byte order mark.

    >>> program("def f(rows):\\n    return [1]", "code").count("\\n")
    1
    """
    if not isinstance(value, str) or len(value) > _PROGRAM or "\0" in value:
        raise wrong(place, f"it is not a text of at most {_PROGRAM} characters", '"def f(rows): …"')
    return value.removeprefix("\ufeff").replace("\r\n", "\n")


def items(value: object, place: str, read: Callable[[object, str], _T]) -> list[_T]:
    """A list, each item read in its own way.

    >>> items(["a", "b"], "labels", name)
    ['a', 'b']
    """
    if not isinstance(value, list | tuple) or (len(value) > _MOST and not is_kept()):
        raise wrong(place, f"it is not a list of at most {_MOST}", "[…]")
    return [read(each, f"{place}[{number}]") for number, each in enumerate(value)]


def set_of(read: Reader) -> Reader:
    """A reader of lists whose order and repetitions say nothing.

    >>> sorted(set_of(name)(["b", "a", "a"], "labels"))
    ['a', 'b']
    """
    return lambda value, place: frozenset(items(value, place, read))


def tuple_of(read: Reader) -> Reader:
    """A reader of lists in their order.

    >>> tuple_of(name)(["b", "a"], "labels")
    ('b', 'a')
    """
    return lambda value, place: tuple(items(value, place, read))


def guarantee_text(guarantee: Guarantee) -> dict[str, str]:
    """The exact JSON form of a guarantee.

    >>> guarantee_text(ZCDP("0.1"))
    {'rho': '0.1'}
    """
    names = ["rho"] if isinstance(guarantee, ZCDP) else ["epsilon"]
    if isinstance(guarantee, ApproxDP) or guarantee.delta:
        names.append("delta")
    return {name: text_of(getattr(guarantee, name)) for name in names}


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


def _flag(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise wrong(place, "it is neither true nor false", "true")
    return value


def _number(value: object, place: str) -> Fraction:
    """Exact, not negative, and its text reads back: a whole number comes from JSON with as many digits as Python reads."""
    if isinstance(value, bool | float) or not isinstance(value, int | str | Decimal):
        raise wrong(place, "it is not an exact number", '"0.1"')
    try:
        found = exact_nonnegative(value, place)
    except CloisterError as error:
        raise wrong(place, error.why, '"0.1"') from None
    if not reads_back(found):
        raise wrong(place, "it has too many digits to be written down", '"0.1"')
    return found


def _moment(value: object, place: str, *, end: bool = False) -> datetime:
    """A moment with its offset, or a date: its first moment in UTC, or with `end` the moment after its last."""
    written = '"2026-12-31", or "2026-12-31T18:00:00+00:00"'
    if not isinstance(value, str) or len(value) > 40:
        raise wrong(place, "it is not a date", written)
    try:
        if len(value) == len("2026-12-31"):
            found = datetime.combine(date.fromisoformat(value), time(), UTC)
        else:
            found, end = datetime.fromisoformat(value), False
    except ValueError:
        raise wrong(place, "it is not a date", written) from None
    if found.utcoffset() is None:
        raise wrong(place, "a moment needs its offset from UTC", written)
    try:
        whole = found.astimezone(UTC) + timedelta(days=end)
        if is_kept() or _FIRST - _DAY <= whole <= _LAST + _DAY:
            return whole
    except OverflowError:
        pass
    raise wrong(place, "no calendar shows it in every time zone", "a date from 0002-01-01 to 9998-12-31")


def _network(value: object, place: str) -> Network:
    """A network in CIDR form, with no bits behind its prefix."""
    try:
        if not isinstance(value, str) or len(value) > 60:
            raise ValueError(value)
        return ip_network(value.strip())
    except ValueError:
        raise wrong(place, "it is not a network", '"10.0.0.0/8", or "2001:db8::/32"') from None


def _guarantee(value: object, place: str) -> Guarantee:
    found = mapping(value, place)
    only(found, place, ["epsilon", "delta", "rho"])
    said = {key: _number(each, at(place, key)) for key, each in found.items()}
    kinds: Mapping[str, type[Guarantee]] = {"epsilon": PureDP, "delta epsilon": ApproxDP, "rho": ZCDP, "delta rho": ZCDP}
    kind = kinds.get(" ".join(sorted(said)))
    if kind is None:
        raise wrong(place, "it is neither an ε (with a δ) nor a ρ", '{"epsilon": "1"}, or {"rho": "0.1"}')
    try:
        return kind(**said)
    except CloisterError as error:
        raise wrong(place, error.why, '{"epsilon": "1", "delta": "1e-6"}') from None


Name = Annotated[str, Form(name)]
Line = Annotated[str, Form(text)]
Identifier = Annotated[str, Form(identifier)]
Names = Annotated[frozenset[str], Form(set_of(name))]
Identifiers = Annotated[frozenset[str], Form(set_of(identifier))]
Flag = Annotated[bool, Form(_flag)]
Number = Annotated[Fraction, Form(_number)]
Moment = Annotated[datetime, Form(_moment)]
End = Annotated[datetime, Form(partial(_moment, end=True))]
Networks = Annotated[tuple[Network, ...], Form(tuple_of(_network))]
Share = Annotated[Guarantee, Form(_guarantee)]
