"""What a form says, as an order. Fields of a column are numbered: a column's name may be anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cloister.errors import InvalidParameter
from cloister.hub.services.anonymizing.order import Order
from cloister.hub.web.forms import Form

__all__ = ["SIMPLE", "order_typed", "values_typed"]

SIMPLE = ("table", "k", "l", "t", "beta", "search", "metric", "suppression", "title", "name", "purpose")
_LONGEST = 200_000


def order_typed(form: Form, columns: Sequence[str]) -> Order:
    """The order of a form about a data set with these columns; a column of which nothing is said is dropped."""
    texts = {name: form.text(name, most=2000) for name in SIMPLE}
    parts = {name: form.text(f"part_{place}", "identifying", most=20) for place, name in enumerate(columns)}
    hierarchies = {name: form.text(f"lines_{place}", most=_LONGEST) for place, name in enumerate(columns)}
    return Order(
        table=texts["table"],
        parts=parts,
        k=_whole(texts["k"] or "5", "k"),
        l=_whole(texts["l"], "l") if texts["l"] else None,
        t=texts["t"],
        beta=texts["beta"],
        search=texts["search"] or "optimal",
        metric=texts["metric"] or "loss",
        suppression=texts["suppression"] or "0",
        hierarchies={name: text for name, text in hierarchies.items() if text},
        title=texts["title"],
        name=texts["name"],
        purpose=texts["purpose"],
    )


def values_typed(order: Mapping[str, Any]) -> dict[str, str]:
    """An order as the fields of a form show it."""
    return {name: "" if order.get(name) is None else str(order[name]) for name in SIMPLE}


def _whole(text: str, what: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidParameter(f"The value of {what} was refused", why="it is no whole number", instead="5")
    return int(text)
