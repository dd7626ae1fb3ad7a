"""A guest before it comes near rows: its author's own tests, and runs on made-up rows that follow declarations.

Nothing here reads a row, so what failed is told in full. Tests are functions called `test_…`, in the same text as the guest, so
they can call all of it; those with a parameter get made-up rows where a table's declarations are at hand, and wait where none
are. They run where the guest runs, in WebAssembly; those of native code are for home: on somebody else's machine it meets the
kernel, and nobody has read it yet.

>>> from cloister import Guest, Vector
>>> code = "def oldest(rows):\\n    return [max(rows['age'])]\\n"
>>> guest = Guest(code=code, entry="oldest", inputs=["age"], output=Vector([(0, 120)]))
>>> tests = "def test_two():\\n    assert oldest({'age': [3, 5]}) == [5]\\ndef test_none():\\n    oldest({'age': []})\\n"
>>> tried = run_tests(guest, tests)
>>> tried.passed, [line.split(":")[0] for line in tried.failed]
(1, ['test_none'])
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cloister.errors import InvalidParameter
from cloister.guests.algorithm import Guest
from cloister.guests.blocks import MadeUp
from cloister.guests.code import check_code, without
from cloister.guests.declared import HostNoise
from cloister.guests.sandbox.wasm import Sandbox
from cloister.noise import Random
from cloister.privacy import PureDP
from cloister.session.execution.rehearsal import rehearsal_tables
from cloister.tables import PrivateTable

_SECONDS, _SHOWN = 10.0, 500
_TESTING = """

def tests_of_this_guest(rows):
    import json
    passed, failed = [], []
    for name, each in sorted(globals().items()):
        if name.startswith("test_") and callable(each):
            wanted = getattr(getattr(each, "__code__", None), "co_argcount", 0)
            if wanted and rows is None:
                continue
            try:
                each(*[json.loads(json.dumps(rows))] * bool(wanted))
                passed.append(name)
            except Exception as error:
                failed.append(f"{name}: {type(error).__name__}: {error}")
    return [passed, failed]
"""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What became of tests, and of runs on made-up rows: how many of them returned what is declared, and what the first other one
    did."""

    passed: int = 0
    failed: tuple[str, ...] = ()
    done: int = 0
    runs: int = 0
    why: str = ""
    size: MadeUp | None = None
    """How large the blocks of made-up rows were."""

    @property
    def well(self) -> bool:
        """Whether no test failed, and at least one run returned something."""
        return not self.failed and (self.done > 0 or not self.runs)

    def told(self) -> dict[str, Any]:
        """As plain data."""
        about: dict[str, Any] = {} if self.size is None else {"rows": self.size.rows, "real": self.size.real}
        about |= {"passed": self.passed, "failed": list(self.failed), "done": self.done, "runs": self.runs, "why": self.why}
        return about


def check_tests(guest: Guest, tests: str) -> None:
    """Refuses tests that Python cannot read, and those of a guest that is not pure Python."""
    if not tests.strip():
        return
    if guest.needs.native:
        raise InvalidParameter(
            "The tests are invalid", why="those of native code run at home alone", instead="a guest of pure Python, or no tests"
        )
    check_code(without(tests, "__future__") + _TESTING, "tests_of_this_guest", field="tests")


def run_tests(guest: Guest, tests: str, rows: Mapping[str, list[Any]] | None = None) -> Trial:
    """The author's tests, once; those that ask for rows where there are made-up ones."""
    check_tests(guest, tests)
    if not tests.strip():
        return Trial()
    code = guest.code + "\n\n" + without(tests, "__future__") + _TESTING  # the sandbox reads annotations of no text anyway
    with Sandbox(code, "tests_of_this_guest", seconds=_SECONDS, memory=guest.memory << 20) as sandbox:
        ran = sandbox.run([rows], ask=HostNoise(Random.deterministic(1)))
    try:
        passed, failed = ran.value
        return Trial(passed=len(passed), failed=tuple(str(each)[:_SHOWN] for each in failed))
    except (TypeError, ValueError):
        return Trial(failed=(f"no test ended: {ran.why}"[:_SHOWN],))


def run_trial(guest: Guest, name: str, table: PrivateTable, tests: str = "", *, most: int = 10_000) -> Trial:
    """The tests, and runs on made-up rows of that declaration, in blocks as large as those of a run, at most so many.

    >>> from cloister import Guest, Integer, PrivateTable, Vector
    >>> code = "def oldest(rows):\\n    return [max(rows['age'])]\\n"
    >>> guest = Guest(code=code, entry="oldest", inputs=["age"], output=Vector([(0, 120)]), blocks=5, seconds=0.02)
    >>> tried = run_trial(guest, "people", PrivateTable({"age": [30]}, {"age": Integer(17, 90)}))
    >>> tried.done, tried.runs
    (5, 5)
    """
    from cloister.query import Session

    rows = guest.made_up(table) if tests.strip() and not guest.needs.native and guest.way != "ask" else None
    found = run_tests(guest, tests, rows)
    with Session(rehearsal_tables({name: table}), budget=PureDP(1)) as session:
        ran = guest.rehearse(session, name, most=most)
    faults = [fault for fault in (guest.why_not(each) for each in ran) if fault]
    size = None if guest.way == "ask" else guest.rehearsed(table, most=most)
    return replace(found, done=len(ran) - len(faults), runs=len(ran), why=faults[0][:_SHOWN] if faults else "", size=size)
