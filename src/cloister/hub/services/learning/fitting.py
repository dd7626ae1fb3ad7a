"""A model as work of the frame (`hub/work/orders.py`): what its order is, how it is learnt, what is kept of it.

The charge is the ledger's, as a question's is. A method of sums asks the door for them, and what was bought before is answered
again at no cost; any other reads rows through `Session.run`, and is charged each time it is ordered.

Its card says of membership inference the most that any attack can find, and what one found on made-up rows. Both follow from
public facts, so they cost nothing and tell nothing of the data: the first from the guarantee alone, the second from the
declarations, the declared size and a fixed seed (`made_up.py`). What an attack would find on the real rows is not said: to
measure it would be to read them once more. The made-up rows show how far below the bound an attack of today stays. So few false
alarms are counted on a few people: both shares have their intervals (95 %), and neither is read without the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError, InvalidParameter, UnsupportedQuery
from cloister.hub.cache import cached
from cloister.hub.hub import Caller, Hub
from cloister.hub.services.learning.algorithms import ACTION, settled
from cloister.hub.services.learning.expected import lost
from cloister.hub.services.learning.models import MODEL, as_kept, judged
from cloister.hub.services.learning.order import ORDER, Training, declared, model_of, shape_of
from cloister.hub.web.languages import N_
from cloister.hub.work.attempts import AttemptSession
from cloister.hub.work.authorise import Words
from cloister.hub.work.one_table import ReadyTable, ready_table
from cloister.hub.work.orders import FREE, OrderedWork, Product, job_of
from cloister.noise import Random
from cloister.privacy import ZCDP, Guarantee, zero_of
from cloister.session.questions.spend import less, spend_of

if TYPE_CHECKING:
    from cloister.attacks import MembershipResult
    from cloister.attacks.confidences import Confidence
    from cloister.learn.assessment.scores import Score
    from cloister.learn.frame.base import PrivateModel
    from cloister.learn.frame.encoding import Encoder
    from cloister.query import Session
    from cloister.tables import PrivateTable


LINES = (
    N_("membership inference: detection by a blind guess at 0.1 % false alarms"),
    N_("membership inference: the guarantee's limit for any attack there"),
    N_("membership inference: detection by a likelihood-ratio attack there, on models of made-up rows"),
    N_("membership inference: the false alarms that it raised"),
)
"""What the lines of a card are called, as it shows them."""
_AT = Fraction(1, 1000)
_LEAST, _MOST, _UNSAID = 50, 2000, 1000
_SHADOWS, _TARGETS = 4, 12
_PART, _SEED = "membership on made-up rows", 20_261_120
_BEGIN = "membership inference: "


def lines_of(promise: Guarantee, found: MembershipResult | None) -> dict[str, str]:
    """The lines of a card, by what follows "membership inference: "; shares in per cent.

    >>> from cloister.privacy import PureDP
    >>> for what, text in lines_of(PureDP(1), None).items():
    ...     print(what, "-", text)
    detection by a blind guess at 0.1 % false alarms - 0.1 %
    the guarantee's limit for any attack there - 0.272 %
    """
    said = [f"{100 * float(_AT):g} %", _per_cent_up(most_found(promise))]
    if found is not None:
        said += [str(found.true_positives(_AT)), str(found.false_positives(_AT))]
    return {what.removeprefix(_BEGIN): text for what, text in zip(LINES, said, strict=False)}


def most_found(promise: Guarantee, at: Fraction = _AT) -> float:
    """The largest share of members that any attack can find while it takes a share `at` of the others for members.

    Guarantee: for one person more or less. Under (ε, δ) it is the least of e^ε·at + δ and 1 − e^−ε(1 − δ − at) (Kairouz, Oh &
    Viswanath 2015). Under ρ (Bun & Steinke 2016: the Rényi divergence of each order α > 1 is at most ρα), it is at most
    exp(−(√L − √ρ)²) with L = ln(1/at), where ρ < L: by data processing the event "taken for a member", of chance t with the
    person and `at` without, has t^α·at^(1−α) ≤ e^((α−1)ρα), so ln t ≤ (α−1)ρ − (1−1/α)L, which is least at α = √(L/ρ). A δ
    beside the ρ is a share of both outputs of which nothing holds: (1 − δ) times the bound at at/(1 − δ), plus δ.

    >>> from cloister.privacy import ApproxDP, PureDP
    >>> [round(most_found(each), 5) for each in (PureDP(0), PureDP(1), ApproxDP(1, "1e-6"), ZCDP("0.1"), ZCDP(20))]
    [0.001, 0.00272, 0.00272, 0.00477, 1.0]
    """
    from cloister.attacks import MembershipResult

    most = MembershipResult.most_under(promise, at)
    if not isinstance(promise, ZCDP):
        return most
    rho, delta = float(promise.rho), float(promise.delta)
    long = math.log((1 - delta) / float(at))
    sharp = math.exp(-((math.sqrt(long) - math.sqrt(rho)) ** 2)) if rho < long else 1.0
    return min(most, (1 - delta) * sharp + delta)


def attacked(hub: Hub, order: Training, table: PrivateTable, cost: Guarantee) -> MembershipResult | None:
    """A likelihood-ratio attack on the method under this promise, on made-up rows; None where no attack looks at such a model, or
    where it can't learn from half of so few rows. It is worked out once in a process."""
    model, encoder = declared(order, table)
    key = repr((*shape_of(order, model, encoder, table), str(cost)))
    return cached(hub, _PART, key, lambda: _attacked(model, encoder, table.size, cost))


def _attacked(model: PrivateModel, encoder: Encoder, size: int | None, cost: Guarantee) -> MembershipResult | None:
    from sklearn.base import clone

    from cloister.attacks import train_shadows
    from cloister.learn.assessment.made_up import fit_within, made_up

    rows = max(min(size or _UNSAID, _MOST), _LEAST)
    targets = max(_TARGETS, -(-2 * _AT.denominator // rows))  # so many that one in a thousand of the others is somebody
    random = Random.deterministic(_SEED)

    def fit(some: Any, theirs: Any) -> Any:
        twin: PrivateModel = clone(model)
        twin.random = random
        return fit_within(twin, some, theirs, cost)

    try:
        X, y = made_up(model, encoder, rows)
        sure = _sure_of(model, has_target=y is not None)
        if sure is None:
            return None
        shadows = train_shadows(fit, X, y, models=_SHADOWS + targets, confidence=sure, random=random)
        return shadows.attacked(targets)
    except (CloisterError, TypeError, ValueError, ArithmeticError, LookupError):
        return None


def _sure_of(model: PrivateModel, *, has_target: bool) -> Confidence | None:
    """What the attack looks at: how well a model fits a row; None of one that says nothing of rows."""
    from cloister.attacks.confidences import confidence_of
    from cloister.learn.decomposition.captured import captures, distances

    if has_target:
        return confidence_of
    if hasattr(model, "score_samples"):
        return lambda learnt, X, y: learnt.score_samples(X)
    return (lambda learnt, X, y: -distances(learnt, X)) if captures(model) else None


def _per_cent_up(share: float) -> str:
    """A share in per cent, of three digits, never less than it is.

    >>> _per_cent_up(0.0027182), _per_cent_up(1.0), _per_cent_up(0.00100001)
    ('0.272 %', '100 %', '0.101 %')
    """
    rounded = Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(100 * share))
    return f"{min(rounded, Decimal(100)).normalize():f} %"


MODEL_WORDS = Words(
    name="The model",
    invalid=N_("The model is invalid"),
    denied=N_("The model was denied"),
    withheld=N_("The model was not released"),
)
_STAGES = FREE | {N_("learning"): 0.3, N_("keeping the model"): 0.9}
_FEW = 60
_OF_PAIRS = frozenset({"LinearRegression", "Ridge", "LinearDiscriminantAnalysis", "PCA"})
_MOST_PAIRED = 64
"""Features of a method that asks about each pair of them: the question about more takes longer to read than a page may wait."""


class _Fitting(OrderedWork[Training, ReadyTable[Training]]):
    """Orders of models."""

    job, title, action, words, release, stages, stored = "learning.fit", "Model", ACTION, MODEL_WORDS, MODEL, _STAGES, ORDER
    extra, audited = "learn", ("method",)

    def ready(self, hub: Hub, db: Db, caller: Caller, order: Training, **how: Any) -> ReadyTable[Training]:
        """With the order as its algorithm leaves it; it costs what is still to be charged."""
        order = settled(hub, db, caller, order)
        how |= {"columns": order.columns, "method": order.method, "spend": order.spending}
        how["charge"] = lambda session, table, budget: still_to_pay(session, order, table, budget)
        return ready_table(self, hub, db, caller, order, **how)

    def rehearse(self, found: ReadyTable[Training]) -> None:
        """Learn from a few made-up rows first: a wrong parameter is found before anything is charged."""
        model, encoder = declared(found.order, found.table)
        from cloister.learn.assessment.judged_tables import check_judges
        from cloister.learn.assessment.made_up import fit_within, made_up
        from cloister.learn.frame.first_question import check_readable

        if found.order.held_out:
            check_judges(found.order.table, found.table)
        check_readable(model, found.order.table, found.table, encoder, found.cost)
        try:
            X, y = made_up(model, encoder, _FEW)
            fit_within(model, X, y, found.cost, rows=found.table.max_rows or 1)
        except CloisterError:
            raise
        except (TypeError, ValueError, ArithmeticError, LookupError):
            raise InvalidParameter(
                "The model is invalid",
                why="the method can't work with these parameters",
                instead=f"{found.order.method}() as it is",
            ) from None

    def run(self, hub: Hub, found: ReadyTable[Training], session: Callable[[], AttemptSession]) -> Product:
        """The model, learnt from the rows that were decided on, however many questions it asks of them; with what made-up rows
        say of such a one: what an attack found, and what privacy is expected to cost."""
        order, table = found.order, found.table
        attack = attacked(hub, order, table, found.cost)  # before the charge: after it, nothing more can fail
        loss = lost(hub, order, table, found.cost)
        model, target = model_of(order), order.target or None
        how: dict[str, Any] = {"features": order.features, "target": target, "spend": order.spending, "purpose": order.purpose}
        score: Score | None = None
        if order.held_out:
            model, score = judged(model, session(), order.table, test=order.held_out, **how)
        else:
            model.fit_table(session(), order.table, **how)
        membership = None if model.guarantee_ is None else lines_of(model.guarantee_, attack)
        about: dict[str, Any] = {
            "data": order.table,
            "date": f"{hub.now():%Y-%m-%d}",
            "evaluation": () if score is None else score,
        }
        card = model.card(**about, expected=loss, membership=membership)
        features = [[name, table.column(name).describe()] for name in order.features]
        version = str(getattr(table, "version", ""))
        return Product(
            body=model.to_json().encode(),
            cost=dict.fromkeys(found.populations, model.guarantee_),
            details={
                "method": order.method,
                "table": order.table,
                "columns": {"features": features, "target": order.target, "version": version},
                "card": card.to_json(),
                **({} if score is None else {"judged": as_kept(score, order.held_out)}),
            },
        )


def still_to_pay(session: Session, order: Training, table: PrivateTable, budget: Guarantee) -> Guarantee:
    """The most that an order would be charged now, of a population of that budget: of sums that were bought before, what is still
    missing of the first question; of rows, all of it. All that it names, where nothing less can be said.

    This is what the policy is asked with, as it is for a plain question, and opens no way past a ceiling or a share: the ledger
    holds the charge itself against them, when it is made.
    """
    cost = spend_of(order.spending, budget).whole()
    if order.held_out:
        return cost
    try:
        model, encoder = declared(order, table)
        if order.method in _OF_PAIRS and len(encoder.names) > _MOST_PAIRED:
            return cost
        from cloister.learn.frame.first_question import first_question

        how: dict[str, Any] = {"encoder": encoder, "target": order.target or None, "purpose": order.purpose}
        first = first_question(model, session, order.table, table, spend=order.spending, **how)
    except UnsupportedQuery:  # no made-up rows, on which the order is tried, would show it
        raise
    except (CloisterError, TypeError, ValueError, ArithmeticError, LookupError):
        return cost  # what is wrong with the order is told where it is tried, in the words for that
    if first is None:
        return cost
    spend, plan = first
    had = less(spend_of(spend, budget).whole(), plan.cost)
    return cost if had is None else less(cost, had) or zero_of(cost)


FITTING = _Fitting()
FIT = job_of(FITTING)
