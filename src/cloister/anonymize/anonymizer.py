"""`Anonymizer`: one call from a table to a table that may be published, and a report of what that means.

Masked texts are no longer than those that are published need: how long a text is that was left out is not told by the others.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.encoded import Encoded, EncodedColumn, encode
from cloister.anonymize.frames import (
    INDEX_KEPT,
    ORDER_KEPT,
    Frame,
    HiddenRows,
    check_columns,
    kept_index,
    read_frame,
    secret_order,
)
from cloister.anonymize.hierarchies.chosen import choose_hierarchy
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.ladder import MISSING, STAR, Ladder
from cloister.anonymize.hierarchies.learnt import Learnt
from cloister.anonymize.hierarchies.levels import text_of
from cloister.anonymize.hierarchies.masking import Masking
from cloister.anonymize.metrics import metric_of
from cloister.anonymize.models.base import PrivacyModel, attained_by
from cloister.anonymize.models.k import KAnonymity
from cloister.anonymize.models.presence import DeltaPresence, KMap, of_what_leaves
from cloister.anonymize.naming import named_by_what_is_published
from cloister.anonymize.problem import Problem, Search, silent
from cloister.anonymize.publishing import leaving, published
from cloister.anonymize.recoding import Recoded, RecodedColumn
from cloister.anonymize.report import Report, report_on
from cloister.anonymize.risks.added import added_by
from cloister.anonymize.roles import check_roles, incomplete, research_rows, share_of
from cloister.anonymize.searches.named import search_of
from cloister.anonymize.searches.unmet import check_presence
from cloister.errors import CloisterError, InvalidParameter
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.privacy.rational import Exact, exact_nonnegative

if TYPE_CHECKING:
    from pathlib import Path

    from cloister.anonymize.certificate import Certificate
    from cloister.anonymize.files import WrittenFile


__all__ = ["Anonymizer", "HiddenRows"]

_LINKING = "kept, as was asked for: they link this table, row by row, to every other table about the same rows"


class Anonymizer:
    """Makes a table that meets privacy models and loses as little as it can.

    **Not differential privacy.** The models speak of what is in the table; an attacker who knows more (another release about
    the same people, or most of the rows) may learn more. `report_` and `certificate` say what was tried, and how far it got.

    Parameters
    ----------
    quasi
        Columns that others may know of a person as well: age, postcode, profession.
    sensitive
        Columns that others must not learn.
    models
        What every class of rows that look alike has to meet; `KAnonymity(5)` when left out.
    hierarchies
        How a column becomes coarser; a column without one gets one that fits it (`report_.hierarchies` says which).
    search
        "optimal" (one level for each column: the best of all, proved), "mondrian", "local", "topdown", "greedy",
        "microaggregation".
    metric
        What is lost: "loss", "discernibility", "entropy", …
    suppression
        The largest share of the rows that may be left out.
    suppressed
        "drop": such rows are left out; "star": they stay, and say nothing: "*" where something is recoded or sensitive, and
        nothing in any other column.
    identifying
        Columns that name a person; they are dropped.
    missing
        "value": a missing value is a value of its own; "suppress": its row is suppressed; "refuse": the table is refused.
    missing_values
        Values that stand for a missing one, such as "?".
    weights
        How much each quasi-identifier counts in what is lost.
    aggregates
        What stands for a class, by column, in searches that make their own groups: "range", "mean", "median", "mode", "set".
    research
        For δ-presence and k-map: the boolean column that says which rows are in the table that will be published; the others are
        the public list. Those rows alone leave, without that column, and every other model is judged on them alone.
    shuffle
        Rows leave in a secret order, drawn by `random`: a file in the old order links its rows, one by one, to every other file
        in that order (another release of the same table), and shows where rows were left out. With False they keep their order;
        that is warned of, and stands in report and certificate.
    keep_index
        Whether the labels of a pandas frame's rows leave with them. They link rows as their order does, and gaps in them show
        what was left out; so rows are numbered afresh, unless this asks for the labels.
    seconds
        A time budget for the search; the best that was found by then is taken, with how far it may be from the best of all.

    Attributes
    ----------
    report_
        What was done: `.levels`, `.score`, `.classes`, `.suppressed`, `.models`, `.risk`, `.utility`.
    rows_
        The positions, in the table that came in, of the rows that left, in the order in which they did. Secret: for the owner's
        own comparisons, such as `attack_tables(raw, released, …, kept=anonymizer.rows_)`.

    Examples
    --------
    >>> table = {"age": [23, 24, 37, 38, 39, 52, 55, 58], "town": ["A", "A", "B", "B", "B", "A", "A", "A"],
    ...          "disease": ["flu", "cold", "flu", "cold", "gout", "flu", "gout", "cold"]}
    >>> anonymizer = Anonymizer(quasi=["age", "town"], sensitive=["disease"], models=[KAnonymity(2)],
    ...                         hierarchies={"age": Hierarchy.intervals(10, 20)}, suppression=0)
    >>> sorted(anonymizer.fit_transform(table)["age"])
    ['20–29', '20–29', '30–39', '30–39', '30–39', '50–59', '50–59', '50–59']
    >>> anonymizer.report_.levels, anonymizer.report_.classes, anonymizer.report_.suppressed
    ({'age': 1, 'town': 0}, 3, 0)
    """

    def __init__(
        self,
        quasi: Sequence[str],
        sensitive: Sequence[str] = (),
        models: Sequence[PrivacyModel] = (KAnonymity(5),),
        hierarchies: Mapping[str, Hierarchy] | None = None,
        search: str | Search = "optimal",
        metric: str = "loss",
        suppression: float | str | Fraction = "0.02",
        suppressed: str = "drop",
        *,
        identifying: Sequence[str] = (),
        missing: str = "value",
        missing_values: Sequence[Any] = (),
        weights: Mapping[str, float] | None = None,
        aggregates: Mapping[str, str] | None = None,
        research: str | None = None,
        seconds: Exact | None = 60,
        shuffle: bool = True,
        keep_index: bool = False,
        random: Random | None = None,
        progress: Callable[[str, float], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        self.quasi = quasi
        self.sensitive = sensitive
        self.models = models
        self.hierarchies = hierarchies
        self.search = search
        self.metric = metric
        self.suppression = suppression
        self.suppressed = suppressed
        self.identifying = identifying
        self.missing = missing
        self.missing_values = missing_values
        self.weights = weights
        self.aggregates = aggregates
        self.research = research
        self.seconds = seconds
        self.shuffle = shuffle
        self.keep_index = keep_index
        self.random = random
        self.progress = progress
        self.stop = stop

    def fit_transform(self, table: Any) -> Any:
        """The anonymised table, in the kind of frame that came in; `report_` says what it is worth."""
        frame = read_frame(table)
        recoded = self.recode(frame)
        return self.publish(frame, recoded)

    def transform_file(self, source: str | Path, target: str | Path, **how: Any) -> WrittenFile:
        """A CSV or Parquet file anonymised into another one; the table is never in memory. `how` is what
        `cloister.anonymize.anonymize_file` takes: `memory_limit`, `temporary_directory`, `connection`."""
        from cloister.anonymize.files import anonymize_file

        return anonymize_file(self, source, target, **how)

    def recode(self, table: Any) -> Recoded:
        """The search alone: which label each row gets, and which rows are suppressed. Sets `report_`."""
        frame = read_frame(table)
        start = time.perf_counter()
        problem, asked, kept = self._problem(frame)
        learnt = {name: ladder for name, ladder in problem.ladders.items() if isinstance(self.chosen.get(name), Learnt)}
        recoded = named_by_what_is_published(asked.find(problem), problem.table, learnt)
        recoded = padded_as_published(recoded, problem.table, self.chosen)
        if any(model.of_sensitive for model in problem.models) and problem.research is None:
            recoded = replace(recoded, again=partial(_again, replace(problem, progress=silent, stop=bool), asked))
        _check(problem, recoded)
        self.problem_, self.recoded_, self.kept_ = problem, recoded, kept
        self.report_: Report = report_on(
            problem,
            recoded,
            search=asked.name,
            incomplete=0 if kept is None else frame.stands_for(~kept),
            kept=[*self._as_they_are(frame), *self._linking(frame)],
            added=added_by(frame, recoded, kept, self._as_they_are(frame)),
            dropped=self.dropped,
            hierarchies={name: hierarchy.describe() for name, hierarchy in self.chosen.items()},
            seconds=time.perf_counter() - start,
        )
        return recoded if kept is None else recoded.among(kept, frame.weights)

    def publish(self, table: Any, recoded: Recoded) -> Any:
        """The table that a recoding of it makes."""
        frame = read_frame(table)
        labelled = kept_index(frame, self.keep_index)
        order = secret_order(frame.rows, source(self.random), shuffle=self.shuffle)
        outside = ~research_rows(frame, self.research, None) if self.research else None
        star = self.suppressed == "star"
        self.rows_ = leaving(recoded, order, star=star, left_out=outside)
        if hasattr(self, "report_"):
            self.warn()
        return published(
            frame,
            recoded,
            sensitive=self.watched,
            dropped=self.dropped,
            star=star,
            missing_values=self.missing_values,
            left_out=outside,
            read=self.kept_ if self.kept_ is not None and len(self.kept_) == frame.rows else None,
            rows=order,
            keep_index=labelled,
        )

    def certificate(self, released: Any, **attacking: Any) -> Certificate:
        """What was proved of the table that is about to leave, and how far attackers get with it.

        `attacking` is what `cloister.anonymize.attack` takes: a `public` list to link with, an `other` release of the same rows.

        >>> anonymizer = Anonymizer(quasi=["age"], sensitive=["ill"], models=[KAnonymity(2)], suppression=0)
        >>> released = anonymizer.fit_transform({"age": [30, 31, 60, 61], "ill": ["flu", "flu", "flu", "gout"]})
        >>> print(anonymizer.certificate(released, learning=False).attacks[1])
        homogeneity of 'ill': 50.0 % (raw table: 100 %, without the table: 0 %)
        """
        from cloister.anonymize.certificate import certify

        report = self.report_
        made = {
            "search": report.search + (f"; {report.proof}" if report.proof else ""),
            "rows": report.published,
            "order of the rows": "secret, drawn for this table" if self.shuffle else _LINKING,
            **({"labels of the rows": _LINKING} if self.keep_index else {}),
            **{f"hierarchy of {name}": words for name, words in report.hierarchies.items()},
        }
        return certify(
            self.problem_.table,
            self.recoded_,
            released,
            models=self.models,
            sensitive=self.watched,
            utility=report.utility,
            made=made,
            missing_values=self.missing_values,
            random=self.random,
            **attacking,
        )

    def problem(self, table: Any) -> Problem:
        """What the search is asked: for pictures, frontiers and searches of one's own."""
        return self._problem(read_frame(table))[0]

    def check(self, frame: Frame) -> list[str]:
        """Refuse what no row of these columns could make right. The columns that are read: quasi-identifiers, then others."""
        check_roles(self, frame)
        quasi, sensitive = list(self.quasi), list(self.sensitive)
        for model in self.models:
            if model.of_sensitive and not model.columns_of(sensitive):
                raise InvalidParameter(
                    f"{model.name} is invalid",
                    why="no column was declared sensitive",
                    instead='Anonymizer(…, sensitive=["disease"])',
                )
            if model.column in quasi:
                raise InvalidParameter(
                    f"{model.name} of {model.column!r} is invalid",
                    why="the column is a quasi-identifier: someone who knows it has nothing to learn of it",
                    instead="another column, or quasi= without it",
                )
        named = [
            *quasi,
            *dict.fromkeys(
                name
                for name in [*sensitive, *(c for m in self.models for c in m.columns_of(sensitive) if c)]
                if name not in quasi
            ),
        ]
        check_columns(frame, [*named, *([self.research] if self.research else [])], "named")
        share_of(self.suppression)
        search_of(self.search, self.aggregates)
        metric_of(self.metric)
        return named

    def _problem(self, frame: Frame) -> tuple[Problem, Search, npt.NDArray[np.bool_] | None]:
        named, quasi, sensitive = self.check(frame), list(self.quasi), list(self.sensitive)
        told = named[len(quasi) :]
        table = encode(frame, named, missing=self.missing, missing_values=self.missing_values, told=told)
        limit = int(share_of(self.suppression) * table.total)
        kept = ~incomplete(table, quasi) if self.missing == "suppress" else None
        if kept is not None and not kept.all():  # read afresh, so that no value that only such rows have is known to anything
            table = encode(frame.among(kept), named, missing_values=self.missing_values, told=told)
        research = research_rows(frame, self.research, kept) if self.research else None
        leaving = table if research is None else table.take(research)
        for model in self.models:
            model.check(table if isinstance(model, DeltaPresence | KMap) else leaving, model.columns_of(sensitive), limit)
        asked = search_of(self.search, self.aggregates)
        problem = Problem(
            table=table,
            quasi=tuple(quasi),
            ladders=self._ladders(table, quasi, every=asked.uses_hierarchies),
            models=tuple(self.models) if research is None else of_what_leaves(self.models, table, research),
            metric=metric_of(self.metric),
            limit=limit,
            sensitive=tuple(dict.fromkeys([*sensitive, *named[len(quasi) :]])),
            weights=dict(self.weights or {}),
            research=research,
            seconds=None if self.seconds is None else float(exact_nonnegative(self.seconds, "seconds")),
            random=source(self.random),
            progress=self.progress or silent,
            stop=self.stop or bool,
        )
        check_presence(problem)
        return problem, asked, kept

    def _ladders(self, table: Encoded, quasi: list[str], *, every: bool) -> dict[str, Ladder]:
        """The hierarchies that were given, and where the search needs one for every column, those that fit the others."""
        given = self.hierarchies or {}
        asked = [name for name in quasi if every or name in given]
        self.chosen = {name: given.get(name) or choose_hierarchy(table.columns[name], table) for name in asked}
        wrong = next((name for name, hierarchy in self.chosen.items() if not isinstance(hierarchy, Hierarchy)), None)
        if wrong is not None:
            raise InvalidParameter(
                f"The hierarchy of {wrong!r} is invalid",
                why=f"it is a {type(self.chosen[wrong]).__name__}",
                instead="Hierarchy.of({…}), Hierarchy.read_csv(path), Hierarchy.intervals(5, 10)",
            )
        return {name: hierarchy.ladder(table.columns[name], table) for name, hierarchy in self.chosen.items()}

    chosen: Mapping[str, Hierarchy] = {}
    """The hierarchy of each column, as it was given or chosen."""
    kept_: npt.NDArray[np.bool_] | None = None

    @property
    def watched(self) -> list[str]:
        """Every sensitive column: those that were declared, and those that a model names."""
        named = [column for model in self.models for column in model.columns_of(self.sensitive) if column is not None]
        return list(dict.fromkeys([*self.sensitive, *named]))

    @property
    def dropped(self) -> list[str]:
        """Columns that do not leave: those that name a person, and the one that says who of the list is in the table."""
        return [*self.identifying, *([self.research] if self.research else [])]

    def _as_they_are(self, frame: Frame) -> list[str]:
        """Columns that are published and that no model looks at."""
        named = {*self.quasi, *self.watched, *self.dropped}
        return [name for name in frame.names if name not in named]

    def _linking(self, frame: Frame) -> list[str]:
        """What links rows to those of other tables, and was asked for: their labels, their order."""
        labels = [frame.labelled or INDEX_KEPT] if self.keep_index and frame.index is not None else []
        return [*labels, *([] if self.shuffle else [ORDER_KEPT])]

    def warn(self, stacklevel: int = 4) -> None:
        """Warn of rows whose risk grew."""
        told = [each.warning for each in self.report_.risk.added if each.grows]
        if told:
            warnings.warn("; ".join(told), HiddenRows, stacklevel=stacklevel)


def _again(problem: Problem, search: Search, sensitive: Mapping[str, EncodedColumn]) -> Recoded:
    """The same search, had the people had these sensitive values."""
    columns = {**problem.table.columns, **sensitive}
    return search.find(replace(problem, table=replace(problem.table, columns=columns)))


def _check(problem: Problem, recoded: Recoded) -> None:
    """Every class of the table that will be published meets every model, and no more rows are suppressed than were allowed:
    computed again from the labels, whatever the search believes."""
    failed = [each for each in attained_by(problem.models, recoded.classes) if not each.holds]
    if failed or not problem.satisfied(recoded.classes).all():
        raise CloisterError(
            "The anonymised table was withheld",
            why=f"checked again, {failed[0] if failed else 'a class fails'}",
            instead="report this",
        )
    if recoded.suppressed_rows > problem.limit:
        raise CloisterError(
            "The anonymised table was withheld", why="more rows were suppressed than allowed", instead="report this"
        )


def padded_as_published(recoded: Recoded, table: Encoded, hierarchies: Mapping[str, Hierarchy]) -> Recoded:
    """The same recoding, whose masks are as long as the longest text of a row that leaves, or is on the public list beside it."""
    kept = ~recoded.suppressed
    columns: dict[str, RecodedColumn] = {}
    for name, column in recoded.columns.items():
        hierarchy = hierarchies.get(name)
        if not isinstance(hierarchy, Masking) or column.intact:
            continue
        values = table.columns[name].values
        leaving = np.bincount(table.columns[name].codes[kept], minlength=len(values)) > 0
        lengths = np.array([0 if value is None else len(text_of(value)) for value in values], dtype=np.int64)
        width, needed = int(lengths.max(initial=0)), int(lengths[leaving].max(initial=0))
        if 0 < needed < width:
            labels = [_shorter(label, hierarchy, width, needed) for label in column.labels]
            columns[name] = replace(column, labels=labels)
    return replace(recoded, columns={**recoded.columns, **columns}) if columns else recoded


def _shorter(label: Any, hierarchy: Masking, width: int, needed: int) -> Any:
    """A mask without the characters that fill it up for texts which do not leave; any other label, and any that shows more, as it
    is."""
    if not isinstance(label, str) or len(label) != width or label in (STAR, MISSING):
        return label
    rest = label[:needed] if hierarchy.side == "right" else label[width - needed :]
    gone = label[needed:] if hierarchy.side == "right" else label[: width - needed]
    return rest if set(gone) == {hierarchy.character} else label
