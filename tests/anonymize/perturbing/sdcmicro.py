"""The files that published numbers are about, where they lie beside this checkout."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

__all__ = ["reference_file"]

_FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data" / "sdcmicro"


def reference_file(name: str) -> npt.NDArray[np.float64]:
    """Census, Tarragona or EIA as the literature uses them: all columns of numbers (of EIA eleven, the utility's number too)."""
    path = _FOLDER / {"Census": "CASCrefmicrodata.csv", "Tarragona": "Tarragona.csv", "EIA": "EIA.csv"}[name]
    if not path.exists():
        pytest.skip(f"{name} is not beside this checkout: its published losses are NOT TESTED")
    with path.open(newline="", encoding="utf-8") as opened:
        header, *rows = csv.reader(opened)
    kept = [place for place, title in enumerate(header) if title not in {"UTILNAME", "STATE", "YEAR", "MONTH"}]
    return np.array([[float(row[place]) for place in kept] for row in rows])
