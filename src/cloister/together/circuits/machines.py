"""What carries out a circuit: one description of gates, and a machine for each thing that is done with it.

Wires are arrays of shape (bits, numbers, words of a wire): the lowest bit first, a column for each number of a vector. An
exclusive or is `^` on such arrays, whatever a wire is; AND, NOT and constants are the machine's. So a circuit is never an
object in memory: it is what the gates of `gates.py` ask for, one level after the other, and only wires that are still needed
exist.

    Counting    wires of no words: nothing is computed, gates and levels are counted
    Clear       wires of one bit: the reference, gate by gate
    Garbling, Evaluating    wires of 128 bits (garbling.py)
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Wires = npt.NDArray[Any]


class Machine:
    """What each machine has: a count of AND gates, and of levels (calls of AND, one after the other)."""

    words: int
    dtype: type[np.generic] = np.bool_

    def __init__(self) -> None:
        self.gates = self.levels = 0

    def both(self, a: Wires, b: Wires) -> Wires:
        """AND of two arrays of one shape: a level."""
        self.gates += a.shape[0] * a.shape[1]
        self.levels += 1
        return self._both(a, b)

    def _both(self, a: Wires, b: Wires) -> Wires:
        raise NotImplementedError

    def opposite(self, a: Wires) -> Wires:
        """NOT, which costs nothing."""
        raise NotImplementedError

    def zeros(self, bits: int, numbers: int) -> Wires:
        """Wires that are 0, as everybody knows."""
        return np.zeros((bits, numbers, self.words), dtype=self.dtype)

    def constant(self, value: int, bits: int, numbers: int) -> Wires:
        """Wires of a number that everybody knows, modulo 2^bits."""
        wires = self.zeros(bits, numbers)
        ones = [place for place in range(bits) if value >> place & 1]
        wires[ones] = self.opposite(wires[ones])
        return wires


class Clear(Machine):
    """Bits.

    >>> machine = Clear()
    >>> machine.both(machine.constant(3, 2, 1), machine.constant(2, 2, 1))[:, 0, 0].tolist(), machine.gates, machine.levels
    ([False, True], 2, 1)
    """

    words = 1

    def _both(self, a: Wires, b: Wires) -> Wires:
        return a & b

    def opposite(self, a: Wires) -> Wires:
        return ~a


class Counting(Clear):
    """Shapes alone.

    >>> machine = Counting()
    >>> machine.both(machine.zeros(32, 10**9), machine.zeros(32, 10**9)).nbytes, machine.gates
    (0, 32000000000)
    """

    words = 0
