"""What is summed to judge a model: the sums, how far one row moves them, and what the noisy sums say."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import CloisterError, InvalidParameter, MissingBound
from cloister.learn.assessment.scores import SURE, Confusion, Determination, Noise, Proportion, Reliability, Score
from cloister.learn.frame.base import PrivateModel, places_of
from cloister.learn.frame.bounds import Rows, interval_of, steps_of
from cloister.noise import Random, Share, default_random
from cloister.privacy import Exact, Guarantee, exact_probability

Measure: TypeAlias = Literal["accuracy", "confusion", "reliability", "mean_squared_error", "r2"]
OF_CLASSES = ("accuracy", "confusion", "reliability")
OF_NUMBERS = ("mean_squared_error", "r2")
_BITS = 20
_STEP = 2**_BITS
_BLOCK = 1 << 12
_LARGEST = 1e30
"""Infinities become this large: a model clips them, and one of another library does not refuse them aloud."""


@dataclass(frozen=True, kw_only=True)
class Judge:
    """What is summed for a measure, by how much one row moves it, and what the noisy sums say."""

    measure: Measure
    classes: npt.NDArray[Any] | None = None
    bounds: tuple[float, float] | None = None

    @property
    def reach(self) -> dict[str, int]:
        """The sensitivity of the sums to one row."""
        if self.measure in OF_CLASSES:
            return {"l1": 1, "l2_squared": 1}
        if self.measure == "mean_squared_error":
            return {"l1": _STEP, "l2_squared": _STEP**2}
        return {"l1": 2 * _STEP + _STEP // 2, "l2_squared": 2 * _STEP**2 + _STEP**2 // 4}

    def sums(self, truth: npt.NDArray[Any], guess: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Exact sums over the rows: private."""
        if self.classes is not None:
            size = len(self.classes)
            if self.measure == "reliability":
                right = truth == guess % size
                return np.bincount(guess // size * 2 + right, minlength=2 * SURE).reshape(SURE, 2)
            guess = np.where(guess < 0, (truth + 1) % size, guess)  # what is no class at all is never right
            cells = np.bincount(truth * size + guess, minlength=size**2).reshape(size, size)
            hits = int(np.trace(cells))
            return cells if self.measure == "confusion" else np.array([hits, int(cells.sum()) - hits])
        assert self.bounds is not None
        low, high = self.bounds
        errors = steps_of(((truth - np.clip(guess, low, high)) / (high - low)) ** 2, bits=_BITS)
        pair = [errors.sum(), (_STEP - errors).sum()]
        if self.measure == "mean_squared_error":
            return np.array(pair, dtype=np.int64)
        z = np.clip((truth - (low + high) / 2) * (2 / (high - low)), -1, 1)
        return np.array([*pair, steps_of(z, bits=_BITS).sum(), steps_of(z**2 - 0.5, bits=_BITS).sum()], dtype=np.int64)

    def released(
        self, model: Any, X: npt.NDArray[np.float64], truth: npt.NDArray[Any], share: Share | None, random: Random | None
    ) -> npt.NDArray[np.float64]:
        """The sums with noise; without a share, as they are."""
        sums = self.sums(truth, self.guesses(model, X))
        return sums.astype(np.float64) if share is None else share.add(sums, **self.reach, random=random)

    def answer(self, numbers: npt.NDArray[np.float64], share: Share | None, promise: Guarantee | None, *, marked: bool) -> Score:
        """What the released sums say."""
        noise = None if share is None else Noise.of(share, **self.reach)
        spent = () if share is None else (share,)
        about: dict[str, Any] = {"noise": noise, "guarantee": promise, "spent": spent, "marked": marked}
        if self.measure == "confusion":
            assert self.classes is not None
            return Confusion(name="confusion matrix", counts=numbers, classes=self.classes, **about)
        if self.measure == "reliability":
            return Reliability(name="reliability", counts=numbers, **about)
        if self.measure == "accuracy":
            return Proportion(name="accuracy", part=float(numbers[0]), rest=float(numbers[1]), **about)
        assert self.bounds is not None
        if self.measure == "mean_squared_error":
            width = (self.bounds[1] - self.bounds[0]) ** 2
            return Proportion(name="mean squared error", part=float(numbers[0]), rest=float(numbers[1]), width=width, **about)
        errors, others, sums, squares = (float(number) for number in numbers)
        return Determination(name="R²", errors=errors, others=others, sums=sums, squares=squares, step=float(_STEP), **about)

    def guesses(self, model: Any, X: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """What the model says of rows: the places of classes, or numbers. For reliability, how sure it is besides, in tenths: the
        place and as many times the number of classes.

        The sensitivity assumes that it says of each row what follows from that row alone. In floating point, the last bits of a
        product of matrices depend on how many rows it is made for, and with them a tie. So rows are asked about in blocks of one
        size, the last filled up: then each block takes the same path, whoever else is there.
        """
        if len(X) == 0:  # scikit-learn refuses to predict nothing; that there is nothing is private
            return np.empty(0, dtype=np.int64 if self.classes is not None else np.float64)
        blocks = -(-len(X) // _BLOCK)
        full = np.concatenate([X, np.repeat(X[-1:], blocks * _BLOCK - len(X), axis=0)])
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # names of features were compared before; others may say something about rows
                say = model.predict if self.measure != "reliability" else model.predict_proba
                said = [np.asarray(say(full[first : first + _BLOCK])) for first in range(0, len(full), _BLOCK)]
        except CloisterError:
            raise
        except Exception:  # the words of a model from elsewhere may show values
            raise InvalidParameter(
                "The model is invalid",
                why="it cannot predict every row within the bounds",
                instead="a model that predicts any row",
            ) from None
        guesses = np.concatenate(said)[: len(X)]
        if self.measure == "reliability":
            sure = np.nan_to_num(guesses.astype(np.float64)).clip(0, 1)
            tenth = np.minimum((sure.max(axis=1) * SURE).astype(np.int64), SURE - 1)
            return np.asarray(tenth * sure.shape[1] + sure.argmax(axis=1), dtype=np.int64)
        return guesses.astype(np.float64) if self.classes is None else places_of(guesses, self.classes)


def judge_of(model: Any, measure: Measure, bounds_y: Any = None) -> Judge:
    """The judge of a fitted model, by the classes or the bounds that it learnt under."""
    if measure in OF_CLASSES:
        return Judge(measure=measure, classes=np.asarray(model.classes_))
    declared = bounds_y if bounds_y is not None else getattr(model, "bounds_y_", getattr(model, "bounds_y", None))
    if declared is None:
        raise MissingBound("The score needs bounds", why="the bounds of the target are not declared", instead="bounds_y=(0, 100)")
    return Judge(measure=measure, bounds=interval_of(declared))


def measure_of(model: Any, measure: Measure | None) -> Measure:
    """The measure, where it fits the model; without one, accuracy for classes and R² for numbers."""
    target = getattr(model, "target_kind", None)
    kind = target if target is not None else "class" if hasattr(model, "classes_") else "number"
    known = {"class": OF_CLASSES, "number": OF_NUMBERS}.get(kind, ())
    if not known:
        raise InvalidParameter(
            "The score is invalid",
            why=f"{type(model).__name__} predicts neither classes nor numbers",
            instead="accuracy(GaussianNB(…).fit(X, y), X, y)",
        )
    if measure is None:
        return "accuracy" if kind == "class" else "r2"
    if measure not in known:
        raise InvalidParameter(
            f"measure={measure!r} is invalid", why=f"for this model there are {', '.join(known)}", instead=f"measure={known[0]!r}"
        )
    if measure == "reliability" and not hasattr(model, "predict_proba"):
        raise InvalidParameter(
            "measure='reliability' is invalid",
            why=f"{type(model).__name__} says a class and no probability",
            instead="measure='accuracy'",
        )
    return measure


def rows_for(model: Any, X: Any, y: Any, judge: Judge) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    """Rows that count: without missing values and undeclared classes; infinities become large, so that nothing is refused."""
    probe = _Checking(classes=judge.classes, bounds_y=judge.bounds)
    X = model.encoded(X) if isinstance(model, PrivateModel) else X
    names = [str(name) for name in getattr(X, "column_names", getattr(X, "columns", ()))]
    learnt = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if names and learnt and names != learnt:
        raise InvalidParameter("X is invalid", why=f"the model learnt from {', '.join(learnt)}", instead=f"X[{learnt!r}]")
    rows = probe._checked(X, y)
    expected = getattr(model, "n_features_in_", rows.X.shape[1])
    if rows.X.shape[1] != expected:
        raise InvalidParameter(
            "X is invalid",
            why=f"it has {rows.X.shape[1]} columns, and the model learnt from {expected}",
            instead="the same columns",
        )
    assert rows.y is not None
    return rows.X, rows.y


class _Checking(PrivateModel):
    """The checks of `fit`, without a fit."""

    def __init__(self, *, classes: Any = None, bounds_y: Any = None) -> None:
        self.classes = classes
        self.bounds_y = bounds_y
        self.bounds = (-_LARGEST, _LARGEST)
        self.privacy = "central"
        self.target_kind = "number" if classes is None else "class"  # type: ignore[misc]


def coins(count: int, test: Exact, random: Random | None) -> npt.NDArray[np.bool_]:
    """Whether each of so many rows is for judging: a coin of its own, whatever is in it."""
    share = exact_probability(test, "test")
    return np.asarray((random or default_random()).below(share.denominator, count) < share.numerator)


def parted(rows: Rows, test: Exact, random: Random | None) -> tuple[Rows, Rows]:
    """Checked rows, parted by coins as in `split`."""
    tested = coins(len(rows.X), test, random)
    return tuple(  # type: ignore[return-value]
        Rows(X=rows.X[kept], y=None if rows.y is None else rows.y[kept], box=rows.box) for kept in (~tested, tested)
    )
