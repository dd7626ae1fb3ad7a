"""What caps and clamps may have cost an answer: bought like any other answer, since it depends on the rows.

A margin speaks of the noise alone. Rows beyond a unit's cap were dropped and values beyond a bound were moved to it before
anything was counted. How many, is private; so it is a question of its own, with a spend, noise and a margin.
"""

from dataclasses import dataclass
from fractions import Fraction

from cloister.errors import UnsupportedQuery
from cloister.printable import margin_text
from cloister.privacy import Guarantee
from cloister.session.door import Door
from cloister.session.questions.declared import Declared
from cloister.session.questions.question import Count, Mean, OverCap, Question, Sum
from cloister.session.questions.spend import Spending
from cloister.session.releases.frames import text_table
from cloister.session.releases.release import Release
from cloister.tables import And, Column, Compare, Domain, Literal


@dataclass(frozen=True, kw_only=True)
class Amount:
    """A noisy count and its 95 % margin."""

    value: int
    margin: float


@dataclass(frozen=True, kw_only=True)
class Bias:
    """Noisy counts of what caps and clamps touched.

    `units_over_cap`: how many units have more rows than may count (None without a unit, and where only some rows may be seen: a
    cap acts on all of them). `at_low` and `at_high`: how many rows
    have each summed column at its bound; those that were moved there are among them, so these bound the number of clamped
    values from above.
    """

    units_over_cap: Amount | None
    at_low: dict[str, Amount]
    at_high: dict[str, Amount]
    cost: Guarantee

    def __str__(self) -> str:
        rows = [] if self.units_over_cap is None else [["units with more rows than may count", _words(self.units_over_cap)]]
        rows += [[f"rows with {column} at its lower bound", _words(amount)] for column, amount in self.at_low.items()]
        rows += [[f"rows with {column} at its upper bound", _words(amount)] for column, amount in self.at_high.items()]
        return text_table(["what", "how many"], rows) + f"\ncost {self.cost}; ± holds with 95 % confidence"


def buy_bias(door: Door, question: Question, declaration: Declared, spend: Spending, purpose: str, *, whole: bool = True) -> Bias:
    """The counts for one question, under one charge; `whole` says that all rows of its table may be seen."""
    capped = whole and declaration.unit is not None and isinstance(question.table, str)  # not a derived table, which has its own
    columns = list(dict.fromkeys(each.column for each in question.statistics if isinstance(each, Sum | Mean)))
    questions = [Question(table=question.table, statistics=(OverCap(),))] if capped else []
    for column in columns:
        domain = declaration.columns[column]
        for code in (domain.low_code, domain.high_code):
            at = Compare("=", Column(column), Literal(_bound(domain, code)))
            where = at if question.where is None else And(question.where, at)
            questions.append(Question(table=question.table, statistics=(Count(),), where=where))
    if not questions:
        raise UnsupportedQuery(
            "The bias is not supported",
            why="no clamp touches a count, and no cap one of rows where each row is a person"
            if whole
            else "no clamp touches a count, and a cap acts on all rows of a person, of which some are not to be seen here",
            instead="answer.margin(), which says all that may be off",
        )
    releases = door.measure_all(questions, spend, purpose=purpose)
    found = [_amount(release) for release in releases]
    over = found.pop(0) if capped else None
    return Bias(
        units_over_cap=over,
        at_low=dict(zip(columns, found[0::2], strict=False)),
        at_high=dict(zip(columns, found[1::2], strict=False)),
        cost=releases[0].cost,
    )


def _bound(domain: Domain, code: int) -> bool | Fraction:
    """The value at a bound, exactly."""
    return bool(code) if domain.kind == "boolean" else domain.origin + code * domain.step


def _amount(release: Release) -> Amount:
    name = release.statistics()[0]
    return Amount(value=int(release[name][0]), margin=float(release.margin()[name][0]))


def _words(amount: Amount) -> str:
    return f"{amount.value:,} ± {margin_text(amount.margin)}"
