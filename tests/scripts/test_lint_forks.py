"""The lint against forks finds each way to fork, and nothing in what starts a fresh process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.lint_forks import ALLOWED, CHOOSE, FORKS, UNNAMED, WORDS, findings_in

ROOT = Path(__file__).resolve().parents[2]
PLANTED = {
    "a function before the program": "import subprocess\nsubprocess.run(['true'], preexec_fn=print)",
    "a fork": "import os\nos.fork()",
    "a fork under another name": "import os as system\nsystem.fork()",
    "a fork, imported": "from os import fork\nfork()",
    "a fork in a terminal": "import pty\npty.fork()",
    "the start method": "import multiprocessing\nmultiprocessing.set_start_method('fork')",
    "a context": "import multiprocessing as mp\nmp.get_context('fork').Pool()",
    "the default context": "import multiprocessing as mp\nmp.get_context()",
    "a method that is not a literal": "import multiprocessing as mp\ndef f(method): mp.set_start_method(method)",
    "a pool of the default": "from concurrent.futures import ProcessPoolExecutor\nProcessPoolExecutor(2)",
    "a process of the default": "from multiprocessing import Process\nProcess(target=print)",
}
HONEST = {
    "a program": "import subprocess\nsubprocess.run(['true'], preexec_fn=None)",
    "a text": "text = 'os.fork()'",
    "spawned": "import multiprocessing as mp\nmp.get_context('spawn').Pool()",
    "a pool that is spawned": (
        "import multiprocessing as mp\nfrom concurrent.futures import ProcessPoolExecutor\n"
        "ProcessPoolExecutor(2, mp.get_context('spawn'))\nProcessPoolExecutor(mp_context=mp.get_context('spawn'))"
    ),
    "another fork": "class Kitchen:\n    def fork(self): ...\nKitchen().fork()",
}


@pytest.mark.parametrize("name", PLANTED)
def test_each_way_to_fork_is_found(name: str) -> None:
    assert findings_in(PLANTED[name])


def test_a_text_that_is_not_parsed_can_hold_none() -> None:
    for name in {*FORKS, *UNNAMED, *(f"multiprocessing.{each}" for each in CHOOSE)}:
        assert any(word in name for word in WORDS), name


@pytest.mark.parametrize("name", HONEST)
def test_what_starts_afresh_is_not(name: str) -> None:
    assert not findings_in(HONEST[name])


def test_the_tree_forks_where_it_is_allowed_alone() -> None:
    done = subprocess.run([sys.executable, "scripts/lint_forks.py"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert all(ALLOWED.values())


def test_a_file_that_forks_is_named_with_its_line(tmp_path: Path) -> None:
    folder = ROOT / "tests" / "scripts"
    from scripts import lint_forks

    (tmp_path / "b.py").write_text(PLANTED["a fork"], encoding="utf-8")
    assert lint_forks.findings(tmp_path, tmp_path) == ["b.py:2: os.fork"]
    assert not lint_forks.findings(folder)
