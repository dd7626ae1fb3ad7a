"""What the settings of an algorithm mean where its code runs near rows: the code, what it reads, what it may return.

`{"code": "def middle(rows): …", "inputs": ["age"], "low": ["0"], "high": ["120"], "names": ["age"], "blocks": 100}`. The last
function of the code is called, unless `entry` names another. With `"rows": ["12 months", …]` the ranges are those of the columns
of a table. `packages` (with an `environment` that was built on this machine) or `"language": "r"`: native code, which two people
admit (`admission.py`). With `"way": "ask"` it gets no
rows: it asks about the columns of `inputs` within the spend of the run, and declares neither ranges nor blocks. With
`"way": "declared"` it is a mechanism of its `author`'s, with a `mechanism` and a `proof`, which two people admit after an audit.
"""

from collections.abc import Mapping
from typing import Any

from cloister.errors import CloisterError, InvalidDeclaration
from cloister.guests import Guest, Table, Vector
from cloister.guests.code import last_function
from cloister.guests.sandbox.environments import environment
from cloister.guests.sandbox.grid import slot_of
from cloister.guests.trial import check_tests
from cloister.hub.decisions.policy.strict import only

_ALL = ("code", "entry", "inputs", "way", "seconds", "memory", "tests", "licence")
_RETURNS = ("names", "low", "high", "rows")
_KNOWN = {
    "blocks": (*_ALL, *_RETURNS, "blocks", "statistic", "packages", "language", "environment"),
    "ask": _ALL,
    "declared": (*_ALL, *_RETURNS, "author", "mechanism", "proof"),
}
_TAKEN = ("blocks", "statistic", "memory", "packages", "language", "environment", "author", "mechanism", "proof")
_EXAMPLE = '{"code": "def f(rows): …", "inputs": ["age"], "low": [0], "high": [120], "blocks": 100}'
_MOST_SECONDS = 120
"""All blocks together: so long a job lasts and holds a worker, since each block is killed when its step of time is over."""


def guest_of(name: str, settings: Mapping[str, Any]) -> Guest:
    """The guest that settings declare.

    >>> code = "def middle(rows):\\n    return [sorted(rows['age'])[0]]"
    >>> guest_of("middle", {"code": code, "inputs": ["age"], "low": ["0"], "high": ["120"], "blocks": 50}).output.bounds
    ((0.0, 120.0),)
    """
    way = way_of(settings)
    how: dict[str, Any] = {each: settings[each] for each in _TAKEN if each in settings}
    if "seconds" in settings:
        [how["seconds"]] = _numbers([settings["seconds"]])
    code = settings.get("code", "")
    return Guest(
        code=code,
        entry=str(settings.get("entry") or last_function(code, how.get("language", "python"))),
        inputs=settings.get("inputs", []),
        output=None if way == "ask" else _output(settings),
        way=way,
        name=name,
        **how,
    )


def way_of(settings: Mapping[str, Any]) -> Any:
    """One of the three ways; by blocks where none is named."""
    way = settings.get("way", "blocks")
    if way not in tuple(_KNOWN):
        raise InvalidDeclaration("settings is invalid", why="way is blocks, ask or declared", instead=_EXAMPLE)
    return way


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings under which no guest could run.

    >>> check_settings({"low": ["0"]})
    Traceback (most recent call last):
    cloister.errors.InvalidDeclaration: settings is invalid: low and high are lists of the same length.
      Instead: {"code": "def f(rows): …", "inputs": ["age"], "low": [0], "high": [120], "blocks": 100}
    """
    only(settings, "settings", _KNOWN[way_of(settings)])
    try:
        made = guest_of("guest", settings)
        check_tests(made, settings.get("tests", ""))
        if made.environment:
            environment(made.environment)
    except InvalidDeclaration:
        raise
    except CloisterError as error:
        raise InvalidDeclaration(error.what, why=error.why, instead=error.instead) from None
    if made.way == "ask" and not made.inputs:  # the policy is asked about these columns, and no other can be asked about
        raise InvalidDeclaration("settings is invalid", why="inputs names no column", instead='"inputs": ["age"]')
    if made.way == "blocks" and (made.blocks is None or slot_of(made.blocks, made.seconds) > _MOST_SECONDS):
        raise InvalidDeclaration(
            "settings is invalid", why=f"blocks times seconds is at most {_MOST_SECONDS} s, and blocks is given", instead=_EXAMPLE
        )


def _output(settings: Mapping[str, Any]) -> Vector:
    low, high = (_numbers(settings.get(each, [])) for each in ("low", "high"))
    if len(low) != len(high):
        raise InvalidDeclaration("settings is invalid", why="low and high are lists of the same length", instead=_EXAMPLE)
    bounds, names = list(zip(low, high, strict=True)), settings.get("names")
    if "rows" not in settings:
        return Vector(bounds, names=names)
    if not isinstance(names, list) or len(names) != len(bounds) or not all(isinstance(each, str) for each in names):
        raise InvalidDeclaration(
            "settings is invalid", why="a table has one name for each of its ranges", instead='"names": ["share"]'
        )
    return Table(rows=settings["rows"], columns=dict(zip(names, bounds, strict=True)))


def _numbers(given: Any) -> list[float]:
    try:
        return [float(each) for each in (given if isinstance(given, list | tuple) else [given])]
    except (TypeError, ValueError, OverflowError):
        why = "low and high are lists of numbers, and seconds is a number"
        raise InvalidDeclaration("settings is invalid", why=why, instead=_EXAMPLE) from None
