"""What a declaration would give away: the published attacks, run on the owner's own column before it is declared.

The score is the share of cells that an attacker at the server gets right, who saw the worst that the declaration allows: every
value was looked up (`Equal`), every range was asked (`Range`). Beside it stands the best guess without looking. It is a
measurement of these attacks on these cells, and no bound: better attacks may come.

- *length* (every field): values of one padded length are guessed to be the commonest of that length. With `pad=` there is one
  length, and this is the guess without looking.
- *frequency* (`Equal`): which records one lookup returns is seen, so how often each value occurs. Values are matched to public
  ones by rank, within each length, which minimises every ℓp distance of the two histograms and maximises the multinomial
  likelihood (Naveed, Kamara & Wright 2015; Bindschaedler et al. 2018).
- *words* (`Words`): the same for words and elements; the share is of words, in all records.
- *cumulative* (`Range`): ranges show the order of the values, but for its direction. The values are matched to public ones in
  order, so that frequencies and cumulative frequencies lie close (Naveed et al. 2015, with the order held by a dynamic
  programme). Where every value of the domain occurs, it is the sorting attack.
- *access pattern* (`Range`): how many of all ranges return a record follows from its value, but for the direction (Kellaris,
  Kollios, Nissim & O'Neill 2016). Of fewer ranges it is estimated; with each other range it becomes more exact.
- *volume* (`Range`): how many records each range returns, and not which, are the distances between the cumulative counts. Which
  counts have such distances is the turnpike problem (Kellaris et al. 2016; solved by Skiena's backtracking). The share is of
  cells whose value's count it finds, but for the direction; with the order, these are the cells themselves.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.vault.fields import MISSING, Field, parts_of
from cloister.vault.ranges import Domain
from cloister.vault.values import LEAST, comparable, encode, padded

_LARGEST = 10**7
"""Distinct values times those of the domain, of the cumulative attack."""
_MOST_RANGES = 100_000
_MOST_POINTS, _EFFORT = 1024, 3_000_000
_WIDEST = 1 << 24
"""Values of a range that is attacked: an array of this size takes 128 MB."""
"""Of the volume attack: places of the domain, and how many distances it compares before it gives up."""

Floats = npt.NDArray[np.float64]


class Attack(NamedTuple):
    """One attack, what it needs to have seen, and the share of cells that it gets right."""

    name: str
    saw: str
    recovered: float


@dataclass(frozen=True, kw_only=True)
class Leakage:
    """What attackers get of one column: `worst` beside `guess`, which needs no server.

    >>> from cloister.vault import Equal, Random, leakage
    >>> towns = ["Basel"] * 60 + ["Bern"] * 30 + ["Chur"] * 10
    >>> print(leakage(towns, Random()))
    100 cells; guessed without looking: 60 %
    length: 60 %, after the padded lengths were seen
    >>> leakage(towns, Equal()).worst
    1.0
    """

    cells: int
    guess: float
    attacks: tuple[Attack, ...]
    lengths: int = 1
    """How many padded lengths the values have."""
    pad: int = 0
    """The least `pad=` under which they would have one."""

    @property
    def worst(self) -> float:
        """The share of cells that the best of the attackers gets right."""
        return max(each.recovered for each in self.attacks)

    def __str__(self) -> str:
        head = f"{self.cells:,} cells; guessed without looking: {100 * self.guess:.3g} %"
        lines = [f"{name}: {100 * share:.3g} %, after {saw}" for name, saw, share in self.attacks]
        if self.lengths > 1:
            lines.append(f"{self.lengths} padded lengths show at any time; pad={self.pad} would leave one")
        return "\n".join([head, *lines])


def leakage(
    values: Sequence[Any],
    field: Field,
    *,
    auxiliary: Sequence[Any] | Mapping[Any, float] | None = None,
    ranges: int | None = None,
    random: Random | None = None,
) -> Leakage:
    """Attacks a column as a server could, if the field were declared like this.

    Parameters
    ----------
    values
        The column, of the owner's own documents. None: a missing value.
    auxiliary
        What the attacker knows of such values from elsewhere: other values of the kind, or values with their frequencies. None:
        the frequencies of this very column, which no attacker knows better.
    ranges
        How many ranges were asked, each drawn uniformly from all; None: all of them.

    >>> from cloister.vault import Range
    >>> ages = [age for age in range(121) for _ in range(1 + age % 7)]
    >>> found = leakage(ages, Range(0, 120))
    >>> found.worst, found.guess < 0.02
    (1.0, True)
    """
    column = [None if value is MISSING else value for value in values]
    if not column:
        raise InvalidParameter("values is invalid", why="an empty column gives nothing away", instead="the values of the column")
    known, places = _known(column if auxiliary is None else auxiliary, field.pad), _distinct(column)
    for value, _ in places.values():
        field.check("values", value)
    if field.pad and any(len(encode(value)) >= field.pad for value, _ in places.values()):
        raise InvalidParameter("values is invalid", why="one is longer than pad= has room for", instead="a larger pad=")
    read = {key: (_name(value), _length(value, field.pad)) for key, (value, _) in places.items()}
    names, lengths = zip(*(read[_key(value)] for value in column), strict=True)
    commonest = max(known, key=lambda name: (known[name][0], name))
    attacks = [Attack("length", "the padded lengths were seen", _by_length(names, lengths, known))]
    if field.equal or field.exposed:
        saw = "the store's file was seen" if field.exposed else "every value was looked up"
        attacks.append(Attack("frequency", saw, _by_frequency(names, lengths, known)))
    if field.parts:
        attacks.append(Attack("words", "every word was looked up", _by_words(column, known)))
    if field.domain is not None:
        found = _of_ranges(column, field.domain, known, ranges, random or Random.deterministic(1))
        attacks += [
            each._replace(saw="the store's file was seen") if field.exposed and at == 0 else each for at, each in enumerate(found)
        ]
    return Leakage(
        cells=len(column),
        guess=names.count(commonest) / len(names),
        attacks=tuple(attacks),
        lengths=len({*lengths}),
        pad=max(LEAST, 1 + max(len(encode(value)) for value, _ in places.values())),
    )


class _Value(NamedTuple):
    """A value that the attacker knows of: how common it is, its padded length, itself."""

    weight: float
    length: int
    value: Any


def _length(value: Any, pad: int | None) -> int:
    return pad or len(padded(encode(value)))


def _name(value: Any) -> bytes:
    return b"" if value is None else b"=" + comparable(value)


def _key(value: Any) -> Any:
    """By which equal values are read once."""
    try:
        hash(value)
    except TypeError:  # a list, or one in a tuple
        return encode(value)
    return type(value), value


def _distinct(values: Sequence[Any]) -> dict[Any, tuple[Any, int]]:
    """Each different value, and how often it occurs."""
    found: dict[Any, tuple[Any, int]] = {}
    for value in values:
        key = _key(value)
        found[key] = (value, found[key][1] + 1 if key in found else 1)
    return found


def _known(auxiliary: Sequence[Any] | Mapping[Any, float], pad: int | None) -> dict[bytes, _Value]:
    pairs: Iterable[tuple[Any, float]] = auxiliary.items() if isinstance(auxiliary, Mapping) else _distinct(auxiliary).values()
    found: dict[bytes, _Value] = {}
    for value, weight in pairs:
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1e300:
            raise InvalidParameter(
                "auxiliary= is invalid",
                why="a frequency is a number from 0 to 1e300",
                instead='auxiliary={"Basel": 0.6, "Bern": 0.4}',
            )
        before = found.get(_name(value), _Value(0.0, 0, None)).weight
        found[_name(value)] = _Value(before + weight, _length(value, pad), value)
    if not found:
        raise InvalidParameter("auxiliary= is invalid", why="it is empty", instead="auxiliary=None")
    return found


def _by_length(names: Sequence[bytes], lengths: Sequence[int], known: Mapping[bytes, _Value]) -> float:
    best: dict[int, bytes] = {}
    for name, each in known.items():
        if each.length not in best or (each.weight, name) > (known[best[each.length]].weight, best[each.length]):
            best[each.length] = name
    return sum(best.get(length) == name for name, length in zip(names, lengths, strict=True)) / len(names)


def _by_frequency(names: Sequence[bytes], lengths: Sequence[int], known: Mapping[bytes, _Value]) -> float:
    """Equal counts are put in an order that says nothing of the values."""
    right = 0
    for length in set(lengths):
        seen = Counter(name for name, each in zip(names, lengths, strict=True) if each == length)
        ranked = sorted(seen, key=lambda name: (-seen[name], hashlib.sha256(name).digest()))
        public = sorted(
            (name for name, each in known.items() if each.length == length), key=lambda name: (-known[name].weight, name)
        )
        right += sum(seen[name] for name, told in zip(ranked, public, strict=False) if name == told)
    return right / len(names)


def _by_words(column: Sequence[Any], known: Mapping[bytes, _Value]) -> float:
    """Of all words in all records, those whose rank is that of the same word in public."""
    seen = Counter(part for value in column for part in parts_of(value))
    public: dict[bytes, float] = {}
    for each in known.values():
        for part in parts_of(each.value):
            public[part] = public.get(part, 0) + each.weight
    ranked = sorted(seen, key=lambda part: (-seen[part], hashlib.sha256(part).digest()))
    told = sorted(public, key=lambda part: (-public[part], part))
    right = sum(seen[part] for part, other in zip(ranked, told, strict=False) if part == other)
    return right / seen.total() if seen else 0.0


def _of_ranges(
    column: Sequence[Any], domain: Domain, known: Mapping[bytes, _Value], ranges: int | None, random: Random
) -> list[Attack]:
    """A missing value is in no range: that is seen, and counts as recovered."""
    missing = sum(value is None for value in column)
    places = np.array([domain.position(value) for value in column if value is not None], dtype=np.int64)
    if not len(places):
        return [Attack("access pattern", "every range was asked", 1.0)]
    size = domain.position(domain.high) + 1
    if size > _WIDEST:
        raise InvalidParameter(
            "The range is too wide to be attacked",
            why=f"it has {size:,} values, and there is room for {_WIDEST:,}",
            instead="Range(low, high) of coarser values",
        )
    public = np.zeros(size)
    for each in known.values():
        if each.value is not None and domain.holds(each.value):
            public[domain.position(each.value)] += each.weight
    public = public / public.sum() if public.sum() else np.full(size, 1 / size)
    held, counts = np.unique(places, return_counts=True)
    found = []
    if len(held) * size <= _LARGEST:
        up, down = (_in_order(counts[::way], public) for way in (1, -1))
        places = up[1] if up[0] <= down[0] else down[1][::-1]
        found.append(Attack("cumulative", "the order of the values was seen", _share(counts[places == held], column, missing)))
    told, saw = _by_access(held, size, ranges, random)
    either = (told, size - 1 - told)
    drawn = [np.bincount(each, counts, size) / counts.sum() for each in either]
    better = int(np.argmin([np.abs(np.cumsum(each) - np.cumsum(public)).sum() for each in drawn]))
    found.append(Attack("access pattern", saw, _share(counts[either[better] == held], column, missing)))
    if ranges is None and size <= _MOST_POINTS:
        whole = np.bincount(held, counts, size).astype(np.int64)
        volumes = _by_volume(whole, public)
        if volumes is not None:
            right = whole[volumes == whole]
            found.append(Attack("volume", "how many records every range returned was seen", _share(right, column, missing)))
    return found


def _by_volume(counts: npt.NDArray[np.int64], public: Floats) -> npt.NDArray[np.int64] | None:
    """Counts whose ranges have the volumes of these, in the direction that lies nearer to public ones; None where the search
    would take too long."""
    upto = np.concatenate([[0], np.cumsum(counts)])
    left = Counter(np.abs(upto[:, None] - upto[None, :])[np.triu_indices(len(upto), 1)].tolist())
    total, tried = int(upto[-1]), 0
    points, taken, largest = [0, total], list[tuple[int, int]](), total
    left[total] -= 1
    while len(points) < len(upto):
        while largest and not left[largest]:
            largest -= 1
        turn = 0
        while True:
            place = (largest, total - largest)[turn]
            needed = Counter(abs(place - each) for each in points)
            tried += len(points)
            if tried > _EFFORT:
                return None
            if all(left[gap] >= times for gap, times in needed.items()):
                break
            turn += 1
            while turn > 1:  # neither end has room for the largest distance: an earlier place was wrong
                if not taken:
                    return None
                largest, turn = taken.pop()
                place = points.pop()
                left.update(Counter(abs(place - each) for each in points))
                turn += 1
        left.subtract(needed)
        points.append(place)
        taken.append((largest, turn))
    ends = np.sort(np.array(points, dtype=np.int64))
    found: npt.NDArray[np.int64] = ends[1:] - ends[:-1]
    near = [np.abs(np.cumsum(each) - total * np.cumsum(public)).sum() for each in (found, found[::-1])]
    return found if near[0] <= near[1] else found[::-1]


def _share(right: npt.NDArray[np.int64], column: Sequence[Any], missing: int) -> float:
    return float((right.sum() + missing) / len(column))


def _in_order(counts: npt.NDArray[np.int64], public: Floats) -> tuple[float, npt.NDArray[np.int64]]:
    """The increasing places whose frequencies and cumulative frequencies lie next to those that were seen, and how near."""
    share = counts / counts.sum()
    upto, known = np.cumsum(share), np.cumsum(public)
    number, size = len(share), len(public)
    best = np.zeros(size + 1)
    came = np.empty((number, size), dtype=np.int64)
    for row in range(number):
        cost = (share[row] - public) ** 2 + (upto[row] - known) ** 2
        total = best[:size] + cost  # ending here, with all before it at smaller places
        total[:row] = np.inf
        least = np.minimum.accumulate(total)
        came[row] = np.maximum.accumulate(np.where(total == least, np.arange(size), 0))
        best = np.concatenate([[np.inf], least])
    places, place = np.empty(number, dtype=np.int64), size - 1
    for row in range(number - 1, -1, -1):
        places[row] = came[row, place]
        place = places[row] - 1
    return float(best[-1]), places


def _by_access(held: npt.NDArray[np.int64], size: int, ranges: int | None, random: Random) -> tuple[npt.NDArray[np.int64], str]:
    """A place for each value that occurs, but for the direction of all."""
    possible = size * (size + 1) // 2
    chance = (np.arange(size) + 1) * (size - np.arange(size)) / possible
    half = (size + 1) // 2
    if ranges is None:
        return held.copy(), "every range was asked"
    if isinstance(ranges, bool) or not isinstance(ranges, int) or not 1 <= ranges <= _MOST_RANGES:
        raise InvalidParameter(
            f"ranges={ranges!r} is invalid", why=f"it is from 1 to {_MOST_RANGES:,}, or None", instead="ranges=1000"
        )
    first, last = np.sort(_ranges(size, ranges, random), axis=0)
    returned = (first[:, None] <= held) & (held <= last[:, None])
    times = returned.sum(axis=0)
    near = np.abs(times[:, None] / ranges - chance[:half]).argmin(axis=1)  # how far from the nearer end
    anchor = int(times.argmin())
    together = (returned & returned[:, [anchor]]).sum(axis=0) / ranges
    low = (near[anchor] + 1) * (size - np.maximum(near, near[anchor])) / possible  # on the anchor's side
    high = (np.minimum(near[anchor], size - 1 - near) + 1) * (near + 1) / possible  # on the other
    return np.where(np.abs(together - low) <= np.abs(together - high), near, size - 1 - near), f"{ranges:,} ranges were asked"


def _ranges(size: int, number: int, random: Random) -> npt.NDArray[np.int64]:
    """Uniform over all ranges: the two ends of one that may be a single place."""
    drawn = np.asarray(random.below(size * (size + 1) // 2, number), dtype=np.float64)
    last = np.floor((np.sqrt(8 * drawn + 1) - 1) / 2).astype(np.int64)
    return np.stack([np.asarray(drawn, dtype=np.int64) - last * (last + 1) // 2, last])
