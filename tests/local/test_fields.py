"""Finite fields: that they are fields, that lines collide as seldom as is said, and that transforms add up what they should."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.local.frequency.fields import Field, Lines, field_of, is_prime, next_field
from cloister.local.frequency.transforms import supports, walsh_hadamard


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 16, 53])
def test_a_field_is_one(size: int) -> None:
    field = field_of(size)
    every = np.arange(size)
    products = field.times(np.repeat(every, size), np.tile(every, size)).reshape(size, size)
    assert (products == products.T).all()
    assert (products[1] == every).all()
    for row in products[1:]:
        assert sorted(row.tolist()) == every.tolist()  # each element but 0 has an inverse
    a, b, c = (every[np.arange(200) * step % size] for step in (7, 11, 13))
    assert (field.times(field.times(a, b), c) == field.times(a, field.times(b, c))).all()
    added = (lambda x, y: x ^ y) if field.polynomial else (lambda x, y: (x + y) % size)
    assert (field.times(a, added(b, c)) == added(field.times(a, b), field.times(a, c))).all()


@pytest.mark.parametrize("size", [2**exponent for exponent in range(1, 13)])
def test_the_polynomials_are_primitive(size: int) -> None:
    powers = field_of(size)._tables[1][: size - 1]
    assert sorted(powers.tolist()) == list(range(1, size))
    assert set(field_of(size).traces.tolist()) == {0, 1}


@pytest.mark.parametrize(("size", "digits"), [(2, 5), (3, 4), (4, 3), (5, 2), (8, 2), (7, 1)])
def test_any_two_numbers_collide_in_the_same_share_of_functions(size: int, digits: int) -> None:
    lines = Lines(field=field_of(size), digits=digits)
    functions = np.arange(len(lines))
    hashes = np.array([lines.hashed(functions, np.full(len(lines), x)) for x in range(min(size**digits, 40))])
    shares = {float((hashes[i] == hashes[j]).mean()) for i in range(len(hashes)) for j in range(i)}
    assert shares == {lines.collisions}
    assert lines.collisions < 1 / size
    vectors = lines.vectors(functions)
    assert len(set(vectors.tolist())) == len(lines)


@pytest.mark.parametrize(("size", "digits"), [(2, 6), (3, 4), (4, 3), (5, 3), (8, 2), (16, 2), (53, 2), (7, 1)])
def test_the_transform_adds_up_what_a_loop_adds_up(size: int, digits: int) -> None:
    lines = Lines(field=field_of(size), digits=digits)
    table = np.arange(lines.cells).reshape(len(lines), size) ** 2 % 101
    functions = np.arange(len(lines))
    slow = [table[functions, lines.hashed(functions, np.full(len(lines), x))].sum() for x in range(size**digits)]
    assert supports(table, lines, size**digits) == pytest.approx(np.array(slow), abs=1e-6)


def test_walsh_hadamard_is_a_product_with_signs() -> None:
    for size in (1, 2, 64, 256):
        signs = np.array([[(-1) ** (i & j).bit_count() for j in range(size)] for i in range(size)])
        values = np.arange(2 * size).reshape(2, size) ** 2 % 17
        assert walsh_hadamard(values) == pytest.approx(values @ signs)


def test_sizes_that_are_no_fields_are_refused() -> None:
    assert [size for size in range(2, 20) if next_field(size) == size] == [2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 19]
    assert not is_prime(2**31)
    for size in (1, 6, 9, 8192):
        with pytest.raises(InvalidParameter, match="neither a prime nor a power of two"):
            field_of(size)
    assert field_of(9_999_991) == Field(size=9_999_991)
