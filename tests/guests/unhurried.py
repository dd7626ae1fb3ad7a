"""A grid of time on which nothing is waited for, and on which a busy machine has all the time that it needs."""

from __future__ import annotations

import time

import pytest

from cloister.guests.sandbox import wasm
from cloister.guests.sandbox.grid import Grid


class Unhurried(Grid):
    """Runs begin at once, and so does the end."""

    def await_step(self) -> float:
        self.begin()
        return time.monotonic()

    def await_end(self, slot: float) -> None:
        pass


def unhurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """In WebAssembly: what a run gives follows from fuel alone."""
    monkeypatch.setattr(wasm, "Grid", Unhurried)
    monkeypatch.setattr(wasm, "_START", 60.0)
