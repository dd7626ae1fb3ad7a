"""Steps that are interrupted at every line, and taken by many threads at once: each reading is counted once, or the stream goes
no further; no more steps are taken than were charged. Which classes that must hold for is read from the source of the room."""

from __future__ import annotations

import ast
import copy
import sys
import threading
from collections import Counter as Multiset
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister import noise, traces
from cloister.errors import BudgetExceeded, CloisterError, InvalidParameter, LedgerError
from cloister.ledger import Ledger
from cloister.local import DirectEncoding
from cloister.noise import Random, SparseVector
from cloister.noise.multiplicative_weights import MultiplicativeWeights
from cloister.privacy import ZCDP, PureDP
from cloister.session import Count, Question
from cloister.session.examples import small_door
from cloister.traces import Counter, PermanentReports, PlanarLaplace, StoredCounter, StoredWindowStream, WindowStream, policies
from cloister.traces import window_stream as estimators
from cloister.traces.averaging import ModelAverage
from cloister.traces.feed import Feed
from cloister.traces.local_stream import LocalStream
from cloister.traces.moments import Steps
from cloister.traces.running import RunningTable
from tests.tiers import some_by_day

ROOMS = [Path(str(room.__file__)).parent for room in (traces, noise)]
STEPS = 64

ANSWERED_AGAIN = "each step is a question of its own, which the ledger answers again at no cost"
PUBLIC = "remembers what was published, or computed, and nothing of the data"
NOT_KEPT_TWICE: dict[str, str] = {
    "FreshWatch": ANSWERED_AGAIN,
    "Banded": PUBLIC,
    "Random": "its words are below: none is handed out twice",
    "Allowance": "keeps books of what the ledger charged",
    "Inversion": PUBLIC,
    "Tails": PUBLIC,
    **dict.fromkeys(("LastRelease", "LocalLevel", "GroupMean", "ModelAverage"), PUBLIC),
}
"""Classes that change in their methods, and whose steps need not be taken by a lock of their own."""

CHANGING = {"append", "update", "pop", "add", "extend", "clear", "setdefault", "fill", "insert", "remove", "discard"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """An object that keeps something between its steps."""

    make: Callable[[], Any]
    take: Callable[[Any, int], Any]
    """Step 1, 2, 3, …"""
    state: Callable[[Any], Any]
    """All that is kept, or how often each reading is in it."""
    taken: Callable[[Any], int]
    resume: Callable[[Any], Any] | None = None
    close: Callable[[Any], Any] = id
    limit: bool = True
    """Whether it was charged for 64 steps."""


def ledger() -> Ledger:
    found = Ledger()
    found.open("zcdp", ZCDP(10**20), who="owner")
    found.open("pure", PureDP(10**20), who="owner")
    return found


def counter(**declared: Any) -> Case:
    return Case(
        make=lambda: Counter(steps=STEPS, bounds=(0, 9), random=Random.deterministic(1), **declared),
        take=lambda made, number: made.step(number % 10),
        state=lambda made: made.state(),
        taken=lambda made: made.taken,
    )


def window(**how: Any) -> Case:
    return Case(
        make=lambda: WindowStream(
            epsilon=10**6, window=4, steps=STEPS, random=Random.deterministic(1), **{name: make() for name, make in how.items()}
        ),
        take=lambda made, number: made.step(40 * number),
        state=lambda made: made.state(),
        taken=lambda made: made.taken,
    )


def stored(kind: Any, population: str, **declared: Any) -> Case:
    def make() -> Any:
        return kind.open(ledger(), population, "door", who="ada", steps=STEPS, random=Random.deterministic(1), **declared)

    def resumed(made: Any) -> Any:
        return kind.resume(made._ledger, population, "door", random=Random.deterministic(1))

    return Case(
        make=make,
        take=lambda made, number: made.step(number % 10),
        state=lambda made: (made._counter if kind is StoredCounter else made._stream).state(),
        taken=lambda made: made.taken,
        resume=resumed,
    )


class Asked:
    """A local stream, and how often each of its people was asked in a window."""

    def __init__(self) -> None:
        self.oracle, self.asked = DirectEncoding(["a", "b"], epsilon=2), Multiset[tuple[int, int]]()
        random = Random.deterministic(1)
        self.stream = LocalStream(self.oracle, people=400, window=4, steps=STEPS, policy=policies.Distribution(), random=random)

    def reports(self, who: Any) -> Any:
        self.asked.update((int(each), self.stream.taken + late) for each in who for late in range(self.stream.window))
        return self.oracle.randomize(np.array(["a"] * len(who)), random=Random.deterministic(2))


@cache
def pure_part() -> Any:
    with small_door() as door:
        return door.stepping(Question(table="people", by=("sex",), statistics=(Count(),)), 1)


@cache
def squared_part() -> Any:
    made = Watched()
    made.close()
    return made.watch._part


def running(of: Callable[[], Any]) -> Case:
    return Case(
        make=lambda: RunningTable(of(), STEPS),
        take=lambda made, number: made.take({"rows": np.array([number, 2, 0])[: made._cells]}, Random.deterministic(1)),
        state=lambda made: made.state(),
        taken=lambda made: made.taken,
        limit=False,
    )


class Fed:
    """What is fed and taken out by turns."""

    def __init__(self) -> None:
        steps = Steps.of(every="1 minute", since=0, until=60 * STEPS)
        self.feed = Feed(steps, at="at", columns=["n"], unit="who", most=50, key="key")
        self.parts = 0

    def step(self, number: int) -> Any:
        if number % 2:
            rows = {"at": [60 * number, 60 * number + 70], "n": [number] * 2, "who": ["a", "b"], "key": [number, number + 1]}
            self.feed.add(rows, number - 1)
            return None
        return self.feed.take(number)["n"].tolist()


class Watched:
    """A watch of readings that are fed before the step, in a session and a ledger of its own."""

    def __init__(self, kept: Ledger | None = None) -> None:
        self.ledger = ledger() if kept is None else kept
        columns = {"region": cl.Category(["N", "S"])}
        table = cl.PrivateTable({"person": [], "region": []}, columns, unit="person", max_rows=200, population="zcdp")
        self.session = cl.Session({"visits": table}, ledger=self.ledger, random=Random.deterministic(1))
        how: dict[str, Any] = {"every": "1 minute", "since": 0, "until": 60 * STEPS, "spend": 10**10}
        sql = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
        self.watch: Any = self.session.watch(sql, at="at", fed=True, name="door", key="key", **how).open()

    def step(self, number: int) -> Any:
        rows = {"at": [60 * number - 30] * 2, "region": ["N"] * 2, "person": ["a", "b"], "key": [f"{number}a", f"{number}b"]}
        self.watch.feed(rows)
        return self.watch.step().so_far.to_pydict()

    def resumed(self) -> Watched:
        self.session.close()
        return Watched(self.ledger)

    def close(self) -> None:
        self.session.close()
        self.ledger.close()


CASES: dict[str, Case] = {
    "counter, ρ": counter(rho=10**14),
    "counter, ε": counter(epsilon=10**6),
    "counter, the last steps": counter(rho=10**14, last=5),
    **{
        f"window stream, {policy.__name__}, {estimator.__name__}": window(policy=make, estimator=lambda e=estimator: e(1))
        for (policy, make), estimator in zip(
            [
                (policies.Adaptive, policies.Adaptive),
                (policies.Uniform, policies.Uniform),
                (policies.Sampled, lambda: policies.Sampled(2)),
                (policies.Decreasing, policies.Decreasing),
                (policies.Distribution, policies.Distribution),
                (policies.Absorption, policies.Absorption),
                (policies.Threshold, lambda: policies.Threshold(above=30, most=2)),
                (policies.Changes, lambda: policies.Changes(most=2, above=30)),
            ],
            [estimators.LastRelease, estimators.LocalLevel, estimators.GroupMean, ModelAverage] * 2,
            strict=True,
        )
    },
    "local stream": Case(
        make=Asked,
        take=lambda made, _: made.stream.step(made.reports),
        state=lambda made: max(made.asked.values(), default=1),
        taken=lambda made: made.stream.taken,
    ),
    "stored counter": stored(StoredCounter, "zcdp", rho=10**14, bounds=(0, 9), most=1),
    "stored window stream": stored(StoredWindowStream, "pure", epsilon=10**6, window=4),
    "running table, ρ": running(squared_part),
    "running table, ε": running(pure_part),
    "feed": Case(
        make=Fed,
        take=lambda made, number: made.step(number),
        state=lambda made: (made.feed.counted, str(made.feed._waiting), made.feed._keys),
        taken=lambda made: -1,
        limit=False,
    ),
    "watch": Case(
        make=Watched,
        take=lambda made, number: made.step(number),
        state=lambda made: made.watch._running.state()["sums"]["rows"][0],  # the exact part of it
        taken=lambda made: made.watch.taken,
        resume=Watched.resumed,
        close=Watched.close,
    ),
    "permanent reports": Case(
        make=lambda: PermanentReports(PlanarLaplace("0.01"), size=200),
        take=lambda made, number: made.report(1000.0 * number, 0.0, random=Random.deterministic(number)),
        state=lambda made: made.kept,
        taken=lambda made: len(made.kept),
        limit=False,
    ),
    "sparse vector": Case(
        make=lambda: SparseVector(epsilon=10**6, threshold=5, hits=STEPS).start(),
        take=lambda made, _: made.above(10),
        state=lambda made: made.left >= 0,
        taken=lambda made: STEPS - made.left,
    ),
    "multiplicative weights": Case(
        make=lambda: MultiplicativeWeights(cells=2, epsilon=10**6, size=10, threshold=2, corrections=1).start([9, 1]),
        take=lambda made, _: made.ask([1, 0]),
        state=lambda made: made.corrections_left >= 0,
        taken=lambda made: -1,
        limit=False,
    ),
}
ON = [name for name in CASES if not name.startswith(("sparse", "multiplicative"))]
"""Those that can be gone on with as if nothing had happened."""


@cache
def quiet(path: str) -> frozenset[int]:
    """The lines of `with` and `try`. At the end of a `with` Python is at its line again, and looks for no signal before the lock
    is let go; nor does it at a `try`, which does nothing."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    return frozenset(node.lineno for node in ast.walk(tree) if isinstance(node, ast.With | ast.Try))


@cache
def in_a_room(path: str) -> bool:
    """Asked at every call of everything."""
    return Path(path).parent in ROOMS


@contextmanager
def watched(at: int | None, ran: set[str] | None = None) -> Iterator[list[int]]:
    """Ctrl-C at the line of the room that is passed as so many-th; tells how many were passed, and of which classes."""
    passed, before = [0], sys.gettrace()

    def called(frame: Any, event: str, argument: Any) -> Any:
        path = frame.f_code.co_filename
        if not in_a_room(path):
            return None
        if ran is not None and "self" in frame.f_locals:
            ran.update(kind.__name__ for kind in type(frame.f_locals["self"]).__mro__)

        def lines(frame: Any, event: str, argument: Any) -> Any:
            if event == "line" and frame.f_lineno not in quiet(path):
                passed[0] += 1
                if passed[0] == at:
                    raise KeyboardInterrupt
            return lines

        return lines

    sys.settrace(called)
    try:
        yield passed
    finally:
        sys.settrace(before)


def refused(case: Case, made: Any, number: int) -> bool:
    """Whether an object goes no further; then it says so ever after."""
    try:
        case.take(made, number)
    except (BudgetExceeded, LedgerError):
        with pytest.raises((BudgetExceeded, LedgerError)):
            case.take(made, number)
        return True
    return False


@some_by_day("name, lines", [*((name, 1000) for name in CASES), ("watch", 20)], lambda case: case != ("watch", 1000))
def test_a_step_that_is_interrupted_at_any_line_counts_its_readings_once(name: str, lines: int) -> None:
    """At each line, of so many; a step of a watch is long, and prepares its rows in an engine: at every thirtieth by day."""
    case = CASES[name]
    twin, after = case.make(), list[Any]([None])
    for number in (1, 2, 3):
        case.take(twin, number)
        after.append(copy.deepcopy(case.state(twin)))
    counted = case.make()
    case.take(counted, 1)
    with watched(None) as passed:
        case.take(counted, 2)
    again = broken = 0
    for made in (twin, counted):
        case.close(made)
    for at in range(1, passed[0] + 1, max(1, passed[0] // lines)):
        made = case.make()
        case.take(made, 1)
        with pytest.raises(KeyboardInterrupt), watched(at):
            case.take(made, 2)
        if refused(case, made, 2):
            broken += 1
            if case.resume is None:
                case.close(made)
                continue
            made = case.resume(made)
            assert case.taken(made) in (1, 2)
            if case.taken(made) == 1:
                case.take(made, 2)
        again += 1
        if name in ON:
            assert case.taken(made) in (2, -1)
            assert case.state(made) == after[2]
            case.take(made, 3)
            assert case.state(made) == after[3]
        case.close(made)
    assert again
    assert broken or name not in ("counter, ρ", "stored counter")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.limit and name != "watch"])
def test_many_threads_take_no_more_steps_than_were_charged(name: str) -> None:
    case, left = CASES[name], []
    made = case.make()
    take, begun, before = case.take, threading.Barrier(16), sys.getswitchinterval()

    def run() -> None:
        begun.wait()
        for number in range(1, STEPS + 1):
            with suppress(CloisterError):
                left.append(take(made, number))

    threads = [threading.Thread(target=run) for _ in range(16)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert case.taken(made) == len(left) <= STEPS
    assert case.taken(made) == STEPS or name == "local stream"
    if name == "local stream":
        assert case.state(made) == 1


def test_threads_report_a_place_once() -> None:
    phone, found = PermanentReports(PlanarLaplace("0.01"), size=200), set[Any]()
    begun, before = threading.Barrier(16), sys.getswitchinterval()

    def run() -> None:
        begun.wait()
        found.update((place, phone.report(1000.0 * place, 0.0)) for place in range(20))

    threads = [threading.Thread(target=run) for _ in range(16)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(found) == len(phone.kept) == 20


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("count", [1, 3, 9000])
def test_an_interrupted_draw_hands_out_no_word_twice_and_no_zeros(count: int, before: int) -> None:
    """The first draw, and one of a generator that has words left over."""

    def draw(random: Random) -> list[int]:
        return [random.word()] if count == 1 else random.words(count).tolist()  # type: ignore[no-any-return]

    def begun() -> tuple[Random, list[int]]:
        random = Random.deterministic(1)
        return random, [word for _ in range(before) for word in draw(random)]

    whole = set(Random.deterministic(1).words(40_000).tolist())
    with watched(None) as passed:
        random, _ = begun()
        passed[0] = 0
        draw(random)
    assert passed[0]
    for at in range(1, passed[0] + 1):
        random, first = begun()
        with pytest.raises(KeyboardInterrupt), watched(at):
            draw(random)
        second = draw(random)
        assert 0 not in second
        assert set(first).isdisjoint(second)
        assert len(set(second)) == count
        assert set(second) <= whole


def owner(node: ast.expr) -> str | None:
    """The attribute of `self` that an expression is, or is in."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return node.attr
        node = node.value
    return None


def changes(method: ast.FunctionDef) -> bool:
    """Whether a method changes an attribute, or what is in it."""
    for node in ast.walk(method):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = [each for target in node.targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            targets = [node.func.value]
        if any(owner(target) for target in targets):
            return True
    return False


def keeping(source: str) -> set[str]:
    """Classes whose methods change them after they were made, that say what a step changes, or that take steps."""
    found = set()
    for made in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)):
        methods = [
            each for each in made.body if isinstance(each, ast.FunctionDef) and each.name not in ("__init__", "__post_init__")
        ]
        named = {each.target.id for each in made.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)}
        if any(changes(each) for each in methods) or "changes" in named or "step" in {each.name for each in methods}:
            found.add(made.name)
    return found


def test_whatever_keeps_something_between_steps_is_interrupted_here() -> None:
    """By what runs in a step of some case, not by a list of names: a new class is missed here until there is a case of it."""
    ran: set[str] = set()
    for case in CASES.values():
        with watched(None, ran):
            made = case.make()
            for number in range(1, 9):
                try:
                    case.take(made, number)
                except InvalidParameter:
                    break
            case.close(made)
    found = {name for room in ROOMS for path in room.glob("*.py") for name in keeping(path.read_text(encoding="utf-8"))}
    assert found - ran - set(NOT_KEPT_TWICE) - {"Sums"} == set()
    assert set(NOT_KEPT_TWICE) <= found
    assert {"Counter", "WindowStream", "Watch", "RunningTable", "Feed", "Bins", "SparseVectorStream"} <= found & ran | {"Bins"}
    twin = "class Tally:\n    def take(self, value):\n        self.sums[0] += value\n        return self.sums[0]"
    assert keeping(twin) == {"Tally"}
