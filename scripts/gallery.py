"""The pictures of docs/gallery.md, drawn by the snippets that the page shows beside them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "gallery.md"


def snippet(name: str) -> str:
    """The last Python block before a picture of that name.

    >>> "afford" in snippet("gallery_afford")
    True
    """
    before, found, _ = PAGE.read_text(encoding="utf-8").partition(f"/{name}.svg")
    blocks = re.findall(r"^```python\n(.*?)^```", before, re.DOTALL | re.MULTILINE)
    if not found or not blocks:
        raise SystemExit(f"{PAGE.name} shows no picture {name!r} after a snippet")
    return str(blocks[-1])


def drawn(name: str) -> Any:
    """The `chart` that the snippet makes."""
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(snippet(name), PAGE.name, "exec"), names)
    return names["chart"]
