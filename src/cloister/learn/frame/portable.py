"""Models as portable text: plain JSON with a loader, and no pickle, so that a model from elsewhere cannot run anything.

What is saved is the parameters, the learned values (all released, or public) and what was spent. Nothing of the rows is there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from cloister.errors import CloisterError, InvalidParameter
from cloister.learn.frame.catalogue import METHODS, class_of, name_of
from cloister.noise.allowance import Currency, Share
from cloister.privacy import Guarantee, exact
from cloister.privacy.plain import guarantee_from_plain, guarantee_to_plain
from cloister.tables.declaring.plain import domain_of

if TYPE_CHECKING:
    from cloister.learn.frame.base import PrivateModel

_FORMAT = 1
_KINDS = {"float64", "int64", "bool"}


def to_json(model: PrivateModel, *, declared: bool = True) -> str:
    """A fitted model as JSON; what its columns were declared as is left out of the text that a judgement is known by.

    >>> from cloister.learn import GaussianNB
    >>> model = GaussianNB(epsilon=1, bounds=(0, 1)).fit([[0.1], [0.9]] * 50, [0, 1] * 50)
    >>> load(model.to_json()).classes_.tolist()
    [0, 1]
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    document = {
        "format": _FORMAT,
        "model": name_of(model),
        "parameters": {name: plain(value) for name, value in model._said_parameters().items()},
        "learned": {name: plain(value) for name, value in model._learned_values().items()},
        "features": plain(getattr(model, "feature_names_in_", None)),
        **({"columns": [[name, each.describe()] for name, each in model.declared_]} if declared and model.declared_ else {}),
        "guarantee": write_guarantee(model.guarantee_),
        "spent": spent_of(model.spent_),
        "marked": model.marked_,
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def load(source: str | Path) -> Any:
    """A model from its JSON, or from a file that holds it. Only what this library knows is made: no code runs.

    >>> load('{"format": 1, "model": "os.system"}')
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: The model is invalid: 'os.system' is not a model of this library...
    """
    try:
        text = source.read_text(encoding="utf-8-sig") if isinstance(source, Path) else source
    except OSError:
        raise InvalidParameter(
            f"The model {str(source)!r} is invalid", why="no file of that name can be read", instead='load(Path("model.json"))'
        ) from None
    except ValueError:
        raise _refused("it is not a model that this library wrote") from None
    try:
        if isinstance(text, str) and not text.lstrip().startswith("{"):
            raise _refused("a text is the model itself, and a file is given as a Path")
        document = json.loads(text)
        if document["format"] != _FORMAT:
            raise _refused("its format is another version's")
        name = document["model"]
        if name not in METHODS:
            raise _refused(f"{name!r} is not a model of this library")
        kind = class_of(name)
        model = kind(**{key: from_plain(value) for key, value in document["parameters"].items()})
        learned = {key: from_plain(value) for key, value in document["learned"].items()}
        known = {"n_features_in_", *kind.learned_names}
        if not known - {name for name in kind.learned_names if hasattr(kind, name)} <= set(learned) <= known:
            raise _refused("it does not hold what such a model learns")
        for key, value in learned.items():
            setattr(model, key, value)
        if document["features"] is not None:
            model.set_feature_names(from_plain(document["features"]))
        model.declared_ = [(str(name), domain_of(name, each, table="model")) for name, each in document.get("columns", ())]
        model.guarantee_ = read_guarantee(document["guarantee"])
        model.spent_ = read_spent(document["spent"])
        model.marked_ = bool(document["marked"])
    except CloisterError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, ArithmeticError):
        raise _refused("it is not a model that this library wrote") from None
    return model


def plain(value: Any) -> Any:
    """A value as JSON can hold it; arrays and fractions say what they are.

    >>> plain(np.array([1.5])), plain(Fraction(1, 3))
    ({'array': [1.5], 'dtype': 'float64', 'shape': [1]}, {'fraction': '1/3'})
    """
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, Mapping):
        return {"mapping": [[plain(key), plain(item)] for key, item in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [plain(item) for item in value]}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if type(value) is float and not math.isfinite(value):
        return {"number": repr(value)}
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is date:
        return {"date": value.isoformat()}
    if hasattr(value, "learned_names") and hasattr(value, "get_params"):
        return {"model": to_json(value)}
    raise _refused(f"a {type(value).__name__} cannot be saved")


def from_plain(value: Any) -> Any:
    """The value again.

    >>> from_plain(plain((np.array([1, 2]), Fraction(1, 3))))
    (array([1, 2]), Fraction(1, 3))
    """
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"array": items, "dtype": dtype, "shape": shape}:
            if dtype in _KINDS:
                return np.asarray(items, dtype=dtype).reshape(shape)
            if dtype == "text":
                return np.asarray([str(item) for item in items]).reshape(shape)
            if dtype == "object":
                return np.array([str(item) for item in items], dtype=object).reshape(shape)
            if dtype == "date":
                return np.array([date.fromisoformat(item) for item in items], dtype=object).reshape(shape)
        case {"fraction": text}:
            return exact(text)
        case {"date": text}:
            return date.fromisoformat(text)
        case {"number": "nan" | "inf" | "-inf" as text}:
            return float(text)
        case {"tuple": items}:
            return tuple(from_plain(item) for item in items)
        case {"mapping": pairs}:
            return {from_plain(key): from_plain(item) for key, item in pairs}
        case {"model": text}:
            return load(text)
    raise _refused("it holds something unknown")


def _array(value: npt.NDArray[Any]) -> dict[str, Any]:
    shape = list(value.shape)
    if value.dtype.kind == "U":
        return {"array": value.ravel().tolist(), "dtype": "text", "shape": shape}
    if value.dtype.kind == "O" and all(isinstance(item, str) for item in value.ravel().tolist()):
        return {"array": value.ravel().tolist(), "dtype": "object", "shape": shape}
    if value.dtype.kind == "O" and all(type(item) is date for item in value.ravel().tolist()):
        return {"array": [item.isoformat() for item in value.ravel().tolist()], "dtype": "date", "shape": shape}
    kind = {"f": "float64", "i": "int64", "u": "int64", "b": "bool"}.get(value.dtype.kind)
    if kind is None:
        raise _refused(f"an array of {value.dtype} cannot be saved")
    items = value.astype(kind).ravel().tolist()
    if kind == "float64" and not np.isfinite(value).all():  # plain JSON knows neither
        items = [item if math.isfinite(item) else repr(item) for item in items]
    return {"array": items, "dtype": kind, "shape": shape}


def write_guarantee(guarantee: Guarantee | None) -> dict[str, str] | None:
    """As exact texts.

    >>> from cloister.privacy import PureDP
    >>> write_guarantee(PureDP("0.1"))
    {'kind': 'pure', 'epsilon': '0.1'}
    """
    return None if guarantee is None else guarantee_to_plain(guarantee)


def read_guarantee(written: Mapping[str, str] | None) -> Guarantee | None:
    """The other way.

    >>> read_guarantee({"kind": "approx", "epsilon": "1", "delta": "0.00001"})
    ApproxDP(epsilon='1', delta='0.00001')
    """
    if written is None:
        return None
    found = guarantee_from_plain(written)
    if found is None:
        raise _refused("its guarantee is of an unknown kind")
    return found


def spent_of(lines: Iterable[Share]) -> list[dict[str, str]]:
    """What was spent on what, as exact texts."""
    return [
        {"what": line.what, "currency": line.currency, "amount": str(line.amount), "portion": str(line.portion)} for line in lines
    ]


def read_spent(lines: Iterable[Mapping[str, str]]) -> tuple[Share, ...]:
    """The other way."""
    return tuple(_share(line) for line in lines)


def _share(line: Mapping[str, str]) -> Share:
    return Share(
        what=str(line["what"]),
        currency=cast(Currency, line["currency"]),
        amount=exact(line["amount"]),
        portion=exact(line["portion"]),
    )


def _refused(why: str) -> InvalidParameter:
    return InvalidParameter("The model is invalid", why=why, instead="cloister.learn.load(model.to_json())")
