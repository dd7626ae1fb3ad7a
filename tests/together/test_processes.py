"""Three sites as processes on loopback: one question, kill -9 at each step, the same plan under another name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import cloister as cl
from cloister.ledger import Ledger
from cloister.together import Coordinator
from cloister.together.rounds import STEPS
from tests.together.wired import asked, coordinator_of, folder_of, lines_of

ROOT = Path(__file__).resolve().parents[2]
POINTS = [f"{kind} {when}" for kind in STEPS for when in ("before", "after")]
SPEND = 50


class Sites(NamedTuple):
    """A coordinator, and the folders of the processes that call it."""

    coordinator: Coordinator
    folders: dict[str, Path]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Site a is killed once at each point, in their order, and then while it reads."""
    folder = tmp_path_factory.mktemp("sites")
    folders = {name: folder_of(folder, name) for name in "abc"}
    coordinator = coordinator_of("abc")
    driver = str(Path(__file__).with_name("site_process.py"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    with coordinator.serving() as hub:
        processes = [
            subprocess.Popen([sys.executable, driver, str(each), hub, *(points if name == "a" else [])], env=environment)
            for (name, each), points in zip(folders.items(), [[*POINTS, "reading"]] * 3, strict=True)
        ]
        try:
            yield Sites(coordinator, folders)
        finally:
            for process in processes:
                process.kill()
                process.wait()


def counted(session: cl.Session, place: int, name: str = "people") -> list[int]:
    """The rows of each sex, by a question about a computed column that is asked in other words each time."""
    text = f"SELECT sex, COUNT(*) AS n FROM {name} WHERE age * 2 < {160 + place} GROUP BY sex"
    return list(session.sql(text, spend=SPEND).to_pydict()["n"])


def test_a_site_that_is_killed_at_any_step_goes_on_with_the_same_bytes(sites: Sites) -> None:
    """The first round goes through ten deaths of site a, and ends with the right sum; in the second it dies while it reads."""
    with asked(sites.coordinator) as session:
        assert all(abs(n - 60) <= 5 for n in counted(session, 0))  # P(noise > 5 at ε = 50) < 10⁻¹⁰⁰
        with pytest.raises(cl.EngineError, match="was stopped while it read its rows"):
            counted(session, 1)
        assert all(abs(n - 60) <= 5 for n in counted(session, 2))
        assert session.spent == cl.PureDP(3 * SPEND)  # what was aborted stays paid
    lines = lines_of(sites.folders["a"])
    sent = {(each[1], each[2], each[3]) for each in lines if each[0] == "answer" and each[2] != "refused"}
    assert len({each[:2] for each in sent}) == len(sent), "one message got two answers"
    readings = Counter(each[1] for each in lines if each[0] == "reading")
    assert set(readings.values()) == {1}, "rows were read twice in one round"
    assert len(readings) == 3
    assert {each[1] for each in lines if each[0] == "dumpable"} == {"0"}
    assert sorted(path.name for path in sites.folders["a"].glob("done *")) == sorted(f"done {n}" for n in range(1, 12))
    charged = charges(sites.folders["a"])
    assert set(charged) == set(readings), "a round was read that was not charged"
    assert set(charged.values()) <= {1, 2}  # killed between its charge and its answer, it is charged again, and never less
    assert set(charges(sites.folders["b"]).values()) == {1}


def test_the_same_question_under_another_name_is_a_round_of_its_own(sites: Sites) -> None:
    """Each is charged, at every site, and none of the second one's bytes are those of the first."""
    before = {name: charges(folder) for name, folder in sites.folders.items()}
    bodies = []
    for name in ("people", "folk"):
        with asked(sites.coordinator, name=name) as session:
            assert all(abs(n - 60) <= 5 for n in counted(session, 0, name))
        bodies.append({each[3] for each in lines_of(sites.folders["b"]) if each[0] == "answer"})
    new = {round_ for round_ in charges(sites.folders["b"]) if round_ not in before["b"]}
    assert len(new) == 2
    lines = [each for each in lines_of(sites.folders["b"]) if each[0] == "answer" and each[1] in new]
    assert len({each[3] for each in lines}) == len(lines) == 2 * len(STEPS)
    for name, folder in sites.folders.items():
        assert {round_: charges(folder)[round_] for round_ in new} == dict.fromkeys(new, 1), name


def test_processes_answer_questions_about_computed_columns(sites: Sites) -> None:
    with asked(sites.coordinator) as session:
        found = session.sql("SELECT sex, SUM(CASE WHEN age >= 40 THEN 1 ELSE 0 END) AS n FROM people GROUP BY sex", spend=SPEND)
        assert all(abs(n - 30) <= 5 for n in found.to_pydict()["n"])


def charges(folder: Path) -> Counter[str]:
    """How often each round was charged at a site."""
    with Ledger(folder / "ledger.db") as ledger:
        return Counter(each.what for each in ledger.charges(folder.name))
