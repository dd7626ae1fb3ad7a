"""How the documentation is built: Sphinx, Markdown through MyST, the Furo theme, nothing fetched from anywhere.

Before each build, scripts/figures.py draws the figures and scripts/reference.py writes the pages of the API reference. With the
tag `draft` (`-t draft`) figures that are not drawn yet are left blank, pages have Sphinx's plain theme, and there is no index to
search in: every word, link and warning is the same, in a third of the time.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import figures, reference  # noqa: E402  (the tree is on the path only now)

project = "cloister"
author = "the cloister developers"
copyright = "the cloister developers, Apache-2.0"  # noqa: A001  (Sphinx names it)
release = metadata.version("cloister")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
default_role = "code"
nitpicky = False
suppress_warnings = ["ref.python"]  # a name that two rooms give out has two homes

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True

DRAFT = tags.has("draft")  # type: ignore[name-defined]  # noqa: F821  (Sphinx gives it)
html_theme = "basic" if DRAFT else "furo"
html_title = "cloister"
html_static_path = ["_static"]
html_js_files, html_css_files = ["copy.js"], ["copy.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {} if DRAFT else {"source_repository": None, "top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"


def _prepare(_app: Any) -> None:
    if DRAFT:
        figures.blank_for_build()
        _app.builder.search = False
    else:
        figures.draw_for_build()
    reference.write_all()


def _plain_text(_app: Any, _what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    lines[:] = reference.as_rest(lines)


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("builder-inited", _prepare)
    app.connect("autodoc-process-docstring", _plain_text, priority=400)
