"""Models as a kind of release: what their page shows, what a program reads, their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from cloister.errors import CloisterError
from cloister.hub.cache import cached
from cloister.hub.decisions.policy.methods import offered
from cloister.hub.releases.kinds import File, FileKind, ReleaseKind, View
from cloister.hub.releases.shapes import Line
from cloister.hub.services.learning.inside import Numbers, Weight, bounds_of, declared_columns, numbers_of, picture, weights_of
from cloister.hub.services.learning.judging import picture as reliability
from cloister.hub.services.learning.order import class_of
from cloister.hub.services.learning.predicting import MOST_BYTES
from cloister.hub.web.languages import N_

if TYPE_CHECKING:
    from cloister.hub.records.releases import StoredRelease
    from cloister.tables import Domain

CARD = (
    N_("Charges by statistic"),
    N_("Results"),
    N_("Declared bounds"),
    N_("Parameters"),
    N_("data set"),
    N_("date"),
    N_("guarantee"),
    N_("target"),
)
"""Sections and lines of a card: they are written below the hub, and told in the reader's language where they are shown."""


class LearntLine(Line):
    """One model, without what it learnt."""

    method: str
    table: str
    features: list[str]
    target: str
    project: str
    algorithm: str
    cost: dict[str, str]

    @classmethod
    def of(cls, row: StoredRelease, **more: Any) -> Self:
        """As it is kept."""
        columns = row.details["columns"]
        return super().of(row, features=[name for name, _ in columns["features"]], target=columns["target"], **more)


class Learnt(LearntLine):
    """One model: `model` is its portable text, which `cloister.learn.load` reads, and `card` its card."""

    model: str
    card: dict[str, Any]

    @classmethod
    def of(cls, row: StoredRelease, **more: Any) -> Self:
        """With what it learnt."""
        return super().of(row, model=row.body.decode(), card=json.loads(row.details["card"]), **more)


def _shown(view: View) -> dict[str, Any]:
    details, _ = view.row.details, view.language.gettext
    columns = declared_columns(view.row)
    numbers, weights = _inside(view, columns)
    told = details.get("judged")
    return {
        "card": _card(view),
        "bounds": bounds_of(columns),
        "numbers": numbers,
        "weights": weights,
        "weights_picture": picture(weights, _) if weights else "",
        "judged": told,
        "reliability": reliability(told, _) if told and told["bins"] else "",
        "method": offered()[details["method"]],
        "features": [name for name, _ in details["columns"]["features"]],
        "target": details["columns"]["target"],
        "most": MOST_BYTES // 2**20,
    }


def _inside(view: View, columns: Mapping[str, Domain]) -> tuple[list[Numbers], list[Weight]]:
    """What the page says of the model itself: worked out once in a process, nothing where it can't be."""

    def work() -> tuple[list[Numbers], list[Weight]]:
        class_of(view.row.details["method"])
        import cloister.learn

        model = cloister.learn.load(view.row.body.decode())
        try:
            return numbers_of(model, columns), weights_of(model, columns)
        except (CloisterError, TypeError, ValueError, ArithmeticError, LookupError):  # a model of an older version
            return [], []

    return cached(view.hub, "what a model says", view.row.id, work)


def _card(view: View) -> Any:
    class_of(view.row.details["method"])  # refuses where learning is not installed
    from cloister.learn.frame.card import Card

    return Card.from_json(view.row.details["card"])


def _as_json(view: View) -> File:
    return File(name=f"model-{view.row.id}.json", body=view.row.body)


def _as_card(view: View) -> File:
    return File(name=f"card-{view.row.id}.md", body=_card(view).markdown().encode())


MODEL = ReleaseKind(
    name="model",
    path="/models",
    trail="model",
    missing=N_("There is no such model"),
    list_template="learning/models.html",
    template="learning/model.html",
    listed=lambda *_: {"titles": {name: method.title for name, method in offered().items()}},
    shown=_shown,
    told=lambda view: Learnt.of(view.row).model_dump_json().encode(),
    files={
        "json": FileKind(media_type="application/json", make=_as_json),
        "card": FileKind(media_type="text/markdown; charset=utf-8", make=_as_card),
    },
)
