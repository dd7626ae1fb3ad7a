"""Files of the pages, with an address that changes when they do, so that a browser may keep them for a year."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.staticfiles import StaticFiles

from cloister import local, together

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Scope

STATIC = Path(__file__).parent / "static"
TWINS = (Path(local.__file__).parent / "browser", Path(together.__file__).parent / "prio3" / "browser")
"""What respondents' browsers run: kept beside the Python that it is the twin of."""


@cache
def asset(name: str) -> str:
    """The address of a file of `static/`.

    >>> asset("page.js").startswith("/static/page.js?v=")
    True
    """
    found = next(folder / name for folder in (STATIC, *TWINS) if (folder / name).is_file())
    return f"/static/{name}?v={hashlib.sha256(found.read_bytes()).hexdigest()[:12]}"


class Assets(StaticFiles):
    """What answers under /static: kept for good where the address names the version, asked for again where it doesn't."""

    def __init__(self) -> None:
        super().__init__(directory=STATIC)
        self.all_directories = [STATIC, *TWINS]

    async def get_response(self, path: str, scope: Scope) -> Response:
        """The file."""
        response = await super().get_response(path, scope)
        kept = b"v=" in scope.get("query_string", b"") and response.status_code == 200
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if kept else "no-cache"
        return response
