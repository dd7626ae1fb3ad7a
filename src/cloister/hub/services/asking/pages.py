"""The pages of questions and releases."""

from __future__ import annotations

from fastapi import APIRouter

from cloister.hub.services.asking import pages_ask, pages_releases


def pages() -> APIRouter:
    """The routes."""
    router = APIRouter()
    pages_ask.routes(router)
    pages_releases.routes(router)
    return router
