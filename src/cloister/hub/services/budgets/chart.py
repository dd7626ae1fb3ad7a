"""The history of a budget as a picture: what was spent, as steps, under what may be spent. A small SVG of our own, drawn from the
ledger's public account; no value of a row is near it.

It is served as an image, so it can't use the page's colours: each look has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from markupsafe import Markup

from cloister.hub.web.formats import figures
from cloister.ledger import Charge
from cloister.privacy.rational import text_of
from cloister.session.questions.spend import amount_of

_WIDTH, _HEIGHT = 760, 260
_DAY = 86_400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 34


@dataclass(frozen=True, kw_only=True)
class _Look:
    ink: str
    line: str
    fill: str
    limit: str


LOOKS = {
    "light": _Look(ink="#51605c", line="#dcd9cf", fill="#17594b", limit="#9b2c22"),
    "dark": _Look(ink="#a2b1ac", line="#2b3634", fill="#63b9a2", limit="#f3a79d"),
}


@dataclass(frozen=True, kw_only=True)
class Step:
    """From this moment on, so much was spent (or could be)."""

    when: datetime
    amount: Fraction


def steps(charges: Iterable[Charge]) -> list[Step]:
    """What was spent in all, at the moment of each charge; what was given back is left out.

    >>> steps([])
    []
    """
    found, total = [], Fraction(0)
    for each in charges:
        if each.cost is not None and each.state != "voided":
            total += amount_of(each.cost)
            found.append(Step(when=each.when, amount=total))
    return found


def drawn(
    spent: Sequence[Step], limits: Sequence[Step], until: datetime, *, look: str = "light", letter: str = "ε", title: str = ""
) -> str:
    """The picture. `limits`: the budget, as it was opened and raised.

    >>> from datetime import timedelta
    >>> begun = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    >>> picture = drawn([], [Step(when=begun, amount=Fraction(1))], begun + timedelta(days=30), title="A & B")
    >>> "<title>A &amp; B</title>" in picture, picture.count("<path")
    (True, 2)
    """
    colours = LOOKS[look]
    begin = min([each.when for each in (*limits, *spent)], default=until)
    most = max([each.amount for each in (*limits, *spent)], default=Fraction(1)) or Fraction(1)
    length = max((until - begin).total_seconds(), 1.0)

    def across(when: datetime) -> float:
        share = min(max((when - begin).total_seconds() / length, 0.0), 1.0)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def up(amount: Fraction) -> float:
        return _HEIGHT - _BOTTOM - float(amount / most) * (_HEIGHT - _TOP - _BOTTOM)

    def path(found: Sequence[Step], first: Fraction) -> str:
        parts, height = [f"M{across(begin):.1f} {up(first):.1f}"], first
        for each in found:
            parts.append(f"H{across(each.when):.1f}")
            if each.amount != height:
                parts.append(f"V{up(each.amount):.1f}")
                height = each.amount
        return "".join([*parts, f"H{across(until):.1f}"])

    floor = up(Fraction(0))
    area = path(spent, Fraction(0)) + f"V{floor:.1f}H{across(begin):.1f}Z"
    bound = path(limits, limits[0].amount if limits else most)
    marks = Markup("").join(
        Markup(
            '<line x1="{}" x2="{}" y1="{}" y2="{}" stroke="{}"/><text x="{}" y="{}" text-anchor="end" fill="{}">{} = {}</text>'
        ).format(
            _LEFT,
            _WIDTH - _RIGHT,
            up(amount),
            up(amount),
            colours.line,
            _LEFT - 8,
            up(amount) + 4,
            colours.ink,
            letter,
            _short(amount),
        )
        for amount in (Fraction(0), most / 2, most)
    )
    form = "%Y-%m-%d" if (until - begin).total_seconds() > _DAY else "%H:%M"
    days = Markup("").join(
        Markup('<text x="{}" y="{}" text-anchor="{}" fill="{}">{}</text>').format(
            across(when), _HEIGHT - 10, anchor, colours.ink, when.strftime(form)
        )
        for when, anchor in ((begin, "start"), (until, "end"))
    )
    return str(
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" font-size="14" role="img">'
            '<title>{}</title>{}<path d="{}" fill="{}" fill-opacity="0.85"/>'
            '<path d="{}" fill="none" stroke="{}" stroke-width="2" stroke-dasharray="6 4"/>{}</svg>'
        ).format(_WIDTH, _HEIGHT, title, marks, area, colours.fill, bound, colours.limit, days)
    )


def _short(amount: Fraction) -> str:
    text = text_of(amount)
    return text if len(text) <= 6 else figures(amount, 3)
