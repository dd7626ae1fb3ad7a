"""Readings as bytes, for the ledger, and back: plain JSON, so that a stored release can be read by anything and runs nothing."""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.noise import DiscreteGaussian, DiscreteLaplace
from cloister.noise.laws import law_from, law_plain
from cloister.session.planning.zoom import Uneven, Zoom
from cloister.session.questions.threshold import Threshold
from cloister.session.releases.formulas import Reading, reading_of
from cloister.session.releases.uncertainty import Noise

_FORMAT = 1
_dumped = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True)
class Found:
    """What one part of a plan found: the keys of its groups (None where the plan fixes them), the reading of each raw, and the
    threshold that undeclared keys passed.
    """

    keys: tuple[npt.NDArray[Any], ...] | None
    readings: Mapping[str, Reading]
    threshold: Threshold | None = None
    without: tuple[str, ...] = ()
    """Of an engine of several parts, those whose rows are not in it."""


@dataclass(frozen=True)
class Stored:
    """All parts of one release, and whether a test's generator made them."""

    parts: tuple[Found, ...]
    marked: bool

    @cached_property
    def without(self) -> tuple[str, ...]:
        """Whose rows are not in all of it: such a release is about other rows than one that has them."""
        return tuple(sorted({name for part in self.parts for name in part.without}))


def to_bytes(parts: list[Found], *, marked: bool) -> bytes:
    """The stored form of fresh readings (one noise each)."""
    return _dumped(
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
                    **({"without": list(part.without)} if part.without else {}),
                }
                for part in parts
            ],
        }
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
            tuple(part.get("without", ())),
        )
        for part in document["parts"]
    )
    return Stored(parts, document["marked"])


def _array(values: npt.NDArray[Any]) -> dict[str, Any]:
    if values.dtype == np.int64 and values.ndim > 1 and np.abs(values).max(initial=0) < 2**31:
        # a hierarchy is large, and its noise does not compress: half as many bytes, packed as they are
        return {"int32": base64.b64encode(values.astype("<i4").tobytes()).decode(), "shape": list(values.shape)}
    if values.dtype == np.int64:
        packed = base64.b64encode(zlib.compress(values.astype("<i8").tobytes(), 1)).decode()
        return {"int64": packed} if values.ndim == 1 else {"int64": packed, "shape": list(values.shape)}
    return {"list": values.tolist()}


def _values(stored: Mapping[str, Any]) -> npt.NDArray[Any]:
    if "int32" in stored:
        small = np.frombuffer(base64.b64decode(stored["int32"]), dtype="<i4").astype(np.int64)
        return small.reshape(stored["shape"])
    if "int64" in stored:
        values = np.frombuffer(zlib.decompress(base64.b64decode(stored["int64"])), dtype="<i8").astype(np.int64)
        return values.reshape(stored["shape"]) if "shape" in stored else values
    found = np.empty(len(stored["list"]), dtype=object)
    found[:] = stored["list"]
    return found


def _noise(noise: Noise) -> dict[str, Any]:
    if isinstance(noise, Zoom):
        asked = {"leaves": str(noise.leaves), "share": str(noise.share), "rows": str(noise.rows)}
        if isinstance(noise, Uneven):
            asked["part"] = str(noise.part)
        return {**_noise(noise.noise), "zoom": json.dumps(asked)}
    if isinstance(noise, DiscreteLaplace):
        return {"noise": "laplace", "scale": str(noise.scale), "sensitivity": str(noise.sensitivity)}
    if not isinstance(noise, DiscreteGaussian):
        return {"noise": law_plain(noise)}  # a law that came later: by its name among all
    return {"noise": "gaussian", "scale_squared": str(noise.scale_squared), "sensitivity_squared": str(noise.sensitivity_squared)}


def _noise_of(raw: Mapping[str, Any]) -> Noise:
    if isinstance(raw["noise"], Mapping):
        return law_from(raw["noise"])
    if "zoom" in raw:
        asked = json.loads(raw["zoom"])
        how: dict[str, Any] = {"leaves": int(asked["leaves"]), "share": Fraction(asked["share"]), "rows": int(asked["rows"])}
        how["noise"] = _plain_noise_of(raw)
        return Uneven(**how, part=Fraction(asked["part"])) if "part" in asked else Zoom(**how)
    return _plain_noise_of(raw)


def _plain_noise_of(raw: Mapping[str, str]) -> DiscreteLaplace | DiscreteGaussian:
    if raw["noise"] == "laplace":
        return DiscreteLaplace(scale=Fraction(raw["scale"]), sensitivity=Fraction(raw["sensitivity"]))
    return DiscreteGaussian(
        scale_squared=Fraction(raw["scale_squared"]), sensitivity_squared=Fraction(raw["sensitivity_squared"])
    )
