"""Arithmetic of vectors from AND, NOT and exclusive or: every function works on all numbers of a vector at once.

Numbers are two's complement or unsigned, the lowest bit first. Only AND gates cost: exclusive or and NOT are free. A level
costs as much as some 400 gates however narrow it is (`LEVEL`), so sums and comparisons of few numbers take the way of few
levels (Sklansky's prefix tree) and those of many numbers the way of few gates (a carry that ripples: a gate a bit). Which one
is decided by public shapes, so both parties take the same. Products add their partial products by Dadda's tree. Quotients and
roots go digit by digit without restoring: a remainder that went below zero is mended by the next step, and its sign is the
digit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cloister.together.circuits.machines import Machine, Wires

LEVEL = 400
ROOM = 1 << 19
"""How many wires one step of a large vector may hold at once."""


def blocks(machine: Machine, rows: int, work: Callable[..., Wires], *vectors: Wires) -> Wires:
    """`work` on a block of numbers after the other, where a number takes so many wires meanwhile."""
    count, each = vectors[0].shape[1], max(1, ROOM // rows)
    if count <= each:
        return work(*vectors)
    return np.concatenate([work(*(one[:, at : at + each] for one in vectors)) for at in range(0, count, each)], axis=1)


def extended(machine: Machine, a: Wires, width: int, signed: bool) -> Wires:
    """As many bits: cut off at the top, or the sign (or zeros) put on."""
    if len(a) >= width:
        return a[:width]
    top = a[-1:] if signed else machine.zeros(1, a.shape[1])
    return np.concatenate([a, np.repeat(top, width - len(a), axis=0)])


def add(machine: Machine, a: Wires, b: Wires, carry: Wires | None = None) -> Wires:
    """a + b + carry modulo 2^width, for two numbers of one width."""
    width, count = a.shape[:2]
    carry = machine.zeros(1, count) if carry is None else carry
    if width == 1:
        return a ^ b ^ carry
    plan = _prefix(width - 1)
    ripples = (width - 1) * (count + LEVEL)
    if ripples <= (width - 1 + sum(len(high) + len(inner) for high, inner in plan)) * count + (1 + len(plan)) * LEVEL:
        out, carried = a ^ b, carry[0]
        for place in range(width):
            out[place] ^= carried
            if place < width - 1:  # the majority of three, by one gate
                carried = carried ^ machine.both((a[place] ^ carried)[None], (b[place] ^ carried)[None])[0]
        return out
    made, passes = _carries(machine, a[:-1], b[:-1], carry)
    for distance, (high, inner) in enumerate(plan):
        step = 1 << distance
        below, inner_below = high // step * step - 1, inner // step * step - 1
        both = machine.both(np.concatenate([passes[high], passes[inner]]), np.concatenate([made[below], passes[inner_below]]))
        made[high] ^= both[: len(high)]
        passes[inner] = both[len(high) :]
    out = a ^ b
    out[:1] ^= carry
    out[1:] ^= made
    return out


def subtract(machine: Machine, a: Wires, b: Wires) -> Wires:
    """a − b modulo 2^width."""
    return add(machine, a, machine.opposite(b), machine.constant(1, 1, a.shape[1]))


def less(machine: Machine, a: Wires, b: Wires, signed: bool) -> Wires:
    """a < b: whether a + (NOT b) + 1 has no carry, with signs turned round."""
    width, count = a.shape[:2]
    carry, b = machine.constant(1, 1, count), machine.opposite(b)
    if signed:
        a, b = (np.concatenate([one[:-1], machine.opposite(one[-1:])]) for one in (a, b))
    if width * (count + LEVEL) <= (3 * width) * count + (1 + (width - 1).bit_length()) * LEVEL:
        for place in range(width):
            carry = carry ^ machine.both(a[place : place + 1] ^ carry, b[place : place + 1] ^ carry)
        return machine.opposite(carry)
    made, passes = _carries(machine, a, b, carry)
    while len(made) > 1:  # neighbours join; what passes through the lowest group is never asked for
        pairs, odd = len(made) // 2, len(made) % 2
        low, high = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
        both = machine.both(np.concatenate([passes[high], passes[high][1:]]), np.concatenate([made[low], passes[low][1:]]))
        joined = made[high] ^ both[:pairs]
        through = np.concatenate([passes[:1], both[pairs:]])
        made = np.concatenate([joined, made[-1:]]) if odd else joined
        passes = np.concatenate([through, passes[-1:]]) if odd else through
    return machine.opposite(made)


def equal(machine: Machine, a: Wires, b: Wires) -> Wires:
    """a = b."""
    same = machine.opposite(a ^ b)
    while len(same) > 1:
        half = len(same) // 2
        same = np.concatenate([machine.both(same[:half], same[half : 2 * half]), same[2 * half :]])
    return same


def select(machine: Machine, condition: Wires, a: Wires, b: Wires) -> Wires:
    """a where the condition is 1, b elsewhere."""
    differs = a ^ b
    return b ^ machine.both(np.broadcast_to(condition, differs.shape), differs)


def leading_zeros(machine: Machine, a: Wires, bits: int) -> Wires:
    """How many of the highest wires are 0, before the first that is 1: a number of so many bits.

    A tree of pairs: whether a half has a 1, and how many zeros are before it. The bits must hold the count.
    """
    width, count = a.shape[:2]
    whole = 1 << width.bit_length()  # more than the width: a 1 that is put on below ends every count
    any_one = np.concatenate([machine.zeros(whole - width - 1, count), machine.constant(1, 1, count), a])
    found = np.empty((0, *any_one.shape), dtype=a.dtype)
    while len(any_one) > 1:
        high, low = any_one[1::2], any_one[::2]
        first, second = found[:, 1::2], found[:, ::2]
        # one level: high OR low, and the count of the high half where that has a 1
        pairs = np.concatenate([machine.opposite(high)[None], np.broadcast_to(high, first.shape)])
        chosen = np.concatenate([machine.opposite(low)[None], first ^ second])
        flat = len(pairs) * len(high), *high.shape[1:]
        both = machine.both(pairs.reshape(flat), chosen.reshape(flat)).reshape(pairs.shape)
        any_one = machine.opposite(both[0])
        found = np.concatenate([second ^ both[1:], machine.opposite(high)[None]])
    return extended(machine, found[:, 0], bits, False)


def shift_up(machine: Machine, a: Wires, by: Wires) -> Wires:
    """a · 2^by modulo 2^width: a barrel shifter, a level for each bit of `by`."""
    width, count = a.shape[:2]
    for place in range(len(by)):
        step = min(1 << place, width)
        a = select(machine, by[place : place + 1], np.concatenate([machine.zeros(step, count), a[: width - step]]), a)
    return a


def negate_if(machine: Machine, a: Wires, condition: Wires) -> Wires:
    """−a where the condition is 1, a elsewhere, modulo 2^width."""
    return add(machine, a ^ condition, machine.zeros(*a.shape[:2]), condition)


def multiply(machine: Machine, a: Wires, b: Wires, width: int, signed: tuple[bool, bool]) -> Wires:
    """a · b modulo 2^width; which of the two are signed."""
    plan = _dadda(len(a), len(b), width, *signed)

    def product(a: Wires, b: Wires) -> Wires:
        count = a.shape[1]
        pool = machine.zeros(plan.size, count)
        pool[1:2] = machine.opposite(pool[:1])
        end = 2 + len(plan.left)
        pool[2:end] = machine.both(a[plan.left], b[plan.right])
        pool[2:end][plan.negative] = machine.opposite(pool[2:end][plan.negative])
        for (one, two, three), carries in plan.stages:
            first, differs = pool[one], pool[one] ^ pool[two]
            pool[end : end + len(one)] = differs ^ pool[three]
            end += len(one)
            # a carry is the majority: first where first and second agree, third elsewhere
            pool[end : end + carries] = first[:carries] ^ machine.both(differs[:carries], first[:carries] ^ pool[three[:carries]])
            end += carries
        return pool[plan.last]

    two = blocks(machine, plan.size, product, a, b)
    return add(machine, two[:width], two[width:])


def divide(machine: Machine, a: Wires, b: Wires, digits: int) -> Wires:
    """⌊a / b⌋ of unsigned numbers, where b is above 0 and the quotient is below 2^digits."""
    width = len(b) + 1

    def quotient(a: Wires, b: Wires) -> Wires:
        b, found = extended(machine, b, width, False), []
        left = extended(machine, a[digits:], width, False) if len(a) > digits else machine.zeros(width, a.shape[1])
        a = extended(machine, a, digits, False)
        for place in reversed(range(digits)):
            subtracts = machine.opposite(left[-1:])  # below zero: add this time
            left = add(machine, np.concatenate([a[place : place + 1], left[:-1]]), b ^ subtracts, subtracts)
            found.append(machine.opposite(left[-1:]))
        return np.concatenate(found[::-1])

    return blocks(machine, len(a) + 8 * width, quotient, a, b)


def square_root(machine: Machine, a: Wires, digits: int) -> Wires:
    """⌊√a⌋ of unsigned numbers below 4^digits."""

    def root(a: Wires) -> Wires:
        a, count = extended(machine, a, 2 * digits, False), a.shape[1]
        left, found = machine.zeros(3, count)[:2], machine.zeros(0, count)
        for place in reversed(range(digits)):
            width = len(found) + 3
            subtracts = machine.opposite(left[-1:])
            left = extended(machine, np.concatenate([a[2 * place : 2 * place + 2], left]), width, True)
            # 4·found + 1 is taken off, or 4·found + 3 put on where it was below zero
            term = np.concatenate([machine.constant(1, 1, count), machine.opposite(subtracts), found])
            left = add(machine, left, extended(machine, term, width, False) ^ subtracts, subtracts)
            found = np.concatenate([machine.opposite(left[-1:]), found])
        return found

    return blocks(machine, 12 * (digits + 3), root, a)


def _carries(machine: Machine, a: Wires, b: Wires, carry: Wires) -> tuple[Wires, Wires]:
    """Where a carry is made and where one passes through; the one that comes in counts as made in the lowest place."""
    first, second = a.copy(), b.copy()
    first[:1] ^= carry
    second[:1] ^= carry
    made = machine.both(first, second)
    made[:1] ^= carry
    return made, a ^ b


Places = npt.NDArray[np.intp]


@lru_cache(maxsize=1024)
def _prefix(width: int) -> tuple[tuple[Places, Places], ...]:
    """Sklansky's tree: by level, the places that take up what is below, and those of them that don't reach place 0 yet."""
    places, found, step = np.arange(width), [], 1
    while step < width:
        high = places[places // step % 2 == 1]
        found.append((high, high[high // step > 1]))
        step *= 2
    return tuple(found)


@dataclass(frozen=True)
class _Dadda:
    left: Places
    right: Places
    negative: Places
    stages: tuple[tuple[tuple[Places, Places, Places], int], ...]
    last: Places
    size: int


@lru_cache(maxsize=256)
def _dadda(wide: int, narrow: int, width: int, signed: bool, other: bool) -> _Dadda:
    """The plan of a product, in places of one pool of wires: two constants, the partial products, sums and carries.

    The sign bit of a number counts negatively, so a partial product of one sign bit does: −p = (1 − p) − 1 is an opposite wire
    and a constant (Baugh and Wooley). Columns are brought down to two wires by full adders, a gate each, with no more of them
    than each of Dadda's heights needs.
    """
    pairs = [(i, j) for i in range(wide) for j in range(narrow) if i + j < width]
    negative = [place for place, (i, j) in enumerate(pairs) if (signed and i == wide - 1) != (other and j == narrow - 1)]
    columns: list[list[int]] = [[] for _ in range(width)]
    for place, (i, j) in enumerate(pairs):
        columns[i + j].append(2 + place)
    constant = -sum(1 << sum(pairs[place]) for place in negative)
    for place in range(width):
        if constant >> place & 1:
            columns[place].append(1)
    heights = [2]
    while heights[-1] < max(map(len, columns)):
        heights.append(heights[-1] * 3 // 2)
    size, stages = 2 + len(pairs), []
    for height in reversed(heights[:-1]):
        triples: list[tuple[int, int, int]] = []
        homes: list[int] = []
        coming = [0] * (width + 1)
        for place, column in enumerate(columns):
            while len(column) + coming[place] > height:
                halves = len(column) + coming[place] == height + 1
                triples.append((column.pop(0), column.pop(0), 0 if halves else column.pop(0)))
                homes.append(place)
                coming[place] += 1  # its sum stays here
                coming[place + 1] += 1
        carries = sum(home < width - 1 for home in homes)  # those of the last column, which come last, are never used
        for turn, home in enumerate(homes):
            columns[home].append(size + turn)
            if home < width - 1:
                columns[home + 1].append(size + len(homes) + turn)
        size += len(homes) + carries
        stages.append((tuple(np.array(each, dtype=np.intp) for each in zip(*triples, strict=True)), carries))
    last = np.array([column[row] if len(column) > row else 0 for row in (0, 1) for column in columns], dtype=np.intp)
    left, right = (np.array([pair[side] for pair in pairs], dtype=np.intp) for side in (0, 1))
    return _Dadda(left, right, np.array(negative, dtype=np.intp), tuple(stages), last, size)  # type: ignore[arg-type]
