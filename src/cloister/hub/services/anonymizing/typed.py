"""What a form says, as an order. Fields of a column are numbered: a column's name may be anything.

Of the first form: what each column is, and what must hold. Of the second: which choice of a trial is released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cloister.errors import InvalidParameter
from cloister.hub.services.anonymizing.order import ORDER, Order
from cloister.hub.web.forms import Form

SIMPLE = (
    "table", "k", "l", "diversity", "c", "t", "distance", "beta", "likeness", "delta", "alpha", "search", "metric", "suppression",
    "missing", "purpose",
)  # fmt: skip
_LONGEST = 200_000


def order_typed(form: Form, columns: Sequence[str]) -> Order:
    """The order of a form about a data set with these columns; a column of which nothing is said is dropped."""
    texts = {name: form.text(name, most=2000) for name in SIMPLE}
    parts = {name: form.text(f"part_{place}", "identifying", most=20) for place, name in enumerate(columns)}
    return Order(
        table=texts["table"],
        parts=parts,
        k=_whole(texts["k"] or "5", "k"),
        l=_diversity(texts["l"]) if texts["l"] else None,
        diversity=texts["diversity"] or "distinct",
        c=texts["c"],
        t=texts["t"],
        distance=texts["distance"],
        beta=texts["beta"],
        likeness=texts["likeness"] or "basic",
        delta=texts["delta"],
        alpha=texts["alpha"],
        search=texts["search"] or "optimal",
        metric=texts["metric"] or "loss",
        suppression=texts["suppression"] or "0",
        missing=texts["missing"] or "value",
        hierarchies={name: text for name, text in lines_typed(form, columns).items() if text},
        purpose=texts["purpose"],
    )


def lines_typed(form: Form, columns: Sequence[str]) -> dict[str, str]:
    """The hierarchy that was written or sent for each column; empty where one is to be chosen."""
    found = {name: form.text(f"lines_{place}", most=_LONGEST) for place, name in enumerate(columns)}
    sent, which = form.file("file"), form.text("file_column", most=6)
    if sent is None:
        return found
    if not which.isascii() or not which.isdigit() or int(which) >= len(columns):
        raise InvalidParameter("The hierarchy is invalid", why="the file has no column", instead="the file and its column")
    body = sent.file.read(4 * _LONGEST + 1)
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidParameter(
            "The hierarchy is invalid", why="its file is not UTF-8 text", instead="a CSV file as ARX writes it"
        ) from None
    if len(text) > _LONGEST:
        raise InvalidParameter("The hierarchy is invalid", why=f"it is over {_LONGEST} characters", instead="fewer lines")
    return found | {columns[int(which)]: text.replace("\r\n", "\n").strip()}


def chosen(form: Form, order: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> Order:
    """The order of a trial, with the choice that was made among its points, and what it is to be called."""
    which = form.text("choice", most=6)
    if not which.isascii() or not which.isdigit() or int(which) >= len(points) or "why" in points[int(which)]:
        raise InvalidParameter("The release is invalid", why="no table was chosen", instead="one of those that were compared")
    point = points[int(which)]
    return replace(
        ORDER.made({name: value for name, value in order.items() if name in ORDER.attributes}),
        k=int(point["k"]),
        levels=dict(point["levels"] or {}),
        title=form.text("title", most=2000),
        name=form.text("name", most=2000),
    )


def values_typed(order: Mapping[str, Any]) -> dict[str, str]:
    """An order as the fields of a form show it."""
    return {name: "" if order.get(name) is None else str(order[name]) for name in SIMPLE}


def _diversity(text: str) -> int | float:
    """What l is: entropy takes parts of a value as well.

    >>> _diversity("2"), _diversity("2.5")
    (2, 2.5)
    """
    if text.isascii() and text.count(".") == 1 and text.replace(".", "").isdigit() and len(text) <= 9:
        return float(text)
    return _whole(text, "l")


def _whole(text: str, what: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidParameter(f"The value of {what} is invalid", why="it is not a whole number", instead="5")
    return int(text)
