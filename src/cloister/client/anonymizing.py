"""Tables that a hub anonymises for their owner: the order as plain data, and the table that was released.

An `Anonymizer` says what is wanted, as it does on this machine. What it has that a hub does not take (a search of one's own,
weights, a function as a hierarchy) is refused here, and never left out in silence.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cloister.client.transport import Transport
from cloister.errors import InvalidParameter
from cloister.privacy.rational import exact

if TYPE_CHECKING:
    from cloister.anonymize import Anonymizer

_SEARCHES = ("optimal", "mondrian", "local", "topdown", "greedy")
_UNKNOWN = ("weights", "aggregates", "research", "missing_values", "keep_index", "random", "progress", "stop")
"""What a hub does not take, where it is given."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AnonymizedTable:
    """A table that a hub released: its report, its certificate, its rows. Not differentially private.

    >>> AnonymizedTable(id="a1", title="People", table="people", data_set="d1", purpose="", created=datetime(2026, 3, 2))
    <AnonymizedTable a1: 'People', made of 'people'>
    """

    id: str
    title: str
    table: str
    """Of which data set it was made."""
    data_set: str
    """The id of the data set that its rows became."""
    purpose: str
    created: datetime
    _transport: Transport | None = field(default=None, repr=False)

    @property
    def report(self) -> Mapping[str, Any]:
        """Models, risk and loss: what `Anonymizer.report_.to_dict()` has on this machine."""
        found: Mapping[str, Any] = self._hub.get(f"/anonymised/{self.id}")["report"]
        return found

    @property
    def certificate(self) -> Mapping[str, Any]:
        """What was proved of the table, and how far attackers got."""
        found: Mapping[str, Any] = self._hub.get(f"/anonymised/{self.id}")["certificate"]
        return found

    def to_polars(self) -> Any:
        """The rows as a polars frame."""
        from cloister.anonymize.frames import need_polars

        return need_polars().read_parquet(io.BytesIO(self._hub.file(f"/anonymised/{self.id}/download", form="parquet")))

    def to_pandas(self) -> Any:
        """The rows as a pandas frame."""
        return self._as("pandas")

    def to_arrow(self) -> Any:
        """The rows as an Arrow table."""
        return self._as("arrow")

    def _as(self, kind: str) -> Any:
        from cloister.anonymize.frames import Frame

        data = self.to_polars()
        return Frame(data, kind).give_back(data)

    @property
    def _hub(self) -> Transport:
        if self._transport is None:
            raise InvalidParameter(
                "The table has no rows here", why="it did not come from a hub", instead="session.anonymized()[0]"
            )
        return self._transport

    def __repr__(self) -> str:
        return f"<AnonymizedTable {self.id}: {self.title!r}, made of {self.table!r}>"


def order_of(anonymizer: Anonymizer, table: str, *, kept: Sequence[str], purpose: str) -> dict[str, Any]:
    """What an anonymizer wants, as it travels.

    >>> from cloister.anonymize import Anonymizer, KAnonymity, LDiversity
    >>> wanted = Anonymizer(quasi=["age"], sensitive=["ill"], models=[KAnonymity(5), LDiversity(2)], search="mondrian")
    >>> order = order_of(wanted, "people", kept=[], purpose="")
    >>> order["parts"], order["k"], order["l"], order["search"]
    ({'age': 'quasi', 'ill': 'sensitive'}, 5, 2, 'mondrian')
    """
    from cloister.anonymize import Anonymizer
    from cloister.anonymize.roles import check_one_role

    if not isinstance(anonymizer, Anonymizer):
        raise _not_there(f"An anonymizer of type {type(anonymizer).__name__!r}", "Anonymizer(…)")
    changed = {
        "shuffle": not anonymizer.shuffle,
        "seconds": anonymizer.seconds != 60,
        **{name: getattr(anonymizer, name) for name in _UNKNOWN},
    }
    if given := next((name for name, unusual in changed.items() if unusual), None):
        raise _not_there(f"{given}=", f"the anonymizer without {given}=")
    if anonymizer.suppressed != "drop":
        raise _not_there(f"suppressed={anonymizer.suppressed!r}", 'suppressed="drop"')
    if anonymizer.search not in _SEARCHES:
        raise _not_there(f"search={anonymizer.search!r}", f'search="optimal", or another of {", ".join(_SEARCHES)}')
    roles = {"quasi": anonymizer.quasi, "sensitive": anonymizer.sensitive, "identifying": anonymizer.identifying, "kept": kept}
    check_one_role(**roles)
    return {
        "table": table,
        "parts": {name: part for part, names in roles.items() for name in names},
        **_models(anonymizer),
        "search": anonymizer.search,
        "metric": anonymizer.metric,
        "suppression": _text(anonymizer.suppression),
        "missing": anonymizer.missing,
        "hierarchies": {name: _lines(name, hierarchy) for name, hierarchy in (anonymizer.hierarchies or {}).items()},
        "purpose": purpose,
    }


def _models(anonymizer: Anonymizer) -> dict[str, Any]:
    """Models of every sensitive column, one of each kind."""
    from cloister.anonymize import AlphaKAnonymity, BetaLikeness, DeltaDisclosure, KAnonymity, LDiversity, TCloseness

    found: dict[str, Any] = {"k": 1}
    if len({type(model) for model in anonymizer.models}) < len(anonymizer.models):
        raise _not_there("models=", "one model of each kind")
    for model in anonymizer.models:
        match model:
            case KAnonymity() if type(model) is KAnonymity:
                found["k"] = model.k
            case LDiversity(column=None):
                kind = {"diversity": model.kind} if model.kind != "distinct" else {}
                found |= {"l": model.l, **kind, **({"c": _text(model.c)} if model.c is not None else {})}
            case TCloseness(column=None, hierarchy=None):
                # any two values one apart: the same distance under two names
                distance = "equal" if model.distance == "total variation" else model.distance
                found |= {"t": _text(model.t), **({"distance": distance} if distance else {})}
            case BetaLikeness(column=None):
                found |= {"beta": _text(model.beta), **({"likeness": "enhanced"} if model.enhanced else {})}
            case DeltaDisclosure(column=None):
                found["delta"] = _text(model.delta)
            case AlphaKAnonymity(column=None):
                found["alpha"] = _text(model.alpha)
            case _:
                raise _not_there(
                    getattr(model, "name", repr(model)),
                    "KAnonymity, LDiversity, TCloseness without a hierarchy, BetaLikeness, DeltaDisclosure, AlphaKAnonymity: of "
                    "every sensitive column",
                )
    alpha = next((model.k for model in anonymizer.models if isinstance(model, AlphaKAnonymity)), None)
    if alpha is not None and found["k"] not in (1, alpha):
        raise _not_there("AlphaKAnonymity with another k than KAnonymity", f"KAnonymity({alpha})")
    return found | ({"k": alpha} if alpha is not None else {})


def _text(value: Any) -> str:
    return str(exact(value))


def _lines(name: str, hierarchy: Any) -> str:
    import csv

    from cloister.anonymize.hierarchies.table import Written

    if not isinstance(hierarchy, Written):
        raise _not_there(
            f"the hierarchy of {name!r}", "levels that are written down: Hierarchy.of({…}), Hierarchy.read_csv(path)"
        )
    text = io.StringIO()
    csv.writer(text, delimiter=";", lineterminator="\n").writerows(hierarchy.lines)
    return text.getvalue()


def _not_there(what: str, instead: str) -> InvalidParameter:
    return InvalidParameter(f"{what} is invalid", why="a hub does not take it", instead=instead)


def table_of(transport: Transport, told: Mapping[str, Any]) -> AnonymizedTable:
    """The table that an entry of the hub describes."""
    names = ("id", "title", "table", "data_set", "purpose")
    created = datetime.fromisoformat(str(told["created"]))
    return AnonymizedTable(**{name: str(told[name]) for name in names}, created=created, _transport=transport)
