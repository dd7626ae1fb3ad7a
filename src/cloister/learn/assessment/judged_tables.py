"""Judging a model by the rows of a table: the same sums as for arrays, let out by the one door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from cloister.errors import InvalidParameter, UnknownColumn, UnsupportedQuery
from cloister.learn.assessment.judging import Judge, Measure, judge_of, measure_of, parted
from cloister.learn.assessment.scores import Score
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.encoding import Encoder
from cloister.learn.frame.from_tables import Learning, checked_features, declare, read, rehearse, released, rows_of
from cloister.learn.frame.portable import to_json
from cloister.noise import Allowance, Random, Share
from cloister.privacy import Exact, Guarantee, exact_probability
from cloister.tables import Category, PrivateTable

if TYPE_CHECKING:
    from cloister.session import Measurer
    from cloister.session.questions.spend import Spending


def evaluate_table(
    session: Measurer,
    model: PrivateModel,
    table: str,
    target: str,
    spend: Spending,
    *,
    measure: Measure | None = None,
    purpose: str = "",
) -> Score:
    """A score by the rows of a table of a session, charged to its population. The model learnt from columns of the same names.

    Guarantee: the spend; as the score of the same name, with the noise of a person with `max_rows` rows.

    >>> from cloister.learn import evaluate_table
    >>> from cloister.learn.frame.examples import Threshold
    >>> from cloister.session.examples import small_door
    >>> with small_door() as door:
    ...     model = Threshold(epsilon="0.5").fit_table(door, "people", features=["age"], target="sex")
    ...     found = evaluate_table(door, model, "people", "sex", "0.5")
    >>> str(found.guarantee), 0 <= found.value <= 1
    ('ε = 0.5', True)
    """
    check_is_fitted(model)
    declaration = session.declared(table)
    if not isinstance(declaration, PrivateTable):
        raise InvalidParameter(
            f"{table!r} is invalid", why="it is a public table: nothing needs hiding", instead="model.score(X, y)"
        )
    check_judges(table, declaration)
    chosen = measure_of(model, measure)
    judge = judge_of(model, chosen)
    method = Judging(model=model, judge=judge, encoder=encoder_of(model, declaration), target=target)
    outcome = session.run(method, table, spend, purpose=purpose)
    numbers = np.asarray(outcome.values["sums"], dtype=np.float64)
    share = Allowance(outcome.cost, rows=declaration.max_rows or 1).rest(chosen)
    return judge.answer(numbers, share, outcome.cost, marked=outcome.marked)


def fit_and_score_table(
    session: Measurer,
    model: PrivateModel,
    table: str,
    *,
    features: Sequence[str],
    target: str,
    spend: Spending | None = None,
    test: Exact = "0.25",
    measure: Measure | None = None,
    purpose: str = "",
) -> tuple[PrivateModel, Score]:
    """Fits a copy of the model to some rows of a table and judges it by the others: one charge for both.

    Guarantee: the spend, or the model's ε and δ; `Trial` says why once is enough. Rows come into memory.

    >>> from cloister.learn import fit_and_score_table
    >>> from cloister.learn.frame.examples import Threshold
    >>> from cloister.session.examples import small_door
    >>> with small_door() as door:
    ...     model, found = fit_and_score_table(door, Threshold(), "people", features=["age"], target="sex", spend="0.5")
    ...     str(door.spent), str(model.guarantee_), str(found.guarantee)
    ('ε = 0.5', 'ε = 0.5', 'ε = 0.5')
    """
    chosen = measure_of(model, measure)
    declaration = session.declared(table)
    if not isinstance(declaration, PrivateTable) or not model.private:
        raise InvalidParameter(
            f"{table!r} is invalid", why="a private model learns from a private table", instead="fit_and_score(model, X, y)"
        )
    check_judges(table, declaration)
    encoder = Encoder.of(declaration.columns, checked_features(model, features, target))
    fitted: PrivateModel = clone(model)
    declare(fitted, encoder, declaration, target)
    method = Trial(model=fitted, measure=chosen, encoder=encoder, target=target, test=exact_probability(test, "test"))
    wanted = model.promise() if spend is None else spend
    assert wanted is not None
    outcome = session.run(method, table, wanted, purpose=purpose)
    read(fitted, outcome.values["model"], outcome.cost)
    fitted.set_feature_names(encoder.names)
    share = method.share(outcome.cost, declaration)
    numbers = np.asarray(outcome.values["sums"], dtype=np.float64)
    return fitted, judge_of(fitted, chosen).answer(numbers, share, outcome.cost, marked=outcome.marked)


def check_judges(name: str, declaration: PrivateTable) -> None:
    """Refuse rows that no engine hands out, also for a model that is made of sums."""
    if not declaration.abilities.rows:
        why, instead = "its engine gives sums with noise alone, and a score reads rows", "a model without a score, by fit_table"
        raise UnsupportedQuery(f"A score by rows of {name!r} is not supported", why=why, instead=instead)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Training on some rows and judging by the others, as one method that needs rows.

    Guarantee: the spend, once. Each row falls by a coin of its own into one part; a person with up to m rows may have a in one
    and b in the other, a + b ≤ m. A row costs ε/m, μ²/m² or ρ/m² in its part, so all cost (a + b)ε/m ≤ ε, and, since a² + b² ≤
    (a + b)², no more than μ² or ρ: both parts are counted in the same currency.
    """

    stored: ClassVar[tuple[str, str]] = ("cloister.learn.judged_tables", "Trial")

    model: PrivateModel
    measure: Measure
    encoder: Encoder
    target: str
    test: Fraction

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads."""
        return tuple(dict.fromkeys([*(name for name, _ in self.encoder.columns), self.target]))

    def describe(self) -> dict[str, Any]:
        """The model with its parameters, the measure, and the share of rows that judge."""
        about = Learning(model=self.model, encoder=self.encoder, target=self.target).describe()
        return {**about, "measure": self.measure, "test": str(self.test)}

    def guarantee(self, spend: Guarantee, declaration: PrivateTable) -> Guarantee:
        """All that was given, if the model and the sums can keep such a promise."""
        self.share(spend, declaration)
        rehearse(self, self.model, spend, declaration)
        return spend

    def share(self, spend: Guarantee, declaration: PrivateTable) -> Share:
        """What judging may spend on its rows: everything, in the currency of the model."""
        rows = declaration.max_rows or 1
        training = self.model._allowance(spend, rows=rows)
        assert training is not None
        return Allowance(spend, currency=training.currency, rows=rows).rest(self.measure)

    def release(
        self, rows: Mapping[str, Any], declaration: PrivateTable, guarantee: Guarantee, random: Random
    ) -> Mapping[str, Any]:
        """The model, and the noisy sums."""
        model: PrivateModel = clone(self.model)
        model.random, model.n_features_in_ = random, len(self.encoder.names)
        train, test = parted(rows_of(model, self.encoder, self.target, rows, declaration), self.test, random)
        model._fitted(train, model._allowance(guarantee, rows=declaration.max_rows or 1))
        assert test.y is not None
        sums = judge_of(model, self.measure).released(model, test.X, test.y, self.share(guarantee, declaration), random)
        return {"model": released(model), "sums": sums}


def encoder_of(model: PrivateModel, declaration: PrivateTable) -> Encoder:
    """The columns that the model's features were made of, by their names."""
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    columns = []
    for name in names:
        found = [
            column
            for column, domain in declaration.columns.items()
            if name == column or (isinstance(domain, Category) and name.startswith(f"{column}="))
        ]
        if not found:
            raise UnknownColumn(
                f"The feature {name!r} is unknown",
                why=f"declared are {', '.join(declaration.columns)}",
                instead="a table with the columns that the model learnt from",
            )
        longest = max(found, key=len)  # "a=b" may be a value of the column a, or the column a=b
        if longest not in columns:
            columns.append(longest)
    encoder = Encoder.of(declaration.columns, columns)
    if list(encoder.names) != names:
        raise InvalidParameter(
            "The table is invalid",
            why=f"its columns become the features {', '.join(encoder.names)}, and the model learnt from {', '.join(names)}",
            instead="the declaration that the model learnt under",
        )
    return encoder


@dataclass(frozen=True, kw_only=True)
class Judging:
    """A score as a method that needs rows (`cloister.session.RowMethod`)."""

    stored: ClassVar[tuple[str, str]] = ("cloister.learn.judged_tables", "Judging")

    model: PrivateModel
    judge: Judge
    encoder: Encoder
    target: str

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads."""
        return tuple(dict.fromkeys([*(name for name, _ in self.encoder.columns), self.target]))

    def describe(self) -> dict[str, Any]:
        """The measure and the model, as it is."""
        return {"measure": self.judge.measure, "model": to_json(self.model, declared=False), "target": self.target}

    def guarantee(self, spend: Guarantee, declaration: PrivateTable) -> Guarantee:
        """All that was given, if sums can be noised under such a promise."""
        Allowance(spend, rows=declaration.max_rows or 1)
        probe: PrivateModel = clone(self.model)  # so that the model stays as it is
        rows_of(probe, self.encoder, self.target, {name: np.empty(0, dtype=np.int64) for name in self.columns}, declaration)
        if self.judge.classes is not None and probe.classes_.tolist() != self.judge.classes.tolist():
            raise InvalidParameter(
                f"The target {self.target!r} is invalid",
                why=f"its classes are declared otherwise than the model's, {self.judge.classes.tolist()}",
                instead="the declaration that the model learnt under",
            )
        return spend

    def release(
        self, rows: Mapping[str, Any], declaration: PrivateTable, guarantee: Guarantee, random: Random
    ) -> Mapping[str, Any]:
        """The noisy sums."""
        found = rows_of(clone(self.model), self.encoder, self.target, rows, declaration)
        share = Allowance(guarantee, rows=declaration.max_rows or 1).rest(self.judge.measure)
        truth = found.y
        assert truth is not None
        if self.judge.bounds is not None:
            truth = np.clip(truth, *self.judge.bounds)
        return {"sums": self.judge.released(self.model, found.X, truth, share, random)}
