"""The decision diagram of docs/how-to/which-method.md: five questions, and where each answer leads."""

from __future__ import annotations

from typing import NamedTuple


class Step(NamedTuple):
    """A question, and what a yes or a no leads to; a no with nothing beside it leads to the next question."""

    number: int
    question: tuple[str, str]
    leads: str
    to: tuple[tuple[str, str], ...]


STEPS = (
    Step(1, ("May anyone hold", "the true data?"), "no", (("randomised survey, cloister.local", "ε for each report"),)),
    Step(
        2,
        ("Do you need rows,", "against whom?"),
        "yes",
        (
            ("any attacker: SafePub", "(ε, δ)"),
            ("an attacker you can name: k, ℓ, t", "not differential privacy"),
        ),
    ),
    Step(
        3,
        ("Do you need a model", "or patterns?"),
        "yes",
        (("cloister.learn: private models", "ε or (ε, δ)"), ("top_itemsets: frequent patterns", "ε")),
    ),
    Step(
        4,
        ("Keys you cannot list,", "or very many queries?"),
        "yes",
        (("a budget with a δ: ApproxDP, ZCDP", "(ε, δ) or ρ"),),
    ),
    Step(5, ("Do you know many", "queries in advance?"), "yes", (("a workload: one plan for all", "ε or ρ"),)),
)
END = ("SQL under PureDP", "ε")

LEFT, WIDE, HIGH = 20, 230, 64
RIGHT, LEAF, GAP = 400, 400, 62
SPACE = 40


class Ink(NamedTuple):
    """The colours of one mode."""

    text: str
    quiet: str
    line: str
    asked: str
    found: str


LIGHT = Ink("#2d2823", "#6f665b", "#7c6a50", "#f7f0e3", "#dbe7f0")
DARK = Ink("#f1e9da", "#b9ac98", "#a08c6c", "#2f2a24", "#2b3a46")


def svg(dark: bool = False) -> str:
    """The diagram as SVG text, for a light or a dark page."""
    ink = DARK if dark else LIGHT
    parts: list[str] = []
    top = 20
    for step in STEPS:
        height = max(HIGH, GAP * len(step.to) - (GAP - 50))
        middle = top + height / 2
        parts += _box(LEFT, middle - HIGH / 2, WIDE, HIGH, ink.asked, ink, step.question, f"{step.number}")
        for place, leaf in enumerate(step.to):
            at = middle + (place - (len(step.to) - 1) / 2) * GAP
            parts += _box(RIGHT, at - 25, LEAF, 50, ink.found, ink, leaf)
            bend = (LEFT + WIDE + RIGHT) / 2 + 30
            parts.append(_arrow(f"M{LEFT + WIDE} {middle:g} H{bend:g} V{at:g} H{RIGHT - 4}", ink))
        parts.append(_text(LEFT + WIDE + 30, middle - 7, step.leads, ink.quiet, 13))
        below = middle + HIGH / 2
        top += height + SPACE
        next_height = HIGH
        if step.number < len(STEPS):
            following = STEPS[step.number]
            next_height = max(HIGH, GAP * len(following.to) - (GAP - 50))
        end = top + next_height / 2 - HIGH / 2
        parts.append(_arrow(f"M{LEFT + WIDE / 2:g} {below:g} V{end - 4:g}", ink))
        parts.append(_text(LEFT + WIDE / 2 + 20, (below + end) / 2 + 4, "no" if step.leads == "yes" else "yes", ink.quiet, 13))
    parts += _box(LEFT, top, WIDE, HIGH, ink.found, ink, END)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {RIGHT + LEAF + 20} {top + HIGH + 20:g}" role="img" '
        f'aria-labelledby="title" font-family="DejaVu Sans, Verdana, Arial, sans-serif">\n'
        f'<title id="title">Five questions that lead to a method</title>\n'
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{ink.line}"/></marker></defs>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def _text(x: float, y: float, words: str, ink: str, size: int = 14, weight: str = "normal") -> str:
    bold = f' font-weight="{weight}"' if weight != "normal" else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="middle" fill="{ink}"{bold}>{words}</text>'


def _box(
    x: float, y: float, width: float, height: float, fill: str, ink: Ink, words: tuple[str, str], number: str = ""
) -> list[str]:
    """A rounded box with two lines; a question has its number in a corner."""
    middle = x + width / 2
    quiet = ink.text if number else ink.quiet
    drawn = [
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8" fill="{fill}" stroke="{ink.line}"/>',
        _text(middle, y + height / 2 - 4, words[0], ink.text, 14, "normal" if number else "bold"),
        _text(middle, y + height / 2 + 15, words[1], quiet, 14 if number else 12),
    ]
    return [*drawn, _text(x + 16, y + 22, number, ink.quiet, 14, "bold")] if number else drawn


def _arrow(path: str, ink: Ink) -> str:
    return f'<path d="{path}" fill="none" stroke="{ink.line}" stroke-width="1.5" marker-end="url(#tip)"/>'
