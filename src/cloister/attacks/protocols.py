"""What a local protocol truly gives away: exactly, where its channel is written out, otherwise bounded from its reports.

A protocol is anything that makes one report of one value: with `.channel()`, the probability of each report for each value as
rows of exact numbers, or with `.randomize(values, random=…)`, one report for each value. Nothing else is asked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cloister.attacks.audit import audit
from cloister.attacks.channel import ChannelAudit, audit_channel
from cloister.attacks.result import AuditResult
from cloister.attacks.runs import Array, Runner
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.privacy.rational import Exact

_RATIOS = 1 << 20
"""The most ratios of probabilities that are worked out exactly: a second or so."""
_NONE: Mapping[str, Callable[[Array], Any]] = {}


def audit_protocol(
    protocol: object,
    *,
    left: Any = None,
    right: Any = None,
    runs: int = 200_000,
    confidence: Exact = "0.999999999",
    features: Mapping[str, Callable[[Array], Any]] = _NONE,
    random: Random | None = None,
) -> ChannelAudit | AuditResult:
    """How much more likely a protocol makes a report under one value than under another: `.epsilon` of either result.

    Exact, for the worst of all values, where the protocol writes its channel out and that is small. This is arithmetic on what
    the protocol *states*. Otherwise, and wherever two values are named, `runs` reports of each are made and told apart: a lower
    bound that holds with `confidence`, of what it *does*. Both results answer `.contradicts(protocol.guarantee)`.

    Parameters
    ----------
    protocol
        An object with `.channel()`, with `.randomize(values, random=…)`, or with both.
    left, right
        The two values to tell apart by reports. Left out: the channel, or, where there is none, the first and last value of the
        protocol's `.domain`, or the ends of its `.interval` (on a circle, where these are one place, the middle and `low`).
    runs, confidence, features, random
        As with `audit`; used for reports alone. A report in words of 64 bits is looked at bit by bit. Where a report's meaning
        hangs on a hash function that it names, only a feature that knows the function sees all that it tells.

    Examples
    --------
    >>> from cloister.local import LocalLaplace, RandomizedResponse
    >>> from cloister.noise import Random
    >>> coin = RandomizedResponse(epsilon=1)
    >>> audit_protocol(coin)
    ChannelAudit(ε = 1, 2 inputs, 2 outputs)
    >>> found = audit_protocol(LocalLaplace(0, 1, epsilon=1), runs=50_000, random=Random.deterministic(1))
    >>> 0.8 < found.epsilon <= 1, found.contradicts(LocalLaplace(0, 1, epsilon="0.5").guarantee)
    (True, True)
    """
    if (left is None) != (right is None):
        raise InvalidParameter("One value is invalid", why="two are told apart", instead="left=first, right=second, or neither")
    randomize = getattr(protocol, "randomize", None)
    if left is None:
        rows = _channel(protocol, needed=randomize is None)
        if rows is not None:
            return audit_channel(rows)
        left, right = _ends(protocol)
    if randomize is None:
        raise _no_reports(protocol)
    return audit(_runner(randomize), left, right, runs=runs, confidence=confidence, features=features, random=random)


def _channel(protocol: object, *, needed: bool) -> Sequence[Sequence[Fraction]] | None:
    """The rows of the channel; None where there is none, or none that is small, and reports can be made instead."""
    written = getattr(protocol, "channel", None)
    if written is None:
        if needed:
            raise _no_reports(protocol)
        return None
    try:
        rows: Sequence[Sequence[Fraction]] = written()
    except InvalidParameter:
        if needed:
            raise
        return None
    return rows if needed or len(rows) * sum(map(len, rows)) <= _RATIOS else None


def _ends(protocol: object) -> tuple[Any, Any]:
    """Two values that lie far apart, as the protocol itself declares them."""
    values = getattr(getattr(protocol, "domain", None), "values", None)
    if values is not None and len(values) > 1:
        return values[0], values[-1]
    interval = getattr(protocol, "bounds", getattr(protocol, "interval", None))
    if interval is None:
        raise InvalidParameter(
            f"{type(protocol).__name__} was not audited",
            why="it lists no values to tell apart",
            instead='audit_protocol(protocol, left="one value", right="another")',
        )
    turns = getattr(getattr(protocol, "window", None), "circular", False)
    low, high = interval.low, (interval.low + interval.high) / 2 if turns else interval.high
    dimensions = getattr(protocol, "dimensions", 1)
    return (low, high) if dimensions == 1 else ([low] * dimensions, [high] * dimensions)


def _runner(randomize: Callable[..., Any]) -> Runner:
    """n reports of one value. Words are taken apart into bits: a double holds 53 of 64, and bits are what protocols flip."""

    def run(value: Any, n: int, random: Random) -> Array:
        reports = np.asarray(randomize([value] * n, random=random))
        if reports.ndim == 0 or len(reports) != n:
            raise InvalidParameter(
                "The protocol was not audited",
                why="its reports are not an array of one row for each value",
                instead="audit_protocol of each of its .oracles",
            )
        if reports.ndim == 2 and reports.dtype == np.uint64:
            octets = np.ascontiguousarray(reports).astype("<u8").view(np.uint8)
            return np.unpackbits(octets, axis=1, bitorder="little")
        return reports

    return run


def _no_reports(protocol: object) -> InvalidParameter:
    return InvalidParameter(
        f"{type(protocol).__name__} was not audited",
        why="it makes no reports: it has neither .channel() nor .randomize",
        instead="audit_protocol(DirectEncoding(domain)), or audit(mechanism, left, right)",
    )
