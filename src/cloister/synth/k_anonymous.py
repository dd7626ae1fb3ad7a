"""k-anonymous synthetic rows: NOT DIFFERENTIALLY PRIVATE, by the marked door, for the owner of the rows.

Rows fall into classes of at least k: the table is cut at medians, each class along the column in which it spreads most, for as
long as both sides keep k rows (Mondrian: LeFevre, DeWitt & Ramakrishnan 2006). A row is drawn from a class, chosen by its size,
and in the class each column by itself, from the values of its rows. So each drawn row is made of the values of at least k people,
and no class says which value stood beside which.

What that does not promise: the classes follow from the rows, and a value that one person alone has is drawn as it is. Who knows
all others can tell whether one person is in the table, for sure, whatever k is. So nothing is charged: the ledger notes that
something left without a guarantee, before a row is read, and the population's spending reads *unbounded* from then on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from cloister.errors import InvalidParameter, UnsupportedQuery, check_whole
from cloister.noise import Random, default_random
from cloister.session import Door, Frame, Measurer
from cloister.session.state.scrubbed import scrubbed
from cloister.synth.drawing import allowed_by, checked_number, conditioned, drawn
from cloister.synth.measuring import declared_rows
from cloister.synth.mixture import Mixture
from cloister.synth.pieces import Integers
from cloister.synth.states import Asked, States, states_from, states_of

if TYPE_CHECKING:
    from cloister.synth.report import PlainReport

KIND = "k-anonymous classes"
"""What a file says that it is."""
MARK = "NOT PRIVATE: k-anonymous rows have no guarantee of differential privacy"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class KAnonymousModel:
    """What `cl.synth.fit_k_anonymous` gives. NOT PRIVATE: each row is made of the values of at least k people, and no more is
    promised.

    >>> classes = Mixture(np.array([0.4, 0.6]), ())
    >>> KAnonymousModel(table="people", columns=(), mixture=classes, rows=10, k=3, population="people").smallest
    4
    """

    table: str
    columns: tuple[States, ...]
    mixture: Mixture
    """A component for each class of rows."""
    rows: int
    """How many rows there are: an exact number."""
    k: int
    population: str

    @property
    def cost(self) -> str:
        """Nothing is promised, so no number tells it."""
        return f"unbounded ({MARK})"

    @property
    def smallest(self) -> int:
        """The rows of the smallest class: at least k."""
        return round(float(self.mixture.weights.min()) * self.rows)

    def sample(self, n: int | None = None, *, given: Mapping[str, Any] | None = None, random: Random | None = None) -> Frame:
        """So many rows, under conditions as `SyntheticModel.sample` takes them; None: as many as the table has."""
        states, allowed = list(self.columns), allowed_by(self.columns, given or {}, self.table)
        mixture, share = conditioned(self.mixture, states, allowed)
        if share <= 0:
            raise InvalidParameter(
                f"given={dict(given or {})!r} is invalid", why="no row of the classes meets it", instead="a wider condition"
            )
        number = checked_number(round(self.rows * share) if n is None else n)
        pieces = [allowed.get(place, each.pieces) for place, each in enumerate(states)]
        codes = drawn(mixture, states, pieces, number, random or default_random())
        return Frame({each.name: each.series(column) for each, column in zip(states, codes, strict=True)})

    def answer(self, question: Any, **_: Any) -> NoReturn:
        """Nothing: no noise was drawn, so there is no margin to tell."""
        raise UnsupportedQuery(
            "An answer of k-anonymous classes is not supported",
            why="they have no noise of a known law, so no margin could be told",
            instead="model.sample(), or the rows themselves: they are their owner's",
        )

    def report(self, *, progress: Callable[[str], None] = lambda _: None) -> PlainReport:
        """What the classes are, marked as not private: for the owner, who decides where they go."""
        from cloister.synth.report import PlainReport

        progress("reporting")
        return PlainReport(
            table=self.table,
            warned=(f"{MARK}. The spending of population {self.population} is unbounded from here on.",),
            known=(
                ("method", f"classes of at least {self.k} rows; each column of a drawn row is from a row of one class"),
                ("columns", "; ".join(each.words() for each in self.columns)),
                ("rows", f"{self.rows:,}, an exact number"),
                ("classes", f"{len(self.mixture.weights):,}, the smallest of {self.smallest} rows"),
            ),
            limits=(
                "Who knows all others can tell whether one person is in the table, whatever k is.",
                "A value that one person alone has is drawn as it is.",
                "Two such tables of the same people may tell together what neither tells alone.",
            ),
        )

    def save(self, path: str | Path) -> None:
        """Write the classes as JSON, marked as not private; `cl.synth.load` reads it."""
        document = {
            "format": 1,
            "kind": KIND,
            "private": False,
            "warning": MARK,
            **{name: getattr(self, name) for name in ("table", "rows", "k", "population")},
            "columns": [each.plain() for each in self.columns],
            "weights": self.mixture.weights.tolist(),
            "probabilities": [each.tolist() for each in self.mixture.columns],
        }
        Path(path).write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), encoding="utf-8")

    @classmethod
    def from_json(cls, text: str) -> KAnonymousModel:
        """The classes of the text of such a file. Only what this library knows is made: no code runs."""
        try:
            told = json.loads(text)
            columns = tuple(states_from(each) for each in told["columns"])
            weights, shares = np.array(told["weights"]), tuple(np.array(each, dtype=np.float64) for each in told["probabilities"])
            rows, k = int(told["rows"]), int(told["k"])
            shapes = [(len(weights), each.number) for each in columns]
            fine = [each.shape for each in shares] == shapes and told["kind"] == KIND and told["format"] == 1 and 2 <= k <= rows
            chances = [weights[None, :], *shares]
            if not fine or not all((each >= 0).all() and np.allclose(each.sum(axis=1), 1) for each in chances):
                raise ValueError
            return cls(
                table=str(told["table"]),
                columns=columns,
                mixture=Mixture(weights, shares),
                rows=rows,
                k=k,
                population=str(told["population"]),
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError):
            raise InvalidParameter(
                "The model is invalid", why="it is no file that save() wrote", instead='cl.synth.load("model.json")'
            ) from None

    def __repr__(self) -> str:
        return (
            f"k-anonymous rows of {self.table!r}, k = {self.k}: {len(self.mixture.weights)} classes of at least {self.smallest}\n"
            f"  {MARK}; the spending of population {self.population!r} is unbounded from here on"
        )


def fit_k_anonymous(session: Measurer, table: str, *, k: int = 5, columns: Sequence[Asked] | None = None) -> KAnonymousModel:
    """k-anonymous synthetic rows of a table. NOT PRIVATE: by the marked door, in a session of the owner's.

    A table of which a person may have several rows is refused, since k rows could all be one person's; so is one of fewer than k
    rows, after the event is written.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"age": [30, 31, 60, 61]}, columns={"age": cl.Integer(0, 120)}, row_is_person=True)
    >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
    ...     model = fit_k_anonymous(session, "people", k=2)
    ...     sorted(set(model.sample(100)["age"].tolist())), model.smallest, session.unbounded
    ([30, 31, 60, 61], 2, ('people',))
    """
    check_whole(k, "k", 2, why="it is a whole number of at least 2", instead="k=5")
    declaration, declared = declared_rows(session, table)
    states = tuple(states_of(declared, columns, table=table))
    if declaration.unit is not None and declaration.max_rows != 1:
        raise InvalidParameter(
            f"k-anonymous rows of {table!r} are invalid",
            why="a person may have several rows of it, and k rows that look alike could all be one person's",
            instead="a table with one row a person (max_rows=1)",
        )
    if not isinstance(session, Door):
        raise UnsupportedQuery(
            "k-anonymous rows are not supported here",
            why="they leave without a guarantee, and only a session of the owner's lets them",
            instead='method="pairs"',
        )
    rows = session.row_access(table)
    what = f"k-anonymous synthetic table of {table}: k = {k} (not differentially private, and neither is a refusal)"
    session.ledger.note_not_private(rows.population, who=session.who, what=what)  # before a row is read

    def made() -> KAnonymousModel:
        codes = rows.prepare().rows([each.name for each in states])
        placed = np.column_stack([each.placed(np.asarray(codes[each.name])) for each in states])
        placed = placed[(placed >= 0).all(axis=1)]
        if len(placed) < k:
            raise InvalidParameter(f"k={k} is invalid", why="the table has fewer rows", instead="a smaller k, or no table")
        classes = classes_of(placed, k)
        mixture = mixture_of(placed, classes, [each.number for each in states])
        return KAnonymousModel(table=table, columns=states, mixture=mixture, rows=len(placed), k=k, population=rows.population)

    return scrubbed(made)


def classes_of(rows: Integers, k: int) -> list[Integers]:
    """The rows of each class, by their places: each of at least k.

    >>> [each.tolist() for each in classes_of(np.array([[1], [9], [2], [8]]), 2)]
    [[1, 3], [0, 2]]
    """
    spread = np.maximum(np.ptp(rows, axis=0), 1)
    open_, found = [np.arange(len(rows))], list[Integers]()
    while open_:
        members = open_.pop()
        block = rows[members]
        for column in np.argsort(-np.ptp(block, axis=0) / spread, kind="stable") if len(members) >= 2 * k else ():
            values = block[:, column]
            middle = np.sort(values)[len(values) // 2]
            below = min((values < middle, values <= middle), key=lambda side: abs(2 * int(side.sum()) - len(side)))
            if k <= below.sum() <= len(values) - k:
                open_ += [members[below], members[~below]]
                break
        else:
            found.append(members)
    return found


def mixture_of(rows: Integers, classes: Sequence[Integers], sizes: Sequence[int]) -> Mixture:
    """A component for each class, with the shares of its rows in each column."""
    of = np.empty(len(rows), dtype=np.int64)
    for place, members in enumerate(classes):
        of[members] = place
    number = np.array([len(members) for members in classes])
    columns: list[Any] = []
    for column, size in zip(rows.T, sizes, strict=True):
        counts = np.bincount(of * size + column, minlength=len(classes) * size).reshape(-1, size)
        columns.append(counts / number[:, None])
    return Mixture(number / len(rows), tuple(columns))
