"""The risk of a spend: how much better than a coin the best guess can be whether one person is in the data.

An attacker who knows everything but whether one person's rows are in the table, and holds both for equally likely, guesses right
with probability (1 + a) / 2. The *risk* is the most that this advantage a can be, by what was promised and nothing else
(`privacy/inference.py`). It is about presence. A guess between two values of somebody who is in the data may be better, since
neighbours differ by a person more or less and another value is two such steps; a refusal tells both.

A grant's limit on the risk is held against all that the analyst drew from the population and what they ask for besides: promises
add up, advantages do not. So it is computed from declarations and the ledger alone; no row is read.
"""

from fractions import Fraction

from cloister.errors import CloisterError
from cloister.hub.decisions.policy.actions import Action
from cloister.hub.decisions.policy.facts import Context, Object, Rules
from cloister.privacy import ZCDP, About, ApproxDP, Guarantee, PureDP, advantage, text_of, zero_of
from cloister.privacy.precision import context as precise
from cloister.privacy.precision import down, real, rounded_up

BY_PRICE = frozenset(
    {
        *("question.ask", "learn.run", "synthesise.run", "algorithm.run"),
        *("release.see", "release.download", "release.share", "release.publish"),
    }
)
"""Actions whose risk is their price: before that is known they are not refused for it. What an algorithm does is asked, and paid
for, as a question or a model; a release has been paid for."""


def most_within(limit: Fraction, total: Guarantee) -> Guarantee | None:
    """The most, in the measure of a total, whose risk is not above a limit, rounded down. None: all is within.

    An ε and a δ make the risk together: the δ is that of the total, or a thousandth of the limit where that is more.

    >>> most_within(Fraction(1, 2), PureDP(1))
    PureDP(epsilon='1.0986122886681')
    >>> advantage(most_within(Fraction(1, 2), ZCDP("0.1"))) <= Fraction(1, 2)
    True
    """
    if limit >= 1:
        return None
    number = precise()
    slack = Fraction(0) if isinstance(total, PureDP) else max(total.delta, limit / 1000)
    if slack >= limit:
        return zero_of(total)
    if isinstance(total, ZCDP):
        gap = real(limit - slack)
        return ZCDP(down(max(2 * gap**2, -number.log1p(-(gap**2)))), slack)
    epsilon = down(number.log(real((1 + limit - 2 * slack) / (1 - limit))))
    return PureDP(epsilon) if isinstance(total, PureDP) else ApproxDP(epsilon, slack)


def reached(which: Object, context: Context, *, about: About = "presence") -> Fraction | None:
    """The risk that an act would reach, where it is known: as it was stated, or by the price. None: it is not known.

    The same about a value of somebody who is in the data: where only the risk is stated, no more than twice that.

    >>> from datetime import UTC, datetime
    >>> from cloister.hub.decisions.policy.facts import Spend
    >>> people, now = Object(kind="data-set", id="d1", population="people"), datetime.now(UTC)
    >>> costing = Context(now=now, spend={"people": Spend(asked=PureDP("0.1"), drawn=PureDP("0.9"))})
    >>> reached(people, costing) == advantage(PureDP(1)), reached(people, Context(now=now))
    (True, None)
    """
    if context.risk is not None:
        return context.risk if about == "presence" else min(Fraction(1), 2 * context.risk)
    spend = context.spend.get(which.population)
    if spend is None or spend.asked is None:
        return None
    try:
        return advantage(spend.asked if spend.drawn is None else spend.drawn + spend.asked, about=about)
    except CloisterError:  # promises that do not add up bound nothing
        return Fraction(1)


def beyond_risk(rules: Rules, action: Action, which: Object, context: Context) -> str | None:
    """Why an act does not keep to a grant's limit on the risk; None where it does, or where its price will say it.

    >>> from datetime import UTC, datetime
    >>> from cloister.hub.decisions.policy.actions import actions
    >>> rules, people = Rules(actions=frozenset({"learn.run"}), risk=Fraction(1, 4)), Object(kind="data-set", id="d1")
    >>> risks = (None, Fraction(1, 4), Fraction(1, 2))
    >>> [beyond_risk(rules, actions()["learn.run"], people, Context(now=datetime.now(UTC), risk=each)) for each in risks]
    [None, None, 'risk']
    """
    if rules.risk is None:
        return None
    found = reached(which, context)
    if found is not None:
        return "risk" if found > rules.risk else None
    return "risk-unknown" if action.data and action.name not in BY_PRICE else None


def told_risk(found: Fraction | None, limit: Fraction, value: Fraction | None = None) -> dict[str, str]:
    """The values that the sentence of a refusal shows: the risk and its odds rounded up, and the odds about a value.

    >>> told_risk(Fraction(46212, 100000), Fraction(3, 10), Fraction(762, 1000))
    {'limit': '0.3', 'risk': '0.463', 'odds': '73.2', 'value': '88.1'}
    """
    shown = {"limit": text_of(limit)}
    if found is None:
        return shown
    of_value = min(Fraction(1), 2 * found) if value is None else value
    odds = {name: text_of(rounded_up(50 * (1 + each), _figures(each))) for name, each in (("odds", found), ("value", of_value))}
    return {**shown, "risk": text_of(rounded_up(found, _figures(found))), **odds}


def _figures(share: Fraction) -> int:
    return 3 if share < Fraction(99, 100) else 8  # what is not certain does not look so
