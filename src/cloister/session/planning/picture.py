"""A plan as a picture: from the rows through what is measured and its noise to each statistic with the error to expect.

Plain SVG, so that a page or a notebook shows it without a script. It is made from the plan alone: nothing of a row is in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cloister.printable import escape
from cloister.session.planning.plan import Part, Plan
from cloister.session.questions.declared import table_name
from cloister.session.releases.uncertainty import in_words

_WIDTH, _GAP, _LINE, _PAD = 250, 46, 17, 10
_HEADS = ("rows", "measured, exactly", "noise", "answer, at 95 %")
_LONGEST = 34
_MOST_BOXES = 12


@dataclass(frozen=True)
class _Box:
    column: int
    lines: tuple[str, ...]

    @property
    def height(self) -> int:
        return _LINE * len(self.lines) + 2 * _PAD


def picture(plan: Plan) -> str:
    """The plan as SVG.

    >>> from cloister.session.examples import small_plan
    >>> drawn = picture(small_plan())
    >>> drawn.startswith("<svg"), "DiscreteLaplace of scale 2" in drawn
    (True, True)
    """
    columns: list[list[_Box]] = [[], [], [], []]
    margins = plan.margin().columns
    for part in plan.parts[:_MOST_BOXES]:
        for box in _boxes(part):
            columns[box.column].append(box)
    answers = [_Box(3, (_cut(name), f"± {float(series.values[0]):,.4g}")) for name, series in margins.items()]
    columns[3] = answers[:_MOST_BOXES]
    height = 46 + max(sum(box.height + 12 for box in boxes) for boxes in columns)
    width = 4 * _WIDTH + 3 * _GAP + 2
    cost = "; ".join(f"{cost} of {population}" for population, cost in plan.costs.items())
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + 26}" width="{width}" role="img"'
        f' font-family="sans-serif" font-size="13"><title>{escape(f"Plan: {cost}")}</title>'
    ]
    for number, (head, boxes) in enumerate(zip(_HEADS, columns, strict=True)):
        left = 1 + number * (_WIDTH + _GAP)
        drawn.append(f'<text x="{left}" y="16" font-weight="bold" fill="#4a6b8a">{head}</text>')
        if number:
            drawn.append(_arrow(left - _GAP + 6, left - 6))
        top = 28
        for box in boxes:
            drawn.append(_drawn(box, left, top))
            top += box.height + 12
    drawn.append(
        f'<text x="1" y="{height + 16}" fill="#333">{escape(f"cost: {cost}; nothing was spent and no row was read")}</text></svg>'
    )
    return "".join(drawn)


def _boxes(part: Part) -> list[_Box]:
    shape = part.shape
    unit = shape.declaration.unit
    whose = "each row is one person" if unit is None else f"at most {shape.max_rows} of one {unit}"
    found = [_Box(0, (_cut(table_name(shape.question.table)), _cut(whose), _cut(shape.grid.words())))]
    for block in shape.blocks[:_MOST_BOXES]:
        names = _cut(", ".join(raw.name for raw in block.raws))
        measured = (names, f"one unit: L1 ≤ {block.l1:,}, L2² ≤ {block.l2_squared:,}")
        laws = tuple(dict.fromkeys(_cut(in_words(part.noises[raw.name])) for raw in block.raws))
        lines = max(len(measured), len(laws))  # a measurement and its noise stand side by side
        found += [_Box(column, (*text, *[""] * (lines - len(text)))) for column, text in ((1, measured), (2, laws))]
    return found


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _drawn(box: _Box, left: int, top: int) -> str:
    frame = f'<rect x="{left}" y="{top}" width="{_WIDTH}" height="{box.height}" rx="6" fill="#f4f7fa" stroke="#9db4c9"/>'
    return frame + "".join(_text(box.lines, left + _PAD, top + _PAD))


def _text(lines: Sequence[str], left: int, top: int) -> list[str]:
    return [
        f'<text x="{left}" y="{top + 13 + _LINE * number}" fill="#222">{escape(line)}</text>' for number, line in enumerate(lines)
    ]


def _arrow(start: int, end: int) -> str:
    return f'<path d="M{start} 46 H{end} m-6 -5 l6 5 l-6 5" fill="none" stroke="#9db4c9" stroke-width="2"/>'
