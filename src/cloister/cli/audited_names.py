"""The mechanisms of cloister's own that `cloister audit` knows by name, each with two worlds that strain it.

A promise speaks of neighbours. So the two worlds are measured first: further apart than the sensitivity, they would refute a
mechanism that keeps every word.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cloister.attacks.runs import Runner, runner_of
from cloister.cli.audited import MANY, Options, Subject, world
from cloister.errors import InvalidParameter


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


def _geometric(options: Options) -> Any:
    from cloister.noise import Geometric

    return Geometric(epsilon=_epsilon(options, "geometric"), sensitivity=options.sensitivity or 1)


def _staircase(options: Options) -> Any:
    from cloister.noise import Staircase

    return Staircase(epsilon=_epsilon(options, "staircase"), sensitivity=options.sensitivity or 1)


def _gaussian(options: Options) -> Any:
    from cloister.noise import DiscreteGaussian

    if options.rho is None or options.epsilon is not None or options.delta is not None:
        raise InvalidParameter(
            "The mechanism 'gaussian' is invalid", why="its guarantee is ρ-zCDP, which --rho states", instead="--rho 0.1"
        )
    return DiscreteGaussian.for_rho(options.rho, sensitivity=options.sensitivity or 1)


def _selection(name: str) -> Callable[[Options], Any]:
    def make(options: Options) -> Any:
        import cloister.noise

        kind = {"exponential": "Exponential", "permute-and-flip": "PermuteAndFlip"}[name]
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
    "exponential": _Named(make=_selection("exponential"), worlds=("[1, 0, 0]", "[0, 1, 1]"), apart=_largest, shape="a list"),
    "gaussian": _Named(make=_gaussian, worlds=("0", "1"), apart=_largest, shape="one"),
    "geometric": _Named(make=_geometric, worlds=("0", "1"), apart=_largest, shape="one"),
    "kary-response": _Named(make=_kary, worlds=("0", "1"), apart=None, shape="one", run=_at_once),
    "laplace": _Named(make=_laplace, worlds=("0", "1"), apart=_sum, shape="one"),
    "permute-and-flip": _Named(
        make=_selection("permute-and-flip"), worlds=("[1, 0, 0]", "[0, 1, 1]"), apart=_largest, shape="a list"
    ),
    "staircase": _Named(make=_staircase, worlds=("0", "1"), apart=_largest, shape="one"),
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
            f"The mechanism {name!r} is invalid",
            why="its guarantee is a pure ε, which --epsilon states",
            instead="--epsilon 0.5",
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
