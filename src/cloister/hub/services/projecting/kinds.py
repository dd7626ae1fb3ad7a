"""Projected data, and projections, as kinds of releases: what their pages show, what a program reads, the file."""

import json
from functools import lru_cache
from typing import Any

from cloister.hub.releases.kinds import ReleaseKind, View, json_file, stored
from cloister.hub.web.languages import N_

_BEST = 5
"""Columns that are named as the ones that an attacker gets back best."""
ATTACKERS = {
    "nearest neighbour": N_("nearest neighbour"),
    "linear": N_("linear"),
    "naive Bayes": N_("naive Bayes"),
    "kernel": N_("kernel machine"),
    "network": N_("small network"),
    "inverse": N_("inverse of the projection"),
    "ridge": N_("ridge regression"),
    "kernel ridge": N_("kernel ridge regression"),
}


@lru_cache(maxsize=16)
def _picture(body: bytes) -> str:
    from cloister.compress.comparison import TradeOff
    from cloister.hub.web.pictures import svg_of

    return svg_of(TradeOff.from_json(json.dumps(json.loads(body)["trade_off"])).chart())


@lru_cache(maxsize=16)
def _rebuilt(body: bytes, column: str, method: str) -> str:
    """Of each column, a row, the share of its variance that the best attacker gets back, by method and dimensions."""
    import altair as alt

    from cloister.hub.web.pictures import INK, MAIN, svg_of

    told = json.loads(body)
    names, points = [each["name"] for each in told["columns"]], told["trade_off"]["points"]
    rows = [
        {"column": name, "way": f"{each['method']} {each['dimensions']}", "share": share}
        for each in points
        for name, share in zip(names, each["columns"], strict=True)
    ]
    ways = list(dict.fromkeys(each["way"] for each in rows))
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("way:N", sort=ways, title=method, axis=alt.Axis(labelAngle=-40, orient="top")),
        y=alt.Y("column:N", sort=names, title=column),
    )
    square = base.mark_square(color=MAIN, opacity=1).encode(
        size=alt.Size("share:Q", scale=alt.Scale(domain=[0, 1], range=[0, 420]), legend=None)
    )
    text = base.mark_text(dx=20, align="left", fontSize=9, color=INK).encode(text=alt.Text("share:Q", format=".0%"))
    return svg_of(alt.layer(square, text).properties(width=64 * len(ways), height=26 * len(names)))


@lru_cache(maxsize=16)
def _faces(body: bytes, mean: str) -> str:
    """Of columns that are pixels: two rows, as the best attacker of each method and dimension rebuilds them."""
    import altair as alt

    from cloister.hub.web.pictures import svg_of

    told = json.loads(body)["pictures"]
    ways = [mean if not each["dimensions"] else f"{each['method']} {each['dimensions']}" for each in told["rebuilt"]]
    pixels = [
        {"way": way, "row": row, "x": place % told["width"], "y": place // told["width"], "grey": round(value, 2)}
        for way, each in zip(ways, told["rebuilt"], strict=True)
        for row, picture in enumerate(each["grey"], 1)
        for place, value in enumerate(picture)
    ]
    size = 96
    chart = (
        alt.Chart(alt.Data(values=pixels))
        .mark_rect()
        .encode(
            x=alt.X("x:O", axis=None, scale=alt.Scale(padding=0)),
            y=alt.Y("y:O", axis=None, scale=alt.Scale(padding=0)),
            color=alt.Color("grey:Q", scale=alt.Scale(scheme="greys", domain=[0, 1], reverse=True), legend=None),
            column=alt.Column("way:N", sort=ways, title=None, spacing=6),
            row=alt.Row("row:N", title=None, spacing=6),
        )
        .properties(width=size, height=size * told["height"] // told["width"])
    )
    return svg_of(chart)


def _projected(view: View) -> dict[str, Any]:
    _ = view.language.gettext
    told, details = json.loads(view.row.body), view.row.details
    found = told["trade_off"]
    names = [each["name"] for each in told["columns"]]
    pairs = [
        (_("Data set"), details["table"]),
        (_("Columns"), ", ".join(names)),
        (_("Utility label"), details["utility"]),
        (_("Secret"), details["secret"]),
        (_("Accuracy of guessing"), f"{_share(found['utility_guess'])} / {_share(found['secret_guess'])}"),
        (_("Error of the mean row"), f"{found['mean_row']:.2f}"),
    ]
    columns = [_("Method"), _("Dimensions"), _("Utility"), _("Utility, unseen people"), _("Secret"), _("Best attacker")]
    columns += [_("Secret, unseen people"), _("Best attacker of rows"), _("Columns rebuilt"), _("Error of rows")]
    lines = [
        [
            each["method"],
            each["dimensions"],
            _share(each["utility"]),
            "–" if each["utility_of_strangers"] is None else _share(each["utility_of_strangers"]),
            _share(each["secret"]),
            _(ATTACKERS.get(each["secret_by"], each["secret_by"])),
            "–" if each["secret_of_strangers"] is None else _share(each["secret_of_strangers"]),
            _(ATTACKERS.get(each["rebuilt_by"], each["rebuilt_by"])),
            _best(names, each["columns"]),
            f"{each['rebuilt']:.2f}",
            "–" if each.get("rebuilt_of_strangers") is None else f"{each['rebuilt_of_strangers']:.2f}",
            "–" if each["published"] is None else f"{each['published']:.2f}",
        ]
        for each in found["points"]
    ]
    heads = [*columns, _("Error of rows, unseen people"), _("Published error")]
    faces = _faces(view.row.body, _("the mean")) if told.get("pictures") else ""
    rebuilt = "" if faces else _rebuilt(view.row.body, _("Column"), _("Method"))
    pictures = {"picture": _picture(view.row.body), "rebuilt": rebuilt, "faces": faces}
    return {"pairs": pairs, "columns": heads, "lines": lines, **pictures}


def _directions(view: View) -> dict[str, Any]:
    _ = view.language.gettext
    told = json.loads(view.row.body)
    names = [each["name"] for each in told["columns"]]
    pairs = [(_("Data set"), view.row.details["table"]), (_("Method"), told["method"]), (_("Columns"), ", ".join(names))]
    heads = [_("Column"), *(_("Direction %(number)s") % {"number": each + 1} for each in range(told["dimensions"]))]
    lines = [[name, *(f"{each[at]:.3f}" for each in told["components"])] for at, name in enumerate(names)]
    return {"pairs": pairs, "columns": heads, "lines": lines}


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _best(names: list[str], shares: list[float]) -> str:
    """The columns of which an attacker gets most back, with the share of the variance."""
    order = sorted(range(len(names)), key=lambda at: -shares[at])[:_BEST]
    return ", ".join(f"{names[at]} {_share(shares[at])}" for at in order)


PROJECTED = ReleaseKind(
    name="projected",
    path="/projected",
    trail="projected-data",
    title=N_("Projected data"),
    made_at="/project-data",
    missing=N_("There is no such projected data"),
    private=False,
    template="projecting/projected.html",
    shown=_projected,
    told=stored,
    files={"json": json_file("projected")},
)
DIRECTIONS = ReleaseKind(
    name="projection",
    path="/projections",
    trail="projection",
    title=N_("Projections"),
    made_at="/fit-projection",
    missing=N_("There is no such projection"),
    template="projecting/projection.html",
    shown=_directions,
    told=stored,
    files={"json": json_file("projection")},
)
