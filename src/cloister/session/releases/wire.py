"""A release as text and back, exactly: for a database, a download, a client far away.

The text is canonical JSON: the same release has the same bytes. Only what is listed here can be written or read: plain values,
exact numbers, arrays, and our own frozen dataclasses, each made by its own constructor from fields of the declared types. Nothing
in a text can name code, and nothing in it is run. What is wrong with it is refused as an `InvalidParameter` before it is used,
and so is what would take far more memory than the text itself.

A text is not authenticated: whoever writes one can make up any numbers, margins and provenance, and they are read as they stand.
Take it from a place that you trust, or compare its charges with the ledger's.

The tie to a session (`buy_bias`) does not travel.
"""

import base64
import binascii
import datetime
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

import numpy as np

from cloister.errors import CloisterError, InvalidParameter
from cloister.session.releases.formulas import Reading
from cloister.session.releases.postprocessed import Postprocessed
from cloister.session.releases.release import Provenance, Release
from cloister.session.releases.stored_kinds import BY_ARGUMENTS, BY_FIELDS, RELEASE, Arguments
from cloister.session.releases.uncertainty import Term
from cloister.session.releases.wire_checks import (
    MOST_TERMS,
    check_postprocessed,
    check_release,
    check_sheets,
    check_types,
    refused,
)
from cloister.session.workloads.sheets import Sheets
from cloister.stored import Stored

FORMAT = 1
WORKED_OUT = 2
"""The format of tables that were worked out from released ones: a reader that knows only the first says that it is another."""
LONGEST = 256 * 2**20
"""How many characters a text may have."""

_DOCUMENTS = ({"format", "release"}, {"format", "release", "sheets", "places"}, {"format", "release", "measured", "margins"})
_KINDS: dict[str, Stored[Any] | Arguments] = {each.name: each for each in BY_FIELDS.values()}
_KINDS |= {each.name: each for each in BY_ARGUMENTS.values()}
_RATIONAL = re.compile(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?")
_ARRAYS = {"int64": "<i8", "float64": "<f8", "bool": "|b1"}
_AS_IT_IS = frozenset({type(None), bool, int, str})
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def to_json(release: Release) -> str:
    """The release as canonical JSON.

    >>> from cloister.session.examples import small_release
    >>> answer = small_release()
    >>> again = from_json(to_json(answer))
    >>> again.to_pydict() == answer.to_pydict(), repr(again) == repr(answer), to_json(again) == to_json(answer)
    (True, True, True)
    """
    if isinstance(release, Sheets):
        document = {"format": FORMAT, "release": _told(release)}
        document |= {"sheets": [_told(part) for part in release.parts], "places": _written(release.places)}
        return _dumped(document)
    if isinstance(release, Postprocessed):
        document = {"format": WORKED_OUT, "release": _told(release), "measured": _written(release.measured)}
        return _dumped(document | {"margins": _written(release.at_levels())})
    parts = []
    for name, field in _SORTED:
        value, way = getattr(release, field), _PARTS.get(name, _text)
        text = _mapped(value, way) if name in _MAPS else way(value)
        parts.append(f'"{name}":{text}')
    return f'{{"format":{FORMAT},"release":{{{",".join(parts)}}}}}'


def from_json(text: str) -> Release:
    """The release that a text holds; whatever else it holds is refused.

    >>> from_json('{"format": 1, "release": {"groups": "import os"}}')
    Traceback (most recent call last):
    ...
    cloister.errors.InvalidParameter: The text is invalid: it holds no release.
      Instead: what release.to_json() wrote
    """
    if not isinstance(text, str) or len(text) > LONGEST:
        raise refused(f"it is not a text of at most {LONGEST:,} characters")
    why = "it holds no release"
    try:
        document = json.loads(text, parse_constant=_no_constant)
        if set(document) in _DOCUMENTS:
            wanted = WORKED_OUT if "measured" in document else FORMAT
            if document["format"] == wanted:
                return _release(document)
            why = f"its format is not {wanted}"
    except _Malformed as error:
        why = str(error)
    except (CloisterError, ValueError, TypeError, KeyError, AttributeError, LookupError, ArithmeticError, RecursionError):
        pass  # a constructor of ours, or of Python, has refused it
    raise refused(why)


def _told(release: Release) -> dict[str, Any]:
    return {name: _written(part) for name, part in RELEASE.told(release).items()}


def _release(document: Mapping[str, Any]) -> Release:
    given = _fields(document["release"])
    if "measured" in document:
        made = Postprocessed(**given, measured=_read(document["measured"]), margins=_read(document["margins"]))
        check_postprocessed(made)
        return made
    if "sheets" not in document:
        release = Release(**given)
        check_release(release)
        return release
    parts = tuple(Release(**_fields(each)) for each in document["sheets"])
    for part in parts:
        check_release(part)
    release = Sheets(**given, parts=parts, places=_read(document["places"]))
    check_sheets(release)
    return release


def _fields(told: Mapping[str, Any]) -> dict[str, Any]:
    if set(told) != set(RELEASE.attributes):
        raise _Malformed("it holds no release")
    return {field: _read(told[name]) for name, field in RELEASE.pairs}


class _Malformed(Exception):
    """Something that is not on the list."""


def _no_constant(_: str) -> Any:
    raise _Malformed("it holds NaN or Infinity, which are no JSON")


def _written(value: Any) -> Any:
    """Plain data for a value."""
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if kind in BY_FIELDS:
        form = BY_FIELDS[kind]
        return {"$": form.name, **{name: _written(part) for name, part in form.told(value).items()}}
    if kind is float:
        return value if math.isfinite(value) else {"$": "float", "v": repr(value)}
    if kind is Fraction:
        return {"$": "Fraction", "v": str(value)}
    if kind is datetime.date:
        return {"$": "date", "v": value.isoformat()}
    if isinstance(value, tuple | list):
        return [_written(each) for each in value]
    if isinstance(value, np.generic):
        return _written(value.item())
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, Mapping):
        return {"$": "map", "v": [[str(name), _written(each)] for name, each in value.items()]}
    if kind in BY_ARGUMENTS:
        made = BY_ARGUMENTS[kind]
        return {"$": made.name, **{name: _written(part) for name, part in made.told(value).items()}}
    raise InvalidParameter(
        "The release is invalid", why=f"a {kind.__name__} in it has no written form", instead="release.table, which has"
    )


_dumped = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def _text(value: Any) -> str:
    """A value as it is in the text of a release."""
    way = _QUICK.get(type(value))
    return _dumped(_written(value)) if way is None else way(value)


def _texts(values: Iterable[Any]) -> list[str]:
    texts = []
    for each in values:
        way = _QUICK.get(type(each))
        texts.append(_dumped(_written(each)) if way is None else way(each))
    return texts


def _provenance(value: Provenance) -> str:
    parts = _texts([getattr(value, field) for _, field in _OF_PROVENANCE])
    told = [f',"{name}":{part}' for (name, _), part in zip(_OF_PROVENANCE, parts, strict=True)]
    return f'{{"$":"Provenance"{"".join(told)}}}'


_QUICK: dict[type, Callable[[Any], str]] = {
    type(None): {None: "null"}.__getitem__,
    bool: {True: "true", False: "false"}.__getitem__,
    int: str,
    str: quoted,
    tuple: lambda values: f"[{','.join(_texts(values))}]",
    Provenance: _provenance,
}


_TEXTS: dict[int, tuple[Any, str]] = {}
"""What was written of values that many releases share, each with the value itself, so that no other can come to its place in
memory: formulas, noises and costs, which never change."""
_MOST_TEXTS, _LONGEST_KEPT = 512, 4096
"""A formula may name a column's every category; such a one is written again each time."""


def _shared(value: Any) -> str:
    known = _TEXTS.get(id(value))
    if known is not None and known[0] is value:
        return known[1]
    text = _text(value)
    if len(text) <= _LONGEST_KEPT:
        if len(_TEXTS) >= _MOST_TEXTS:
            _TEXTS.clear()
        _TEXTS[id(value)] = (value, text)
    return text


def _mapped(values: Mapping[str, Any], way: Callable[[Any], str]) -> str:
    rows = []
    for name, value in values.items():
        rows.append(f"[{quoted(str(name))},{way(value)}]")
    return f'{{"$":"map","v":[{",".join(rows)}]}}'


def _reading_text(reading: Any) -> str:
    if type(reading) is not Reading:
        return _text(reading)
    terms = ",".join(
        [
            f'{{"$":"Term","noise":{_shared(each.noise)},"weight":{_text(each.weight)}}}' if type(each) is Term else _text(each)
            for each in reading.terms
        ]
    )
    return f'{{"$":"Reading","terms":[{terms}],"values":{_text(reading.values)}}}'


_SORTED, _OF_PROVENANCE = sorted(RELEASE.pairs), sorted(BY_FIELDS[Provenance].pairs)
_PARTS: dict[str, Callable[[Any], str]] = {"cost": _shared, "formulas": _shared, "readings": _reading_text, "spent_by": _shared}
_MAPS = ("groups", "names", "readings", "spent_by")
"""What is written otherwise than as a whole, and what is so value by value: the same text, sooner."""


def _array(values: np.ndarray[Any, Any]) -> dict[str, Any]:
    if values.dtype.kind in "OU":
        return {"$": "array", "shape": list(values.shape), "v": [_written(each) for each in values.ravel().tolist()]}
    if values.dtype.name not in _ARRAYS:
        values = values.astype(np.int64) if values.dtype.kind in "iu" else values.astype(np.float64)
    packed = base64.b64encode(np.ascontiguousarray(values).astype(_ARRAYS[values.dtype.name]).tobytes()).decode()
    return {"$": "array", "dtype": values.dtype.name, "shape": list(values.shape), "v": packed}


def _read(value: Any) -> Any:
    """The value that plain data stand for."""
    if isinstance(value, list):
        return tuple(_read(each) for each in value)
    if not isinstance(value, dict):
        return value
    name = value.get("$")
    if name in _SPECIAL:
        return _SPECIAL[name](value)
    if not isinstance(name, str) or name not in _KINDS:
        raise _Malformed("it names a kind of value that is not on the list")
    form = _KINDS[name]
    if form is BY_FIELDS[Reading] and len(value.get("terms", ())) > MOST_TERMS:
        raise _Malformed("a reading in it holds more noises than any question buys")
    told = {each: _read(part) for each, part in value.items() if each != "$"}
    if isinstance(form, Arguments):
        return form.made(**told)
    if set(told) != set(form.attributes):
        raise _Malformed(f"a {name} in it has other fields")
    given = form.given(told)
    check_types(form.kind, given)
    return form.kind(**given)


def _special_array(value: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    shape = value["shape"]
    if not isinstance(shape, list) or not 1 <= len(shape) <= 3 or not all(type(each) is int and each >= 0 for each in shape):
        raise _Malformed("an array in it has no shape")
    if "dtype" not in value:
        found = np.empty(len(value["v"]), dtype=object)
        found[:] = [_read(each) for each in value["v"]]
        if any(not (each is None or isinstance(each, str | bool | int | float | datetime.date)) for each in found):
            raise _Malformed("an array in it holds more than plain values")
        return found.reshape(shape)
    try:
        packed = base64.b64decode(value["v"], validate=True)
    except binascii.Error:
        raise _Malformed("an array in it cannot be read") from None
    kind = _ARRAYS[value["dtype"]]
    if value["dtype"] == "bool" and any(each > 1 for each in packed):
        raise _Malformed("an array in it cannot be read")
    return np.frombuffer(packed, dtype=kind).astype(value["dtype"]).reshape(shape)


def _special_map(value: Mapping[str, Any]) -> dict[str, Any]:
    pairs = [(name, _read(each)) for name, each in value["v"]]
    found = dict(pairs)
    if len(found) != len(pairs) or not all(isinstance(name, str) for name in found):
        raise _Malformed("a mapping in it has a name twice, or one that is no text")
    return found


def _special_fraction(value: Mapping[str, Any]) -> Fraction:
    if not isinstance(value["v"], str) or not _RATIONAL.fullmatch(value["v"]):
        raise _Malformed("a number in it is not a quotient of two whole ones")
    return Fraction(value["v"])


_SPECIAL: dict[Any, Callable[[Mapping[str, Any]], Any]] = {
    "float": lambda value: _NOT_FINITE[value["v"]],
    "date": lambda value: datetime.date.fromisoformat(value["v"]),
    "Fraction": _special_fraction,
    "array": _special_array,
    "map": _special_map,
}
