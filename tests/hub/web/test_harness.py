"""The harness itself: where there is no browser it says so once, and fails where one is required."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.hub.web.browser import missing


class Terminal:
    """A terminal that remembers what was written to it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def ensure_newline(self) -> None:
        return None

    def write_line(self, line: str, **_: bool) -> None:
        self.lines.append(line)


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


@pytest.fixture
def config(terminal: Terminal) -> SimpleNamespace:
    return SimpleNamespace(stash=pytest.Stash(), pluginmanager=SimpleNamespace(get_plugin=lambda name: terminal))


def test_a_missing_browser_is_said_in_one_loud_line(
    config: SimpleNamespace, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLOISTER_REQUIRE_ENGINES", raising=False)
    for _ in range(3):
        with pytest.raises(pytest.skip.Exception, match="apt-get install chromium"):
            missing(config)  # type: ignore[arg-type]
    assert len(terminal.lines) == 1
    assert terminal.lines[0].startswith("!!! Chromium is not here")


def test_a_missing_browser_is_a_failure_where_engines_are_required(
    config: SimpleNamespace, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOISTER_REQUIRE_ENGINES", "1")
    with pytest.raises(pytest.fail.Exception, match="Chromium is not here"):
        missing(config)  # type: ignore[arg-type]
    assert terminal.lines == []
