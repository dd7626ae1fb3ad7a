"""Days on the hub's clock: what a day in a form means, and which day a moment begins or ends."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo


def days_in(rules: Mapping[str, Any], zone: str) -> dict[str, Any]:
    """The same rules with each day as the moment that it means in the hub's time zone: `not_before` begins with its day, `until`
    ends with it. What is no day stays, for its reader to take or to refuse.

    >>> days_in({"not_before": "2026-12-31", "until": "2026-12-31"}, "Asia/Shanghai")
    {'not_before': '2026-12-30T16:00:00+00:00', 'until': '2026-12-31T16:00:00+00:00'}
    >>> days_in({"until": "2026-W53-4"}, "Asia/Shanghai")  # the same day, as ISO counts weeks
    {'until': '2026-12-31T16:00:00+00:00'}
    >>> days_in({"until": "2026-12-31T18:00:00+01:00", "actions": []}, "UTC")
    {'until': '2026-12-31T18:00:00+01:00', 'actions': []}
    """
    found = dict(rules)
    for name, more in (("not_before", 0), ("until", 1)):
        value = found.get(name)
        if not isinstance(value, str) or len(value) != len("2026-12-31"):
            continue
        try:
            found[name] = _beginning(date.fromisoformat(value) + timedelta(days=more), zone).isoformat()
        except (ValueError, OverflowError):  # no day, or one at an end of the calendar: it is refused where it is read
            continue
    return found


def day_begun(moment: datetime, zone: str) -> date | None:
    """The day that begins at this moment in the zone; None where none does, and where no clock there can show the moment.

    >>> day_begun(datetime(2026, 12, 31, 16, tzinfo=UTC), "Asia/Shanghai")
    datetime.date(2027, 1, 1)
    >>> day_begun(datetime(2026, 12, 31, 16, tzinfo=UTC), "UTC")
    """
    try:
        day = moment.astimezone(ZoneInfo(zone)).date()
        return day if _beginning(day, zone) == moment else None
    except (ValueError, OverflowError):
        return None


def last_day(until: str, zone: str = "UTC") -> str:
    """The day that a form shows for an end: the last one that is over by then, so that what is sent back never lasts longer.

    >>> last_day("2027-01-01T00:00:00Z"), last_day("2026-12-31T16:00:00Z", "Asia/Shanghai"), last_day("")
    ('2026-12-31', '2026-12-31', '')
    >>> last_day("2026-12-31T18:00:00Z")
    '2026-12-30'
    """
    if not until:
        return ""
    try:
        return (datetime.fromisoformat(until).astimezone(ZoneInfo(zone)).date() - timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        return ""


def _beginning(day: date, zone: str) -> datetime:
    """Its first moment. Where clocks skip midnight, that is the moment at which they do."""
    return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)
