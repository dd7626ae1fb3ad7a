"""Pages for reading, printing and signing: one file each, no script, nothing fetched, charts as SVG within the page."""

from collections.abc import Sequence

from cloister.printable import escape

_STYLE = """
:root { --ink: #1d2733; --soft: #5a6875; --line: #d5dce3; --first: #2f6690; --second: #e08e45; --paper: #fff; }
* { box-sizing: border-box; }
body { margin: 0; background: #eef1f4; color: var(--ink); font: 16px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 50rem; margin: 2rem auto; padding: 2.5rem 3rem; background: var(--paper); border: 1px solid var(--line); }
h1 { margin: 0 0 .25rem; font-size: 1.7rem; line-height: 1.2; }
h2 { margin: 2rem 0 .5rem; font-size: 1.15rem; }
p { margin: .5rem 0; }
.said { font-size: 1.1rem; border-left: 4px solid var(--first); padding: .25rem 0 .25rem 1rem; }
.warned { border-left-color: var(--second); }
.soft { color: var(--soft); }
table { border-collapse: collapse; width: 100%; margin: .75rem 0; }
caption { text-align: left; color: var(--soft); padding-bottom: .25rem; }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.25rem; margin: .75rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; display: block; margin: .75rem 0; }
code { font: .85em ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.sign { display: grid; grid-template-columns: 1fr 1fr; gap: 2.5rem 2rem; margin-top: 3rem; break-inside: avoid; }
.sign div { border-top: 1px solid var(--ink); padding-top: .25rem; color: var(--soft); }
@media (max-width: 40rem) { main { margin: 0; padding: 1.25rem; border: 0; } .sign, dl { grid-template-columns: 1fr; } }
@media print { body { background: none; font-size: 10.5pt; } main { margin: 0; padding: 0; border: 0; max-width: none; }
  h2, svg, table { break-inside: avoid; } h2 { break-after: avoid; } @page { size: A4; margin: 18mm; } }
"""


def document(title: str, *parts: str) -> str:
    """A whole page.

    >>> document("Risk of a table", "<p>k = 5</p>").startswith("<!DOCTYPE html>")
    True
    """
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><main>\n<h1>{escape(title)}</h1>\n" + "\n".join(parts) + "\n</main></body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    """A part of a page under its heading.

    >>> section("People", "<p>…</p>")
    '<section><h2>People</h2><p>…</p></section>'
    """
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and what they stand for.

    >>> facts([("rows", "1,000")])
    '<dl><dt>rows</dt><dd>1,000</dd></dl>'
    """
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs) + "</dl>"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = (), caption: str = "") -> str:
    """A table; `numbers` are the columns that are set to the right.

    >>> table(["attack", "success"], [["linkage", "3 %"]], numbers=[1]).count("class='number'")
    2
    """

    def cells(values: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=' + repr('number') if place in numbers else ''}>{escape(value)}</{tag}>"
            for place, value in enumerate(values)
        )

    head = f"<thead><tr>{cells(heads, 'th')}</tr></thead>"
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table>{f'<caption>{escape(caption)}</caption>' if caption else ''}{head}<tbody>{body}</tbody></table>"


def bars(title: str, values: Sequence[tuple[str, float, str]], *, marked: Sequence[int] = ()) -> str:
    """Horizontal bars: a label, a length from 0 to 1, and what is written beside it; `marked` ones are set off.

    >>> bars("Rows", [("alone", 0.25, "25 %")]).startswith("<svg")
    True
    """
    step, left, width = 26, 190, 380
    drawn = []
    for place, (label, length, words) in enumerate(values):
        top = place * step
        colour = "var(--second)" if place in marked else "var(--first)"
        long = max(0.0, min(1.0, length)) * width
        drawn.append(
            f'<text x="{left - 10}" y="{top + 17}" text-anchor="end">{escape(_short(label))}</text>'
            f'<rect x="{left}" y="{top + 4}" width="{max(long, 0.5):.1f}" height="18" fill="{colour}"/>'
            f'<text x="{left + long + 8:.1f}" y="{top + 17}" fill="var(--soft)">{escape(words)}</text>'
        )
    return _drawing(title, drawn, len(values) * step, left + width + 170)


def paired_bars(title: str, names: tuple[str, str], values: Sequence[tuple[str, float, float]]) -> str:
    """Two bars for each label, shares from 0 to 1: what it is here, and what it is elsewhere.

    >>> "here" in paired_bars("Shares", ("here", "elsewhere"), [("flu", 0.5, 0.1)])
    True
    """
    step, left, width = 36, 190, 380
    drawn = [
        f'<rect x="{left}" y="2" width="12" height="12" fill="var(--second)"/>'
        f'<text x="{left + 18}" y="13">{escape(names[0])}</text>'
        f'<rect x="{left + 200}" y="2" width="12" height="12" fill="var(--first)"/>'
        f'<text x="{left + 218}" y="13">{escape(names[1])}</text>'
    ]
    for place, (label, here, there) in enumerate(values):
        top = 24 + place * step
        drawn.append(f'<text x="{left - 10}" y="{top + 19}" text-anchor="end">{escape(_short(label))}</text>')
        for offset, share, colour in ((0, here, "var(--second)"), (15, there, "var(--first)")):
            long = max(0.0, min(1.0, share)) * width
            drawn.append(
                f'<rect x="{left}" y="{top + offset}" width="{max(long, 0.5):.1f}" height="13" fill="{colour}"/>'
                f'<text x="{left + long + 8:.1f}" y="{top + offset + 11}" font-size="12" fill="var(--soft)">{share:.1%}</text>'
            )
    return _drawing(title, drawn, 24 + len(values) * step, left + width + 80)


def clouds(
    title: str, names: tuple[str, str], points: tuple[Sequence[tuple[float, float]], Sequence[tuple[float, float]]]
) -> str:
    """Two clouds of points side by side, on the same axes.

    >>> clouds("Rows", ("real", "synthetic"), ([(0, 1)], [(2, 3)])).count("<circle")
    2
    """
    every = [*points[0], *points[1]]
    (left, right), (low, high) = ((min(each), max(each)) for each in zip(*every, strict=True))
    side, drawn = 300, []
    for turn, (name, some) in enumerate(zip(names, points, strict=True)):
        x0, color = turn * (side + 40), "var(--first)" if not turn else "var(--second)"
        drawn.append(f'<rect x="{x0}" y="24" width="{side}" height="{side}" fill="none" stroke="var(--line)"/>')
        drawn.append(f'<text x="{x0}" y="16" fill="var(--ink)">{escape(name)}</text>')
        for x, y in some:
            across, down = (x - left) / ((right - left) or 1), (high - y) / ((high - low) or 1)
            at = f'cx="{x0 + 6 + across * (side - 12):.1f}" cy="{30 + down * (side - 12):.1f}"'
            drawn.append(f'<circle {at} r="2" fill="{color}" fill-opacity="0.5"/>')
    return _drawing(title, drawn, side + 30, 2 * side + 40)


def signature(*fields: str) -> str:
    """Lines to be filled in by hand.

    >>> signature("Name", "Date")
    "<div class='sign'><div>Name</div><div>Date</div></div>"
    """
    return "<div class='sign'>" + "".join(f"<div>{escape(field)}</div>" for field in fields) + "</div>"


def _drawing(title: str, drawn: Sequence[str], height: int, width: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="14"><title>{escape(title)}</title>{"".join(drawn)}</svg>'
    )


def _short(label: str, most: int = 24) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"
