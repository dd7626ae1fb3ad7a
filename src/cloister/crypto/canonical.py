"""Canonical text: equal values have equal bytes, so that a digest, a signature or a chain of them means the value."""

import json
from typing import Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(value: Any) -> str:
    """The one text of a value: JSON with sorted keys, no spaces, ASCII only.

    >>> canonical_json({"who": "Ada", "at": 5})
    '{"at":5,"who":"Ada"}'
    """
    return _ENCODER.encode(value)
