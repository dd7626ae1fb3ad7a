"""What the form of an order shows besides what every order has: the data sets that are open, and their columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cloister.hub.services.synthesising.making import ACTION
from cloister.hub.services.synthesising.order import METHODS, USES
from cloister.hub.web.pictures import lines_of
from cloister.hub.work.offers import offers
from cloister.session.questions.spend import measure_of
from cloister.tables import Category, Integer, PrivateTable, PublicTable, Real, Text
from cloister.tables.expression.names import alias, quoted

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub


def choices(hub: Hub, db: Db, caller: Caller, typed: Mapping[str, Any]) -> dict[str, Any]:
    """The data sets, the columns of the chosen one, and what was typed; at first every column is ticked."""
    found = offers(hub, db, caller, ACTION, under=(), anyhow=True)
    opened = {each.which.name: each for each in found if isinstance(each.table, PrivateTable)}
    name = typed["table"] if typed["table"] in opened else next(iter(opened), "")
    offer = opened.get(name)
    columns = {} if offer is None else {each: kind for each, kind in offer.columns.items() if _fits(offer.table, each)}
    first = {
        "columns": tuple(columns),
        "method": "auto",
        "spend": "1",
        **dict.fromkeys(("purpose", "project", "title", "rules", "use", "target", "workload", "earlier", "ranges"), ""),
    }
    return {
        "opened": list(opened),
        "chosen": name,
        "columns": columns,
        "measure": "" if offer is None else measure_of(hub.ledger.budget(offer.which.population)),
        "methods": list(METHODS.items()),
        "uses_of": list(USES.items()),
        "curve": _curve,
        "purposes": () if offer is None else offer.purposes,
        "names_purpose": offer is not None and offer.names_purpose,
        "typed": {**first, **typed},
        "examples": _examples(offer.table, name, [*columns]) if offer and isinstance(offer.table, PrivateTable) else {},
    }


def _examples(table: PrivateTable, name: str, columns: Sequence[str]) -> dict[str, str]:
    """What could be typed as a workload, an earlier answer and a rule, of this table's own columns.

    >>> from cloister.tables import Category, Integer
    >>> people = PrivateTable({"age": [30], "sex": ["F"]}, columns={"age": Integer(17, 90), "sex": Category(["F", "M"])})
    >>> _examples(people, "people", ["age", "sex"])
    {'query': 'SELECT age, COUNT(*) AS n FROM people GROUP BY age', 'columns': 'age, sex', 'rules': "age < 90 => sex = 'F'"}
    """
    numbers = {quoted(each): kind for each in columns if isinstance(kind := table.columns[each], Integer | Real)}
    texts = {quoted(each): kind.values()[0] for each in columns if isinstance(kind := table.columns[each], Category)}
    first = quoted(columns[0]) if columns else ""
    count = f"COUNT(*) AS {alias('n', columns)}"
    asked = f"SELECT {first}, {count} FROM {quoted(name)} GROUP BY {first}" if columns else ""  # noqa: S608 shown, not run
    rules = [" <= ".join([*numbers][:2])] if len(numbers) > 1 else []
    for (number, kind), (text, value) in [*zip(numbers.items(), texts.items(), strict=False)][:1]:
        shown = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else value
        rules.append(f"{number} < {kind.high} => {text} = {shown}")
    return {
        "query": asked,
        "columns": ", ".join([each for each in columns if quoted(each) == each][:2]),
        "rules": "; ".join(rules),
    }


def _curve(errors: Sequence[Mapping[str, Any]], spend: str, _: Callable[[str], str]) -> str:
    """The margins of error by spend, as a picture."""
    lines = {
        name: [(float(Fraction(each["spend"])), each[key]) for each in errors if each[key]]
        for key, name in (("one", _("1 column")), ("two", _("2 columns")), ("three", _("3 columns")))
    }
    drawn = {name: points for name, points in lines.items() if points}
    return lines_of(drawn, x=_("Spend"), y=_("Margin of error, in rows"), chosen=float(Fraction(spend)))


def _fits(table: PrivateTable | PublicTable, name: str) -> bool:
    """Whether a column can be in a synthetic table: not free text, and not the one that names people."""
    return isinstance(table, PrivateTable) and name != table.unit and not isinstance(table.columns[name], Text)
