"""Rows of journeys as a session hands them to a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def codes_of(rows: Mapping[str, list[Any]], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Names as they are, moments and places as the codes of their declarations."""
    found: dict[str, Any] = {"who": np.array(rows["who"], dtype=object)}
    for name in ("moment", "x", "y"):
        domain = columns[name]
        found[name] = np.array(
            [domain.null_code if value is None else domain.encode(value) for value in rows[name]], dtype=np.int64
        )
    return found
