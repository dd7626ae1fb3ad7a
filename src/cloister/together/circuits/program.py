"""A program of two parties: what each brings, what is computed, and what it will cost, known before anything runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.together.circuits.fixed_point import MOST_BITS, FixedPoint, integers, width_of
from cloister.together.circuits.language import Run, SecretArray
from cloister.together.circuits.machines import Clear, Counting, Machine, Wires
from cloister.together.messages import RoundRefused

Party = Literal["garbler", "evaluator"]
Receiver = Literal["garbler", "evaluator", "both"]
Numbers = npt.NDArray[Any]
GATE_BYTES = 32
MOST_BYTES = 4_000_000_000
"""Of a circuit that parties begin without a word: longer ones are begun by `most=`."""
GATES_A_SECOND, LEVEL_SECONDS = 14e6, 80e-6
"""Of one busy core: gates as benchmarks/together_circuits.py measures them, at wide levels; a level as it costs inside programs
(benchmarks/together_eigenvectors.py): 25 µs of AND, as much for walking through the program, the rest for moving its wires."""


@dataclass(frozen=True)
class Output:
    """What is known of a result in advance."""

    shape: tuple[int, ...]
    low: int
    high: int
    fraction: int

    @property
    def width(self) -> int:
        """Its bits, a number."""
        return width_of(self.low, self.high)

    @property
    def wires(self) -> int:
        """Its bits, all numbers."""
        return self.width * prod(self.shape)

    def numbers(self, steps: Numbers) -> Numbers:
        """Exactly: int64 or float64 where these hold all bits, Python's integers or fractions elsewhere."""
        flat = steps.ravel().tolist()
        if not self.fraction:
            return np.array(flat, dtype=np.int64 if self.width < 64 else object).reshape(self.shape)
        if self.width <= 53:
            return np.array([each / (1 << self.fraction) for each in flat], dtype=np.float64).reshape(self.shape)
        found = np.empty(len(flat), dtype=object)
        found[:] = [Fraction(each, 1 << self.fraction) for each in flat]
        return found.reshape(self.shape)

    def read(self, bits: npt.NDArray[np.bool_]) -> Numbers:
        """From bits, the lowest first. Numbers that the program can't give are refused: then the gates were not its own."""
        rows = np.packbits(bits.T, axis=1, bitorder="little")
        steps = [int.from_bytes(row.tobytes(), "little") for row in rows]
        turn = 1 << self.width if self.low < 0 else 0
        found = integers([each - turn if turn and each >> (self.width - 1) else each for each in steps])
        if not all(self.low <= each <= self.high for each in found):
            raise RoundRefused(
                "The result was refused", why="no declared inputs give such a number", instead="two parties that run one program"
            )
        return self.numbers(found)


class Program:
    """A function of secret arrays, and who brings which of them.

    The function is called with a `SecretArray` for each name, and gives one array or a tuple of them; `to` says which party
    learns these. It is walked through once with nothing computed, to find what it costs and whether everything fits in
    `bits`. Two parties run the same program if its `digest` is the same. What the receiver may conclude from the result is
    nobody's promise: an exact result is not differentially private.

    >>> sizes = {"garbler": {"a": FixedPoint(bits=8, shape=(3,))}, "evaluator": {"b": FixedPoint(bits=8, shape=(3,))}}
    >>> program = Program(lambda a, b: a @ b, **sizes)
    >>> program.gates, program.levels, program.bytes
    (619, 20, 19808)
    >>> print(program)
    619 AND gates in 20 levels: 20 kB to send, about 0.0016 s on one core
    >>> int(program.as_numbers(a=[1, 2, 3], b=[10, 20, -30])), int(program.as_gates(a=[1, 2, 3], b=[10, 20, -30]))
    (-40, -40)
    """

    def __init__(
        self,
        function: Callable[..., SecretArray | tuple[SecretArray, ...]],
        *,
        garbler: Mapping[str, FixedPoint],
        evaluator: Mapping[str, FixedPoint],
        to: Receiver = "evaluator",
        bits: int = 64,
    ) -> None:
        if to not in ("garbler", "evaluator", "both"):
            raise InvalidParameter(f"to={to!r} is invalid", why="it says who gets the result", instead='to="evaluator"')
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= MOST_BITS:
            raise InvalidParameter(f"bits={bits!r} is invalid", why=f"it is from 1 to {MOST_BITS}", instead="bits=64")
        if shared := sorted(set(garbler) & set(evaluator)):
            raise InvalidParameter(f"{shared[0]!r} is invalid", why="both parties bring it", instead="a name for each")
        if not garbler or not evaluator:
            raise InvalidParameter("The program is invalid", why="a party brings nothing", instead="an input for each party")
        self.function, self.to, self.bits = function, to, bits
        self.inputs: dict[Party, dict[str, FixedPoint]] = {"garbler": dict(garbler), "evaluator": dict(evaluator)}
        counting = Counting()
        run = Run(counting, bits)
        found = self._walk(run, {name: counting.zeros(kind.width, prod(kind.shape)) for name, kind in self.kinds.items()})
        self.gates, self.levels = counting.gates, counting.levels
        self.outputs = tuple(Output(each.shape, each.low, each.high, each.fraction) for each in found)
        self.digest: str = self._digest(run, found)

    @property
    def kinds(self) -> dict[str, FixedPoint]:
        """All inputs, in the order of their names."""
        both = self.inputs["garbler"] | self.inputs["evaluator"]
        return {name: both[name] for name in sorted(both)}

    def wires(self, party: Party) -> int:
        """How many bits a party brings."""
        return sum(kind.width * prod(kind.shape) for kind in self.inputs[party].values())

    @property
    def bytes(self) -> int:
        """Of garbled gates, which are streamed and never kept."""
        return GATE_BYTES * self.gates

    @property
    def seconds(self) -> float:
        """Of the garbler, who takes longer than the evaluator: roughly, by the speed of one core that the benchmark measured."""
        return self.gates / GATES_A_SECOND + self.levels * LEVEL_SECONDS

    def check_size(self, most: int) -> None:
        """Refuse a circuit of more bytes, with its size and time, before anything is sent."""
        if isinstance(most, bool) or not isinstance(most, int) or most < 0:
            raise InvalidParameter(f"most={most!r} is invalid", why="it is a number of bytes", instead=f"most={MOST_BYTES}")
        if self.bytes > most:
            raise InvalidParameter(
                "The circuit is too large", why=f"{self}, and at most {most:,} bytes may go", instead=f"most={self.bytes}"
            )

    def __str__(self) -> str:
        size, unit = next(
            ((self.bytes / 1000**at, unit) for at, unit in ((3, "GB"), (2, "MB"), (1, "kB")) if self.bytes >= 1000**at),
            (self.bytes, "bytes"),
        )
        told, spent = (f"{each:,.0f}" if each >= 100 else f"{each:.2g}" for each in (size, self.seconds))
        return f"{self.gates:,} AND gates in {self.levels:,} levels: {told} {unit} to send, about {spent} s on one core"

    def as_numbers(self, **values: npt.ArrayLike) -> Any:
        """The result by integers: the reference."""
        data = {name: kind.steps(self._given(values, name)).reshape(1, -1, 1) for name, kind in self.kinds.items()}
        found = self._again(Run(None, self.bits), data)
        return self.results([output.numbers(each.data) for output, each in zip(self.outputs, found, strict=True)])

    def as_gates(self, **values: npt.ArrayLike) -> Any:
        """The result gate by gate, in the clear."""
        machine = Clear()
        data = {name: self.bits_of(name, self._given(values, name))[:, :, None] for name in self.kinds}
        found = self.on(machine, data)
        return self.results([output.read(each[:, :, 0]) for output, each in zip(self.outputs, found, strict=True)])

    def bits_of(self, name: str, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """An input as bits, the lowest first; what was not declared so is refused."""
        kind = self.kinds[name]
        size = -(-kind.width // 8)
        text = b"".join((each % (1 << kind.width)).to_bytes(size, "little") for each in kind.steps(values).ravel().tolist())
        rows = np.frombuffer(text, dtype=np.uint8).reshape(-1, size)
        return np.unpackbits(rows, axis=1, count=kind.width, bitorder="little").T.astype(np.bool_)

    def on(self, machine: Machine, data: Mapping[str, Wires]) -> list[Wires]:
        """The wires of the results, from those of the inputs."""
        return [each.wires() for each in self._again(Run(machine, self.bits), data)]

    def results(self, found: list[Numbers]) -> Any:
        """One array, or as many as the function gave."""
        return tuple(found) if self._several else found[0]

    def _again(self, run: Run, data: Mapping[str, Wires]) -> tuple[SecretArray, ...]:
        """The walk whose cost was counted, and no other."""
        found = self._walk(run, data)
        if self._digest(run, found) != self.digest:
            raise InvalidParameter(
                "The program is invalid",
                why="its function did something else than when it was counted",
                instead="a function that depends on its arguments alone",
            )
        return found

    def _digest(self, run: Run, found: tuple[SecretArray, ...]) -> str:
        """By which two walks through a program are compared: each step of it, who brings what, who learns what."""
        brought = [(party, sorted(own)) for party, own in self.inputs.items()]
        trace = run.trace.copy()
        trace.update(repr((brought, self.outputs, [each.serial for each in found], self.to, self.gates)).encode())
        return str(trace.hexdigest())

    def _given(self, values: Mapping[str, npt.ArrayLike], name: str) -> npt.ArrayLike:
        if set(values) != set(self.kinds):
            raise InvalidParameter(
                "The inputs are invalid", why=f"they are {sorted(values)}", instead=f"a value each for {sorted(self.kinds)}"
            )
        return values[name]

    def _walk(self, run: Run, data: Mapping[str, Wires]) -> tuple[SecretArray, ...]:
        believed = self.inputs["garbler"]
        result = self.function(
            **{name: run.array(data[name], kind, believed=name in believed) for name, kind in self.kinds.items()}
        )
        self._several = isinstance(result, tuple)
        found = result if isinstance(result, tuple) else (result,)
        if not found or not all(isinstance(each, SecretArray) and each.run is run for each in found):
            raise InvalidParameter("The program is invalid", why="it gives no secret array", instead="return a + b")
        return found
