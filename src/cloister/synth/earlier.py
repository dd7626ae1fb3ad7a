"""Answers that somebody was given before, as evidence for a synthetic table: they cost nothing again.

A count by columns of the table that was released before is a noisy marginal like those that a fit measures. It joins them, each
cell as the inverse-variance mean of its readings, in the fit as in the margins.

Guarantee. Neighbours are those of `measuring.py`. An earlier answer was charged when it was bought. The model is a function of
what is measured now and of such answers, so what is known after it is known from both: post-processing, and the ledger charges
the new measurement alone. A model shows what it was made of, so its own `cost` is the sum of all these charges (sequential
composition; Dwork, McSherry, Nissim & Smith 2006 for ε, Bun & Steinke 2016 for ρ), and its `charges` name them.

Why each condition:

- *Given to this person*: somebody else's answer would be a use of what others paid, which the session charges.
- *The same version and filter*: the ledger finds it by the digest of the plan, which names the rows and the conditions that stand
  before them. Counts of other rows are no evidence of these.
- *Declared keys, no condition, no limit*: where a threshold or an order chose which groups are seen, the seen ones have no known
  noise. Here all cells are released, whatever they are.
- *Independent noise*: every purchase of one question draws its own, so sums of variances and of cumulants hold. What was measured
  in a workload is the least-squares answer to several questions, whose cells share noises: the ledger keeps it under another
  digest, and it is not taken. No charge is heard twice.

The margin of a mean of readings holds where what was bought did not follow from the noise of what is averaged: as it is where a
larger spend buys the difference (`session/execution/history.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.session import Count, Measurer, Question, Release
from cloister.session.workloads.marginals import Marginal
from cloister.synth.measuring import Marginals, Noisy, Origin, combined, noisy
from cloister.synth.states import States
from cloister.tables.expression.names import alias, quoted, quoted_path

_MOST_COLUMNS = 3


@dataclass(frozen=True)
class Earlier:
    """One answer, as a table of columns by their places, and where it came from."""

    kept: Marginal
    table: Noisy
    origin: Origin


def earlier_of(session: Measurer, table: str, states: Sequence[States], asked: Sequence[str | Question]) -> list[Earlier]:
    """The answers to questions that this person was given; each one that can't be used is refused, by the reason."""
    if isinstance(asked, str | Question) or not isinstance(asked, Sequence):
        raise InvalidParameter(
            f"earlier={asked!r} is invalid",
            why="it is a list of questions that were asked before",
            instead=_example(table, states),
        )
    found: list[Earlier] = []
    for each in asked:
        kept = _columns(session, table, states, question := _question(session, table, states, each))
        release = _given(session, question)
        if release is None:
            raise InvalidParameter(
                f"earlier={each!r} is invalid",
                why="you were given no answer to it of the rows as they are now",
                instead="a question that you asked before, or no earlier=",
            )
        order = np.argsort(kept)
        counts = noisy(release, [states[place].number for place in kept])
        turned = replace(counts, counts=np.transpose(counts.counts, order))
        told = release.provenance
        origin = {"cost": release.spent_by[told.population], "charges": told.charges, "marked": release.marked}
        one = Earlier(tuple(sorted(kept)), turned, {"population": told.population, **origin})
        if all(set(one.origin["charges"]).isdisjoint(other.origin["charges"]) for other in found):
            found.append(one)
    return found


def heard(found: Marginals, fresh: Origin, earlier: Sequence[Earlier]) -> tuple[Marginals, list[Origin]]:
    """The measured tables with those of earlier answers, and where what was added came from."""
    new = [each for each in earlier if set(each.origin["charges"]).isdisjoint(fresh["charges"])]
    tables = combined([*found.tables.items(), *((each.kept, each.table) for each in new)])
    return replace(found, tables=tables), [each.origin for each in new]


def _question(session: Measurer, table: str, states: Sequence[States], asked: Any) -> Question:
    if isinstance(asked, Question):
        return asked
    if not isinstance(asked, str):
        raise InvalidParameter(
            f"earlier={asked!r} is invalid",
            why="each is a question: a text in SQL, or a cl.session.Question",
            instead=_example(table, states),
        )
    from cloister.query import parse

    parsed: Any = parse(asked, session.tables)
    if parsed.above is not None or len(parsed.questions) != 1:
        raise _refused(asked, "more than one count by columns is asked", table, states)
    [question] = parsed.questions
    return question  # type: ignore[no-any-return]


def _columns(session: Measurer, table: str, states: Sequence[States], question: Question) -> tuple[int, ...]:
    """The places of the columns that it counts by, in its own order."""
    by = {each.key: place for place, each in enumerate(states)}
    if question.table != table or question.where is not None:
        raise _refused(question, f"it is not about all rows of {table!r}", table, states)
    if (
        len(question.statistics) != 1
        or not isinstance(question.statistics[0], Count)
        or question.statistics[0].column is not None
    ):
        raise _refused(question, "it asks for more than one count of rows", table, states)
    if not 1 <= len(question.by) <= _MOST_COLUMNS or any(key not in by for key in question.by):
        raise _refused(question, f"it is not grouped by one to {_MOST_COLUMNS} columns, by the model's own values", table, states)
    return tuple(by[key] for key in question.by)


def _given(session: Measurer, question: Question) -> Release | None:
    given: Any = getattr(session, "given", None)
    if given is None:
        raise UnsupportedQuery(
            "Earlier answers are not supported", why="this session keeps none of its own", instead="cl.Session(…), without a hub"
        )
    release: Release | None = given(question)
    return release


def _example(table: str, states: Sequence[States]) -> str:
    name, count = quoted(states[0].name), alias("n", [states[0].name])
    sql = f"SELECT {name}, COUNT(*) AS {count} FROM {quoted_path(table)} GROUP BY {name}"  # noqa: S608 a text to read
    return f"earlier=[{sql!r}]"


def _refused(asked: Any, why: str, table: str, states: Sequence[States]) -> InvalidParameter:
    return InvalidParameter(f"earlier={asked!r} is invalid", why=why, instead=_example(table, states))
