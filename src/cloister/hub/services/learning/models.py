"""Models as a kind of release: what their page shows, what a program reads, their files."""

from __future__ import annotations

from typing import Any

from cloister.hub.policy.methods import offered
from cloister.hub.releases.kinds import File, FileKind, ReleaseKind, View
from cloister.hub.services.learning.order import class_of
from cloister.hub.services.learning.predicting import MOST_BYTES
from cloister.hub.services.learning.shapes import Learnt
from cloister.hub.web.languages import N_


def _shown(view: View) -> dict[str, Any]:
    details = view.row.details
    return {
        "card": _card(view),
        "method": offered()[details["method"]],
        "features": [name for name, _ in details["columns"]["features"]],
        "target": details["columns"]["target"],
        "most": MOST_BYTES // 2**20,
    }


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
