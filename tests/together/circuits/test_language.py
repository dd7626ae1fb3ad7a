"""A program means the same in integers and in gates, to the last bit; what could overflow is refused before it runs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor, isqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import InvalidParameter
from cloister.together.circuits import FixedPoint, Program, SecretArray, concatenate, gates, select


def ends(array: SecretArray) -> dict[str, Fraction]:
    """As far as the bits of an array go."""
    size = 1 << (array.width - array.signed)
    return {"low": Fraction(-size if array.signed else 0, 1 << array.fraction), "high": Fraction(size - 1, 1 << array.fraction)}


OPERATIONS: dict[str, Callable[[SecretArray, SecretArray], SecretArray]] = {
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - b,
    "product": lambda a, b: a * b,
    "finer product": lambda a, b: a.multiply(b, fraction=9),
    "quotient": lambda a, b: a / select(b > 0, b, 1).clip(1, 2**40),
    "negative quotient": lambda a, b: a.divide((-abs(b)).clip(-(2**40), -1), fraction=5),
    "coarse quotient": lambda a, b: a.rounded(0).divide(abs(b) + 1, fraction=0),
    "root": lambda a, b: abs(a).sqrt(fraction=6) + b,
    "coarse root": lambda a, b: abs(a * b).sqrt(fraction=0),
    "less": lambda a, b: a < b,
    "at least": lambda a, b: a >= b,
    "equal": lambda a, b: (a == b) | (a.rounded(0) != b.rounded(0)),
    "select": lambda a, b: select((a > b) ^ (a > 1), a, b),
    "extremes": lambda a, b: a.maximum(b) - a.minimum(b) * 3,
    "clip": lambda a, b: a.clip(-2, 3) * b.clip(0, 1),
    "total": lambda a, b: a.sum() - b.sum(),
    "dot": lambda a, b: a @ b,
    "outer": lambda a, b: a.reshape(-1, 1) @ b.reshape(1, -1),
    "public": lambda a, b: 2 - a * -3 + b.rounded(4) * 0.25,
    "zeros": lambda a, b: a.leading_zeros() + b.leading_zeros(0) * 3 + (a + b).leading_zeros(bits=24, group=2),
    "moved": lambda a, b: a.ldexp(b.leading_zeros()) + b.ldexp(3) - b.ldexp(-2),
    "normalised": lambda a, b: (a + b).ldexp((a + b).leading_zeros(0), **ends(a + b)) - b.ldexp(-9),
    "signs": lambda a, b: a.negative() ^ b.negative(),
    "within": lambda a, b: (a * a).within(0, 2**30) - (b - b.maximum(1)).within(-(2**30), 0),
    "places": lambda a, b: concatenate([a[::-1], b[:1]])[1:] - 1,
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, FixedPoint], dict[str, list[Fraction]]]:
    """Two vectors with bounds of their own, and values at and between these."""
    kinds, values, length = {}, {}, draw(st.integers(1, 5))
    for name in "ab":
        bits, fraction = draw(st.integers(1, 13)), draw(st.integers(0, 4))
        unsigned = draw(st.booleans())
        full = (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        low, high = sorted((draw(st.integers(*full)), draw(st.integers(*full))))
        scale = 1 << fraction
        kinds[name] = FixedPoint(
            bits=bits, fraction=fraction, shape=(length,), low=Fraction(low, scale), high=Fraction(high, scale)
        )
        steps = draw(st.lists(st.sampled_from([low, high]) | st.integers(low, high), min_size=length, max_size=length))
        values[name] = [Fraction(each, scale) for each in steps]
    return kinds, values


@pytest.mark.parametrize("name", OPERATIONS)
@given(case=cases(), level=st.sampled_from([0, 400, 10**9]))
@settings(max_examples=40, deadline=None)
def test_integers_and_gates_agree_to_the_last_bit(name: str, case: Any, level: int) -> None:
    kinds, values = case
    before = gates.LEVEL
    gates.LEVEL = level  # 0: always the way of few gates; a large one: always that of few levels
    try:
        program = Program(OPERATIONS[name], garbler={"a": kinds["a"]}, evaluator={"b": kinds["b"]}, bits=128)
        assert np.array_equal(program.as_numbers(**values), program.as_gates(**values))
    finally:
        gates.LEVEL = before


@given(
    a=st.integers(-(2**15), 2**15 - 1), b=st.integers(1, 2**12), f=st.integers(0, 6), g=st.integers(0, 6), out=st.integers(0, 9)
)
@settings(max_examples=150, deadline=None)
def test_the_reference_is_what_the_page_says(a: int, b: int, f: int, g: int, out: int) -> None:
    """Products are rounded down, quotients towards zero, roots down: by exact fractions, written here once more."""
    x, y, step = Fraction(a, 1 << f), Fraction(b, 1 << g), Fraction(1, 1 << out)
    sizes = {
        "garbler": {"x": FixedPoint(bits=16, fraction=f)},
        "evaluator": {"y": FixedPoint(bits=13, fraction=g, low=Fraction(1, 1 << g))},
    }
    program = Program(
        lambda x, y: (x.multiply(y, fraction=out), x.divide(y, fraction=out), y.sqrt(fraction=out)), **sizes, bits=100
    )
    product, quotient, root = (Fraction(each.item()) for each in program.as_numbers(x=x, y=y))
    assert product == floor(x * y / step) * step
    assert quotient == (1 if x >= 0 else -1) * floor(abs(x) / y / step) * step
    assert root == Fraction(isqrt(floor(y * (1 << 2 * out))), 1 << out)


def test_bounds_are_reached_and_never_passed() -> None:
    """Every pair of two small ranges: the bits follow from the bounds, and the ends of the bounds are met."""
    for low, high, other_low, other_high in ((-3, 2, -2, 5), (0, 3, 1, 6), (-7, -2, -5, -1), (5, 6, 0, 0)):
        xs, ys = range(low, high + 1), range(other_low, other_high + 1)
        count = len(xs) * len(ys)
        sizes = {
            "garbler": {"x": FixedPoint(bits=5, low=low, high=high, shape=(count,))},
            "evaluator": {"y": FixedPoint(bits=5, low=other_low, high=other_high, shape=(count,))},
        }
        grid = {"x": [x for x in xs for _ in ys], "y": [y for _ in xs for y in ys]}
        for work, meant in (
            (lambda x, y: x + y, int.__add__),
            (lambda x, y: x - y, int.__sub__),
            (lambda x, y: x * y, int.__mul__),
        ):
            program = Program(work, **sizes)  # type: ignore[arg-type]
            expected = [meant(x, y) for x, y in zip(grid["x"], grid["y"], strict=True)]
            assert program.as_gates(**grid).tolist() == expected
            assert (program.outputs[0].low, program.outputs[0].high) == (min(expected), max(expected))


def test_what_could_overflow_is_refused_before_anything_runs() -> None:
    wide = {"garbler": {"a": FixedPoint(bits=40, shape=(100,))}, "evaluator": {"b": FixedPoint(bits=40, shape=(100,))}}
    with pytest.raises(InvalidParameter, match="takes 80 bits, and the program allows 64"):
        Program(lambda a, b: a * b, **wide)
    assert Program(lambda a, b: a @ b, **wide, bits=87).outputs[0].width == 86
    with pytest.raises(InvalidParameter, match="divisor may be 0"):
        Program(lambda a, b: a / b, **wide)
    with pytest.raises(InvalidParameter, match="below 0"):
        Program(lambda a, b: a.sqrt() + b, **wide)
    with pytest.raises(InvalidParameter, match="shapes"):
        Program(lambda a, b: a[:3] + b[:2], **wide)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda a, b: a if a > b else b, "decides nothing"),
        (lambda a, b: a & b, "no condition"),
        (lambda a, b: a * 0.5, "not whole"),
        (lambda a, b: a + float("nan"), "no finite number"),
        (lambda a, b: 3, "no secret array"),
        (lambda a, b: a.clip(3, 1), "low is above high"),
        (lambda a, b: a.minus_modulo(b, bits=8), "from 0 on"),
        (lambda a, b: a + 10**400, "takes 1329 bits"),
        (lambda a, b: a.multiply(b, fraction=-3), "from 0 to 256"),
        (lambda a, b: a.rounded(1.5), "from 0 to 256"),
        (lambda a, b: abs(a).sqrt(fraction=257), "from 0 to 256"),
        (lambda a, b: abs(a).divide(3, fraction=True), "from 0 to 256"),
        (lambda a, b: a.reshape(1)[:0] + b, "is empty"),
        (lambda a, b: a + np.array([]), "is empty"),
        (lambda a, b: a.clip([0, 5], [3, 4]), "low is above high"),
        (lambda a, b: a.within(200, 300), "can lie there"),
        (lambda a, b: a.within(3, float("inf")), "no finite number"),
        (lambda a, b: a.leading_zeros(bits=5), "from 7 to 64"),
        (lambda a, b: a.leading_zeros(bits=9, group=2), "in groups of 2"),
        (lambda a, b: a.leading_zeros(group=0), "above 0"),
        (lambda a, b: a.ldexp(b), "may be below 0"),
        (lambda a, b: a.ldexp(0.5), "no whole number"),
        (lambda a, b: a.ldexp(True), "no whole number"),
        (lambda a, b: a.ldexp(-300), "from 0 to 256"),
        (lambda a, b: a.ldexp(10**12), "no number has so many bits"),
        (lambda a, b: a.ldexp(abs(b) * 10**6), "no number has so many bits"),
        (lambda a, b: a.ldexp(abs(b)), "takes 136 bits"),
        (lambda a, b: a.ldexp(abs(b), low=3, high=1), "can lie there"),
    ],
)
def test_programs_that_mean_nothing_are_refused(function: Any, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        Program(function, garbler={"a": FixedPoint(bits=8)}, evaluator={"b": FixedPoint(bits=8)})


@pytest.mark.parametrize(
    "values", [[1, 2], [128, 0, 0], [float("nan"), 0, 0], ["a", 0, 0], [0, 0, -129], [1e300, 0, 0], [10**400, 0, 0]]
)
def test_values_that_were_not_declared_are_refused_without_being_shown(values: list[Any]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        FixedPoint(bits=8, shape=(3,)).steps(values)
    assert "128" not in str(refused.value)
    assert "129" not in str(refused.value)


@pytest.mark.parametrize(
    "how",
    [
        {"bits": 0},
        {"bits": 513},
        {"fraction": -1},
        {"shape": (0,)},
        {"low": 3, "high": 2},
        {"high": 2**40},
        {"low": float("nan")},
        {"low": float("-inf")},
        {"high": "5"},
        {"low": -(10**400)},
    ],
)
def test_declarations_that_mean_nothing_are_refused(how: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        FixedPoint(**how)


def test_public_arrays_are_met_like_secret_ones() -> None:
    """Bounds of a place each in `clip`, and products with a public matrix from either side."""
    sizes = {"garbler": {"a": FixedPoint(bits=8, shape=(3,))}, "evaluator": {"b": FixedPoint(bits=8, shape=(3,))}}
    matrix = np.arange(9).reshape(3, 3) - 4

    def work(a: SecretArray, b: SecretArray) -> tuple[SecretArray, ...]:
        return a.clip(np.array([-50, 5, 5]), 60), a.clip(-5, [1, 50, 2]), matrix @ b, b @ matrix, b @ [1, 2, 3]

    program, values = Program(work, **sizes), {"a": [1, 2, 3], "b": [-100, 7, 100]}
    expected = [[1, 5, 5], [1, 2, 2], (matrix @ values["b"]).tolist(), (values["b"] @ matrix).tolist(), 214]
    assert [each.tolist() for each in program.as_gates(**values)] == expected
    assert [each.tolist() for each in program.as_numbers(**values)] == expected


def test_a_square_is_known_not_to_be_below_zero() -> None:
    for low, high, least in ((-3, 2, 0), (-3, -2, 4), (2, 3, 4)):
        sizes = {
            "garbler": {"a": FixedPoint(bits=3, low=low, high=high, shape=(high - low + 1,))},
            "evaluator": {"b": FixedPoint(bits=1)},
        }
        program = Program(lambda a, b: a * a, **sizes)
        assert (program.outputs[0].low, program.outputs[0].high) == (least, 9)
        values = list(range(low, high + 1))
        assert program.as_gates(a=values, b=0).tolist() == [each**2 for each in values]


@given(values=st.lists(st.integers(-(2**9), 2**9 - 1), min_size=4, max_size=4), fraction=st.integers(0, 5), by=st.integers(-9, 9))
@settings(max_examples=80, deadline=None)
def test_powers_of_two_are_what_the_page_says(values: list[int], fraction: int, by: int) -> None:
    """Bits that repeat the sign, counted in a text of them; products with powers of two, by fractions."""
    kind = FixedPoint(bits=10, fraction=fraction, shape=(2, 2))

    def work(a: SecretArray, b: SecretArray) -> tuple[SecretArray, ...]:
        return a.leading_zeros(), a.leading_zeros(0), a.leading_zeros(1, bits=12, group=3), a.ldexp(b), a.ldexp(by), a.negative()

    program = Program(work, garbler={"a": kind}, evaluator={"b": FixedPoint(bits=2, low=0, shape=(2, 2))}, bits=64)
    numbers = np.array([Fraction(each, 1 << fraction) for each in values], dtype=object).reshape(2, 2)
    places = np.array([[0, 3], [1, 2]])
    texts = [format(each % 1024, "010b") for each in values]
    zeros = np.array([len(text) - len(text.lstrip(text[0])) - 1 for text in texts]).reshape(2, 2)
    expected = [zeros, zeros.min(0), (zeros.min(1) + 3) // 3, numbers * 2**places, numbers * Fraction(2) ** by, numbers < 0]
    for found, meant in zip(program.as_gates(a=numbers, b=places), expected, strict=True):
        assert (np.asarray(found, dtype=object) == meant).all()


def test_bounds_that_are_proved_cost_nothing_and_are_checked_in_the_clear() -> None:
    sizes = {"garbler": {"a": FixedPoint(bits=8, shape=(2,))}, "evaluator": {"b": FixedPoint(bits=8, shape=(2,))}}
    program = Program(lambda a, b: (a - b).within(-3, 12.5), **sizes)
    assert program.gates == Program(lambda a, b: a - b, **sizes).gates
    assert (program.outputs[0].low, program.outputs[0].high) == (-3, 12)
    assert program.as_numbers(a=[5, 12], b=[8, 0]).tolist() == program.as_gates(a=[5, 12], b=[8, 0]).tolist() == [-3, 12]
    for wrong in (lambda a, b: (a - b).within(-3, 12), lambda a, b: (a - b).ldexp(abs(b), low=-3, high=12)):
        with pytest.raises(InvalidParameter, match="outside the bounds"):
            Program(wrong, **sizes).as_numbers(a=[5, 12], b=[9, 0])
    narrow = Program(lambda a, b: (a - b).within(5, 5 + 2**40), **sizes)
    assert (narrow.outputs[0].low, narrow.outputs[0].high) == (5, 255)
    assert Program(lambda a, b: (a.negative(), b.ldexp(-2)), **sizes).gates == 0


def test_a_function_that_does_something_else_the_second_time_is_refused() -> None:
    """What was counted and agreed on is what runs: not a function of its surroundings, nor arrays of another run."""
    sizes = {"garbler": {"a": FixedPoint(bits=8)}, "evaluator": {"b": FixedPoint(bits=8)}}
    turns, kept = [0], list[SecretArray]()

    def changing(a: SecretArray, b: SecretArray) -> SecretArray:
        turns[0] += 1
        return a + b + turns[0]

    def keeping(a: SecretArray, b: SecretArray) -> SecretArray:
        kept.append(a)
        return kept[0] + b

    for way in ("as_gates", "as_numbers"):
        with pytest.raises(InvalidParameter, match="something else"):
            getattr(Program(changing, **sizes), way)(a=1, b=2)
    with pytest.raises(InvalidParameter, match="another run"):
        Program(keeping, **sizes).as_gates(a=1, b=2)


@pytest.mark.parametrize("width", [1, 32, 63, 64, 65])
def test_hostile_values_of_any_width(width: int) -> None:
    """The ends of the bits, and what is next to them: signed and unsigned, by quotients, roots, shifts and comparisons."""
    half = 1 << (width - 1)
    for low, high in ((-half, half - 1), (0, 2 * half - 1)):
        ends = sorted({low, high, min(high, low + 1), max(low, high - 1), *(each for each in (-1, 0, 1) if low <= each <= high)})
        values = {"a": [a for a in ends for _ in ends], "b": [b for _ in ends for b in ends]}
        kind = FixedPoint(bits=width, low=low, high=high, shape=(len(ends) ** 2,))

        def work(a: SecretArray, b: SecretArray) -> tuple[SecretArray, ...]:
            under = select(b == 0, 1, abs(b)).clip(1, 2**70)
            shifted = a.multiply(b, fraction=0) * 8 + a.rounded(7)
            return a.divide(under, fraction=3), abs(a).sqrt(fraction=5), abs(a * b).sqrt(), a < b, a >= b, shifted, -a - b

        program = Program(work, garbler={"a": kind}, evaluator={"b": kind}, bits=200)
        found, expected = program.as_gates(**values), program.as_numbers(**values)
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
        pairs = list(zip(values["a"], values["b"], strict=True))
        assert expected[2].tolist() == [isqrt(abs(a * b)) for a, b in pairs]
        assert expected[6].tolist() == [-a - b for a, b in pairs]


def test_the_prediction_is_what_runs() -> None:
    """Gates and levels of a program that takes each operation once are those that the reference counts."""
    from cloister.together.circuits.machines import Clear

    kinds = {"a": FixedPoint(bits=9, shape=(4,), fraction=2), "b": FixedPoint(bits=7, shape=(4,))}
    for work in OPERATIONS.values():
        program = Program(work, garbler={"a": kinds["a"]}, evaluator={"b": kinds["b"]}, bits=128)
        machine = Clear()
        program.on(machine, {name: program.bits_of(name, [1, 0, 3, 2])[:, :, None] for name in kinds})
        assert (machine.gates, machine.levels) == (program.gates, program.levels)
    with pytest.raises(InvalidParameter, match="brings nothing"):
        Program(lambda a: a + 1, garbler={"a": FixedPoint()}, evaluator={})


def test_a_large_program_is_predicted_and_run_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """10⁹ gates are counted without any of them being held; a small one cut in pieces gives the same."""
    large = Program(
        lambda a, b: a @ b, garbler={"a": FixedPoint(shape=(90, 60))}, evaluator={"b": FixedPoint(shape=(60, 90))}, bits=80
    )
    assert large.gates > 10**9
    assert str(large).startswith(
        f"{large.gates:,} AND gates in {large.levels:,} levels: {large.bytes / 1e9:.2g} GB to send, about "
    )
    assert large.seconds == large.gates / 14e6 + large.levels * 80e-6
    monkeypatch.setattr(gates, "ROOM", 300)
    monkeypatch.setattr("cloister.together.circuits.language._AT_ONCE", 100)
    small = {"garbler": {"a": FixedPoint(bits=6, shape=(3, 4))}, "evaluator": {"b": FixedPoint(bits=6, shape=(4, 5))}}
    one, two = np.arange(12).reshape(3, 4) - 6, np.arange(20).reshape(4, 5) - 10
    assert Program(lambda a, b: a @ b, **small).as_gates(a=one, b=two).tolist() == (one @ two).tolist()


def test_two_programs_are_the_same_if_they_do_the_same() -> None:
    def digest(function: Any, **how: Any) -> str:
        sizes = {"garbler": {"a": FixedPoint(bits=8, shape=(3,))}, "evaluator": {"b": FixedPoint(bits=8, shape=(3,))}}
        return Program(function, **{**sizes, **how}).digest

    same = digest(lambda a, b: a + b)
    assert same == digest(lambda b, a: a.__add__(b))
    others = [
        digest(lambda a, b: b + a),
        digest(lambda a, b: a - b),
        digest(lambda a, b: a + b[::-1]),
        digest(lambda a, b: a + b + 0),
        digest(lambda a, b: a + b, to="both"),
        digest(lambda a, b: a + b, evaluator={"b": FixedPoint(bits=8, shape=(3,), fraction=1)}),
        digest(
            lambda a, b: a + b, evaluator={"a": FixedPoint(bits=8, shape=(3,))}, garbler={"b": FixedPoint(bits=8, shape=(3,))}
        ),
    ]
    assert len({same, *others}) == len(others) + 1
