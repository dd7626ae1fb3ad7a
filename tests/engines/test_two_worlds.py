"""The two worlds of `tests/security/test_two_worlds.py` where the rows lie in PostgreSQL and in Spark."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.engines.conftest import Loader, PostgresLoader
from tests.security.schemas import Load
from tests.security.test_two_worlds import compared


def at_one_place(loader: Loader) -> Load:
    """Loads the second world where the first one was: which rows count under a cap follows from the place."""
    if not isinstance(loader, PostgresLoader):
        return loader.load
    number = next(loader.numbers)

    def load(data: dict[str, list[Any]], kinds: dict[str, str]) -> Any:
        import psycopg

        with psycopg.connect(loader.url, autocommit=True) as connection:
            connection.execute(f"DROP TABLE IF EXISTS source_{number}")
        loader.numbers = itertools.count(number)
        try:
            return loader.load(data, kinds)
        finally:
            del loader.numbers

    return load


def test_two_worlds_look_alike_in_every_engine(loader: Loader, tmp_path: Path) -> None:
    compared(302, 2, tmp_path, load=at_one_place(loader))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20_000, 20_030))
def test_two_worlds_look_alike_in_every_engine_all_night(seed: int, loader: Loader, tmp_path: Path) -> None:
    compared(seed, 12, tmp_path, load=at_one_place(loader))
