"""A promise that is spent question by question at the door: for methods whose next question follows from the last answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from cloister.errors import BudgetExceeded
from cloister.noise.allowance import Allowance
from cloister.privacy import ZCDP, Guarantee
from cloister.session import Measurer, Question, Release
from cloister.session.questions.spend import Spend, Spending, amount_of, spend_of

_PLACES = Fraction(1, 10**6)


@dataclass(kw_only=True)
class BudgetAccount:
    """A promise that is spent question by question, in the measure of the population's budget; all parts sum to it exactly."""

    session: Measurer
    population: str
    whole: Spend
    purpose: str
    left: Fraction = Fraction(1)
    releases: list[tuple[str, Release]] = field(default_factory=list)

    @staticmethod
    def of(session: Measurer, table: str, spend: Spending, purpose: str) -> BudgetAccount:
        """Refused at once where less is left of the population than the whole: a fit that ends half way is paid for nothing."""
        population, budget = session.population_of(table)
        whole = spend_of(spend, budget)
        left = session.remaining_by[population]
        if not whole.whole() <= left:
            raise BudgetExceeded(
                f"Learning for {whole.whole()} was refused",
                why=f"{left} of population {population!r} is left",
                instead="a smaller spend=",
            )
        return BudgetAccount(session=session, population=population, whole=whole, purpose=purpose)

    def ask(self, question: Question, portion: Fraction, what: str) -> Release:
        """The answer for that portion of the whole, in millionths; all that is left where that is less."""
        portion = min(max(portion // _PLACES, 1) * _PLACES, self.left)
        part = self.whole.guarantee(self.whole.amount * portion, self.whole.delta * portion)
        [release] = self.session.measure_all([question], part, purpose=self.purpose)
        self.left -= portion
        self.releases.append((what, release))
        return release

    def spent(self) -> Guarantee:
        """What was promised for all that was measured, readings of the same questions that were bought before included."""
        costs = [release.spent_by[self.population] for _, release in self.releases]
        total = costs[0]
        for cost in costs[1:]:
            total = total + cost
        return total

    def allowance(self) -> Allowance:
        """What was spent on what, as parts of the whole that was promised."""
        spent = self.spent()
        marked = any(release.marked for _, release in self.releases)
        allowance = Allowance(spent, currency="rho" if isinstance(spent, ZCDP) else "epsilon", marked=marked)
        for what, release in self.releases:
            allowance.share(what, amount_of(release.spent_by[self.population]) / amount_of(spent))
        return allowance
