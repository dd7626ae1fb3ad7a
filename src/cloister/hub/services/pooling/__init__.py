"""Data sets of several owners, asked as one: made of data sets that are declared alike, each with its owner's policy and budget.

- `making.py`: such a data set, and what each owner gave to it. `comparing.py`: one question alone, together, and added up.
- `pages.py`, `api.py`: the routes.

What may not live here: a sum or a charge (`cloister.together.pooled`, the ledger), where a session finds the rows (`catalogue`),
and whether somebody may ask (`hub/work/authorise.py` asks the policy of every part).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.hub.service import Link, Service
from cloister.hub.web.languages import N_

if TYPE_CHECKING:
    from fastapi import APIRouter

__all__ = ["SERVICE"]


def _pages() -> APIRouter:
    from cloister.hub.services.pooling.pages import pages

    return pages()


def _api() -> APIRouter:
    from cloister.hub.services.pooling.api import api

    return api()


SERVICE = Service(
    name="pooling",
    title=N_("Data sets of several owners"),
    pages=_pages,
    api=_api,
    links=(
        Link(
            title=N_("Several owners"),
            path="/pools",
            group="data",
            help="how-to/ask-several-owners",
            action="dataset.see",
            order=32,
            icon="people",
        ),
    ),
)
