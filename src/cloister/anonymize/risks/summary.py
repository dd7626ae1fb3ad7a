"""`risk`: is this table anonymous? Every number of it in one look."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes, alike
from cloister.anonymize.encoded import Encoded, encode
from cloister.anonymize.frames import Frame, need_polars, read_frame
from cloister.anonymize.held import in_own_words
from cloister.anonymize.hierarchies.ladder import STAR
from cloister.anonymize.models.alpha import largest_shares
from cloister.anonymize.models.closeness import TCloseness
from cloister.anonymize.models.disclosure import log_ratios
from cloister.anonymize.models.diversity import distinct_values, effective_values
from cloister.anonymize.models.likeness import gains
from cloister.anonymize.risks.added import Added, added_in
from cloister.anonymize.risks.population import Matched, match
from cloister.anonymize.risks.uniques import Uniques, estimate_uniques
from cloister.anonymize.risks.words import lines_of, spelt_alike
from cloister.anonymize.roles import check_named
from cloister.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class SensitiveRisk:
    """What the classes reveal about one sensitive column."""

    column: str
    l: int  # noqa: E741 - the field's own name
    """The fewest different values of a class."""
    entropy_l: float
    """The fewest effective values of a class: e to the power of its entropy."""
    t: float
    """The largest distance between a class and the table."""
    distance: str
    """Which distance: ordered for numbers and dates, equal for the rest."""
    beta: float
    """The largest gain (q − p)/p of a value."""
    delta: float
    """The largest |ln(q/p)| of a value that stands in a class."""
    lacking: int
    """How many classes lack a value that the table has; for δ-disclosure as it was defined, δ is infinite then."""
    alpha: float
    """The largest share of a value in a class."""
    told: int
    """How many rows are in a class that has one value only."""
    alike: int = 0
    """How many values differ from another in blanks, capitals or the form of their letters alone."""
    worst: tuple[tuple[str, float, float], ...] = ()
    """Of the class that is farthest from the table: each value, its share there, and its share of the table."""


@dataclass(frozen=True, kw_only=True)
class Risk:
    """How easily people are found in a table, and what is learnt of them then.

    Numbers of several sensitive columns are those of the worst; `sensitive` has each. They speak of the quasi-identifiers that
    were named, and of an attacker who knows those and nothing else.
    """

    rows: int
    """Rows in a class; rows that say nothing (every quasi-identifier a star) are left out."""
    classes: int
    k: int
    """The smallest class."""
    sizes: tuple[int, ...]
    """The class sizes that occur, …"""
    counts: tuple[int, ...]
    """… and how many classes have each."""
    quasi: tuple[str, ...] = ()
    sensitive: Mapping[str, SensitiveRisk] = field(default_factory=dict)
    suppressed: int = 0
    """Rows that say nothing."""
    matched: Matched | None = field(default=None, repr=False)
    population_uniques: Uniques | None = None
    """People who are unique in the population: counted, where its table was given; estimated, where its size was; else None."""
    other: tuple[str, ...] = ()
    """Columns that were named neither quasi-identifier nor sensitive: nothing here looks at them, but `added`."""
    added: tuple[Added, ...] = ()
    """What each of those columns adds to the risk, if others know it; and all of them together."""
    _frame: Frame | None = field(default=None, repr=False, compare=False)

    @property
    def l(self) -> int | None:  # noqa: E743 - the field's own name
        """The fewest different sensitive values of a class; None without a sensitive column."""
        return min((each.l for each in self.sensitive.values()), default=None)

    @property
    def entropy_l(self) -> float | None:
        """The fewest effective values of a class: e to the power of its entropy."""
        return min((each.entropy_l for each in self.sensitive.values()), default=None)

    @property
    def t(self) -> float | None:
        """The largest distance between a class and the table."""
        return max((each.t for each in self.sensitive.values()), default=None)

    @property
    def beta(self) -> float | None:
        """The largest gain (q − p)/p of a value in a class."""
        return max((each.beta for each in self.sensitive.values()), default=None)

    @property
    def delta(self) -> float | None:
        """The largest |ln(q/p)| of a value that stands in a class."""
        return max((each.delta for each in self.sensitive.values()), default=None)

    @property
    def alpha(self) -> float | None:
        """The largest share of a value in a class."""
        return max((each.alpha for each in self.sensitive.values()), default=None)

    @property
    def prosecutor(self) -> float:
        """The largest chance to find somebody who is known to be in the table: 1/k."""
        return 1 / self.k if self.k else 0.0

    @property
    def journalist(self) -> float:
        """The largest chance that a row is who it is taken for, by somebody with the population's list. Without the list, the
        prosecutor's: it can't be more."""
        return self.matched.journalist if self.matched is not None else self.prosecutor

    @property
    def marketer(self) -> float:
        """The share of rows that are told right when all are taken for somebody who looks like them: classes over rows, without
        the population's list."""
        if self.matched is not None:
            return self.matched.marketer
        return self.classes / self.rows if self.rows else 0.0

    @property
    def sample_uniques(self) -> int:
        """How many rows are the only ones of their kind."""
        return self.counts[0] if self.sizes and self.sizes[0] == 1 else 0

    def records_at_risk(self, threshold: float = 0.2) -> int:
        """How many rows have a larger chance than `threshold` to be found by a prosecutor.

        >>> risk({"age": [30, 30, 45]}, quasi=["age"]).records_at_risk(0.5)
        1
        """
        if not 0 <= threshold <= 1:
            raise InvalidParameter(
                f"threshold={threshold!r} is invalid", why="it is not a chance from 0 to 1", instead="records_at_risk(0.2)"
            )
        return sum(size * count for size, count in zip(self.sizes, self.counts, strict=True) if 1 / size > threshold)

    @cached_property
    def digest(self) -> str | None:
        """The SHA-256 of the table, written as CSV; None where only its classes are known."""
        return digest_of(self._frame) if self._frame is not None else None

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        uniques = self.population_uniques
        return {
            **{field_: getattr(self, field_) for field_ in ("rows", "suppressed", "classes", "k")},
            **{field_: getattr(self, field_) for field_ in ("l", "entropy_l", "t", "beta", "delta", "alpha")},
            **{field_: getattr(self, field_) for field_ in ("prosecutor", "journalist", "marketer", "sample_uniques")},
            "population_uniques": None
            if uniques is None
            else {"people": uniques.people, "population": uniques.population, "how": uniques.how},
            "quasi": list(self.quasi),
            "added": [each.to_dict() for each in self.added],
            "sensitive": {
                name: {
                    field_: getattr(each, field_)
                    for field_ in ("l", "entropy_l", "t", "distance", "beta", "delta", "lacking", "alpha", "told", "alike")
                }
                for name, each in self.sensitive.items()
            },
            "digest": self.digest,
        }

    def __str__(self) -> str:
        return "\n".join(lines_of(self))

    def to_html(self, *, title: str = "", of: str = "") -> str:
        """A page to read, print and sign. `of` names the table."""
        from cloister.anonymize.risks.page import page_of

        return page_of(self, title=title, of=of)

    def _repr_html_(self) -> str:
        from cloister.anonymize.risks.page import body_of

        return body_of(self)


def risk(table: Any, quasi: Sequence[str], sensitive: Sequence[str] = (), population: Any | int | None = None) -> Risk:
    """Is this table anonymous?

    Parameters
    ----------
    table
        A pandas, polars or Arrow frame, a dictionary of lists, or the path of a CSV or Parquet file.
    quasi
        Columns that others may know of a person as well.
    sensitive
        Columns that others must not learn.
    population
        A table of the population from which the rows come, with the same quasi-identifiers in the same words: then journalist and
        marketer risk are exact. Or its size: then its unique people are estimated. Nothing is assumed when left out.

    Examples
    --------
    >>> table = {"age": ["20–29", "20–29", "30–39", "30–39"], "ill": ["flu", "gout", "flu", "flu"]}
    >>> found = risk(table, quasi=["age"], sensitive=["ill"])
    >>> isinstance(found.sensitive["ill"], SensitiveRisk)
    True
    >>> found.k, found.l, found.t, found.prosecutor, found.sample_uniques
    (2, 1, 0.25, 0.5, 0)
    """
    frame = read_frame(table)
    check_named(frame, quasi, sensitive)
    encoded = encode(frame, [*quasi, *sensitive], told=sensitive, apart=quasi)
    hidden = _starred(encoded, quasi)
    if hidden.all():  # they are one class
        hidden = np.zeros(encoded.rows, dtype=bool)
    return _of_rows(frame, encoded, hidden, quasi, sensitive, population)


def risk_of_released(frame: Frame, quasi: Sequence[str], sensitive: Sequence[str], silent: int) -> Risk:
    """The risk of a table in which so many rows were suppressed and stayed. What stands in stars besides is a class of its own:
    rows that could be recoded to nothing less, with their sensitive values.

    >>> table = read_frame({"age": ["30", "30", "*", "*", "*"], "ill": ["flu", "gout", "flu", "flu", "*"]})
    >>> found = risk_of_released(table, ["age"], ["ill"], 1)
    >>> found.rows, found.suppressed, found.l
    (4, 1, 1)
    """
    check_named(frame, quasi, sensitive)
    encoded = encode(frame, [*quasi, *sensitive], told=sensitive, apart=quasi)
    hidden = np.zeros(encoded.rows, dtype=bool)
    hidden[np.flatnonzero(_starred(encoded, [*quasi, *sensitive]))[: max(silent, 0)]] = True
    return _of_rows(frame, encoded, hidden, quasi, sensitive, None)


def _of_rows(
    frame: Frame,
    encoded: Encoded,
    hidden: npt.NDArray[np.bool_],
    quasi: Sequence[str],
    sensitive: Sequence[str],
    population: Any | int | None,
) -> Risk:
    """The risk of the rows that say anything."""
    if hidden.any():
        encoded = encoded.take(~hidden)
    ids, count = (
        alike([encoded.columns[name].codes for name in quasi], [len(encoded.columns[name]) for name in quasi])
        if encoded.rows
        else (np.zeros(0, dtype=np.int64), 0)
    )
    classes = Classes.of(ids, count, sensitive={name: encoded.columns[name] for name in sensitive}, weights=encoded.weights)
    kept = frame
    if hidden.any():
        left = frame.data.filter(need_polars().Series(~hidden))
        kept = Frame(left, frame.kind, weights=None if frame.weights is None else frame.weights[~hidden])
    rows = frame.stands_for(np.ones(frame.rows, dtype=bool))
    matched = None
    size: int | None = None
    if isinstance(population, int | np.integer) and not isinstance(population, bool):
        size = int(population)
        if size < rows:
            raise InvalidParameter(
                f"population={size:,} is invalid", why=f"the table alone has {rows:,} rows", instead="the size of the population"
            )
    elif population is not None:
        matched = match(kept, read_frame(population), list(quasi))
    other = tuple(name for name in frame.names if name not in {*quasi, *sensitive})
    return _risk(
        classes,
        quasi=tuple(quasi),
        suppressed=frame.stands_for(hidden),
        matched=matched,
        population=size,
        other=other,
        added=added_in(kept, ids, other),
        frame=frame,
    )


def risk_of(classes: Classes, *, population: int | None = None, quasi: Sequence[str] = ()) -> Risk:
    """The risk of classes that were counted before.

    >>> risk_of(Classes.of(np.array([0, 0, 1]), 2)).k
    1
    """
    suppressed = classes.of_row < 0
    weights = classes.weights
    gone = int(np.count_nonzero(suppressed) if weights is None else weights[suppressed].sum())
    return _risk(classes, quasi=tuple(quasi), suppressed=gone, population=population)


def _risk(
    classes: Classes,
    *,
    quasi: tuple[str, ...],
    suppressed: int,
    matched: Matched | None = None,
    population: int | None = None,
    other: tuple[str, ...] = (),
    added: tuple[Added, ...] = (),
    frame: Frame | None = None,
) -> Risk:
    sizes, counts = np.unique(classes.sizes, return_counts=True)
    uniques = None
    if matched is not None:
        uniques = Uniques(people=float(matched.uniques), population=matched.population, how="counted")
    elif population is not None:
        uniques = estimate_uniques(sizes, counts, population)
    return Risk(
        rows=classes.rows,
        classes=classes.count,
        k=int(sizes[0]) if len(sizes) else 0,
        sizes=tuple(sizes.tolist()),
        counts=tuple(counts.tolist()),
        quasi=quasi,
        sensitive={name: _of_column(classes, name) for name in classes.sensitive} if classes.count else {},
        suppressed=suppressed,
        matched=matched,
        population_uniques=uniques,
        other=other,
        added=added,
        _frame=frame,
    )


def _of_column(classes: Classes, name: str) -> SensitiveRisk:
    spread = classes.spread(name)
    closeness = TCloseness(1)
    distances = closeness.distances(classes, name)
    distinct = distinct_values(spread)
    worst = int(np.argmax(distances))
    mine = slice(int(spread.first[worst]), int(spread.first[worst + 1]))
    there = dict(zip(spread.value[mine].tolist(), spread.shares[mine].tolist(), strict=True))
    expected = spread.overall / max(int(spread.overall.sum()), 1)
    order = sorted(set(there) | set(np.argsort(-expected)[:_SHOWN].tolist()), key=lambda v: -max(there.get(v, 0.0), expected[v]))
    return SensitiveRisk(
        column=name,
        l=int(distinct.min()),
        entropy_l=float(effective_values(spread).min()),
        t=float(distances[worst]),
        distance=closeness.distance_for(spread.column),
        beta=max(gains(spread).largest, 0.0),
        delta=float(log_ratios(spread).max()),
        lacking=int(np.count_nonzero(distinct < np.count_nonzero(spread.overall))),
        alpha=largest_shares(spread).largest,
        told=int(classes.sizes[distinct == 1].sum()),
        alike=spelt_alike(spread.column.values[value] for value in np.unique(spread.value).tolist()),
        worst=tuple((str(spread.column.values[v]), float(there.get(v, 0.0)), float(expected[v])) for v in order[:_SHOWN]),
    )


_SHOWN = 8


def _starred(table: Encoded, names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Rows that are a star in all of these columns: suppressed, and left in."""
    hidden = np.ones(table.rows, dtype=bool)
    for name in names:
        column = table.columns[name]
        star = next((code for code, value in enumerate(column.values) if isinstance(value, str) and value == STAR), None)
        if star is None:
            return np.zeros(table.rows, dtype=bool)
        hidden &= column.codes == star
    return hidden


class _Hashing:
    """Where a CSV file would be written: what comes is hashed and forgotten."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()

    def write(self, data: bytes | str) -> int:
        self.hash.update(data.encode() if isinstance(data, str) else data)
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""


def digest_of(frame: Frame) -> str:
    """The SHA-256 of a table, written as CSV with a line of names: that of the file, where it is saved so.

    CSV holds no lists, bytes or objects: such columns are hashed as Python writes them.

    >>> digest_of(read_frame({"age": [30, 31]}))[:16]
    '771077b2404773cd'
    """
    pl = need_polars()
    sink = _Hashing()
    unwritten = [each for each in frame.data if each.dtype.is_nested() or each.dtype in (pl.Binary, pl.Object, pl.Duration)]
    texts = [pl.Series(each.name, [None if value is None else repr(value) for value in each.to_list()]) for each in unwritten]
    with in_own_words("The table is invalid", "it cannot be written as CSV", "its columns as numbers, texts and dates"):
        frame.data.with_columns(texts).write_csv(sink)
    return sink.hash.hexdigest()
