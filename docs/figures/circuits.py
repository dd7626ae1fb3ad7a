"""One AND gate, garbled: a locked table, one label a wire, the one row that opens. Labels are four hexadecimal digits here."""

from __future__ import annotations

import altair as alt

INK, SOFT, GARBLER, EVALUATOR, OPEN, PAPER = "#2d2823", "#6f675e", "#3f6c8f", "#c9714f", "#5d7f4b", "#f6f3ee"
WIDTH, HEIGHT = 900, 330
LABELS = {"a": ("7c1e", "e90b"), "b": ("25d8", "b3f4"), "c": ("40aa", "9f67")}
"""Of each wire the label of 0 and that of 1."""
ROWS = ((1, 0), (0, 0), (1, 1), (0, 1))
"""In an order that tells nothing."""


def chart() -> alt.LayerChart:
    """Left the garbler, in the middle what is sent, right the evaluator: it has a = 1 and b = 1 and does not know it."""
    boxes: list[dict[str, object]] = []
    texts: list[dict[str, object]] = []
    arrows: list[dict[str, object]] = []

    def box(x: float, y: float, wide: float, high: float, fill: str, line: str) -> None:
        boxes.append({"x": x, "x2": x + wide, "y": HEIGHT - y, "y2": HEIGHT - y - high, "fill": fill, "line": line})

    def text(x: float, y: float, words: str, colour: str = INK, size: int = 12, weight: str = "normal") -> None:
        texts.append({"x": x, "y": HEIGHT - y, "text": words, "colour": colour, "size": size, "weight": weight})

    def arrow(y: float, words: str, colour: str, *, back: bool = False) -> None:
        start, end = (610, 350) if back else (350, 610)
        arrows.append({"x": start, "x2": end, "y": HEIGHT - y, "y2": HEIGHT - y, "colour": colour, "path": f"{start} {y}"})
        text(480, y - 9, words, colour, 11)
        text(end, y, "▶" if end > start else "◀", colour, 13)

    for x, name, colour, knows in (
        (10, "The garbler", GARBLER, "knows both labels of each wire, and its own bit a = 1"),
        (620, "The evaluator", EVALUATOR, "has one label a wire, and its own bit b = 1"),
    ):
        box(x, 10, 330 if x == 10 else 270, 310, PAPER, colour)
        text(x + 165 if x == 10 else x + 135, 30, name, colour, 15, "bold")
        text(x + 165 if x == 10 else x + 135, 48, knows, SOFT, 10)
    for place, (wire, both) in enumerate(LABELS.items()):
        for bit, label in enumerate(both):
            text(70 + 105 * place, 76 + 18 * bit, f"{wire} = {bit} is {label}", INK, 11)
    text(175, 122, "the table, each row locked by two labels:", SOFT, 11)
    for place, (a, b) in enumerate(ROWS):
        y = 134 + 40 * place
        box(30, y, 290, 32, "white", GARBLER)
        first, second, inside = LABELS["a"][a], LABELS["b"][b], LABELS["c"][a & b]
        text(175, y + 17, f"locked by {first} and {second}:  inside is {inside}", INK, 12)
    arrow(84, "the label of its own bit: e90b", GARBLER)
    arrow(140, "“I want the label of my bit” (hidden)", EVALUATOR, back=True)
    arrow(180, "b3f4; the garbler does not learn which", GARBLER)
    arrow(240, "the four locked rows, shuffled", GARBLER)
    text(480, 199, "a transfer: of two labels one is taken", SOFT, 10)
    for place, label in enumerate(("a is e90b", "b is b3f4")):
        text(690 + 130 * place, 84, label, INK, 13, "bold")
    for place, (a, b) in enumerate(ROWS):
        y, opens = 134 + 40 * place, a & b
        box(640, y, 230, 32, "#e3ecdc" if opens else "#e7e3dd", OPEN if opens else SOFT)
        text(
            755, y + 17, "opens: c is 9f67" if opens else "stays shut", OPEN if opens else SOFT, 12, "bold" if opens else "normal"
        )
    text(755, 306, "c goes into the next gate, or says the result", SOFT, 10)
    return _drawn(boxes, texts, arrows)


def _drawn(boxes: list[dict[str, object]], texts: list[dict[str, object]], arrows: list[dict[str, object]]) -> alt.LayerChart:
    x = alt.X("x:Q", scale=alt.Scale(domain=[0, WIDTH], nice=False), axis=None)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, HEIGHT], nice=False), axis=None)

    def colour(field: str) -> alt.Color:
        return alt.Color(f"{field}:N", scale=None)

    rectangles = (
        alt.Chart(alt.Data(values=boxes)).mark_rect(cornerRadius=6, strokeWidth=1.2).encode(x=x, x2="x2:Q", y=y, y2="y2:Q")
    )
    lines = alt.Chart(alt.Data(values=arrows)).mark_rule(strokeWidth=1.6).encode(x=x, x2="x2:Q", y=y, color=colour("colour"))
    bold, plain = (
        alt.Chart(alt.Data(values=[each for each in texts if each["weight"] == weight]))
        .mark_text(fontWeight=weight)
        .encode(x=x, y=y, text="text:N", color=colour("colour"), size=alt.Size("size:Q", scale=None))
        for weight in ("bold", "normal")
    )
    filled = rectangles.encode(fill=alt.Fill("fill:N", scale=None), stroke=alt.Stroke("line:N", scale=None))
    return alt.layer(filled, lines, bold, plain).properties(width=WIDTH, height=HEIGHT)
