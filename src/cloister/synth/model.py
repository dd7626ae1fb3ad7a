"""A synthetic model: everything that was learnt of a table, and rows from it.

It holds released or public things alone, so it may be published, and whatever is made of it costs nothing more. It is still
personal data to the extent of the promise that it was made under: the cost stands beside every use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from cloister.errors import CloisterError, InvalidParameter
from cloister.noise import Random, default_random
from cloister.printable import margin_text
from cloister.privacy import ZCDP, Guarantee
from cloister.privacy.plain import guarantee_from_plain, guarantee_to_plain
from cloister.session import Frame, Question
from cloister.session.execution.rehearsal import declared_codes
from cloister.session.questions.spend import amount_of
from cloister.session.workloads.marginals import Marginal
from cloister.synth.drawing import accepted, allowed_by, checked_number, conditioned, drawn, drawn_under
from cloister.synth.measuring import Marginals, Noisy, combined
from cloister.synth.mixture import Mixture
from cloister.synth.pieces import Integers, Pieces
from cloister.synth.released import margin_of
from cloister.synth.rules import Rules
from cloister.synth.states import States, states_from
from cloister.synth.workload import Adaptive, Method
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from cloister.synth.answer import Answer
    from cloister.synth.comparing import Comparison
    from cloister.synth.report import Report

POOLED = "pooled synthetic model"
"""What a file of `pooling.py` says that it is."""
REPORTS = "reports"
"""The method of a model that was made of local reports (`from_reports.py`)."""
DECLARED: Literal["declared"] = "declared"
"""The method of a model that nothing was spent on: its rows follow the declarations and nothing else."""
COMPLETE = "Counted are rows that have a value in every column of the model that is not declared nullable. Others are left out."
INCOMPLETE = "Intervals hold where no row lacks a value in a column of the model that is not declared nullable."
"""Said where tables count all rows with a value in their own columns: with `earlier=`, on some engines, in files of old."""
FRAME = "frame"
"""The population of rows that were given without a session."""
_FORMAT = 1
_WITH_RULES = 2
"""A file with rules is one that versions without rules refuse, since they would break them."""
_MOST_COMPONENTS = 100_000
_MOST_NOISE = 1e100  # moments of a law that a spend could have bought
_PILOT, _ENOUGH = 20_000, 50
_SEED = b"rows that show how many meet a condition"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SyntheticModel:
    """What `cl.synth.fit` gives.

    >>> from cloister.session.examples import small_door
    >>> from cloister.synth import fit
    >>> with small_door() as door:
    ...     model = fit(door, "people", spend=1)
    >>> rows = model.sample(5)
    >>> rows.column_names, len(rows), str(model.cost)
    (['age', 'sex'], 5, 'ε = 1')
    """

    table: str
    method: Method | Literal["pooled", "reports", "declared"]
    why: str
    """Why this method, where it was chosen."""
    columns: tuple[States, ...]
    mixture: Mixture
    rows: float
    """The noisy number of rows."""
    rows_error: float
    """The standard deviation of its noise."""
    cost: Guarantee
    """What was spent on it: all that ever will be."""
    population: str
    charges: tuple[int | str, ...]
    marked: bool = False
    """True where the noise came from a test's generator: such a model protects nobody."""
    measured: Marginals | None = None
    """The released tables that the model was fitted to: margins of answers come from them. None in files of old."""
    rules: tuple[str, ...] = ()
    """What every drawn row obeys."""
    unmapped: tuple[str, ...] = ()
    """The rules that rows of the table may break in what was counted: no public map mends them there."""
    acceptance: float = 1.0
    """Which share of the rows drawn from the mixture can be made to obey the rules; the others are thrown away."""
    differences: tuple[States, ...] = ()
    """The last columns of the mixture: differences of columns that a rule orders (`rules.py`), which rows are not shown with."""

    @property
    def said(self) -> tuple[str, ...]:
        """What stands beside every answer and in the report: which rows are counted."""
        if self.measured is None or all(each.domain.nullable for each in self.columns):
            return ()
        return (COMPLETE if self.measured.complete else INCOMPLETE,)

    @cached_property
    def declaration(self) -> PrivateTable:
        """Its columns, as a table without rows, which questions are read against."""
        return PrivateTable({each.name: [] for each in self.columns}, {each.name: each.domain for each in self.columns})

    @cached_property
    def ruled(self) -> Rules:
        """The rules as conditions on the columns."""
        return Rules.of(self.rules, self.columns, table=self.table).telling(self.differences)

    def sample(self, n: int | None = None, *, given: Mapping[str, Any] | None = None, random: Random | None = None) -> Frame:
        """Rows with the table's own columns, types and missing values.

        Parameters
        ----------
        n
            How many; None: as many as the table has, by the noisy count (of rows that meet the conditions).
        given
            Conditions: column → a value, a list of values, or a pair (low, high) of a number or a day; None stands for missing.
        random
            Where the draws come from; they protect nothing.
        """
        codes = self.codes(n, given or {}, default_random() if random is None else random)
        return Frame({each.name: each.series(column) for each, column in zip(self.columns, codes, strict=True)})

    def codes(self, n: int | None, given: Mapping[str, Any], random: Random) -> list[Integers]:
        """The same rows as codes of the declared columns."""
        allowed = allowed_by(self.columns, given, self.table)
        if conditioned(self.mixture, list(self.columns), allowed)[1] <= 0:
            raise InvalidParameter(
                f"given={dict(given)!r} is invalid", why="no row of the model meets it", instead="a wider condition"
            )
        return self.draw(checked_number(self._rows(self.met(allowed)) if n is None else n), allowed, random)

    def draw(self, n: int, allowed: Mapping[int, Pieces], random: Random) -> list[Integers]:
        """The codes of so many rows that meet conditions on columns, by their places, and obey the rules."""
        states = list(self.columns)
        if self.method == DECLARED and not self.rules and not allowed:  # as a session's rehearsals have them
            return [declared_codes(each.domain, n, random) for each in states]
        mixture, _ = conditioned(self.mixture, states, allowed)
        if self.rules:
            return drawn_under(self.ruled, mixture, allowed, n, random)[: len(states)]
        return drawn(mixture, states, [allowed.get(place, each.pieces) for place, each in enumerate(states)], n, random)

    def met(self, allowed: Mapping[int, Pieces]) -> float:
        """The share of rows that meet the conditions, among those that obey the rules: as drawn, or by the mixture."""
        mixture, share = conditioned(self.mixture, list(self.columns), allowed)
        if not (self.rules and allowed and self.acceptance):
            return share
        some = drawn_under(self.ruled, self.mixture, {}, _PILOT, Random.derived(_SEED))
        met = sum(np.logical_and.reduce([pieces.within(some[place]) for place, pieces in allowed.items()]))
        if met >= _ENOUGH:
            return float(met / _PILOT)
        return share * accepted(mixture, self.ruled, allowed) / self.acceptance

    def _rows(self, share: float) -> int:
        if self.rows < 2 * self.rows_error:
            raise InvalidParameter(
                "n=None is invalid",
                why=f"the noise hides how many rows there are: {self.rows:,.0f} ± {2 * self.rows_error:,.0f}; {self._enough()}",
                instead="model.sample(1000), or a model for more",
            )
        return round(self.rows * share)

    def _enough(self) -> str:
        """The spend at which a number of rows would be told: four deviations are as many as they, so that two of them stay."""
        seen = next((each for each in (1000, 100, 10) if each < 4 * self.rows_error), 1)
        amount, power = amount_of(self.cost), 2 if isinstance(self.cost, ZCDP) else 1
        wanted = float(amount) * (4 * self.rows_error / seen) ** power
        step = 10 ** (floor(log10(wanted)) - 1)
        name = "ρ" if isinstance(self.cost, ZCDP) else "ε"
        return f"{name} = {ceil(wanted / step) * step:.6g} would be enough to tell {seen:,} rows"

    def answer(self, question: str | Question, *, confidence: float = 0.95, dialect: str | None = None) -> Answer:
        """Counts, sums and means from the model, in closed form: no rows are drawn, so there is no sampling error.

        Each number says how sure it is (`Answer.kind`): *measured*, with a margin that holds at the confidence; *sure*, with
        bounds that hold at it; or *not known*, with none. `answering.py` and `released.py` have the proofs.

        Parameters
        ----------
        question
            One SELECT of COUNT, SUM and AVG from the model's table, with WHERE, GROUP BY, ORDER BY, HAVING and LIMIT; or a
            `cloister.session.Question`.
        confidence
            Of margins and bounds.
        dialect
            Of the text; None: DuckDB's.

        >>> from cloister.noise import Random
        >>> from cloister.synth import fit_frame
        >>> from cloister.tables import Boolean, Integer
        >>> model = fit_frame({"age": [30, 40, 50] * 100, "smoker": [True, False, False] * 100},
        ...                   {"age": Integer(18, 99), "smoker": Boolean()}, epsilon=1, random=Random.deterministic(1))
        >>> answer = model.answer("SELECT smoker, COUNT(*) AS n FROM frame GROUP BY smoker")
        >>> answer.column_names, answer.kind()["n"].tolist()
        (['smoker', 'n'], ['measured', 'measured'])
        """
        from cloister.synth.answering import answered

        return answered(self, question, confidence, dialect)

    def report(self, *, progress: Callable[[str], None] = lambda _: None) -> Report:
        """What was measured, with which margins, how far off to expect the rows, what it cost: from the model alone, so it may be
        published with it. `print` it, or `.save("report.html")`.
        """
        from cloister.synth.report import report_of

        return report_of(self, progress)

    def compare(
        self,
        rows: Any,
        *,
        others: Any = None,
        target: str | None = None,
        random: Random | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Comparison:
        """The model against the rows that it was made of. NOT PRIVATE: exact numbers, for the owner of the rows alone.

        Parameters
        ----------
        rows
            The rows that the model was fitted to: a frame, a dict of lists, a file.
        others
            Rows of the same population that the model never saw. Attacks are told by what they find of members beyond what they
            find of these; without them none is run.
        target
            What learners predict: a column of at most 20 values; None: the last such column.
        """
        from cloister.synth.comparing import compared

        return compared(self, rows, others, target, random, progress)

    def save(self, path: str | Path) -> None:
        """Write the model as JSON; `cl.synth.load` reads it."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @property
    def rows_margin(self) -> float:
        """Half the width of the interval of `rows` at 95 %, by the law of the noise where it is known."""
        if self.measured is None:
            return 1.96 * self.rows_error
        first = {kept: table for kept, table in self.measured.readings if table.round == 0}  # what `rows` is made of
        return margin_of(replace(self.measured, tables=first, rounds=()), ())

    def to_json(self) -> str:
        """The model as JSON: plain numbers and texts, nothing that runs."""
        found = self.measured
        document = {
            "format": _WITH_RULES if self.rules else _FORMAT,
            "kind": "synthetic model",
            **{name: getattr(self, name) for name in ("table", "method", "why", "rows", "rows_error", "population", "marked")},
            "columns": [each.plain() for each in self.columns],
            "weights": _listed(self.mixture.weights),
            "probabilities": [_listed(column) for column in self.mixture.columns],
            "cost": guarantee_to_plain(self.cost),
            "charges": list(self.charges),
            "measured": None if found is None else [_tabled(*each, bool(found.rounds)) for each in found.readings],
            "complete": found is not None and found.complete,
        }
        if self.rules:
            document |= {"rules": list(self.rules), "unmapped": list(self.unmapped), "acceptance": self.acceptance}
        if self.differences:
            document["differences"] = [each.plain() for each in self.differences]
        return json.dumps(document, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> SyntheticModel:
        """The model of a text that `to_json` gave. Only what this library knows is made: no code runs."""
        from cloister.synth.pooling import read_pooled

        try:
            document = json.loads(text)
            return read_pooled(document) if document["kind"] == POOLED else _read(document)
        except CloisterError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError):
            raise _refused("it is not a model that this library wrote") from None

    def __repr__(self) -> str:
        lines = [
            f"synthetic model of {self.table!r}, method {self.method!r}" + (f" ({self.why})" if self.why else ""),
            f"  rows: {self.rows:z,.0f} ± {margin_text(self.rows_margin)} (95 %)",
            *(f"  {each.words()}" for each in self.columns),
        ]
        aside = dict.fromkeys(self.unmapped, " (not of the rows that were counted)")
        lines += [f"  rule: {text}{aside.get(text, '')}" for text in self.rules]
        if self.rules:
            lines.append(f"  {self.acceptance:.1%} of what is drawn can obey the rules, and is kept")
        lines.append(f"  cost: {self.cost} of population {self.population!r}; rows drawn from it cost nothing more")
        if self.marked:
            lines.append("  MARKED: the noise came from a test's generator and protects nobody")
        return "\n".join(lines)


def load(path: str | Path) -> Any:
    """A model from the file that `save` wrote: a `SyntheticModel` or `PooledModel`, a `GaussianModel`, or a `KAnonymousModel`,
    which is not private. Only what this library knows is made: no code runs.

    >>> from cloister.errors import InvalidParameter
    >>> try:
    ...     load("no-such-file.json")
    ... except InvalidParameter as refused:
    ...     print(refused.why)
    no text file of that name can be read
    """
    from cloister.synth.gaussians import KIND as GAUSSIANS
    from cloister.synth.gaussians import GaussianModel
    from cloister.synth.k_anonymous import KIND as CLASSES
    from cloister.synth.k_anonymous import KAnonymousModel

    text = text_at(path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    kinds: dict[Any, Any] = {GAUSSIANS: GaussianModel, CLASSES: KAnonymousModel}
    kind = document.get("kind") if isinstance(document, dict) else None
    return kinds.get(kind if isinstance(kind, str) else None, SyntheticModel).from_json(text)


def text_at(path: str | Path) -> str:
    """The text of a model's file."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        raise InvalidParameter(
            f"The model {str(path)!r} is invalid",
            why="no text file of that name can be read",
            instead='cl.synth.load("model.json")',
        ) from None


def _read(document: Mapping[str, Any]) -> SyntheticModel:
    _need(document["kind"] == "synthetic model", "it is not a synthetic model")
    known = f"its format is {document['format']!r}, and this version reads up to {_WITH_RULES}"
    _need(document["format"] in (_FORMAT, _WITH_RULES), known)
    _need(document["format"] == _WITH_RULES or not document.get("rules"), f"format {_FORMAT} has no rules")
    _need(document["method"] in (*get_args(Method), REPORTS, DECLARED), f"its method {document['method']!r} is unknown")
    columns, listed = tuple(states_from(each) for each in document["columns"]), document["probabilities"]
    differences = tuple(states_from(each) for each in document.get("differences", ()))
    every = columns + differences
    weights = _shares(document["weights"], (len(document["weights"]),))
    belong = (
        bool(columns)
        and max(each.number for each in every) < 2**16
        and 1 <= len(weights) <= _MOST_COMPONENTS
        and len(listed) == len(every)
    )
    _need(belong, "its columns and probabilities don't belong together")
    shares = tuple(_shares(each, (len(weights), column.number)) for each, column in zip(listed, every, strict=True))
    rows, error = float(document["rows"]), float(document["rows_error"])
    _need(bool(np.isfinite([rows, error]).all()) and error >= 0, "its number of rows is not a number")
    acceptance = float(document.get("acceptance", 1.0))
    _need(0 <= acceptance <= 1, "its share of rows that obey the rules is no share")
    cost = guarantee_from_plain(document["cost"])
    _need(cost is not None, "its guarantee is of an unknown kind")
    assert cost is not None
    sizes, tables = tuple(each.number for each in every), document.get("measured")
    model = SyntheticModel(
        table=str(document["table"]),
        method=document["method"],
        why=str(document["why"]),
        columns=columns,
        mixture=Mixture(weights, shares),
        rows=rows,
        rows_error=error,
        measured=None if tables is None else _measured(tables, sizes, document["method"], bool(document.get("complete"))),
        rules=tuple(document.get("rules", ())),
        unmapped=tuple(str(text) for text in document.get("unmapped", ())),
        acceptance=acceptance,
        differences=differences,
        cost=cost,
        population=str(document["population"]),
        charges=tuple(each if isinstance(each, int) else str(each) for each in document["charges"]),
        marked=bool(document["marked"]),
    )
    _ = model.ruled  # what can't be read is refused here
    return model


def _measured(tables: Any, sizes: tuple[int, ...], method: str, complete: bool) -> Marginals:
    """The released tables."""
    found: list[tuple[Marginal, Noisy]] = []
    for each in tables:
        kept = tuple(int(place) for place in each["columns"])
        belong = sorted(set(kept)) == list(kept) and all(0 <= place < len(sizes) for place in kept)
        _need(belong, "a measured table names no columns of it")
        counts = np.array(each["counts"], dtype=np.float64).reshape([sizes[place] for place in kept])
        variance, fourth, largest = noise = [float(each[name]) for name in ("variance", "fourth", "largest")]
        finite = bool(np.isfinite(counts).all() and np.isfinite(noise).all())
        _need(finite and min(noise) >= 0 and max(noise) < _MOST_NOISE, "a measured table holds no numbers")
        laplace, number = bool(each["laplace"]), int(each.get("round", 0))
        _need(0 <= number <= len(tables), "a measured table is of no round")
        found.append((kept, Noisy(counts, variance, laplace, fourth=fourth, largest=largest, round=number)))
    known = combined(found)
    first = {kept for kept, table in found if table.round == 0}
    _need({(place,) for place in range(len(sizes))} <= first, "a table of one column is missing")
    rounds = tuple(found) if method in get_args(Adaptive) else ()
    return Marginals(sizes=sizes, tables=known, rounds=rounds, whole=method == "histogram", complete=complete)


def _tabled(kept: Marginal, table: Noisy, chosen: bool) -> dict[str, Any]:
    return {
        "columns": list(kept),
        "counts": [int(count) if count == int(count) else float(count) for count in table.counts.ravel()],
        "variance": table.variance,
        "laplace": table.laplace,
        "fourth": table.fourth,
        "largest": table.largest,
        **({"round": table.round} if chosen else {}),
    }


def _listed(values: Any) -> Any:
    """Nine digits: all that the fit has."""
    return [_listed(each) for each in values] if np.ndim(values) > 1 else [float(f"{value:.9g}") for value in values]


def _shares(told: Any, shape: tuple[int, ...]) -> Any:
    found = np.array(told, dtype=np.float64)
    fine = found.shape == shape and bool((found >= 0).all()) and np.allclose(found.sum(axis=-1), 1, atol=1e-3)
    _need(fine, "its probabilities are not probabilities")
    return found


def _need(fine: bool, why: str) -> None:
    if not fine:
        raise _refused(why)


def _refused(why: str) -> InvalidParameter:
    return InvalidParameter("The model is invalid", why=why, instead="cl.synth.load(path) of a file that model.save(path) wrote")
