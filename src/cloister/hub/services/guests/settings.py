"""What the settings of an algorithm mean where its code runs near rows: the code, what it reads, what it may return.

`{"code": "def middle(rows): …", "inputs": ["age"], "low": ["0"], "high": ["120"], "names": ["age"], "blocks": 100}`. The last
function of the code is called, unless `entry` names another. With `"way": "ask"` it gets no rows: it asks about the columns
of `inputs` within the spend of the run, and declares neither ranges nor blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloister.errors import CloisterError, InvalidDeclaration
from cloister.guests import Guest, Vector
from cloister.guests.blocks import slot_of
from cloister.guests.code import last_function
from cloister.hub.policy.strict import only
from cloister.hub.web.languages import N_

_KNOWN = ("code", "entry", "inputs", "way", "names", "low", "high", "blocks", "statistic", "seconds", "memory")
_ASKS = ("code", "entry", "inputs", "way", "seconds", "memory")
_EXAMPLE = '{"code": "def f(rows): …", "inputs": ["age"], "low": [0], "high": [120], "blocks": 100}'
_MOST_SECONDS = 120
"""All blocks together: so long a job lasts and holds a worker, whatever the code does."""


def guest_of(name: str, settings: Mapping[str, Any]) -> Guest:
    """The guest that settings declare.

    >>> code = "def middle(rows):\\n    return [sorted(rows['age'])[0]]"
    >>> guest_of("middle", {"code": code, "inputs": ["age"], "low": ["0"], "high": ["120"], "blocks": 50}).output.bounds
    ((0.0, 120.0),)
    """
    if settings.get("way", "blocks") not in ("blocks", "ask"):
        raise InvalidDeclaration("settings is invalid", why='way is "blocks" or "ask"', instead=_EXAMPLE)
    asks = settings.get("way") == "ask"
    low, high = (_numbers(settings.get(each, [])) for each in ("low", "high"))
    if len(low) != len(high):
        raise InvalidDeclaration("settings is invalid", why="low and high are lists of the same length", instead=_EXAMPLE)
    how: dict[str, Any] = {each: settings[each] for each in ("blocks", "statistic", "memory") if each in settings}
    if "seconds" in settings:
        [how["seconds"]] = _numbers([settings["seconds"]])
    code = settings.get("code", "")
    return Guest(
        code=code,
        entry=str(settings.get("entry") or last_function(code)),
        inputs=settings.get("inputs", []),
        output=None if asks else Vector(list(zip(low, high, strict=True)), names=settings.get("names")),
        way="ask" if asks else "blocks",
        name=name,
        **how,
    )


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings under which no guest could run.

    >>> check_settings({"low": ["0"]})
    Traceback (most recent call last):
    cloister.errors.InvalidDeclaration: settings is invalid: low and high are lists of the same length.
      Instead: {"code": "def f(rows): …", "inputs": ["age"], "low": [0], "high": [120], "blocks": 100}
    """
    only(settings, "settings", _ASKS if settings.get("way") == "ask" else _KNOWN)
    try:
        made = guest_of("guest", settings)
    except InvalidDeclaration:
        raise
    except CloisterError as error:
        why = N_("{what}: {why}").format(what=error.what, why=error.why)
        raise InvalidDeclaration("settings is invalid", why=why, instead=error.instead) from None
    if made.way == "ask":
        if not made.inputs:  # the policy is asked about these columns, and no other can be asked about
            raise InvalidDeclaration("settings is invalid", why="inputs names no column", instead='"inputs": ["age"]')
        return
    if made.blocks is None or slot_of(made.blocks, made.seconds) > _MOST_SECONDS:
        raise InvalidDeclaration(
            "settings is invalid", why=f"blocks times seconds is at most {_MOST_SECONDS} s, and blocks is given", instead=_EXAMPLE
        )


def _numbers(given: Any) -> list[float]:
    try:
        return [float(each) for each in given]
    except (TypeError, ValueError, OverflowError):
        raise InvalidDeclaration("settings is invalid", why="low and high are lists of numbers", instead=_EXAMPLE) from None
