"""SafePub: a k-anonymous table that is (ε, δ)-differentially private, because nobody knows who was sampled and nobody looked."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import alike
from cloister.anonymize.encoded import EncodedColumn
from cloister.anonymize.frames import Frame, check_columns, need_polars, read_frame
from cloister.anonymize.held import in_own_words
from cloister.anonymize.hierarchies.chosen import choose_hierarchy
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.hierarchies.learnt import Learnt
from cloister.anonymize.hierarchies.levels import text_of
from cloister.anonymize.safepub.parameters import delta_of, largest_rate, least_k
from cloister.errors import InvalidParameter, MissingBound
from cloister.noise import Exponential, Random, default_random
from cloister.noise.bernoulli import bernoulli
from cloister.privacy import ApproxDP, Exact, exact, exact_positive, exact_probability
from cloister.tables import Boolean, Category, Date, Domain, Integer, Real

MOST_VALUES = 100_000
_SHARE_FOR_CHOOSING = Fraction(1, 5)


@dataclass(frozen=True, eq=False, kw_only=True)
class SafelyPublished:
    """What was released: classes of rows that look alike, each with its count, and the level of each column."""

    levels: dict[str, int]
    labels: dict[str, list[Any]]
    """For each column, the label of each class."""
    counts: list[int]

    @property
    def rows(self) -> int:
        """How many rows were released."""
        return sum(self.counts)


class SafePub:
    """Publish rows so that nobody can tell whether a person was in the table.

    A sample of the rows is generalised, and classes of fewer than k rows are left out. *All* columns that are published are
    generalised, sensitive ones as well: what is left is a count for each combination of labels.

    **Guarantee.** (ε, δ)-differential privacy; neighbours: one row more or less, so one row has to be one person. Assumptions:
    the hierarchies and the domains in `columns` were written down without a look at the rows. *Proof.* Let the levels be fixed.
    Each row then has its class by itself, so one row more moves one class only, from m − 1 people to m, and the other classes say
    nothing of it. Its released count is that of a binomial sample, or "fewer than k". Between the two worlds the chance of each
    outcome differs by a factor of at most e^ε, but for an excess of at most δ: `parameters.py` has the sum, whose largest value
    over all m is computed and rounded up. Where the levels are chosen, the choice is ε₁-DP (exponential mechanism, scores of
    bounded sensitivity), the rest is (ε − ε₁, δ)-DP for each choice, and the two add up. ∎

    *A node that is chosen by looking is no such promise*, however the sample is drawn: `attacks` finds it out at once, and the
    tests show it.

    Sources: Li, Qardaji and Su (2012), "On sampling, anonymization, and differential privacy"; Bild, Kuhn and Prasser (2018),
    "SafePub". k is smaller than theirs for the same promise, since δ is the exact excess and not the whole tail.

    Parameters
    ----------
    epsilon, delta
        The promise.
    columns
        The columns to be published, each with its declared domain. A number beyond its bounds counts as the bound; a value
        that is not listed counts as missing.
    hierarchies
        How a column becomes coarser; one that fits its domain when left out.
    levels
        The level of each column, if they are decided in advance. When left out, they are chosen.
    choosing
        How much of ε pays for the choice; a fifth when left out.
    sampling
        The chance of a row to be taken: 1 − e^−ε when left out, which is the largest.

    Examples
    --------
    >>> from cloister.noise import Random
    >>> from cloister.tables import Category, Integer
    >>> people = {"age": [n % 60 + 20 for n in range(6000)], "sex": ["F", "M"] * 3000}
    >>> safe = SafePub(1, "1e-6", columns={"age": Integer(18, 90), "sex": Category(["F", "M"])},
    ...                hierarchies={"age": Hierarchy.intervals(10, 20)}, levels={"age": 1, "sex": 0})
    >>> released = safe.fit_transform(people, random=Random.deterministic(1))
    >>> safe.k, len(released["age"]) > 3000, released["age"][0]
    (58, True, '20–29')
    """

    def __init__(
        self,
        epsilon: Exact,
        delta: Exact,
        columns: Mapping[str, Domain],
        hierarchies: Mapping[str, Hierarchy] | None = None,
        levels: Mapping[str, int] | None = None,
        *,
        choosing: Exact | None = None,
        sampling: Exact | None = None,
    ) -> None:
        self.epsilon, self.delta = exact_positive(epsilon, "epsilon"), exact_probability(delta, "delta")
        if self.delta == 0:
            raise InvalidParameter("delta=0 is invalid", why="a class may always be seen whole", instead='delta="1e-6"')
        if not columns:
            raise InvalidParameter(
                "columns={} is invalid", why="no column would be published", instead='columns={"age": cl.Integer(0, 120)}'
            )
        self.columns = dict(columns)
        self.hierarchies = dict(hierarchies or {})
        self.ladders = {name: self._ladder(name, domain) for name, domain in self.columns.items()}
        self.levels = self._levels(levels)
        self.choosing = self._choosing(choosing)
        rate = largest_rate(self.rest) if sampling is None else exact(sampling, "sampling")
        self.k = least_k(self.rest, self.delta, rate)
        self.sampling = rate

    @property
    def rest(self) -> Fraction:
        """What of ε is left for the rows, once the choice is paid."""
        return self.epsilon - self.choosing

    @property
    def guarantee(self) -> ApproxDP:
        """The promise."""
        return ApproxDP(self.epsilon, self.delta)

    @cached_property
    def reached(self) -> Fraction:
        """The δ that this k reaches: at most the one that was asked for."""
        return delta_of(self.k, self.rest, self.sampling)

    def fit_transform(self, table: Any, *, random: Random | None = None) -> Any:
        """The released rows, in the kind of frame that came in; `released_` has the classes.

        Rows are in the order of their classes. This spends ε and δ: on a table of a session, use `publish_safely`.
        """
        frame = read_frame(table)
        check_columns(frame, list(self.columns), "published")
        codes = [self._codes(frame, name) for name in self.columns]
        self.released_ = self.release(codes, random or default_random())
        return frame.give_back(self.frame_of(self.released_))

    def release(self, codes: Sequence[npt.NDArray[np.int64]], random: Random) -> SafelyPublished:
        """The mechanism: rows as places in the domains of the columns in, classes with their counts out."""
        if self.levels is None:
            threshold = math.ceil(self.k / self.sampling)
            node = choose_levels(codes, self.ladders, epsilon=self.choosing, threshold=threshold, random=random)
        else:
            node = tuple(self.levels[name] for name in self.columns)
        taken = bernoulli(self.sampling, len(codes[0]), random=random)
        ladders = list(self.ladders.values())
        labels = [ladder.codes[level][each[taken]] for ladder, level, each in zip(ladders, node, codes, strict=True)]
        found: list[list[Any]] = [[] for _ in ladders]
        counts: list[int] = []
        if taken.any():
            # classes in the order of their labels: nothing of the order of the rows is left
            ids, count = alike(labels, [len(ladder.labels[level]) for ladder, level in zip(ladders, node, strict=True)])
            sizes = np.bincount(ids, minlength=count)
            first = np.zeros(count, dtype=np.int64)
            first[ids] = np.arange(len(ids))
            shown = np.flatnonzero(sizes >= self.k)
            counts = sizes[shown].tolist()
            found = [
                [ladder.labels[level][code] for code in column[first[shown]].tolist()]
                for ladder, level, column in zip(ladders, node, labels, strict=True)
            ]
        return SafelyPublished(
            levels=dict(zip(self.columns, node, strict=True)), labels=dict(zip(self.columns, found, strict=True)), counts=counts
        )

    def frame_of(self, released: SafelyPublished) -> Any:
        """The rows of a release, as a polars frame."""
        pl = need_polars()
        data = {}
        for name, labels in released.labels.items():
            kept = released.levels[name] == 0
            values = labels if kept else [None if label is None else text_of(label) for label in labels]
            data[name] = pl.Series(name, values, dtype=self._type_of(name) if kept else pl.String)
        whole = pl.DataFrame(data)
        return whole[np.repeat(np.arange(len(released.counts)), released.counts)] if released.counts else whole

    def describe(self) -> dict[str, Any]:
        """The mechanism as plain data, for plans and digests."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "choosing": str(self.choosing),
            "sampling": str(self.sampling),
            "k": self.k,
            "columns": {name: domain.describe() for name, domain in self.columns.items()},
            "labels": {name: [list(map(str, labels)) for labels in ladder.labels] for name, ladder in self.ladders.items()},
            "levels": self.levels,
        }

    def __repr__(self) -> str:
        return f"SafePub({self.guarantee}, sampling ≈ {float(self.sampling):.3g}, k = {self.k})"

    def _type_of(self, name: str) -> Any:
        """The type of a column whose values stay: its declaration's, whatever was released."""
        pl = need_polars()
        domain = self.columns[name]
        if isinstance(domain, Category):
            first = domain.options[0]
            return pl.Boolean if isinstance(first, bool) else pl.Int64 if isinstance(first, int) else pl.String
        return {Integer: pl.Int64, Real: pl.Float64, Boolean: pl.Boolean, Date: pl.Date}[type(domain)]

    def _ladder(self, name: str, domain: Domain) -> Ladder:
        if not isinstance(domain, Integer | Real | Category | Boolean | Date) or (domain.size or MOST_VALUES + 1) > MOST_VALUES:
            raise MissingBound(
                f"The column {name!r} needs bounds",
                why=f"its values are not declared, or there are more than {MOST_VALUES:,}",
                instead=f'columns={{"{name}": cl.Category([…])}}, or a coarser step',
            )
        values = [*domain.values(), None]
        kind = {"category": "text"}.get(domain.kind, domain.kind)
        if isinstance(domain, Category) and not isinstance(domain.options[0], str):
            kind = "boolean" if isinstance(domain.options[0], bool) else "integer"
        # the column of the domain, not of the table: every value once
        column = EncodedColumn(name=name, codes=np.arange(len(values), dtype=np.int32), values=values, kind=kind)
        hierarchy = self.hierarchies.get(name) or choose_hierarchy(column)
        if isinstance(hierarchy, Learnt):
            if name in self.hierarchies:
                raise InvalidParameter(
                    f"The hierarchy of {name!r} is invalid",
                    why="it is learnt from the rows, and nothing pays for that look",
                    instead="Hierarchy.of({…}), written down in advance",
                )
            hierarchy = Hierarchy.flat()
        return hierarchy.ladder(column)

    def _levels(self, levels: Mapping[str, int] | None) -> dict[str, int] | None:
        unknown = [name for name in [*self.hierarchies, *(levels or {})] if name not in self.columns]
        if unknown:
            raise InvalidParameter(
                f"The column {unknown[0]!r} is invalid", why="it is not among `columns`", instead=f"one of {list(self.columns)}"
            )
        if levels is None:
            nodes_of(self.ladders)
            return None
        lacking = [name for name in self.columns if name not in levels]
        if lacking:
            raise InvalidParameter(
                f"levels without {lacking[0]!r} are invalid",
                why="some levels are decided, and some are not",
                instead="a level for every column, or levels=None: then they are chosen",
            )
        for name, level in levels.items():
            height = self.ladders[name].height
            if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level < height:
                raise InvalidParameter(
                    f"levels={{{name!r}: {level!r}}} is invalid",
                    why=f"its hierarchy has the levels 0 to {height - 1}",
                    instead=f"levels={{{name!r}: {height - 1}}}",
                )
        return dict(levels)

    def _choosing(self, choosing: Exact | None) -> Fraction:
        if self.levels is not None:
            if choosing is not None:
                raise InvalidParameter(
                    f"choosing={choosing!r} is invalid", why="all levels are decided: nothing is chosen", instead="levels=None"
                )
            return Fraction(0)
        share = self.epsilon * _SHARE_FOR_CHOOSING if choosing is None else exact_positive(choosing, "choosing")
        if share >= self.epsilon:
            raise InvalidParameter(
                f"choosing={choosing!r} is invalid",
                why="nothing of ε is left for the rows",
                instead=f'choosing="{float(self.epsilon) / 5:g}"',
            )
        return share

    def _codes(self, frame: Frame, name: str) -> npt.NDArray[np.int64]:
        """The place of each row's value in the declared domain; the last one where it has none."""
        domain = self.columns[name]
        missing = len(self.ladders[name].labels[0]) - 1
        series = frame.data[name]
        distinct = series.unique()
        codes = [None if value is None else domain.encode(value) for value in distinct.to_list()]
        places = [missing if code is None else code - domain.low_code for code in codes]
        with in_own_words(f"The column {name!r} is invalid", "polars cannot tell its values apart", "the same values as text"):
            found = series.replace_strict(distinct, places, return_dtype=need_polars().Int64)
        return np.asarray(found.fill_null(missing).to_numpy(), dtype=np.int64)


MOST_NODES = 5_000
_GRID = 1_000
"""What a published row keeps is counted in thousandths, so that scores are whole numbers."""


def nodes_of(ladders: Mapping[str, Ladder]) -> list[tuple[int, ...]]:
    """Every choice of a level for each column."""
    count = math.prod(ladder.height for ladder in ladders.values())
    if count > MOST_NODES:
        raise InvalidParameter(
            f"A choice among {count:,} combinations of levels is invalid",
            why=f"more than {MOST_NODES:,} are counted one after the other, and the best is drowned among the rest",
            instead="levels={…} for all columns, or hierarchies with fewer levels",
        )
    return list(itertools.product(*(range(ladder.height) for ladder in ladders.values())))


def scores(
    codes: Sequence[npt.NDArray[np.int64]], ladders: Mapping[str, Ladder], nodes: Sequence[tuple[int, ...]], threshold: int
) -> npt.NDArray[np.int64]:
    """What each choice keeps: over its classes, what a label keeps (in whole thousandths, by the label alone) times the rows that
    are likely to be shown.

    Those are none of a class up to the threshold, all of a class of twice as many, and two for each one more in between; so one
    row more moves one class by two rows at most. Sensitivity: 2,000, and monotone, since no class ever shrinks by a row more.
    """
    ids, count = alike(list(codes), [len(ladder.labels[0]) for ladder in ladders.values()])
    first = np.zeros(count, dtype=np.int64)
    first[ids] = np.arange(len(ids))
    rows = np.bincount(ids, minlength=count)
    kinds = [each[first] for each in codes]
    found = np.zeros(len(nodes), dtype=np.int64)
    for place, node in enumerate(nodes):
        columns = [ladder.codes[level][kind] for ladder, level, kind in zip(ladders.values(), node, kinds, strict=True)]
        classes, many = alike(columns, [len(ladder.labels[level]) for ladder, level in zip(ladders.values(), node, strict=True)])
        # whole numbers of each label by itself: a mean of floats would depend on how many kinds of rows there are beside
        kept = sum(
            np.floor(_GRID * np.clip(1 - ladder.shares(level), 0, 1)).astype(np.int64)[column]
            for ladder, level, column in zip(ladders.values(), node, columns, strict=True)
        )
        worth = np.zeros(many, dtype=np.int64)
        worth[classes] = kept // len(node)
        sizes = np.bincount(classes, weights=rows, minlength=many).astype(np.int64)
        found[place] = int((worth * np.clip(2 * (sizes - threshold), 0, sizes)).sum())
    return found


def choose_levels(
    codes: Sequence[npt.NDArray[np.int64]], ladders: Mapping[str, Ladder], *, epsilon: Fraction, threshold: int, random: Random
) -> tuple[int, ...]:
    """A level for each column: ε-DP by the exponential mechanism (McSherry and Talwar 2007) on monotone scores."""
    nodes = nodes_of(ladders)
    found = scores(codes, ladders, nodes, threshold) if len(codes[0]) else np.zeros(len(nodes), dtype=np.int64)
    chosen = Exponential(epsilon=epsilon, sensitivity=2 * _GRID, monotone=True).release(found, random=random)
    return nodes[int(chosen)]
