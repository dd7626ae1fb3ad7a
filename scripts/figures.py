"""Draw the pictures of the documentation, offline.

    python scripts/figures.py

Each docs/figures/<name>.py says one picture. With `chart()` it returns an Altair chart, drawn by vl-convert to
docs/_static/figures/<name>.svg at each build. With `svg(dark)` it returns finished SVG text, written to docs/_static/<name>.svg
and <name>-dark.svg, which are kept in the tree because the README shows them.
"""

from __future__ import annotations

import os
import re
import runpy
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
PACKAGE = DOCS.parent / "src"
FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
BLANK = '<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>\n'

FEWER = {"RUNS": 50, "STEPS": 20, "PEOPLE": 10}
"""What a draft has a part of, by the name that figures have for it, and the part."""
POINTS = ("EPSILONS", "DIMENSIONS", "SIZES", "WINDOWS")
"""Of what a draft has the first alone."""


def scripts(*, kept: bool) -> list[Path]:
    """The figures' scripts: those whose pictures are kept in the tree, or those that are drawn at each build."""
    found = sorted((DOCS / "figures").glob("*.py"))
    return [script for script in found if ("\ndef svg(" in script.read_text(encoding="utf-8")) == kept]


def draw_for_build() -> None:
    """Draw what is not kept in the tree; what is kept is drawn by hand, and a test compares it."""
    for script in scripts(kept=False):
        draw(script, DOCS / "_static")


def blank_for_build() -> None:
    """An empty picture where none is drawn yet, for a build that looks at words and links alone. The next one that draws
    takes it for old.
    """
    (DOCS / "_static" / "figures").mkdir(parents=True, exist_ok=True)
    for script in scripts(kept=False):
        picture = DOCS / "_static" / "figures" / f"{script.stem}.svg"
        if not picture.exists():
            picture.write_text(BLANK, encoding="utf-8")
            os.utime(picture, (0, 0))


def draft(script: Path) -> str:
    """A picture that is drawn at each build, from its own script, with one run and one point of each curve, and fewer people."""
    names = runpy.run_path(str(script))
    drawing = names["chart"].__globals__
    for name, part in FEWER.items():
        if isinstance(drawing.get(name), int):
            drawing[name] = max(drawing[name] // part, 1)
    for name in POINTS:
        if isinstance(drawing.get(name), tuple | list):
            drawing[name] = drawing[name][:1]
        elif isinstance(drawing.get(name), dict):
            drawing[name] = dict([*drawing[name].items()][:1])
    if "TWINS" in drawing:
        drawing["TWINS"] = drawing["TWINS"][::4]
    for name in ("measured", "price_of_privacy"):
        if "runs" in (getattr(drawing.get(name), "__kwdefaults__", None) or {}):
            drawing[name] = _once(drawing[name])
    return render(names["chart"]())


def _once(measured: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **named: measured(*given, **{**named, "runs": 1})


def draw(script: Path, target: Path) -> list[Path]:
    """Draw one figure; the files that it is in. What is newer than its script, the package and its page is not drawn again."""
    drawn = target / "figures" / f"{script.stem}.svg"
    changed = max(script.stat().st_mtime, _changed(PACKAGE, "*.py"))
    if re.search(r"scripts\.gallery|\.md\b", script.read_text(encoding="utf-8")):
        changed = max(changed, _changed(DOCS, "*.md"))  # it is drawn by a page's own snippet
    if drawn.exists() and drawn.stat().st_mtime > changed:
        return [drawn]
    names = runpy.run_path(str(script))
    if "svg" in names:
        pictures = {target / f"{script.stem}{'-dark' if dark else ''}.svg": names["svg"](dark=dark) for dark in (False, True)}
    elif "chart" in names:
        pictures = {drawn: render(names["chart"]())}
    else:
        raise SystemExit(f"{script.name} defines neither chart() nor svg(dark): there is nothing to draw")
    for path, text in pictures.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if path == drawn or not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return list(pictures)


@cache
def _changed(folder: Path, names: str) -> float:
    """When a file of these was changed last. A build asks once, and not again for each of a hundred pictures."""
    return max(path.stat().st_mtime for path in folder.rglob(names))


def render(chart: Any) -> str:
    """An Altair chart as SVG text, on a ground that reads in light and in dark mode."""
    import vl_convert

    themed = chart.configure(font=FONT, background="white", padding=12).configure_view(stroke=None)
    text: str = vl_convert.vegalite_to_svg(themed.to_json())
    return text


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS.parent))  # some figures share scripts/curves.py
    for each in [*scripts(kept=True), *scripts(kept=False)]:
        print(*(path.relative_to(DOCS.parent) for path in draw(each, DOCS / "_static")), sep="\n")
