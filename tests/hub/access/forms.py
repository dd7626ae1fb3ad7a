"""Filling in the forms of pages as a browser does."""

from __future__ import annotations

import html
import re
from typing import Any

from cloister.hub.web.forms import TOKEN_FIELD
from tests.hub.house import Visitor


def token(visitor: Visitor, page: str = "/") -> str:
    """The token against forgery of a page's forms."""
    text = visitor.client.get(page).text
    found = re.search(rf'name="{TOKEN_FIELD}" value="([^"]+)"', text)
    assert found is not None, text[:300]
    return html.unescape(found[1])


def post(visitor: Visitor, path: str, page: str = "", **form: Any) -> Any:
    """Send a form of a page (by default of the page at the same address)."""
    return visitor.client.post(path, data={TOKEN_FIELD: token(visitor, page or path), **form})
