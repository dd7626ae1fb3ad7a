"""What people hold of a list of keys, as flat arrays: read from mappings, or from rows with gaps."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.domain import Domain, Indices
from cloister.local.numbers.interval import Interval


@dataclass(frozen=True, kw_only=True)
class Held:
    """The pairs of all people, one person after the other, each person's in the order of the keys."""

    sizes: Indices
    """How many pairs each person has."""
    starts: Indices
    """Where each person's begin."""
    places: Indices
    values: npt.NDArray[np.float64]


def held_by(people: Any, keys: Domain, interval: Interval, *, clip: bool) -> Held:
    """Mappings of keys to numbers, or rows of numbers with NaN for what a person has not.

    >>> held = held_by([{"b": 1, "a": 0}, {}], Domain(["a", "b"]), Interval.of(0, 1), clip=False)
    >>> held.sizes.tolist(), held.places.tolist(), held.values.tolist()
    ([2, 0], [0, 1], [0.0, 1.0])
    """
    owners, places, numbers = _rows(people, keys) if isinstance(people, np.ndarray) else _mappings(people, keys)
    count = len(people)
    values = interval.checked(numbers, clip=clip)[:, 0]
    order = np.lexsort((places, owners))
    sizes = np.bincount(owners, minlength=count).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    return Held(sizes=sizes, starts=starts, places=places[order], values=values[order])


def _rows(people: npt.NDArray[Any], keys: Domain) -> tuple[Indices, Indices, Any]:
    if people.ndim != 2 or people.shape[1] != len(keys) or people.dtype.kind not in "iuf":
        raise _refused(f"they are not rows of {len(keys)} numbers, one for each key")
    owners, places = np.nonzero(~np.isnan(people.astype(np.float64)))
    return owners.astype(np.int64), places.astype(np.int64), people[owners, places]


def _mappings(people: Any, keys: Domain) -> tuple[Indices, Indices, Any]:
    if isinstance(people, Mapping | str | bytes) or not isinstance(people, Collection):
        raise _refused("they are not a list of mappings, one for each person")
    if not all(isinstance(person, Mapping) for person in people):
        raise _refused("a person's keys are no mapping")
    owners = np.repeat(np.arange(len(people), dtype=np.int64), [len(person) for person in people])
    named = [name for person in people for name in person]
    places = keys.places(named) if named else np.zeros(0, dtype=np.int64)
    return owners, places, [number for person in people for number in person.values()]


def _refused(why: str) -> InvalidParameter:
    return InvalidParameter(
        "people are invalid", why=why, instead='randomize([{"Alien": 5}, {}]), or an array with NaN for what a person has not'
    )
