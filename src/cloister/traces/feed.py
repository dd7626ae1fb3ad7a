"""Readings on their way to their step: late, early, repeated, out of order, more than a person may send.

- *Out of order*: a reading waits for the step of its own moment, in whichever order readings come.
- *Early*: one of a step that is not over waits for it, however far a sender's clock runs ahead.
- *Late*: one whose step was released is not counted (`late="drop"`), or counted in the step in which it arrives (`late="next"`).
- *Outside*: one before the first step, after the last, or at no moment (NaN, no text that says when) is not counted.
- *Repeated*: with `key`, one that waits already with the same key and the same values is not counted. Under `late="drop"` that
  is every repetition, since one of a released step is late. One of the same key and other values is another reading: if it were
  left out, a row of one person would decide whether a row of another counts, and one row would move more than one row does.
- *Values*: as the table declares them: clamped into the bounds, NULL where they are none (NaN, text for a number).
- *Too many*: of a person with `max_rows` counted readings no further one is, over all steps; a person is known by a keyed
  digest of 96 bits, and 7 and 7.0 are the same person.

Nothing of this is said by anything that leaves: how many readings were late is private too.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, LedgerError
from cloister.traces.moments import Steps, moments_of
from cloister.traces.step_lock import StepLock

Late = Literal["drop", "next"]
Batch = dict[str, Any]
_ROWS = '{"moment": ["2026-01-01T00:05Z"], "region": ["North"]}'


def batch_of(rows: Any) -> Batch:
    """Readings by column: of a list of dictionaries, a dictionary of lists, or a frame.

    >>> batch_of([{"at": 1, "n": 2}, {"at": 3}])
    {'at': [1, 3], 'n': [2, None]}
    """
    if isinstance(rows, Mapping):
        columns = dict(rows)
    elif hasattr(rows, "to_pydict"):
        columns = rows.to_pydict()
    elif hasattr(rows, "columns") and hasattr(rows, "to_dict"):
        columns = {str(name): rows[name].to_numpy() for name in rows.columns}
    elif isinstance(rows, Sequence) and not isinstance(rows, str | bytes) and all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
    else:
        raise InvalidParameter("The readings are invalid", why="they are no rows with names", instead=_ROWS)
    lists = {str(name): each if isinstance(each, np.ndarray) else list(each) for name, each in columns.items()}
    if len({len(each) for each in lists.values()}) > 1:
        raise InvalidParameter("The readings are invalid", why="their columns differ in length", instead=_ROWS)
    return lists


class Feed:
    """What waits for its step, and how many readings of each person were counted.

    >>> steps = Steps.of(every="1 minute", since=0, until=180)
    >>> feed = Feed(steps, at="at", columns=["n"], late="drop")
    >>> feed.add({"at": [70, 5, float("nan"), 59, -1], "n": [1, 2, 3, 4, 5]}, 0)
    >>> feed.take(1)["n"].tolist(), feed.take(2)["n"].tolist()
    ([2, 4], [1])
    >>> feed.add({"at": [61], "n": [6]}, 2), feed.take(3)["n"].tolist()
    (None, [])
    """

    def __init__(
        self,
        steps: Steps,
        *,
        at: str,
        columns: Sequence[str],
        late: Late = "drop",
        unit: str | None = None,
        most: int | None = None,
        key: str | None = None,
        secret: bytes = b"",
    ) -> None:
        self._steps, self._at, self._columns, self._late = steps, at, list(dict.fromkeys(columns)), late
        self._unit, self._most, self._key, self._secret = unit, most, key, secret
        self._waiting: dict[int, list[Batch]] = {}
        self._keys: dict[int, set[str]] = {}
        self.counted: dict[str, int] = {}
        """By person's digest; as secret as the rows."""
        self._lock = StepLock(
            "The readings were refused",
            error=LedgerError,
            why="those before them were broken off, and may have been put by",
            instead="the same watch in a new session, and what was fed for steps that are not released",
        )

    def add(self, rows: Any, released: int) -> None:
        """Put readings by, of which so many steps were released: all of them, or none where it is interrupted."""
        self._lock.take(lambda: self._sorted(rows, released), self._put_by)

    def _sorted(self, rows: Any, released: int) -> tuple[dict[int, Batch], dict[int, set[str]]]:
        """Readings by step, and the digests of those that have a key."""
        batch = batch_of(rows)
        if self._at not in batch:
            if isinstance(rows, Sequence):  # no row may decide a refusal: each is at no moment
                return {}, {}
            raise InvalidParameter(
                "The readings are invalid", why=f"they have no column {self._at!r}, which says when", instead=f'at="{self._at}"'
            )
        numbers = self._steps.number(moments_of(batch[self._at]))
        if self._late == "next":
            numbers = np.where((numbers > 0) & (numbers <= released), released + 1, numbers)
        numbers[(numbers <= released) | (numbers > self._steps.count)] = 0
        wanted = [*self._columns, *([self._unit] if self._unit is not None and self._unit not in self._columns else [])]
        nothing = np.full(len(numbers), None, dtype=object)
        arrays = {name: _array(batch[name]) if name in batch else nothing for name in wanted}
        fresh: dict[int, set[str]] = {}
        if self._key is not None and self._key in batch:
            fresh = self._without_repeated(batch[self._key], arrays.values(), numbers)
        steps = {number: numbers == number for number in np.unique(numbers[numbers > 0]).tolist()}
        return {number: {name: each[chosen] for name, each in arrays.items()} for number, chosen in steps.items()}, fresh

    def _put_by(self, sorted_: tuple[dict[int, Batch], dict[int, set[str]]]) -> None:
        for number, batch in sorted_[0].items():
            self._waiting.setdefault(number, []).append(batch)
        for number, fresh in sorted_[1].items():
            self._keys.setdefault(number, set()).update(fresh)

    def take(self, number: int) -> Batch:
        """The readings that a step counts. They are no longer here."""
        return self._lock.take(lambda: self._counted_of(number), lambda drawn: self._taken_out(number, *drawn))

    def _counted_of(self, number: int) -> tuple[Batch, dict[str, int]]:
        """The readings that a step counts, and how many of each person are counted then."""
        parts, counts = self._waiting.get(number, []), dict[str, int]()
        found = {name: _joined([part[name] for part in parts]) for name in (parts[0] if parts else self._columns)}
        if self._unit is not None and self._most is not None and parts:
            chosen, counts = self._within(found[self._unit])
            found = {name: each[chosen] for name, each in found.items()}
        return {name: found[name] for name in self._columns}, counts

    def _taken_out(self, number: int, found: Batch, counts: dict[str, int]) -> Batch:
        self.counted.update(counts)
        self._waiting.pop(number, None)
        self._keys.pop(number, None)
        return found

    def _without_repeated(
        self, keys: Sequence[Any], columns: Iterable[Any], numbers: npt.NDArray[np.int64]
    ) -> dict[int, set[str]]:
        """Puts repeated readings at no step; the digests of the others."""
        found: dict[int, set[str]] = {}
        for place, (key, number, *values) in enumerate(zip(keys, numbers.tolist(), *columns, strict=True)):
            if not number or key is None:
                continue
            row = _digest(repr((_alike(key), [*map(_alike, values)])), b"")
            if row in self._keys.get(number, ()) or row in found.setdefault(number, set()):
                numbers[place] = 0
            else:
                found[number].add(row)
        return found

    def _within(self, units: npt.NDArray[Any]) -> tuple[npt.NDArray[np.bool_], dict[str, int]]:
        """Which readings are within their person's number, and how many are counted with them; one of nobody is not."""
        assert self._most is not None
        known: dict[Any, int] = {}
        plain = (unit if type(unit) in _PLAIN else _plain(unit) for unit in units.tolist())
        found = np.fromiter((known.setdefault(unit, len(known)) for unit in plain), np.int64, len(units))
        names: dict[str, int] = {}  # of different values, such as 7 and "7", that name one person
        of = [0 if _told(unit) is None else names.setdefault(_person(unit, self._secret), 1 + len(names)) for unit in known]
        people = np.array(of, dtype=np.int64)[found]
        left = np.array([0, *(self._most - self.counted.get(name, 0) for name in names)], dtype=np.int64)
        order = np.argsort(people, kind="stable")
        begins = np.flatnonzero(np.diff(people[order], prepend=-1))
        place = np.arange(len(units)) - np.repeat(begins, np.diff(begins, append=len(units)))
        chosen = np.empty(len(units), dtype=bool)
        chosen[order] = place < left[people[order]]
        counts = np.bincount(people[chosen], minlength=1 + len(names)).tolist()
        return chosen, {name: self.counted.get(name, 0) + counts[person] for name, person in names.items() if counts[person]}


_PLAIN = frozenset({str, int, float, type(None)})


def _alike(value: Any) -> Any:
    """A value as it is told again, whatever held it: a frame has numbers of its own, 7.0 for 7 and NaN for nothing."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    value = _told(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value


def _plain(unit: Any) -> Any:
    unit = _told(unit)
    return unit if type(unit) in _PLAIN else str(unit)


def _told(value: Any) -> Any:
    """Python's own value, and None for each way in which frames say that there is none."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if not isinstance(value, str) and str(value).lower() in ("nan", "nat", "<na>") else value


def _person(unit: str | int | float, secret: bytes) -> str:
    whole = isinstance(unit, float) and unit.is_integer()  # as frames tell 7 beside a gap
    return _digest(str(int(unit) if whole else unit), secret[:64])


def _digest(text: str, secret: bytes) -> str:
    return b64encode(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=secret, digest_size=12).digest()).decode()


def _array(values: Any) -> npt.NDArray[Any]:
    if isinstance(values, np.ndarray):
        return values
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _joined(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    if len({part.dtype for part in parts}) > 1:  # numbers are not made texts or floats by what others sent
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts) if parts else np.empty(0, dtype=object)
