"""The house: every room of the package on its floor, drawn from the list below. Rooms that are still to be built are dashed."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "cloister"

FLOORS = {
    "roof": ("5 · the command line", "what a hand types"),
    "hub": ("4 · the hub", "people, roles, pages"),
    "crafts": ("3 · the crafts", "one family of methods a room"),
    "ground": ("2 · the ground", "data, keys, and what was promised"),
    "calculus": ("1 · the calculus", "mathematics: no table, no clock"),
}
HUB = {"hub": "accounts · catalogue · surveys · audit log", "client": "the hub from Python"}
CRAFTS = (
    *("query", "learn", "local", "anonymize", "mining", "synth"),
    *("compress", "traces", "together", "vault", "guests", "attacks"),
)
GROUND = {
    "crypto": "keys, and what is|encrypted by them",
    "tables": "what is declared,|and three engines",
    "ledger": "what was spent,|never overdrawn",
}
CALCULUS = {"privacy": "what a promise is", "noise": "how a promise is kept"}

LEFT, RIGHT, WIDTH, HEIGHT = 214, 934, 1124, 588
TOPS = {"roof": 34, "hub": 132, "crafts": 212, "ground": 342, "calculus": 466, "earth": 556}


class Ink(NamedTuple):
    """The colours of one mode."""

    text: str
    quiet: str
    line: str
    wall: str
    stone: str
    roof: str
    window: str
    door: str
    on_door: str


LIGHT = Ink("#2d2823", "#6f665b", "#7c6a50", "#f7f0e3", "#e2d5bd", "#c9714f", "#fffdf8", "#a63f24", "#fff8f2")
DARK = Ink("#f1e9da", "#b9ac98", "#a08c6c", "#2f2a24", "#4a4135", "#9c5138", "#3c352d", "#e58a63", "#2a1a12")


def svg(dark: bool = False) -> str:
    """The picture as SVG text, for a light or a dark page."""
    ink = DARK if dark else LIGHT
    parts = [_labels(ink), _roof(ink), _hub(ink), _crafts(ink), _ground(ink), _calculus(ink), _flows(ink)]
    title = "Five floors: the calculus; data, keys, ledger and the one door; the crafts; the hub; the command line"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 10 {WIDTH} {HEIGHT}" role="img" aria-labelledby="title" '
        f'font-family="DejaVu Sans, Verdana, Arial, sans-serif">\n<title id="title">{title}</title>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def built(room: str) -> bool:
    """Whether the room holds code yet."""
    return (PACKAGE / f"{room}.py").exists() or (PACKAGE / room / "__init__.py").exists()


def _text(x: float, y: float, words: str, ink: str, size: int = 13, anchor: str = "middle", weight: str = "normal") -> str:
    bold = f' font-weight="{weight}"' if weight != "normal" else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{ink}"{bold}>{words}</text>'


def _box(x: float, y: float, width: float, height: float, fill: str, ink: Ink, room: str = "", round_: float = 0) -> str:
    dashes = ' stroke-dasharray="5 4"' if room and not built(room) else ""
    corner = f' rx="{round_:g}"' if round_ else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{corner} fill="{fill}" '
        f'stroke="{ink.line}" stroke-width="1.5"{dashes}/>'
    )


def _labels(ink: Ink) -> str:
    drawn = []
    for floor, (name, words) in FLOORS.items():
        y = TOPS[floor] + (58 if floor == "roof" else 32)
        drawn += [_text(0, y, name, ink.text, 15, "start", "bold"), _text(0, y + 18, words, ink.quiet, 11, "start")]
    return "\n".join(drawn)


def _roof(ink: Ink) -> str:
    middle, top, base = (LEFT + RIGHT) / 2, TOPS["roof"], TOPS["hub"]
    return "\n".join(
        [
            f'<path d="M{LEFT - 22} {base} L{middle:g} {top} L{RIGHT + 22} {base} Z" fill="{ink.roof}" '
            f'stroke="{ink.line}" stroke-width="1.5" stroke-linejoin="round"/>',
            _text(middle, base - 34, "cli", "#fff8f2", 17, weight="bold"),
            _text(middle, base - 16, "cloister demo · query · explain · ledger", "#fff8f2", 12),
        ]
    )


def _hub(ink: Ink) -> str:
    top, width = TOPS["hub"], RIGHT - LEFT
    drawn = [_box(LEFT, top, width, TOPS["crafts"] - top, ink.wall, ink)]
    spans = {"hub": (LEFT + 16, 470), "client": (LEFT + 502, 202)}
    for room, (x, wide) in spans.items():
        drawn.append(_box(x, top + 14, wide, 52, ink.window, ink, room, 4))
        drawn.append(_text(x + wide / 2, top + 36, room, ink.text, 15, weight="bold"))
        drawn.append(_text(x + wide / 2, top + 54, HUB[room], ink.quiet, 11))
    return "\n".join(drawn)


def _crafts(ink: Ink) -> str:
    top, bottom = TOPS["crafts"], TOPS["ground"]
    drawn = [_box(LEFT, top, RIGHT - LEFT, bottom - top, ink.wall, ink)]
    step = (RIGHT - LEFT) / len(CRAFTS)
    for place, room in enumerate(CRAFTS):
        x, half = LEFT + step * (place + 0.5), step / 2 - 4.5
        dashes = "" if built(room) else ' stroke-dasharray="5 4"'
        spring, sill = top + 18 + half, bottom - 16
        drawn.append(
            f'<path d="M{x - half:g} {sill} V{spring:g} A{half:g} {half:g} 0 0 1 {x + half:g} {spring:g} V{sill} Z" '
            f'fill="{ink.window}" stroke="{ink.line}" stroke-width="1.5"{dashes}/>'
        )
        drawn.append(_text(x, bottom - 44, room, ink.text, 9))
    return "\n".join(drawn)


def _ground(ink: Ink) -> str:
    top, bottom = TOPS["ground"], TOPS["calculus"]
    drawn = [_box(LEFT, top, RIGHT - LEFT, bottom - top, ink.wall, ink)]
    for place, (room, words) in enumerate(GROUND.items()):
        x = LEFT + 16 + place * 168
        drawn.append(_box(x, top + 16, 156, 92, ink.window, ink, room, 4))
        drawn.append(_text(x + 78, top + 46, room, ink.text, 17, weight="bold"))
        drawn += [_text(x + 78, top + 68 + 16 * line, part, ink.quiet, 12) for line, part in enumerate(words.split("|"))]
    x, half = RIGHT - 100, 84
    drawn.append(
        f'<path d="M{x - half} {bottom} V{top + 62} A{half} 50 0 0 1 {x + half} {top + 62} V{bottom} Z" fill="{ink.door}" '
        f'stroke="{ink.line}" stroke-width="1.5"/>'
    )
    drawn.append(_text(x, top + 66, "session", ink.on_door, 17, weight="bold"))
    drawn.append(_text(x, top + 86, "the one door:", ink.on_door, 12))
    drawn.append(_text(x, top + 102, "measure, run, release", ink.on_door, 12))
    return "\n".join(drawn)


def _calculus(ink: Ink) -> str:
    top, bottom, width = TOPS["calculus"], TOPS["earth"], RIGHT - LEFT + 28
    drawn = []
    for place, (room, words) in enumerate(CALCULUS.items()):
        x = LEFT - 14 + place * width / 2
        drawn.append(_box(x, top, width / 2, bottom - top, ink.stone, ink, room))
        drawn.append(_text(x + width / 4, top + 40, room, ink.text, 17, weight="bold"))
        drawn.append(_text(x + width / 4, top + 62, words, ink.quiet if ink is LIGHT else ink.text, 12))
    drawn.append(f'<path d="M{LEFT - 60} {bottom} H{RIGHT + 60}" stroke="{ink.line}" stroke-width="3" stroke-linecap="round"/>')
    drawn.append(
        _text(
            (LEFT + RIGHT) / 2,
            bottom + 28,
            "A room may use the floors under it, never one above.",
            ink.quiet,
            12,
        )
    )
    return "\n".join(drawn)


def _arrow(x: float, y: float, length: float, ink: Ink) -> str:
    tip = x + length
    back = -9 if length > 0 else 9
    return (
        f'<path d="M{x:g} {y:g} H{tip + back:g}" stroke="{ink.door}" stroke-width="2.5"/>'
        f'<path d="M{tip:g} {y:g} l{back} -6 v12 Z" fill="{ink.door}"/>'
    )


def _flows(ink: Ink) -> str:
    x, door, crafts = RIGHT + 16, TOPS["ground"] + 84, TOPS["crafts"] + 74
    return "\n".join(
        [
            _arrow(x + 56, crafts, -58, ink),
            _text(x + 62, crafts - 4, "a question", ink.text, 13, "start", "bold"),
            _text(x + 62, crafts + 12, "SQL, a model, …", ink.quiet, 11, "start"),
            _arrow(x - 4, door, 58, ink),
            _text(x + 62, door - 16, "an answer", ink.text, 13, "start", "bold"),
            _text(x + 62, door + 2, "± its error", ink.text, 13, "start", "bold"),
            _text(x + 62, door + 20, "and its cost", ink.text, 13, "start", "bold"),
            _arrow(LEFT - 66, TOPS["ground"] + 88, 62, ink),
            _text(0, TOPS["ground"] + 86, "private rows", ink.text, 13, "start", "bold"),
            _text(0, TOPS["ground"] + 102, "go in, stay in", ink.quiet, 11, "start"),
        ]
    )
