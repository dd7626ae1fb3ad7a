"""What the figures of projections share: rows in a plane with a use and a secret, and what one direction keeps of them."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

from cloister.compress.drawing import normal
from cloister.noise import Random

USES, SECRETS = ("use: no", "use: yes"), ("secret: A", "secret: B")
COLOURS = ["#3f6c8f", "#c9714f"]
_REACH = 4.5


def in_a_plane(count: int = 200) -> tuple[Any, Any, Any]:
    """Rows of two columns, a label of use and a secret: the secret varies most, and shows a little along the use."""
    use, secret = np.arange(count) % 2, np.arange(count) // 2 % 2
    noise = normal(2 * count, Random.deterministic(4)).reshape(count, 2) * [0.45, 0.5]
    return np.column_stack([1.6 * use + 0.9 * secret, 2.6 * secret]) + noise, use, secret


def plane(projection: Any) -> alt.HConcatChart:
    """Left: the rows, and the first direction. Right: what is left of each row, by use and by secret."""
    rows, use, secret = in_a_plane()
    fitted = projection.fit(rows, use, secret)
    z, centre, along = fitted.transform(rows)[:, 0], rows.mean(axis=0), fitted.components_[0]
    points = [
        {"x": float(x), "y": float(y), "use": USES[u], "secret": SECRETS[s], "z": float(each)}
        for (x, y), u, s, each in zip(rows, use, secret, z, strict=True)
    ]
    reach = _REACH / 2 / float(np.linalg.norm(along))
    ends = [centre - reach * along, centre + reach * along]
    line = [{"x": float(a[0]), "y": float(a[1]), "x2": float(b[0]), "y2": float(b[1])} for a, b in [ends]]
    colour = alt.Color("use:N", title=None, scale=alt.Scale(domain=list(USES), range=COLOURS), legend=alt.Legend(orient="bottom"))
    shape = alt.Shape("secret:N", title=None, scale=alt.Scale(domain=list(SECRETS), range=["circle", "triangle"]))
    data = alt.Chart(alt.Data(values=points))
    x, y = (alt.X("x:Q", title="first column"), alt.Y("y:Q", title="second column"))
    scatter = data.mark_point(filled=True, size=34, opacity=0.7).encode(x=x, y=y, color=colour, shape=shape)
    rule = (
        alt.Chart(alt.Data(values=line))
        .mark_rule(strokeWidth=2.5, color="#2d2823")
        .encode(x="x:Q", y="y:Q", x2="x2:Q", y2="y2:Q")
    )
    left = alt.layer(scatter, rule).properties(width=260, height=230)
    panels = [_kept(points, field, colours) for field, colours in (("use", COLOURS), ("secret", ["#8a9a5b", "#6b5b7b"]))]
    right = alt.vconcat(*panels).resolve_scale(color="independent")
    return alt.hconcat(left, right).resolve_scale(color="independent")


def _kept(points: list[dict[str, Any]], field: str, colours: list[str]) -> alt.Chart:
    """How often each number is left, by one label."""
    names = USES if field == "use" else SECRETS
    colour = alt.Color(f"{field}:N", title=None, scale=alt.Scale(domain=list(names), range=colours))
    return (
        alt.Chart(alt.Data(values=points))
        .mark_bar(opacity=0.6)
        .encode(
            x=alt.X("z:Q", bin=alt.Bin(maxbins=40), title="what is left of a row" if field == "secret" else None),
            y=alt.Y("count():Q", title="rows", stack=None),
            color=colour,
        )
        .properties(width=260, height=88)
    )
