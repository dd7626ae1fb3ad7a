"""What every benchmark prints of a promise: a line for people, and a line for `make bench`."""

from __future__ import annotations

import json


def report(name: str, ratio: float, limit: float, detail: str, *, most: bool = False) -> None:
    """The ratio that was measured is to be at least the limit, or with `most` at most."""
    holds = ratio <= limit if most else ratio >= limit
    side, verdict = ("at most" if most else "at least"), ("holds" if holds else "DOES NOT HOLD")
    print(f"{name}: {ratio:.4g} ({side} {limit:g}, {verdict}); {detail}")
    print(json.dumps({"benchmark": name, "ratio": round(ratio, 6), "limit": limit, "holds": holds, "detail": detail}), flush=True)
