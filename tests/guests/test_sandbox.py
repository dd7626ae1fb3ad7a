"""Guests that try to leave, to stay, to look around or to tell something: each ends as one and the same failure."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cloister.errors import EngineError
from cloister.guests.sandbox import image as images
from cloister.guests.sandbox.wasm import Ran, Sandbox
from cloister.noise import Random
from tests.tiers import by_day_and_night

HOSTILE = {
    "reads a file": "open('/etc/passwd').read()",
    "reads /proc": "open('/proc/self/environ').read()",
    "writes a file": "open('/tmp/guest', 'w').write('here')",
    "lists a folder": "os.listdir('/')",
    "makes a link": "os.symlink('/etc/passwd', 'x')",
    "looks at the clock": "time.time()",
    "measures time": "time.perf_counter()",
    "sleeps by a row": "time.sleep(rows['age'][0])",
    "asks for chance": "os.urandom(8)",
    "opens a socket": "__import__('socket').socket()",
    "runs a program": "__import__('subprocess').run(['ls'])",
    "forks": "os.fork()",
    "starts a thread": "__import__('_thread').start_new_thread(print, ())",
    "calls C": "__import__('ctypes').CDLL(None)",
    "sends a signal": "os.kill(1, 9)",
    "dumps core": "os.abort()",
    "leaves by exit": "sys.exit(0)",
    "leaves at once": "os._exit(0)",
    "never ends": "(lambda: [0 for _ in iter(int, 1)])()",
    "fills memory": "['x' * 10**6 for _ in iter(int, 1)]",
    "one large text": "'x' * 10**10",
    "returns much": "'x' * (2 << 20)",
    "returns depth": "__import__('functools').reduce(lambda inner, _: [inner], range(10**5), 0)",
    "recurses": "f(rows)",
    "returns a function": "f",
    "returns bytes": "b'x'",
    "a pickle": "__import__('pickle').loads(b'cos\\nsystem\\n(S\"ls\"\\ntR.')",
    "an unknown package": "__import__('numpy')",
    "asks without a share": "ask('SELECT COUNT(*) FROM people', 1)",
    "asks past the helper": "__import__('wit_world').ask('{}')",
    "raises its row": "[][rows['age'][0]]",
    "an endless regular expression": "__import__('re').match('(a+)+$', 'a' * 40 + 'b')",
}


def code_of(expression: str) -> str:
    """A guest that does it."""
    return f"import os, sys, time\ndef f(rows):\n    return {expression}\n"


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_guest_gives_no_value(what: str) -> None:
    with Sandbox(code_of(HOSTILE[what]), "f", seconds=0.05) as sandbox:
        ran = sandbox.run([{"age": [7]}])
        assert not ran.done
        assert ran.value is None


def test_what_it_prints_leaves_for_nobody_by_the_process(capfd: pytest.CaptureFixture[str]) -> None:
    code = "import sys\ndef f(rows):\n    print('row', rows)\n    sys.stderr.write('row')\n    return 1\n"
    with Sandbox(code, "f") as sandbox:
        assert sandbox.run([7]) == Ran(value=1, done=True, why="", printed="row 7\nrow")
    assert capfd.readouterr() == ("", "")


def test_a_run_leaves_nothing_to_the_next() -> None:
    code = (
        "import json, random, builtins\nheld = []\n"
        "def f(x):\n"
        "    before = [len(held), getattr(json, 'left', None), getattr(builtins, 'left', None), random.random()]\n"
        "    held.append(x); json.left = builtins.left = x; random.seed(x)\n"
        "    return before\n"
    )
    with Sandbox(code, "f") as sandbox:
        first = sandbox.run([1])
        assert first.done
        assert first.value[:3] == [0, None, None]
        assert [sandbox.run([number]) for number in range(5)] == [first] * 5


def test_nor_to_another_process() -> None:
    """No clock, no chance: two workers give the same, and so a block's value follows from its rows."""
    code = "import random\ndef f(x):\n    return [random.random(), hash('a'), id(x) % 16, list({'b', 'a', 'c'})]\n"
    found = []
    for _ in range(2):
        with Sandbox(code, "f") as sandbox:
            found.append(sandbox.run([[1]]).value)
    assert found[0] == found[1]


def test_its_process_has_no_environment_and_no_open_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLOISTER_SECRET", "canary")
    with (tmp_path / "ledger.db").open("w") as held, Sandbox(code_of("1"), "f") as sandbox:
        assert sandbox.run([1]).done
        assert sandbox._worker is not None
        where = Path(f"/proc/{sandbox._worker.pid}")
        try:
            names = {os.readlink(each) for each in (where / "fd").iterdir()}
            environment = (where / "environ").read_bytes()
        except PermissionError:  # it cannot be looked at: the better case
            return
        assert b"canary" not in environment
        assert not {name for name in names if str(tmp_path) in name}
        assert held.fileno()


def test_a_worker_that_dies_counts_as_one_failure_and_the_next_run_has_a_new_one() -> None:
    with Sandbox(code_of("1"), "f") as sandbox:
        assert sandbox._worker is not None
        os.kill(sandbox._worker.pid, signal.SIGKILL)
        assert [sandbox.run([1]).done for _ in range(2)] == [False, True]
    assert sandbox._worker is None


def test_a_worker_that_cannot_be_had_again_is_no_error_of_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise EngineError("The sandbox was not opened", why="it is gone", instead="cloister guest build")

    with Sandbox(code_of("1"), "f") as sandbox:
        sandbox.close()
        monkeypatch.setattr("cloister.guests.sandbox.wasm.image", missing)
        assert sandbox.run([1]) == Ran()
    with pytest.raises(EngineError, match="it is gone"):
        Sandbox(code_of("1"), "f").run([1])


@pytest.mark.parametrize("told", ["'1' * 5000", "'[' * 10**5", "'5'", "'{\"value\": \"' + '1' * 5000 + '\"}'", "'x' * (8 << 20)"])
def test_what_cannot_be_read_costs_no_worker(told: str) -> None:
    """To start one takes a hundred times as long as a run: whoever waits for the answer could tell."""
    text = f"import json\ndef f(rows):\n    json.dumps = lambda *_: {told}\n    return 1\n"
    with Sandbox(text, "f") as sandbox:
        before = sandbox._worker
        assert sandbox.run([1]) == Ran()
        assert sandbox._worker is before


@by_day_and_night("guests", 150, 500)
def test_hundreds_of_hostile_guests_leave_no_process_and_no_file(guests: int) -> None:
    """Pieces of hostile code in a seeded mixture: none gives a value that holds what it was not given."""
    random, pieces = Random.deterministic(21), list(HOSTILE.values())
    before = set(Path("/tmp").iterdir())
    with Sandbox(code_of("1"), "f", seconds=0.01) as sandbox:
        assert sandbox._worker is not None
        worker = sandbox._worker.pid
        for _ in range(guests):
            chosen = [pieces[place] for place in random.below(len(pieces), 3).tolist()]
            body = "".join(f"    try: told.append(repr({each}))\n    except BaseException: pass\n" for each in chosen)
            text = f"import os, sys, time\ndef f(rows):\n    told = []\n{body}    return told\n"
            sandbox._about |= {"code": text}
            ran = sandbox.run([{"age": [7]}])
            assert "root:" not in str(ran.value)
        assert sandbox._worker is not None
        assert sandbox._worker.pid == worker  # none took the process with it
        children = subprocess.run(["ps", "--ppid", str(worker), "-o", "pid="], capture_output=True, text=True, check=False).stdout
        assert children.split() == []
    assert not [each for each in set(Path("/tmp").iterdir()) - before if each.name == "guest"]


def test_an_image_that_somebody_changed_is_not_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    true, copy = images.image(), tmp_path / "guests"
    copy.mkdir(mode=0o700)
    (copy / true.name).write_bytes(true.read_bytes()[:-1] + b"!")
    (copy / true.with_suffix(".sha256").name).write_text(true.with_suffix(".sha256").read_text())
    monkeypatch.setenv("CLOISTER_GUESTS", str(copy))
    with pytest.raises(EngineError, match="not the one that was built here"):
        images.image()
    (copy / true.name).write_bytes(true.read_bytes())
    (copy / true.name).chmod(0o666)
    with pytest.raises(EngineError, match="others can write"):
        images.image()
    (copy / true.name).chmod(0o600)
    assert images.image() == copy / true.name
    copy.chmod(0o777)
    with pytest.raises(EngineError, match="others can write"):
        images.image()


def test_of_two_that_need_an_image_at_once_one_builds_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    built: list[Path] = []

    def build(found: Path) -> None:
        built.append(found)
        time.sleep(0.2)
        found.with_suffix(".sha256").write_text(hashlib.sha256(b"x").hexdigest())
        found.write_bytes(b"x")

    monkeypatch.setenv("CLOISTER_GUESTS", str(tmp_path / "guests"))
    monkeypatch.setattr(images, "_build", build)
    with ThreadPoolExecutor(2) as threads:
        found = [each.result() for each in [threads.submit(images.image) for _ in range(2)]]
    assert found[0] == found[1] == built[0]
    assert len(built) == 1
