"""What `cloister audit` can run of code: an object of the user's own, a twin that is broken on purpose, and mechanisms by name.

A promise speaks of neighbours. So the two worlds of a mechanism that is known by name are measured first: further apart than the
sensitivity, they would refute one that keeps every word.

What may not live here: SQL over tables (`audited_sql.py`), and what is printed (`audit.py`).
"""

from __future__ import annotations

import difflib
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

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
                f"{option} is invalid", why="what an imported mechanism needs, it holds already", instead=f"cloister audit {path}"
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


@dataclass(frozen=True, kw_only=True)
class _Named:
    """A mechanism of cloister's own: how it is made, which worlds are neighbours for it, and two that strain it."""

    make: Callable[[Options], Any]
    worlds: tuple[str, str]
    apart: Callable[[Any, Any], Fraction] | None
    """How far two worlds are from one another, in the measure of the sensitivity; None where any two are neighbours."""
    shape: str
    run: Callable[[Any], Runner] = runner_of


def _whole(value: Any, shape: str) -> bool:
    if shape == "one":
        return type(value) is int
    return isinstance(value, list) and len(value) > 0 and all(type(each) is int for each in value)


def _steps(left: Any, right: Any) -> list[Fraction]:
    """By how much each number moves."""
    pairs = zip(left, right, strict=True) if isinstance(left, list) else [(left, right)]
    return [Fraction(abs(a - b)) for a, b in pairs]


def _sum(left: Any, right: Any) -> Fraction:
    return sum(_steps(left, right), Fraction(0))


def _largest(left: Any, right: Any) -> Fraction:
    return max(_steps(left, right))


def _at_once(mechanism: Any) -> Runner:
    """A mechanism that releases each value of an array on its own: n runs in one call."""
    return lambda data, n, random: mechanism.release(np.full(n, data), random=random)


def _laplace(options: Options) -> Any:
    from cloister.noise import DiscreteLaplace

    return DiscreteLaplace.for_epsilon(_epsilon(options, "laplace"), sensitivity=options.sensitivity or 1)


def _gaussian(options: Options) -> Any:
    from cloister.noise import DiscreteGaussian

    if options.rho is None or options.epsilon is not None or options.delta is not None:
        raise InvalidParameter(
            "The mechanism 'gaussian' is invalid", why="its guarantee is ρ-zCDP, which --rho states", instead="--rho 0.1"
        )
    return DiscreteGaussian.for_rho(options.rho, sensitivity=options.sensitivity or 1)


def _of_epsilon(name: str, kind: str) -> Callable[[Options], Any]:
    """How a class of `cloister.noise` is made whose guarantee is a pure ε."""

    def make(options: Options) -> Any:
        import cloister.noise

        return getattr(cloister.noise, kind)(epsilon=_epsilon(options, name), sensitivity=options.sensitivity or 1)

    return make


def _binary(options: Options) -> Any:
    from cloister.noise import BinaryResponse

    return BinaryResponse.for_epsilon(_epsilon(options, "binary-response"))


def _kary(options: Options) -> Any:
    from cloister.noise import KaryResponse

    return KaryResponse.for_epsilon(_epsilon(options, "kary-response"), categories=options.categories or 4)


NAMED: Mapping[str, _Named] = {
    "binary-response": _Named(make=_binary, worlds=("true", "false"), apart=None, shape="a truth", run=_at_once),
    "exponential": _Named(
        make=_of_epsilon("exponential", "Exponential"), worlds=("[1, 0, 0]", "[0, 1, 1]"), apart=_largest, shape="a list"
    ),
    "gaussian": _Named(make=_gaussian, worlds=("0", "1"), apart=_largest, shape="one"),
    "geometric": _Named(make=_of_epsilon("geometric", "Geometric"), worlds=("0", "1"), apart=_largest, shape="one"),
    "kary-response": _Named(make=_kary, worlds=("0", "1"), apart=None, shape="one", run=_at_once),
    "laplace": _Named(make=_laplace, worlds=("0", "1"), apart=_sum, shape="one"),
    "permute-and-flip": _Named(
        make=_of_epsilon("permute-and-flip", "PermuteAndFlip"), worlds=("[1, 0, 0]", "[0, 1, 1]"), apart=_largest, shape="a list"
    ),
    "staircase": _Named(make=_of_epsilon("staircase", "Staircase"), worlds=("0", "1"), apart=_largest, shape="one"),
}
"""What `cloister audit` knows by name."""


def named(name: str, options: Options) -> Subject:
    """A mechanism of cloister's own, between two worlds that are neighbours for it.

    >>> named("laplace", Options(epsilon="0.5")).claims
    PureDP(epsilon='0.5')
    """
    if name not in NAMED:
        near = difflib.get_close_matches(name, NAMED, n=1)
        raise InvalidParameter(
            f"The mechanism {name!r} was not found",
            why=f"known by name are {', '.join(NAMED)}; your own is named package.module:object",
            instead=f"cloister audit {near[0] if near else 'laplace'} --epsilon 0.5",
        )
    kind = NAMED[name]
    for option, given, used in (
        ("--sensitivity", options.sensitivity, kind.apart is not None),
        ("--categories", options.categories, name == "kary-response"),
    ):
        if given is not None and not used:
            raise InvalidParameter(f"{option} is invalid", why=f"{name} has no such parameter", instead=f"cloister audit {name}")
    mechanism = kind.make(options)
    left, right = (
        _checked_world(option, given or usual, kind)
        for option, given, usual in zip(("--left", "--right"), (options.left, options.right), kind.worlds, strict=True)
    )
    _check_neighbours(name, kind, left, right, Fraction(options.sensitivity or 1))
    return Subject(
        title=f"{name}: {mechanism!r}",
        worlds=f"{json.dumps(left)} against {json.dumps(right)}",
        run=kind.run(mechanism),
        left=left,
        right=right,
        claims=mechanism.guarantee,
        runs=MANY,
    )


def _epsilon(options: Options, name: str) -> str:
    if options.epsilon is None or options.rho is not None or options.delta is not None:
        raise InvalidParameter(
            f"The mechanism {name!r} is invalid", why="its guarantee is a pure ε, which --epsilon states", instead="--epsilon 0.5"
        )
    return options.epsilon


def _checked_world(option: str, text: str, kind: _Named) -> Any:
    value = world(option, text)
    right = type(value) is bool if kind.shape == "a truth" else _whole(value, kind.shape)
    if not right:
        wanted = {"a truth": "true or false", "one": "a whole number", "a list": "a list of whole numbers"}[kind.shape]
        raise InvalidParameter(
            f"{option} {text[:80]} is invalid", why=f"this mechanism takes {wanted}", instead=f"{option} {kind.worlds[0]!r}"
        )
    return value


def _check_neighbours(name: str, kind: _Named, left: Any, right: Any, sensitivity: Fraction) -> None:
    if isinstance(left, list) and len(left) != len(right):
        raise InvalidParameter(
            "The two worlds are invalid", why="their lists differ in length", instead=f"--right {kind.worlds[1]!r}"
        )
    if kind.apart is None:
        return
    apart = kind.apart(left, right)
    if apart > sensitivity:
        raise InvalidParameter(
            "The two worlds are invalid",
            why=f"they are {apart} apart, and {name} promises something only within its sensitivity of {sensitivity}",
            instead=f"--sensitivity {apart}",
        )
