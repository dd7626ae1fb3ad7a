"""Readings as bytes, for the ledger, and back: plain JSON, so that a stored release can be read by anything and runs nothing."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.noise import DiscreteGaussian, DiscreteLaplace
from cloister.session.formulas import Reading, reading_of
from cloister.session.threshold import Threshold
from cloister.session.uncertainty import Noise

_FORMAT = 1


@dataclass(frozen=True)
class Found:
    """What one part of a plan found: the keys of its groups (None where the plan fixes them), the reading of each raw, and the
    threshold that undeclared keys passed.
    """

    keys: tuple[npt.NDArray[Any], ...] | None
    readings: Mapping[str, Reading]
    threshold: Threshold | None = None


@dataclass(frozen=True)
class Stored:
    """All parts of one release, and whether a test's generator made them."""

    parts: tuple[Found, ...]
    marked: bool


def to_bytes(parts: list[Found], *, marked: bool) -> bytes:
    """The stored form of fresh readings (one noise each)."""
    return json.dumps(
        {
            "format": _FORMAT,
            "marked": marked,
            "parts": [
                {
                    "keys": None if part.keys is None else [_array(key) for key in part.keys],
                    "threshold": None if part.threshold is None else [part.threshold.least, str(part.threshold.delta)],
                    "raws": {
                        name: {"values": _array(reading.values), **_noise(reading.terms[0].noise)}
                        for name, reading in part.readings.items()
                    },
                }
                for part in parts
            ],
        },
        separators=(",", ":"),
    ).encode()


def from_bytes(stored: bytes) -> Stored:
    """The readings again.

    >>> reading = reading_of(np.array([3, 4]), DiscreteLaplace(scale="2"))
    >>> found = from_bytes(to_bytes([Found(None, {"rows": reading})], marked=False)).parts[0]
    >>> found.readings["rows"].values.tolist(), found.readings["rows"].terms == reading.terms
    ([3, 4], True)
    """
    document = json.loads(stored)
    parts = tuple(
        Found(
            None if part["keys"] is None else tuple(_values(key) for key in part["keys"]),
            {name: reading_of(_values(raw["values"]), _noise_of(raw)) for name, raw in part["raws"].items()},
            None if part["threshold"] is None else Threshold(least=part["threshold"][0], delta=Fraction(part["threshold"][1])),
        )
        for part in document["parts"]
    )
    return Stored(parts, document["marked"])


def _array(values: npt.NDArray[Any]) -> dict[str, Any]:
    if values.dtype == np.int64:
        return {"int64": base64.b64encode(zlib.compress(values.astype("<i8").tobytes(), 1)).decode()}
    return {"list": values.tolist()}


def _values(stored: Mapping[str, Any]) -> npt.NDArray[Any]:
    if "int64" in stored:
        return np.frombuffer(zlib.decompress(base64.b64decode(stored["int64"])), dtype="<i8").astype(np.int64)
    values = np.empty(len(stored["list"]), dtype=object)
    values[:] = stored["list"]
    return values


def _noise(noise: Noise) -> dict[str, str]:
    if isinstance(noise, DiscreteLaplace):
        return {"noise": "laplace", "scale": str(noise.scale), "sensitivity": str(noise.sensitivity)}
    return {"noise": "gaussian", "scale_squared": str(noise.scale_squared), "sensitivity_squared": str(noise.sensitivity_squared)}


def _noise_of(raw: Mapping[str, str]) -> Noise:
    if raw["noise"] == "laplace":
        return DiscreteLaplace(scale=Fraction(raw["scale"]), sensitivity=Fraction(raw["sensitivity"]))
    return DiscreteGaussian(
        scale_squared=Fraction(raw["scale_squared"]), sensitivity_squared=Fraction(raw["sensitivity_squared"])
    )
