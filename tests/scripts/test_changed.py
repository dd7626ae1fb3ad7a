"""What a change can reach: its room and those above it, and nothing below."""

from __future__ import annotations

import pytest

from scripts import changed


@pytest.mark.parametrize(
    ("file", "there", "not_there"),
    [
        (
            "src/cloister/mining/rules.py",
            ["tests/mining", "tests/synth", "tests/hub"],
            ["tests/ledger", "tests/learn"],
        ),
        ("src/cloister/query/parse.py", ["tests/query", "tests/hub", "tests/guests"], ["tests/session", "tests/traces"]),
        ("src/cloister/privacy/exact.py", ["tests/privacy", "tests/noise", "tests/ledger", "tests/cli"], []),
        (
            "src/cloister/hub/services/guests/pages.py",
            ["tests/hub/guests", "tests/stored"],
            ["tests/hub/catalogue", "tests/query"],
        ),
        ("src/cloister/hub/platform/jobs/queue.py", ["tests/hub/jobs", "tests/hub/guests"], ["tests/hub/trail", "tests/query"]),
        ("src/cloister/hub/web/render.py", ["tests/hub", "tests/cli"], ["tests/query"]),
        ("tests/traces/test_watch.py", ["tests/traces"], ["tests/hub", "tests"]),
        ("tests/hub/jobs/test_queue.py", ["tests/hub/jobs"], ["tests/hub", "tests"]),
        ("docs/learn/noise.md", ["docs/learn/noise.md", "tests/docs"], ["tests/noise"]),
        ("scripts/postgres.py", ["tests/scripts", "tests/ledger"], ["tests/noise"]),
        ("src/cloister/errors.py", ["tests"], []),
        ("src/cloister/__init__.py", ["tests"], []),
        ("tests/conftest.py", ["tests"], []),
        ("pyproject.toml", ["tests"], []),
    ],
)
def test_the_rooms_above_are_reached(file: str, there: list[str], not_there: list[str]) -> None:
    found = changed.reached([file])
    assert set(there) <= found
    assert not set(not_there) & found


def test_a_room_of_each_layer_is_above_the_ground() -> None:
    *houses, _helpers, _errors = changed.layers("floors")
    assert {"errors", "printable", "stored"} <= _helpers | _errors
    assert changed.above("privacy", "floors") >= set().union(*houses)
    assert changed.above("cli", "floors") == {"cli", "__main__"}


def test_where_everything_may_be_reached_everything_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed, "differs", lambda: ["pyproject.toml", "docs/learn/noise.md"])
    assert changed.folders() == changed.EVERYTHING
    monkeypatch.setattr(changed, "differs", lambda: ["src/cloister/mining/rules.py"])
    assert "tests/mining" in changed.folders()
    assert "tests/hub" in changed.folders()
    monkeypatch.setattr(changed, "differs", list)
    assert changed.folders() == []
