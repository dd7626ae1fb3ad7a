"""What `cloister audit` prints: what was promised, what was found, and the verdict."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.audited import twin_names
from cloister.cli.audited_names import NAMED
from cloister.privacy import ZCDP, Guarantee
from cloister.privacy.rational import text_of

if TYPE_CHECKING:
    from cloister.attacks import AuditResult, ChannelAudit


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is printed of an audit, as text or as JSON."""

    title: str
    worlds: str
    claims: Guarantee
    found: AuditResult | ChannelAudit
    runs: int
    stopped: bool
    note: str

    @cached_property
    def refuted(self) -> bool:
        """Whether the promise was found to be broken."""
        return self.found.contradicts(self.claims)

    @cached_property
    def epsilon(self) -> float:
        """The lower bound on ε, at the δ that is promised."""
        return float(self.found.epsilon_at(self.claims.delta))


def print_found(shown: Shown, *, as_json: bool) -> None:
    """The promise, the bound, the event that shows it, the verdict."""
    if as_json:
        click.echo(json.dumps(_document(shown)))
        return
    found = shown.found
    exact = shown.runs == 0
    sign, sure = ("=", "by arithmetic, nothing sampled") if exact else ("≥", f"with confidence {_confidence(shown)}")
    amount = f"ρ {sign} {_text(found.rho)}" if isinstance(shown.claims, ZCDP) else f"ε {sign} {_text(shown.epsilon)}"
    at = f" at δ = {text_of(shown.claims.delta)}" if shown.claims.delta else ""
    lines = [
        ("audited", shown.title),
        ("worlds", shown.worlds),
        ("claimed", str(shown.claims)),
        ("found", f"{amount}{at}, {sure}"),
    ]
    if not exact:
        lines += [("event", _event(found)), ("runs", f"{shown.runs:,} in each world{' (stopped)' if shown.stopped else ''}")]
    lines.append(("verdict", "REFUTED: the promise is broken" if shown.refuted else "no contradiction found"))
    for name, text in lines:
        click.echo(f"{name:<9}{text}")
    if shown.note:
        click.echo(f"\n{shown.note}")


def _document(shown: Shown) -> dict[str, Any]:
    found: Any = shown.found
    document = {
        "audited": shown.title,
        "worlds": shown.worlds,
        "claimed": str(shown.claims),
        "epsilon": shown.epsilon if math.isfinite(shown.epsilon) else None,
        "delta": float(shown.claims.delta),
        "rho": found.rho,
        "confidence": _confidence(shown) if shown.runs else "1",
        "runs": shown.runs,
        "refuted": shown.refuted,
        "stopped": shown.stopped,
    }
    if shown.runs:
        document |= {name: getattr(found, name) for name in ("event", "likelier", "likely", "unlikely")}
    return document


def _confidence(shown: Shown) -> str:
    return text_of(shown.found.confidence)  # type: ignore[union-attr]


def _event(found: Any) -> str:
    other = "right" if found.likelier == "left" else "left"
    least, most = math.floor(found.likely * 100_000) / 1000, math.ceil(found.unlikely * 100_000) / 1000
    return f"{found.event}: {found.likelier} in at least {least:g}%, {other} in at most {most:g}%"


def _text(amount: float) -> str:
    """Rounded down: it is a lower bound.

    >>> _text(0.48679), _text(float("inf"))
    ('0.4867', '∞')
    """
    return "∞" if math.isinf(amount) else f"{math.floor(amount * 10_000) / 10_000:g}"


def print_names(*, as_json: bool) -> None:
    """What can be audited by name."""
    names = {"mechanisms": list(NAMED), "broken": twin_names()}
    if as_json:
        click.echo(json.dumps(names))
        return
    click.echo("mechanisms\n  " + "\n  ".join(names["mechanisms"]) + "\n\nbroken on purpose\n  " + "\n  ".join(names["broken"]))
