"""What somebody wants to train: the method, the columns, what it may cost, what it is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cloister.errors import InvalidParameter
from cloister.hub.decisions.policy.methods import offered
from cloister.hub.description import example
from cloister.hub.labels import check_purpose, check_title
from cloister.hub.web.languages import N_
from cloister.lazily import check_installed
from cloister.privacy import ZCDP, ApproxDP, PureDP, exact_positive, exact_probability
from cloister.stored import Stored

if TYPE_CHECKING:
    from cloister.learn.frame.base import PrivateModel
    from cloister.learn.frame.encoding import Encoder
    from cloister.session import Spending
    from cloister.tables import PrivateTable

Kind = Literal["", "pure", "approx", "zcdp"]
_Exact = Annotated[str, Field(max_length=100, pattern=r"^[0-9eE.+/-]*$", description="An exact number as text: 0.1, 1/3, 1e-6.")]
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_OF_THE_FIT = frozenset({"epsilon", "delta", "bounds", "bounds_y", "classes", "privacy", "random"})
"""What follows from the declarations and from the spend: nobody sends it."""
_LARGEST, _LONGEST, _MOST = 10_000, 200, 500
"""Of a whole number, a text and a list among the parameters: a worker is not to be held for days."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """A model to train: from which columns of which data set, by which method, what it may cost, what it is for.

    >>> Training(table="people", method="GaussianNB", features=("age", "pay"), target="sex", spend="0.5").columns
    ('age', 'pay', 'sex')
    """

    __pydantic_config__ = example(
        table="people", method="GaussianNB", features=["age", "pay"], target="sex", spend="0.5", purpose="research"
    ) | {"extra": "forbid"}

    table: _Name
    method: Annotated[str, Field(max_length=60, description="May be left out where an algorithm says it.")] = ""
    features: Annotated[tuple[_Name, ...], Field(min_length=1, max_length=500)]
    target: Annotated[str, Field(max_length=200)] = ""
    spend: Annotated[_Exact, Field(min_length=1)]
    delta: _Exact = ""
    kind: Kind = ""
    """Which promise the spend is; empty: an amount in what the budget counts, as in a question."""
    parameters: Annotated[Mapping[str, Any], Field(max_length=30)] = field(default_factory=dict)
    purpose: Annotated[str, Field(max_length=1000)] = ""
    project: Annotated[str, Field(max_length=63, description="The project in which it is trained: its name, or its id.")] = ""
    title: Annotated[str, Field(max_length=200)] = ""
    algorithm: Annotated[str, Field(max_length=63, description="Under which it is trained: its name, or its id.")] = ""
    held_out: _Exact = ""
    """The part of the rows that judges the model, under the same charge, such as 0.25; empty: none."""

    def __post_init__(self) -> None:
        by_algorithm = bool(self.algorithm) and not self.method
        if self.method not in offered() and not by_algorithm:
            raise InvalidParameter(
                f"The method {self.method[:60]!r} is invalid", why="the hub knows none of that name", instead=", ".join(offered())
            )
        if not self.features or len(set(self.features)) != len(self.features) or len(self.features) > _MOST:
            raise InvalidParameter(
                "The features are invalid", why=f"they are 1 to {_MOST} different columns", instead="one column, or more"
            )
        if self.target in self.features:
            raise InvalidParameter(
                "The target is invalid", why="it is one of the features", instead="a column that is not a feature"
            )
        if not by_algorithm and (offered()[self.method].task in ("classes", "numbers")) != bool(self.target):
            raise InvalidParameter(
                "The target is invalid",
                why="this method has none" if self.target else "this method learns one",
                instead="no target" if self.target else "a column that is not a feature",
            )
        check_purpose(self.purpose)
        check_title(self.title)
        if self.held_out:
            exact_probability(self.held_out, "held_out")
            if not by_algorithm and not self.target:
                raise InvalidParameter("The part held out is invalid", why="nothing judges this method", instead="none")
        if self.delta and self.kind in ("pure", "zcdp"):
            raise InvalidParameter("δ is invalid", why="it goes with an ε", instead='kind="approx"')
        _ = self.spending

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read."""
        return (*self.features, self.target) if self.target else self.features

    @property
    def spending(self) -> Spending:
        """What may be spent, as a session takes it.

        >>> Training(table="t", method="GaussianNB", features=("a",), target="b", spend="1", delta="1e-6").spending
        ApproxDP(epsilon='1', delta='0.000001')
        """
        if self.kind == "zcdp":
            return ZCDP(self.spend)
        if self.kind == "pure":
            return PureDP(self.spend)
        if self.kind == "approx" or self.delta:
            return ApproxDP(self.spend, self.delta or 0)
        return exact_positive(self.spend, "spend")


ORDER = Stored(
    Training,
    "Order",
    *("table", "method", "features", "target", "spend", "delta", "kind", "parameters"),
    *("purpose", "project", "title", "algorithm", "held_out"),
    later=("held_out",),
)
"""As a job holds it, and as the digest of a form that was sent has it."""


def model_of(order: Training) -> PrivateModel:
    """The estimator of an order, not yet fitted."""
    kind = class_of(order.method)
    known = sorted(set(kind().get_params(deep=False)) - _OF_THE_FIT)
    for name, value in order.parameters.items():
        if name not in known:
            raise InvalidParameter(
                f"The parameter {name[:60]!r} is invalid",
                why=f"{order.method} has none of that name that may be sent",
                instead=", ".join(known) or "no parameter",
            )
        if not _fits(value):
            raise InvalidParameter(
                f"The parameter {name!r} is invalid",
                why=f"a parameter is a number up to {_LARGEST}, a short text, a truth value, or a list of them",
                instead=f"{order.method}()",
            )
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in order.parameters.items()}
    model: PrivateModel = kind(**given)
    spending = order.spending
    if not isinstance(spending, ZCDP):
        model.epsilon = spending.epsilon if isinstance(spending, PureDP | ApproxDP) else spending
        model.delta = spending.delta or None if isinstance(spending, ApproxDP) else None
    return model


def declared(order: Training, table: PrivateTable) -> tuple[PrivateModel, Encoder]:
    """The estimator with the bounds and classes that a table declares, and how its rows become numbers. No row is read."""
    model, target = model_of(order), order.target or None  # first: it refuses where learning is not installed
    from cloister.learn.frame.encoding import Encoder
    from cloister.learn.frame.from_tables import checked_features, declare

    encoder = Encoder.of(table.columns, checked_features(model, order.features, target))
    declare(model, encoder, table, target)
    return model, encoder


def shape_of(order: Training, model: PrivateModel, encoder: Encoder, table: PrivateTable) -> tuple[Any, ...]:
    """The public facts that made-up rows and a method's way over them follow from."""
    described = [(name, domain.describe()) for name, domain in encoder.columns]
    target = table.column(order.target).describe() if order.target else None
    return order.method, sorted(order.parameters.items()), described, target, table.size, table.max_rows, model.delta


def class_of(method: str) -> Any:
    """The estimator's class; refused where the hub was installed without what learning needs."""
    check_installed("learn", N_("The model was not trained"))
    import cloister.learn

    return getattr(cloister.learn, method)


def _fits(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= _MOST and all(not isinstance(each, list) and _fits(each) for each in value)
    if isinstance(value, str):
        return len(value) <= _LONGEST
    return value is None or isinstance(value, bool) or (isinstance(value, int | float) and abs(value) <= _LARGEST)
