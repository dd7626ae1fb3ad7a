"""What `cloister audit` can run of code: an object of the user's own, and a twin that is broken on purpose.

What may not live here: mechanisms by their names (`audited_names.py`), SQL over tables (`audited_sql.py`), and what is printed
(`audit.py`).
"""

from __future__ import annotations

import difflib
import importlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloister.attacks.runs import Runner, runner_of
from cloister.errors import CloisterError, InvalidParameter
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP

if TYPE_CHECKING:
    from cloister.attacks.broken.twin import ChannelTwin, Twin
    from cloister.noise import Random

MANY, FEW = 1_000_000, 20_000
"""Runs in each world: where a mechanism draws many outputs at once, and where it is asked for one after another."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Something that can be run in two worlds, and what it promises."""

    title: str
    worlds: str
    run: Runner
    left: Any
    right: Any
    claims: Guarantee
    runs: int
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The numbers that the command line gave, as they were written."""

    epsilon: str | None = None
    delta: str | None = None
    rho: str | None = None
    sensitivity: str | None = None
    categories: int | None = None
    left: str | None = None
    right: str | None = None

    def claim(self) -> Guarantee | None:
        """The guarantee that --epsilon, --delta and --rho write.

        >>> Options(epsilon="1").claim(), Options(rho="0.1").claim(), Options().claim()
        (PureDP(epsilon='1'), ZCDP(rho='0.1'), None)
        """
        if self.rho is not None and self.epsilon is not None:
            raise InvalidParameter(
                "--epsilon and --rho together are invalid", why="a guarantee is stated in one of them", instead="--epsilon 1"
            )
        if self.rho is not None:
            return ZCDP(self.rho, self.delta or 0)
        if self.epsilon is not None:
            return PureDP(self.epsilon) if self.delta is None else ApproxDP(self.epsilon, self.delta)
        if self.delta is not None:
            raise InvalidParameter(
                "--delta alone is invalid", why="it belongs to an ε", instead=f"--epsilon 1 --delta {self.delta}"
            )
        return None


def world(option: str, text: str) -> Any:
    """What --left or --right writes: JSON, or an object of a module.

    >>> world("--left", "[1, 0]"), world("--left", "math:pi")
    ([1, 0], 3.141592653589793)
    """
    module, colon, name = text.partition(":")
    if colon and module.replace(".", "").replace("_", "").isalnum() and name.isidentifier():
        return _found(text, what=f"The world {option} {text}")
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise InvalidParameter(
            f"{option} {text[:80]} is invalid",
            why="it is neither JSON (a number, a list, true, a text in quotes) nor package.module:object",
            instead=f"{option} 0",
        ) from None


def imported(path: str, options: Options) -> Subject:
    """An object of the user's own code: a callable `(data, n, random) -> n outputs`, or a mechanism with .sample or .release."""
    mechanism = _found(path, what=f"The mechanism {path!r}")
    if isinstance(mechanism, type):
        raise InvalidParameter(
            f"The mechanism {path!r} is invalid",
            why="it is a class; what runs is an object of it",
            instead="a variable that holds one",
        )
    for option, given in (("--sensitivity", options.sensitivity), ("--categories", options.categories)):
        if given is not None:
            raise InvalidParameter(
                f"{option} is invalid",
                why="what an imported mechanism needs, it holds already",
                instead=f"cloister audit {path}",
            )
    stated = options.claim() or getattr(mechanism, "guarantee", None)
    if not isinstance(stated, PureDP | ApproxDP | ZCDP):
        raise InvalidParameter(
            f"The mechanism {path!r} is invalid", why="it states no guarantee that could be broken", instead="--epsilon 1"
        )
    if options.left is None or options.right is None:
        raise InvalidParameter(
            f"The mechanism {path!r} is invalid",
            why="an audit needs two worlds, which only you can know to be neighbours",
            instead="--left 0 --right 1",
        )
    run = runner_of(mechanism)
    quick = callable(mechanism) or hasattr(mechanism, "sample")
    return Subject(
        title=path,
        worlds=f"{options.left} against {options.right}",
        run=_guarded(path, run),
        left=world("--left", options.left),
        right=world("--right", options.right),
        claims=stated,
        runs=MANY if quick else FEW,
    )


def twin(name: str) -> Twin | ChannelTwin:
    """A mechanism that is broken on purpose, by its name."""
    from cloister.attacks.broken import TWINS

    names = twin_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.3)
        raise InvalidParameter(
            f"The broken mechanism {name!r} was not found",
            why="cloister audit --list names all of them",
            instead=f'cloister audit --broken "{near[0] if near else names[0]}"',
        )
    return TWINS[names.index(name)]


def twin_names() -> list[str]:
    """The names of all mechanisms that are broken on purpose.

    >>> "noise used twice" in twin_names()
    True
    """
    from cloister.attacks.broken import TWINS

    return [each.name for each in TWINS]


def demonstration(found: Twin | ChannelTwin) -> Subject | None:
    """A broken mechanism in the two worlds that show it; None for one whose whole law is written down, with nothing to run."""
    from cloister.attacks.broken import ChannelTwin

    if isinstance(found, ChannelTwin):
        return None
    return Subject(
        title=f"{found.name} (broken on purpose)",
        worlds=f"{found.left} against {found.right}",
        run=found.broken,
        left=found.left,
        right=found.right,
        claims=found.claims,
        runs=found.runs,
        note=f"{found.mistake} {found.reason}",
    )


def _found(path: str, *, what: str) -> Any:
    """The object that `package.module:name` names, with the folder of the call among the places to look."""
    module, _, name = path.partition(":")
    if not module or not name:
        raise InvalidParameter(
            f"{what} is invalid", why="a path names a module and an object in it", instead="package.module:object"
        )
    with _folder_of_the_call():
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            missing = error.name or module
            own = module == missing or module.startswith(f"{missing}.")
            why = f"there is no module {missing!r} here" if own else f"it needs the module {missing!r}, which is not installed"
            raise InvalidParameter(
                f"{what} was not found", why=why, instead="package.module:object, from the folder that holds it"
            ) from None
        except CloisterError:
            raise
        except Exception as error:
            raise InvalidParameter(
                f"{what} was not loaded",
                why=f"importing {module} failed with a {type(error).__name__}",
                instead=f"python -c 'import {module}'",
            ) from None
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), n=1)
            raise InvalidParameter(
                f"{what} was not found", why=f"{module} has no {part!r}", instead=f"{module}:{near[0] if near else 'object'}"
            )
        found = getattr(found, part)
    return found


@contextmanager
def _folder_of_the_call() -> Iterator[None]:
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _guarded(path: str, run: Runner) -> Runner:
    """A failure of the user's own code is told as one; its words may hold rows, so they are left out."""

    def guarded(data: Any, n: int, random: Random) -> Any:
        try:
            return run(data, n, random)
        except CloisterError:
            raise
        except Exception as error:
            raise InvalidParameter(
                f"The mechanism {path!r} was stopped",
                why=f"it failed with a {type(error).__name__} when {n} runs were asked of it",
                instead="def mechanism(data, n, random): return value + noise.sample(n, random=random)",
            ) from (error if os.environ.get("CLOISTER_DEBUG") == "1" else None)

    return guarded


def _no_number(text: str) -> Any:
    raise ValueError(text)
