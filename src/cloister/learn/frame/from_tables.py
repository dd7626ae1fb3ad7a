"""Learning from a table of a session: bounds and classes from its declaration, noise and charge by the one door.

A model whose method is made of sums (`_from_engine`) asks the door for them, and no row comes into memory. Any other reads rows
through `Door.run`, which charges first and lets out nothing but the learned values.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from cloister.errors import CloisterError, InvalidParameter, MissingBound
from cloister.learn.frame.bounds import Box, Rows, box_of, classes_of, interval_of
from cloister.learn.frame.catalogue import name_of
from cloister.learn.frame.encoding import Encoder
from cloister.learn.frame.portable import from_plain, plain, read_spent, spent_of
from cloister.noise import Allowance, DiscreteGaussian, Random, Share
from cloister.privacy import Guarantee
from cloister.tables import Boolean, Category, Date, Domain, Integer, PrivateTable, Real
from cloister.tables.engines.row_sums import COUNT, COUNTED, Fit, RowSums, bounds_of

if TYPE_CHECKING:
    from cloister.learn.frame.base import PrivateModel
    from cloister.session import Measurer, RowMethod
    from cloister.session.execution.summing import RowSummer
    from cloister.session.questions.spend import Spending


def fit_table(
    model: PrivateModel,
    session: Measurer,
    table: str,
    *,
    features: Sequence[str],
    target: str | None,
    spend: Spending | None,
    purpose: str,
) -> None:
    """Fit the model to a table."""
    if not model.private:
        raise InvalidParameter(
            "privacy=None is invalid", why="what leaves a session has a promise", instead="fit(X, y), with rows of your own"
        )
    features = checked_features(model, features, target)
    wanted = model.promise() if spend is None else spend
    assert wanted is not None
    remote = getattr(session, "fit_model", None)
    if remote is not None:  # a hub learns there, as a job
        remote(model, table, features=features, target=target, spend=wanted, purpose=purpose or None)
        return
    declaration = session.declared(table)
    if not isinstance(declaration, PrivateTable):
        raise InvalidParameter(f"{table!r} is invalid", why="it is a public table: nothing needs hiding", instead="fit(X, y)")
    encoder = Encoder.of(declaration.columns, features)
    declare(model, encoder, declaration, target)
    box_of(encoder.bounds, features=len(encoder.names))
    model.check_parameters()
    if model._from_engine(declaration, encoder):
        with np.errstate(all="ignore"):
            allowance = model._learn_table(session, table, encoder, target, wanted, purpose)
        marked = allowance is not None and allowance.marked  # by noise that was bought before, in another session perhaps
        model._settled(allowance, marked=marked or session.marked)
    else:
        outcome = session.run(Learning(model=model, encoder=encoder, target=target), table, wanted, purpose=purpose)
        read(model, outcome.values, outcome.cost)
    model.set_feature_names(encoder.names)


def fit_released(
    model: PrivateModel,
    codes: Mapping[str, Any],
    declaration: PrivateTable,
    *,
    features: Sequence[str],
    target: str | None,
    guarantee: Guarantee,
) -> None:
    """Fit the model, with no noise of its own, to rows that were released, such as those of a synthetic table: as codes of the
    declared columns.

    Guarantee: that of the release, for any number of models, since what is computed from a release alone is post-processing
    (Dwork and Roth 2014, proposition 2.1). It is none for rows of people.

    >>> from cloister.learn import GaussianNB
    >>> from cloister.privacy import PureDP
    >>> from cloister.tables import Category
    >>> table = PrivateTable({"age": [], "sex": []}, {"age": Integer(0, 9), "sex": Category(["F", "M"])})
    >>> model, codes = GaussianNB(), {"age": np.array([1, 2, 8, 9] * 50), "sex": np.array([0, 0, 1, 1] * 50)}
    >>> fit_released(model, codes, table, features=["age"], target="sex", guarantee=PureDP("0.5"))
    >>> model.predict([[1], [9]]).tolist(), str(model.guarantee_)
    (['F', 'M'], 'ε = 0.5')
    """
    encoder = Encoder.of(declaration.columns, checked_features(model, features, target))
    declare(model, encoder, declaration, target)
    model.set_params(privacy=None)
    model.check_parameters()
    model._fitted(rows_of(model, encoder, target, codes, declaration), None)
    model.guarantee_ = guarantee
    model.set_feature_names(encoder.names)


def checked_features(model: PrivateModel, features: Any, target: str | None) -> list[str]:
    """The names of columns, with a target where the model learns one, and not among them."""
    ordered = isinstance(features, Iterable) and not isinstance(features, str | Set)
    features = list(features) if ordered else features
    if not ordered or not all(isinstance(name, str) for name in features):
        raise InvalidParameter(f"features={features!r} is invalid", why="they are a list of columns", instead='features=["age"]')
    if (target is None) != (model.target_kind == "none"):
        raise InvalidParameter(
            f"target={target!r} is invalid",
            why="this model has no target" if target else "this model learns a target",
            instead="target=None" if target else f'target="{features[-1] if features else "income"}"',
        )
    others = [name for name in features if name != target]
    if target is not None and target in features:
        raise InvalidParameter(
            f"features={features!r} is invalid",
            why=f"the target {target!r} is among them",
            instead=f"features={others!r}" if others else "a column that is not a feature",
        )
    return [str(name) for name in features]  # numpy's texts have no stored form


def declare(model: PrivateModel, encoder: Encoder, declaration: PrivateTable, target: str | None) -> None:
    """Put the declared bounds, classes and groups of features into the model's parameters."""
    model.bounds = encoder.bounds
    model.n_features_in_ = len(encoder.names)
    model.declared_ = list(encoder.columns)
    if hasattr(model, "groups"):
        model.groups = encoder.groups
    if target is None:
        return
    domain = declaration.column(target)
    if domain.size == 1:  # of a table nobody writes classes= or bounds_y=, of which a model would speak
        why, instead = "it has one value, and nothing is left to predict", "a target of two values or more"
        raise InvalidParameter(f"The target {target!r} is invalid", why=why, instead=instead)
    if model.target_kind == "class":
        model.classes = list(_classes(domain, target))
        return
    if not isinstance(domain, Integer | Real | Date | Boolean):
        raise MissingBound(
            f"The target {target!r} needs bounds",
            why="it has no declared bounds",
            instead=f'columns={{"{target}": cl.Real(0, 100)}}',
        )
    [model.bounds_y] = bounds_of(domain)
    model._check_column(target, domain)


@dataclass(frozen=True, kw_only=True)
class Learning:
    """A model as a method that needs rows (`cloister.session.RowMethod`)."""

    stored: ClassVar[tuple[str, str]] = ("cloister.learn.from_tables", "Learning")

    model: PrivateModel
    encoder: Encoder
    target: str | None

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads."""
        names = [name for name, _ in self.encoder.columns]
        return tuple(dict.fromkeys([*names, self.target] if self.target else names))

    def describe(self) -> dict[str, Any]:
        """The model and its parameters. Those of which the features already say all are left out."""
        given = self.model.get_params(deep=False).items()
        parameters = {name: plain(value) for name, value in given if name not in ("random", *self.model.told_by_features)}
        return {"model": name_of(self.model), "parameters": parameters, "features": list(self.encoder.names)}

    def guarantee(self, spend: Guarantee, declaration: PrivateTable) -> Guarantee:
        """All that was given, if the method can keep such a promise."""
        if not declaration.abilities.rows:
            Allowance(spend, currency="rho")
            return spend
        self.model._allowance(spend, rows=declaration.max_rows or 1)
        rehearse(self, self.model, spend, declaration)
        return spend

    def release(
        self, rows: Mapping[str, Any], declaration: PrivateTable, guarantee: Guarantee, random: Random
    ) -> Mapping[str, Any]:
        """Learn, and let out what was learnt."""
        model = clone(self.model)  # so that nothing is learnt but what the door lets out
        model.random, model.n_features_in_ = random, len(self.encoder.names)
        allowance = model._allowance(guarantee, rows=declaration.max_rows or 1)
        model._fitted(rows_of(model, self.encoder, self.target, rows, declaration), allowance)
        return released(model)

    @property
    def takes_sums(self) -> bool:
        """Whether the model learns from noisy sums over rows alone."""
        return self.model._takes_sums()

    def rho(self, guarantee: Guarantee) -> Fraction:
        """What all sums together may cost a person."""
        return Allowance(guarantee, currency="rho").size

    def first_sum(self, summer: RowSummer, declaration: PrivateTable, guarantee: Guarantee) -> tuple[RowSums, DiscreteGaussian]:
        """What is asked first: whoever agrees to that agrees to learning it in steps, up to that cost."""
        return self._source(summer, declaration, guarantee).first()

    def release_sums(self, summer: RowSummer, declaration: PrivateTable, guarantee: Guarantee) -> Mapping[str, Any]:
        """Learn from sums over rows, and let out what was learnt."""
        assert self.target is not None
        model = clone(self.model)
        model.n_features_in_ = len(self.encoder.names)
        domain = declaration.column(self.target)
        if model._counts:
            [model.bounds_y_] = bounds_of(domain)
        else:
            model.classes_ = classes_of(_classes(domain, self.target))
        allowance = Allowance(guarantee, currency="rho", rows=summer.rows)
        with np.errstate(all="ignore"):
            model._learn_sums(self._source(summer, declaration, guarantee), allowance)
        return released(model._settled(allowance, marked=summer.random.marked))

    def _source(self, summer: RowSummer, declaration: PrivateTable, guarantee: Guarantee) -> SummedRows:
        assert self.target is not None
        names = tuple(name for name, _ in self.encoder.columns)
        most = self.rho(guarantee) / declaration.abilities.parts_of_a_person**2  # at one site
        fit = Fit.of(declaration.columns, names, self.target, slope=1.0, most=most)
        if self.model._counts:
            fit = replace(fit, classes=1, highest=bounds_of(declaration.column(self.target))[0][1])
        return SummedRows(summer, fit, box_of(self.encoder.bounds, features=len(self.encoder.names)))


def rehearse(method: RowMethod, model: PrivateModel, spend: Guarantee, declaration: PrivateTable) -> None:
    """Learn from no rows, unless that is slow: what fails by public facts alone fails before it is charged."""
    if not model.rehearsed:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            method.release(dict.fromkeys(method.columns, np.zeros(0, np.int64)), declaration, spend, Random.deterministic(1))
    except (ArithmeticError, ValueError) as error:
        if isinstance(error, CloisterError):
            raise
        name = name_of(model)
        raise InvalidParameter(
            f"{name} under {spend} is invalid",
            why="its noise is beyond what can be computed, whatever the rows are",
            instead="a larger spend, or narrower bounds",
        ) from None


@dataclass(frozen=True)
class SummedRows:
    """Noisy sums over rows that stay where they are."""

    summer: RowSummer
    fit: Fit
    box: Box

    def first(self) -> tuple[RowSums, DiscreteGaussian]:
        """The first one, at the least cost: its noise is chosen when it is asked."""
        sums = RowSums(fit=self.fit, stage=self.fit.first)
        return sums, self.summer.law(sums, self.summer.most / self.summer.rows**2 / 20)

    def noisy(self, stage: str, share: Share, **public: Any) -> npt.NDArray[np.float64]:
        """The sum of all sites, parts or whatever the engine has."""
        sums = RowSums(fit=self.fit, stage=stage, **public)
        found = np.asarray(self.summer.noisy(sums, share.mu_squared / 2), dtype=np.float64)
        return found / COUNT if stage in COUNTED else found


def rows_of(
    model: PrivateModel, encoder: Encoder, target: str | None, rows: Mapping[str, Any], declaration: PrivateTable
) -> Rows:
    """A table's codes as the rows of a model, whose classes or bounds of the target are set as they are declared."""
    X = encoder.codes(rows)
    kept = ~np.isnan(X).any(axis=1)
    box = box_of(encoder.bounds, features=X.shape[1])
    if target is None:
        return Rows(X=np.ascontiguousarray(box.clipped(X[kept])), y=None, box=box)
    domain = declaration.column(target)
    codes = np.asarray(rows[target])
    kept &= codes != domain.null_code
    if model.target_kind == "class":
        model.classes_ = classes_of(_classes(domain, target))
        return Rows(X=np.ascontiguousarray(box.clipped(X[kept])), y=(codes - domain.low_code)[kept].astype(np.int64), box=box)
    model.bounds_y_ = interval_of(*bounds_of(domain))
    numbers = np.clip(float(domain.origin) + codes * float(domain.step), *model.bounds_y_)
    return Rows(X=np.ascontiguousarray(box.clipped(X[kept])), y=numbers[kept], box=box)


def released(model: PrivateModel) -> dict[str, Any]:
    """What a fitted model lets out, as plain data; `read` reads it."""
    extra = {name: plain(getattr(model, name)) for name in ("classes_", "bounds_y_") if hasattr(model, name)}
    learned = {name: plain(value) for name, value in model._learned_values().items()}
    return {"learned": {**extra, **learned}, "spent": spent_of(model.spent_), "marked": model.marked_}


def read(model: PrivateModel, values: Mapping[str, Any], guarantee: Guarantee) -> None:
    """Put a released model into the estimator."""
    for name, value in values["learned"].items():
        setattr(model, name, from_plain(value))
    model.spent_ = read_spent(values["spent"])
    model.guarantee_ = guarantee
    model.marked_ = bool(values["marked"])


def _classes(domain: Domain, target: str) -> Sequence[Any]:
    if isinstance(domain, Category) or (domain.size is not None and domain.size <= 100):
        return domain.values()
    raise MissingBound(
        f"The target {target!r} needs bounds",
        why="its classes are not declared",
        instead=f'columns={{"{target}": cl.Category([…])}}',
    )
