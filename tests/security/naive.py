"""The naive twin: the same rows in plain DuckDB, fresh noise of one scale in each answer, nothing bounded and nothing charged."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import duckdb
import pyarrow as pa

from cloister.noise import DiscreteLaplace, Random


class Naive:
    """What somebody builds in an afternoon."""

    def __init__(self, rows: dict[str, dict[str, list[Any]]], *, scale: int | None = 1, seed: int = 0) -> None:
        self._noise = None if scale is None else DiscreteLaplace(scale=scale)
        self._random = Random.deterministic(seed)
        self.connection = duckdb.connect(":memory:")
        for name, columns in rows.items():
            self.connection.register("given", pa.table(columns))
            self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            self.connection.unregister("given")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The exact rows; whatever DuckDB says when it fails comes out as it is."""
        found: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return found

    def number(self, sql: str) -> float:
        """One number with fresh noise."""
        exact = self.rows(sql)[0][0] or 0
        return exact if self._noise is None else float(self._noise.release(int(exact), random=self._random))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.connection.close()
