"""How guarantees, numbers and times are written on a page: pure functions of the value, the language's locale and the zone."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from babel import Locale
from babel.dates import format_date, format_datetime, format_timedelta
from babel.numbers import format_decimal
from markupsafe import Markup

from cloister.privacy import ZCDP, ApproxDP, PureDP
from cloister.privacy.rational import figures, legible, reads_back, text_of

_NARROW = "\N{NO-BREAK SPACE}"
_DIGITS = 4
_WRITTEN_OUT = 30
"""Of how many digits a number is still written out."""
_ROOM = Context(prec=60)
"""Digits enough for those and all after the point: rounding to a place fails where a number has more."""


def guarantee(value: object) -> Markup:
    """A guarantee, each number of which stays on one line with its letter; a bare text or number is an ε.

    >>> guarantee(PureDP("0.1")), guarantee("0.1")
    (Markup('<span class="guarantee">ε\\xa0=\\xa00.1</span>'), Markup('<span class="guarantee">ε\\xa0=\\xa00.1</span>'))
    """
    return Markup('<span class="guarantee">{}</span>').format(_plain(value))


def _plain(value: object) -> str:
    if isinstance(value, Fraction):
        value = text_of(value) if reads_back(value) else figures(value)
    value = legible(value) if isinstance(value, str | PureDP | ApproxDP | ZCDP) else value
    text = str(value) if "=" in str(value) or not re.match(r"[\d.]", str(value)) else f"ε = {value}"
    return text.replace(" = ", f"{_NARROW}={_NARROW}")


def number(value: Any, locale: Locale, digits: int | None = None) -> str:
    """A number as the language groups it. Whole numbers are shown whole; others with `digits` after the point, or as many as
    tell four figures.

    >>> english = Locale("en")
    >>> number(1234567, english), number(Fraction(1, 8), english), number(1234.5678, english), number(2, english, 2)
    ('1,234,567', '0.125', '1,234.6', '2.00')
    """
    if value is None:
        return "–"
    whole = isinstance(value, int | Fraction)
    exact = _ROOM.divide(Decimal(value.numerator), Decimal(value.denominator)) if whole else Decimal(str(value))
    if exact.is_finite() and exact and exact.adjusted() >= _WRITTEN_OUT:
        return f"{exact:.{_DIGITS}g}"
    if not exact.is_finite():
        return "∞" if exact.is_infinite() else "–"
    if digits is None:
        whole = exact == exact.to_integral_value()
        digits = 0 if whole else max(1, _DIGITS - 1 - exact.adjusted() if exact.adjusted() < _DIGITS - 1 else 1)
        shape = "#,##0" if whole else f"#,##0.{'#' * min(digits, 12)}"
    else:
        shape = "#,##0" + (f".{'0' * digits}" if digits else "")
    with localcontext(_ROOM):
        return str(format_decimal(exact, format=shape, locale=locale))


def odds(value: float, locale: Locale) -> str:
    """A probability in per cent, with as many figures as keep it from looking certain.

    >>> odds(73.2, Locale("en")), odds(99.996, Locale("en")), odds(100.0, Locale("en"))
    ('73.2', '99.996', '100')
    """
    digits = -int(Decimal(str(value)).as_tuple().exponent)
    return number(value, locale, digits if 99 < value < 100 else None)


def brief(value: float, digits: int = 3, sign: str = "") -> str:
    """A number to so many figures; one that has more of them before its point is whole, and never a power of ten.

    >>> brief(0.012345), brief(12345.6), brief(999.9, sign="+"), brief(1234567.8, 6)
    ('0.0123', '12,346', '+1,000', '1,234,568')
    """
    return f"{value:{sign},.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:{sign},.{digits}g}"


def zone_of(name: str) -> tzinfo:
    """The time zone of a name; UTC where there is none of it.

    >>> zone_of("UTC"), zone_of("Mars/Olympus")
    (datetime.timezone.utc, datetime.timezone.utc)
    """
    if not re.fullmatch(r"[A-Za-z_]+(/[A-Za-z_+\-0-9]+){0,2}", name) or name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):
        return UTC


def moment(value: datetime | date | float | None, locale: Locale, zone: tzinfo) -> Markup:
    """A time in the reader's zone, which a program can read too. A day stays a day.

    >>> moment(datetime(2026, 3, 1, 12, 5, tzinfo=UTC), Locale("en"), UTC)
    Markup('<time datetime="2026-03-01T12:05:00Z">1 Mar 2026, 12:05 UTC</time>')
    """
    if value is None:
        return Markup("–")
    if isinstance(value, date) and not isinstance(value, datetime):
        shown = format_date(value, "d MMM y" if locale.language == "en" else "medium", locale=locale)
        return Markup('<time datetime="{}">{}</time>').format(value.isoformat(), shown)
    when = _aware(value)
    pattern = "d MMM y, HH:mm" if locale.language == "en" else "y年M月d日 HH:mm"
    try:
        shown = format_datetime(when, pattern, tzinfo=zone, locale=locale)
    except OverflowError:  # at an end of the calendar, where that zone has no date
        shown, zone = format_datetime(when, pattern, tzinfo=UTC, locale=locale), UTC
    shown += " UTC" if zone is UTC else ""
    return Markup('<time datetime="{}">{}</time>').format(_for_programs(when), shown)


def ago(value: datetime | float | None, locale: Locale, zone: tzinfo, now: datetime) -> Markup:
    """How long ago, or in how long; the time itself is what a program reads.

    >>> ago(datetime(2026, 3, 1, 12, tzinfo=UTC), Locale("en"), UTC, datetime(2026, 3, 1, 14, tzinfo=UTC))
    Markup('<time datetime="2026-03-01T12:00:00Z" title="1 Mar 2026, 12:00 UTC">2 hours ago</time>')
    """
    if value is None:
        return Markup("–")
    when = _aware(value)
    passed = when - now
    if abs(passed) < timedelta(seconds=1):
        passed = timedelta(seconds=-1)
    text = format_timedelta(passed, granularity="second", threshold=1.2, add_direction=True, locale=locale)
    title = re.sub("<[^>]*>", "", moment(when, locale, zone))
    return Markup('<time datetime="{}" title="{}">{}</time>').format(_for_programs(when), title, text)


def _aware(value: datetime | float) -> datetime:
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return datetime.fromtimestamp(value, UTC)


def _for_programs(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(frozen=True, kw_only=True)
class BudgetParts:
    """A budget as a bar: texts for people, shares of a hundred for the picture."""

    total: Markup
    spent: Markup
    held: Markup
    left: Markup
    spent_share: str
    held_share: str
    left_share: str


def budget_parts(total: Any, spent: Any, held: Any = "0") -> BudgetParts:
    """What is spent, reserved and left of a total: guarantees of one kind, or texts of ε. The first parameter is what is shown.

    >>> parts = budget_parts(PureDP(2), PureDP("0.5"), PureDP("0.25"))
    >>> parts.spent_share, parts.held_share, parts.left_share, str(parts.left)
    ('25', '12.5', '62.5', '<span class="guarantee">ε\\xa0=\\xa01.25</span>')
    >>> budget_parts("1", "3").spent_share, str(budget_parts("1", "0.123456789").left)
    ('100', '<span class="guarantee">ε\\xa0≈\\xa00.876543</span>')
    """
    letter = "ρ" if isinstance(total, ZCDP) else "ε"
    whole, gone, kept = _first(total), _first(spent), _first(held)
    left = max(Fraction(0), whole - gone - kept)
    gone_share = min(Fraction(100), 100 * gone / whole) if whole else Fraction(100)
    kept_share = min(100 - gone_share, 100 * kept / whole) if whole else Fraction(0)

    def told(value: Fraction) -> Markup:
        return guarantee(f"{letter} = {_short(value)}".replace(" = ≈", f"{_NARROW}≈"))

    return BudgetParts(
        total=told(whole),
        spent=told(gone),
        held=told(kept),
        left=told(left),
        spent_share=_share(gone_share),
        held_share=_share(kept_share),
        left_share=_share(100 - gone_share - kept_share),
    )


def _first(value: Any) -> Fraction:
    if isinstance(value, ZCDP):
        return value.rho
    if isinstance(value, PureDP | ApproxDP):
        return value.epsilon
    return Fraction(str(value)) if value else Fraction(0)


def _short(value: Fraction) -> str:
    """Exact where that is short; else to six places, marked as rounded."""
    exact = text_of(value)
    return exact if len(exact) <= 8 else f"≈{_NARROW}{figures(value)}"


def _share(value: Fraction) -> str:
    return f"{float(value):.2f}".rstrip("0").rstrip(".")


def is_address(text: str) -> bool:
    """Whether a text is a path on this hub, and so may be a link.

    >>> is_address("/login"), is_address("//evil.example"), is_address("ask an owner"), is_address("/a b")
    (True, False, False, False)
    """
    return re.fullmatch(r"/(?![/\\])[^\s<>\"'\\]*", text) is not None


def is_code(text: str) -> bool:
    """Whether a text is a line to write rather than a sentence.

    >>> is_code('"age": cl.Integer(0, 120)'), is_code("ask the owner; then wait"), is_code("SELECT COUNT(*) FROM people")
    (True, False, True)
    """
    return re.search(r"""[\n=({\[*\\]|;(?! )|^SELECT |^cloister |^chmod |^SET |^--\w|^["']|^\S+@\S+$""", text) is not None
