"""What every model has: parameters, checks, an allowance, learned values that may be published, and a table to learn from.

A model is a scikit-learn estimator. `fit` checks and clips, opens an `Allowance`, calls the model's own `_learn`, and keeps what
was spent. What `_learn` leaves in the attributes that `learned_names` lists is the whole model: it is what is saved, and nothing
else of the rows stays.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from cloister.errors import InvalidParameter, numbers_alone
from cloister.learn.frame.bounds import Box, Rows, box_of, classes_of, interval_of
from cloister.learn.frame.encoding import Encoder
from cloister.learn.frame.parameters import Limits, check_all
from cloister.learn.frame.reading import as_listed, matrix_of, number_of, numbers_of, width_of
from cloister.noise import Random
from cloister.noise.allowance import Allowance, Currency, Share
from cloister.privacy import ApproxDP, Exact, Guarantee, PureDP

if TYPE_CHECKING:
    from cloister.learn.frame.card import Card
    from cloister.session import Measurer
    from cloister.session.questions.spend import Spending
    from cloister.tables import Domain, PrivateTable

_MOST_MULTIPLIED = 64
"""Features of which an engine is asked for all products. To plan a question of thousands of sums takes minutes; where rows can be
read, they are multiplied in a second."""


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters:
    """What every model has. A model lists its own parameters in the same way: a class that does has no other annotated attribute,
    since each would be a parameter."""

    epsilon: Exact = 1
    delta: Exact | None = None
    bounds: Any = None
    privacy: str | None = "central"
    random: Random | None = None


class PrivateModel(Parameters, BaseEstimator):  # type: ignore[misc]
    """The base of all models.

    Parameters that all have: `epsilon` and `delta` (the promise: pure without a δ), `bounds` (a pair: the lowest and the highest
    values of the features), `privacy` ("central", or None for the same model without noise, marked as not private) and `random`
    (tests inject a generator; what it produced is marked).

    After `fit`: `guarantee_` (None without privacy), `spent_` (a tuple of `Share`: what was spent on what), `marked_`,
    `n_features_in_`, and what the model learned.
    """

    learned_names: ClassVar[tuple[str, ...]] = ()
    """The attributes that are the model: plain numbers, texts and arrays, all of them released values or public facts.
    What a later version added has a default in the class: a model that an older one stored opens without it."""
    _stored: ClassVar[str]
    """The name that the model is stored under (`catalogue.name_of`): a literal, whatever the class is called."""
    limits: ClassVar[Limits] = {}
    """What its own parameters may be."""
    told_by_features: ClassVar[tuple[str, ...]] = ()
    """Parameters that a table's features determine: a stored model has the digest that it had before they were parameters."""
    target_kind: ClassVar[str] = "class"
    """"class", "number" or "none"."""
    _multiplies: ClassVar[bool] = False
    """Whether it asks an engine for the products of each two features."""
    _counts: ClassVar[bool] = False
    """Whether the target is a count."""
    _currency: ClassVar[Currency | None] = None
    """What the allowance is counted in: by itself ε for a pure promise and μ² else."""
    _frameless: bool = False
    """Whether the names of its features were never those of a frame (`set_feature_names`)."""
    declared_: Sequence[tuple[str, Domain]] = ()
    """The declared columns of a table that its features were made of."""
    measured_: Any = None
    """What a margin is made of, where the model keeps it; one that an older version stored has none."""

    # ── arrays ───────────────────────────────────────────────────────────────────────────────────

    def fit(self, X: Any, y: Any = None, **refused: Any) -> Self:
        """Learn from arrays, out of the model's own budget."""
        _refuse(refused)
        rows = self._checked(X, y)
        self.declared_ = ()
        return self._fitted(rows, self._allowance())

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        """Set the learned attributes; without an allowance, without noise."""
        raise NotImplementedError

    @property
    def private(self) -> bool:
        """Whether there is a promise."""
        if self.privacy not in ("central", None):
            raise InvalidParameter(
                f"privacy={self.privacy!r} is invalid", why='known are "central" and None', instead='privacy="central"'
            )
        return self.privacy is not None

    rehearsed: ClassVar[bool] = True
    """Whether it is learnt from no rows before a charge: not where that is slow, and `check_parameters` sees what could fail."""

    def promise(self) -> Guarantee | None:
        if not self.private:
            return None
        return PureDP(self.epsilon) if self.delta in (None, 0) else ApproxDP(self.epsilon, self.delta)

    def _allowance(self, whole: Guarantee | None = None, *, rows: int = 1) -> Allowance | None:
        promised = whole or self.promise()
        check_all(self.limits, self)  # first: the currency may follow from parameters
        allowance = None if promised is None else Allowance(promised, currency=self._currency_of(promised), rows=rows)
        self.check_parameters(allowance)
        return allowance

    def _currency_of(self, promised: Guarantee) -> Currency | None:
        """A model whose method counts otherwise says so here."""
        return self._currency

    def check_parameters(self, allowance: Allowance | None = None) -> None:
        """Refuse what no rows of `n_features_in_` features could make right: before a charge, and before noise is drawn."""
        check_all(self.limits, self)

    def _check_column(self, target: str, domain: Domain) -> None:
        """Refuse a column of numbers, days or truth values that its target can't be."""

    def _fitted(self, rows: Rows, allowance: Allowance | None) -> Self:
        if allowance is None:
            self._learn(rows, allowance)
        else:
            with np.errstate(all="ignore"):  # an overflow may say something about rows: no warning speaks of it
                self._learn(rows, allowance)
        return self._settled(allowance)

    def _settled(self, allowance: Allowance | None, *, marked: bool | None = None) -> Self:
        self.guarantee_: Guarantee | None = None if allowance is None else allowance.whole
        self.spent_: tuple[Share, ...] = () if allowance is None else tuple(allowance.lines)
        self.marked_: bool = marked if marked is not None else bool(self.random is not None and self.random.marked)
        return self

    def _checked(self, X: Any, y: Any) -> Rows:
        """Shapes, kinds and declarations are checked aloud; values never: they are clipped, or their row counts for nothing.

        Rows lie one after the other in memory, whatever came in and whichever rows were left out: the order in which numbers of
        a row are added up, and so its last bits, must not depend on other rows.
        """
        X, target = self._arrays(X, y)
        box = self._box(X)
        kept = ~np.isnan(X).any(axis=1)
        if target is not None:
            target, known = self._class_numbers(target) if self.target_kind == "class" else self._numbers(target)
            kept = kept & known
            target = target if kept.all() else target[kept]
        return Rows(X=np.ascontiguousarray(box.clipped(X if kept.all() else X[kept])), y=target, box=box)

    def _arrays(self, X: Any, y: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any] | None]:
        """As arrays, cell by cell (`reading.py`). The twin without noise reads likewise where its bounds are declared; where it
        looks them up, it is read and refused as scikit-learn does."""
        self._frameless = False
        if not self.private and self.bounds is None:
            if self.target_kind == "none":
                return np.asarray(validate_data(self, X, dtype=np.float64)), None
            X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=self.target_kind == "number")
            return X, y
        rows = matrix_of(X, features=width_of(self.bounds))
        validate_data(self, X if hasattr(X, "columns") else rows, skip_check_array=True)  # names and number of features
        if self.target_kind == "none":
            return rows, None
        column = column_of(y, rows=len(rows))
        if not self.private and getattr(self, "classes" if self.target_kind == "class" else "bounds_y", None) is None:
            check_array(column, ensure_2d=False, dtype=None)
        return rows, column

    def _box(self, X: npt.NDArray[np.float64]) -> Box:
        if self.bounds is None and not self.private:
            return Box(low=X.min(axis=0), high=X.max(axis=0))
        return box_of(self.bounds, features=X.shape[1])

    def _class_numbers(self, y: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The number of each row's class, and whether it is declared."""
        declared = getattr(self, "classes", None)
        if not self.private and declared is None:
            check_classification_targets(y)
            self.classes_, numbers = np.unique(y, return_inverse=True)
            return numbers.astype(np.int64), np.ones(len(y), dtype=bool)
        self.classes_ = classes_of(declared)
        numbers = places_of(y, self.classes_)
        return np.maximum(numbers, 0), numbers >= 0

    def _numbers(self, y: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        numbers = numbers_of(y)
        declared = getattr(self, "bounds_y", None)
        if not self.private and declared is None:
            self.bounds_y_ = (float(numbers.min()), float(numbers.max()))
            return numbers, np.ones(len(numbers), dtype=bool)
        self.bounds_y_ = interval_of(declared)
        return np.nan_to_num(np.clip(numbers, *self.bounds_y_), nan=self.bounds_y_[0]), ~np.isnan(numbers)

    def _asked(self, X: Any, *, finite: bool = True) -> npt.NDArray[np.float64]:
        """What is to be predicted, checked against what was learnt; with `finite=False` it is read as rows to learn from are.

        scikit-learn warns of an array where the model learnt from a frame, since the order of columns may differ. Names that came
        from a table, or from a file, are in the order in which an array must have them: of that nothing warns. A frame of the
        columns that a table declared is read as that declares them.
        """
        check_is_fitted(self)
        given, X = X, self.encoded(X, unless_features=not finite)
        if finite and X is not given:
            for name, domain in self.declared_ if np.isnan(X).any() else ():
                if np.isnan(Encoder(columns=((name, domain),)).transform(given)).any():
                    raise InvalidParameter(
                        f"The column {name!r} is invalid",
                        why="a value in it is missing or not declared",
                        instead=f"rows with values of {domain!r:.99}".replace(", nullable=True", ""),
                    )
        named = not self._frameless or hasattr(X, "columns")
        if finite:
            with numbers_alone("X"):
                if named:
                    return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
                found = check_array(X, dtype=np.float64, estimator=self, input_name="X")
        else:
            found = matrix_of(X, features=self.n_features_in_)
            if named:
                validate_data(self, X if hasattr(X, "columns") else found, skip_check_array=True, reset=False)
        if found.shape[1] != self.n_features_in_:
            raise InvalidParameter(
                "X is invalid",
                why=f"it has {found.shape[1]} columns, and the model learnt from {self.n_features_in_}",
                instead=f"X[:, :{self.n_features_in_}]" if found.shape[1] > self.n_features_in_ else "all of its features",
            )
        return np.asarray(found)

    def encoded(self, X: Any, *, unless_features: bool = False) -> Any:
        """The features of a frame, or a mapping, of the columns that a table declared; anything else as it is."""
        names = {*map(str, X if isinstance(X, Mapping) else getattr(X, "column_names", getattr(X, "columns", ())))}
        declared = not unless_features and names.issuperset(name for name, _ in self.declared_)
        read = self.declared_ and names and (declared or not names.issuperset(getattr(self, "feature_names_in_", ())))
        return Encoder(columns=tuple(self.declared_)).transform(X) if read else X

    def set_feature_names(self, names: npt.ArrayLike) -> None:
        """Name the features otherwise than by the columns of a frame."""
        self.feature_names_in_, self._frameless = np.asarray(names, dtype=object), True

    # ── tables ───────────────────────────────────────────────────────────────────────────────────

    def fit_table(
        self,
        session: Measurer,
        table: str,
        *,
        features: Sequence[str],
        target: str | None = None,
        spend: Spending | None = None,
        purpose: str = "",
    ) -> Self:
        """Learn from a table of a session, charged to its population. Bounds and classes are those that the table declares.

        The spend is the model's ε and δ, or `spend=` where it is given (as in `session.sql`).
        """
        from cloister.learn.frame.from_tables import fit_table

        fit_table(self, session, table, features=features, target=target, spend=spend, purpose=purpose)
        return self

    def _from_engine(self, declaration: PrivateTable, encoder: Encoder) -> bool:
        """Whether it learns from what the table's own engine answers (`_learn_table`), so that no row comes into memory: where it
        can, and products of each two features are not too many. A model that can learn either way says here which one."""
        wide = self._multiplies and len(encoder.names) > _MOST_MULTIPLIED and declaration.abilities.rows
        return type(self)._learn_table is not PrivateModel._learn_table and not wide

    def _takes_sums(self) -> bool:
        """Whether it can learn from noisy sums over rows (`_learn_sums`), where an engine hands out none."""
        return False

    def _learn_sums(self, source: Any, allowance: Allowance) -> None:
        """Set the learned attributes by noisy sums over rows."""
        raise NotImplementedError

    def _learn_table(
        self, session: Measurer, table: str, encoder: Encoder, target: str | None, spend: Spending, purpose: str
    ) -> Allowance | None:
        """Set the learned attributes by what the engine answers; the allowance that was spent, where any was."""
        raise NotImplementedError

    def _said_parameters(self) -> dict[str, Any]:
        """Its parameters but the generator, and but those of its features that nobody declared."""
        unsaid = {"random", *(name for name in self.told_by_features if getattr(self, name, None) is None)}
        return {name: value for name, value in self.get_params(deep=False).items() if name not in unsaid}

    # ── what is told about it ───────────────────────────────────────────────────────────────────────

    def card(self, **about: Any) -> Card:
        """The model card: data, bounds, what was spent on what, and what was found out about it (`frame/card.py`)."""
        from cloister.learn.frame.card import card_of

        return card_of(self, **about)

    def to_json(self) -> str:
        """The model as portable text, with no pickle; `cloister.learn.load` reads it."""
        from cloister.learn.frame.portable import to_json

        return to_json(self)

    def report(self) -> str:
        """What was spent on what, a line each."""
        check_is_fitted(self)
        if self.guarantee_ is None:
            return "NOT PRIVATE: learnt without noise; to be compared with, never to be published"
        return "\n".join([str(self.guarantee_), *(f"  {line} ({float(line.portion):.1%})" for line in self.spent_)])

    def _learned_values(self) -> Mapping[str, Any]:
        return {name: getattr(self, name) for name in ("n_features_in_", *self.learned_names)}


def _refuse(arguments: dict[str, Any]) -> None:
    if arguments.pop("sample_weight", None) is not None:
        raise InvalidParameter(
            "sample_weight is invalid",
            why="one person would count as much as their weight, and the noise is made for people who count once",
            instead="fit(X, y)",
        )
    if arguments:
        raise InvalidParameter(f"{sorted(arguments)[0]}= is invalid", why="fit takes X and y", instead="fit(X, y)")


def column_of(y: Any, *, rows: int) -> npt.NDArray[Any]:
    """The target as one column, and as long as there are rows."""
    if y is None:
        raise InvalidParameter(
            "y is invalid",
            why="this model requires y to be passed, but the target y is None",
            instead="fit(X, y), one value a row",
        )
    try:
        # a list of lists of one each, or nearly: which of the two it is must not follow from one person's label
        column = as_listed([_only(value) for value in y] if isinstance(y, list | tuple) else y)
    except Exception:  # whatever stands there: its own words may show values
        raise InvalidParameter("y is invalid", why="it is not one column", instead="fit(X, y), one value a row") from None
    if column.ndim == 2 and column.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected", DataConversionWarning, stacklevel=5)
        column = column.ravel()
    if column.ndim != 1 or len(column) != rows:
        raise InvalidParameter(
            "y is invalid", why="it is not one column, as long as X has rows", instead="fit(X, y), one value a row"
        )
    return column


def _only(value: Any) -> Any:
    """What stands alone in a list; anything else as it is.

    >>> _only([1]), _only([1, 2]), _only("x")
    (1, [1, 2], 'x')
    """
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def places_of(values: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The place of each value among the classes; −1 for one that is not there, of whatever kind it is.

    A mixed column is read value by value, and no kind of value is refused: whether it holds a text is a private fact. Where
    classes are numbers a text that spells one is that class, since one text among numbers may have made texts of all.

    >>> places_of(np.array([7, 5, 6]), np.array([5, 7])).tolist(), places_of(np.array(["1", "x"]), np.array([0, 1])).tolist()
    ([1, 0, -1], [1, -1])
    >>> places_of(np.array(["a", None], dtype=object), np.array(["a"])).tolist()
    [0, -1]
    """
    kinds = [each.dtype.kind in "biuf" for each in (values, classes)]
    if all(kinds) or (values.dtype.kind == classes.dtype.kind == "U"):
        order = np.argsort(classes)
        found = order[np.minimum(np.searchsorted(classes[order], values), len(order) - 1)]
        return np.where(classes[found] == values, found, -1).astype(np.int64)
    known = {value: place for place, value in enumerate(classes.tolist())}
    spelt = kinds[1]

    def place_of(value: Any) -> int:
        try:
            place = known.get(value, -1)
        except Exception:  # a list, say, or an object of somebody's own making: no class is one
            return -1
        return known.get(number_of(value), -1) if place < 0 and spelt and isinstance(value, str | bytes) else place

    return np.fromiter(map(place_of, values.tolist()), dtype=np.int64, count=len(values))
