"""All methods on the same rules: one table, one picture."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.errors import InvalidParameter
from cloister.mining.hiding import METHODS, Progress, Sanitised, answers, problem_of, stated
from cloister.privacy import Exact, exact_positive
from cloister.session.releases.frames import Frame, Series

if TYPE_CHECKING:
    import altair as alt

_MEASURES = {
    "hiding_failure": "hiding failure",
    "lost_rules": "lost rules",
    "ghost_rules": "ghost rules",
    "dissimilarity": "dissimilarity",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """What each method came to, in the order of the methods; iterate it, or take one by its name.

    >>> from cloister.mining import compare
    >>> baskets = [["a", "b"], ["a", "b"], ["a"]]
    >>> found = compare(baskets, ["a → b"], min_support="0.5", min_confidence="0.6", methods=["2.a", "2.b"])
    >>> isinstance(found, Comparison), len(found), found["2.a"].method
    (True, 2, '2.a')
    """

    results: tuple[Sanitised, ...]

    def __iter__(self) -> Iterator[Sanitised]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, method: str) -> Sanitised:
        for each in self.results:
            if each.method == method:
                return each
        raise InvalidParameter(
            f"The method {method!r} was not found",
            why=f"compared are {', '.join(each.method for each in self.results)}",
            instead=f'["{self.results[0].method}"]',
        )

    @property
    def best(self) -> Sanitised:
        """Of those that hide every rule the one that loses the fewest; of equals the one that changes the fewest entries."""
        hidden = [each for each in self.results if not each.effects.failed] or list(self.results)
        return min(hidden, key=lambda each: (each.effects.lost, each.effects.removed + each.effects.added))

    def to_frame(self) -> Frame:
        """A row for each method; it has `to_pandas()`, `to_polars()` and `to_arrow()`."""
        columns = {"method": Series("text", np.array([each.method for each in self], dtype=object))}
        for name in _MEASURES:
            columns[name] = Series("real", np.array([getattr(each.effects, name) for each in self], dtype=np.float64))
        for name in ("lost", "ghosts", "removed", "added"):
            columns[name] = Series("integer", np.array([getattr(each.effects, name) for each in self], dtype=np.int64))
        return Frame(columns)

    def to_json(self) -> str:
        """Every report."""
        return json.dumps([stated(each) for each in self], ensure_ascii=False)

    def __str__(self) -> str:
        head = f"{'method':<9}{'failure':>9}{'lost':>15}{'ghosts':>15}{'dissimilarity':>15}{'out':>8}{'made up':>9}"
        lines = [head]
        for each in self:
            told = each.effects
            lost, ghosts = f"{told.lost:,} ({told.lost_rules:.1%})", f"{told.ghosts:,} ({told.ghost_rules:.1%})"
            lines.append(
                f"{each.method:<9}{told.hiding_failure:>9.0%}{lost:>15}{ghosts:>15}{told.dissimilarity:>15.2%}"
                f"{told.removed:>8,}{told.added:>9,}"
            )
        lines += [f"exact: {each.proof}" for each in self if each.proof is not None]
        return "\n".join(lines)

    def chart(self) -> alt.HConcatChart:
        """A panel for each measure, a bar for each method."""
        import altair as alt

        from cloister.notebook import offline

        rows = [
            {"method": each.method, "measure": words, "value": getattr(each.effects, name), "exact": each.method == "exact"}
            for each in self
            for name, words in _MEASURES.items()
        ]
        order = [each.method for each in self]
        panels = []
        for number, words in enumerate(_MEASURES.values()):
            base = alt.Chart(alt.Data(values=[row for row in rows if row["measure"] == words]))
            axis = alt.Axis() if number == 0 else None
            y = alt.Y("method:N", sort=order, title=None, axis=axis)
            most = max([0.01, *(row["value"] for row in rows if row["measure"] == words)]) if words != "hiding failure" else 1
            scale = alt.Scale(domain=[0, 1.25 * most], nice=False)  # with room for the numbers beside the bars
            x = alt.X("value:Q", title=None, axis=alt.Axis(format="%", tickCount=3), scale=scale)
            colour = alt.Color("exact:N", legend=None, scale=alt.Scale(domain=[True, False], range=["#1f6f5c", "#b9c7c2"]))
            bars = base.mark_bar().encode(x=x, y=y, color=colour)
            text = base.mark_text(align="left", dx=3, fontSize=9).encode(x=x, y=y, text=alt.Text("value:Q", format=".1%"))
            panels.append(alt.layer(bars, text).properties(width=120, height=170, title=words))
        return offline(alt.hconcat(*panels))


def compare(
    baskets: Any,
    rules: Any,
    *,
    min_support: Exact,
    min_confidence: Exact,
    methods: Sequence[str] | None = None,
    time_limit: Exact = 30,
    window: int = 10_000,
    progress: Progress = lambda stage: None,
    **columns: str,
) -> Comparison:
    """Hide the same rules by every method (or by those that are named), and set the results side by side.

    The exact method starts from the others' answers, so it never loses more rules than any of them; where 1.a is among them, it
    may make entries up as 1.a does.

    >>> baskets = [["beer", "crisps"]] * 4 + [["beer", "crisps", "jam"]] * 2 + [["beer"]] * 3 + [["jam", "tea"]] * 5
    >>> found = compare(baskets, ["beer -> crisps"], min_support="0.2", min_confidence="0.6")
    >>> [each.method for each in found]
    ['1.a', '1.b', '2.a', '2.b', 'SWA', 'BBA', 'max-min', 'exact']
    >>> found.best.effects.lost, found["2.b"].effects.removed
    (0, 4)
    """
    several = isinstance(methods, Iterable) and not isinstance(methods, str)
    chosen: list[Any] = list(METHODS) if methods is None else list(methods) if several else [methods]
    for name in chosen:
        if name not in list(METHODS):
            raise InvalidParameter(
                f"methods={chosen!r} is invalid", why=f"known are {', '.join(METHODS)}", instead='methods=["2.a", "exact"]'
            )
    if not chosen:
        raise InvalidParameter("methods=[] is invalid", why="nothing is compared", instead="methods=None")
    read, problem = problem_of(baskets, rules, min_support, min_confidence, columns)
    heuristics = [name for name in METHODS if name in chosen and name != "exact"]
    results = answers(
        read,
        problem,
        heuristics,
        exact="exact" in chosen,
        fallback=methods is None,
        insertions="1.a" in chosen,
        seconds=float(exact_positive(time_limit, "time_limit")),
        window=window,
        progress=progress,
    )
    return Comparison(results=tuple(results))
