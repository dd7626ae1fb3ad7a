"""When: moments of readings, and the steps of a stream on the clock.

A moment is a number of seconds since 1970-01-01 UTC, whole or not. It is read from a number, an ISO text, a date or a datetime; a
text or datetime without a time zone is UTC. A leap second, 23:59:60, is the last second of its minute, as in a column of
`cl.Moment`, which reads texts by the same rule: a reading has the same step in a table and fed, and is of its own day. What is no
moment (NaN, an infinity, other text, NULL) has none: such a reading belongs to no step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.tables.sourcing.reading import since_epoch

Moment: TypeAlias = "str | float | date | datetime"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_EVERY = re.compile(rf"\s*(\d{{1,6}})?\s*({'|'.join(_UNITS)})s?\s*", re.IGNORECASE)
_LARGEST = 2.0**40
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, which texts can tell."""
MOST_STEPS = 2**20


def seconds(value: Any) -> float:
    """The moment of a value; NaN where it has none.

    >>> seconds("2016-12-31T23:59:60Z") + 1 == seconds("2017-01-01T00:00:00Z") == seconds("2017-01-01") == 1_483_228_800
    True
    >>> seconds("noon"), seconds(None), seconds(float("inf")), seconds("2017-01-01T01:00+01:00") == 1_483_228_800
    (nan, nan, nan, True)
    """
    try:
        since = since_epoch(value)
        if since is not None:
            found = since / timedelta(seconds=1)
        elif isinstance(value, str | int | float | np.number) and not isinstance(value, bool | np.bool_):
            found = float(value)
        else:
            return float("nan")
    except (ValueError, OverflowError):
        return float("nan")
    return found if abs(found) < _LARGEST else float("nan")


def moments_of(values: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The moments of a column: at once where it holds numbers or numpy's own times and lengths of time.

    >>> moments_of(["1970-01-02", None, 7]).tolist()
    [86400.0, nan, 7.0]
    """
    values = values.to_pylist() if hasattr(values, "to_pylist") else values
    array = np.asarray(values) if hasattr(values, "dtype") else None
    if array is not None and array.dtype.kind in "mM":
        array = np.where(np.isnat(array), np.nan, (array - np.array(0, f"{array.dtype.kind}8[s]")) / np.timedelta64(1, "s"))
    if array is not None and array.dtype.kind in "iuf":
        found = array.astype(np.float64)
        return np.where(np.abs(found) < _LARGEST, found, np.nan)
    return np.array([seconds(value) for value in values], dtype=np.float64)


def every_of(text: str) -> int:
    """The seconds of a step.

    >>> every_of("1 hour"), every_of("15 minutes"), every_of("day")
    (3600, 900, 86400)
    """
    found = _EVERY.fullmatch(text) if isinstance(text, str) else None
    if found is None or int(found[1] or 1) < 1:
        raise InvalidParameter(
            f"every={text!r} is invalid", why=f"it is a number of {'s, '.join(_UNITS)}s", instead='every="1 hour"'
        )
    return int(found[1] or 1) * _UNITS[found[2].lower()]


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The steps of a stream: step t, from 1 on, holds the moments from its beginning up to and not including its end.

    >>> steps = Steps.of(every="1 day", since="2026-01-01", until="2026-01-08")
    >>> steps.count, [str(end) for end in steps.span(7)], steps.over("2026-01-03T12:00")
    (7, ['2026-01-07T00:00:00+00:00', '2026-01-08T00:00:00+00:00'], 2)
    """

    since: int
    every: int
    count: int

    @classmethod
    def of(cls, *, every: str, since: Moment, until: Moment) -> Steps:
        """Between two moments, of which the second is the end of the last step."""
        length, edges = every_of(every), []
        for name, value in (("since", since), ("until", until)):
            found = seconds(value)
            if found != found or found != int(found) or not _FIRST <= found <= _LAST:
                raise InvalidParameter(
                    f"{name}={value!r} is invalid",
                    why="it is not a moment of whole seconds in the years 1 to 9999",
                    instead=f'{name}="2026-01-01T00:00:00Z"',
                )
            edges.append(int(found))
        steps, rest = divmod(edges[1] - edges[0], length)
        if steps < 1 or rest or steps > MOST_STEPS:
            raise InvalidParameter(
                f"until={until!r} is invalid",
                why=f"from since on there must be a whole number of steps, at most {MOST_STEPS:,}",
                instead='since="2026-01-01", until="2026-01-08", every="1 hour"',
            )
        return cls(since=edges[0], every=length, count=steps)

    @property
    def until(self) -> int:
        """The end of the last step."""
        return self.since + self.every * self.count

    def edges(self, number: int) -> tuple[int, int]:
        """The seconds of a step: its beginning and its end."""
        return self.since + (number - 1) * self.every, self.since + number * self.every

    def span(self, number: int) -> tuple[str, str]:
        """The same as ISO texts in UTC."""
        begin, end = self.edges(number)
        return told(begin), told(end)

    def over(self, now: Moment) -> int:
        """How many steps have ended by a moment."""
        found = seconds(now)
        return 0 if found != found else int(min(max((found - self.since) // self.every, 0), self.count))

    def number(self, moments: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """The step of each moment; 0 for what lies before the first, after the last, or at no moment."""
        with np.errstate(invalid="ignore"):
            inside = (moments >= self.since) & (moments < self.until)
            found = np.floor((np.where(inside, moments, self.since) - self.since) / self.every).astype(np.int64) + 1
        return np.where(inside, found, 0)


def told(moment: float) -> str:
    """A moment as ISO text in UTC.

    >>> told(0)
    '1970-01-01T00:00:00+00:00'
    """
    return (_EPOCH + timedelta(seconds=moment)).isoformat()
