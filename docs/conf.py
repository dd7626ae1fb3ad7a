"""How the documentation is built: Sphinx, Markdown through MyST, the Furo theme, nothing fetched from anywhere.

Before each build, scripts/figures.py draws the figures and scripts/reference.py writes the pages of the API reference; where a
page has a mark, scripts/hub_pages.py gives it that table of the hub as it is read. With the tag `draft` (`-t draft`) figures that
are not drawn yet are left blank, pages have Sphinx's plain theme, there is no index to search in, and the API reference has each
third name: every page and link is there, in a fifth of the time. Quotes stay straight.
"""

from __future__ import annotations

import logging
import sys
from collections import defaultdict
from importlib import metadata
from pathlib import Path
from typing import Any

from sphinx.domains.python import PythonDomain

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import figures, hub_pages, reference  # noqa: E402  (the tree is on the path only now)

project = "cloister"
author = "the cloister developers"
copyright = "the cloister developers, Apache-2.0"  # noqa: A001  (Sphinx names it)
release = metadata.version("cloister-privacy")

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
autodoc_use_type_comments = False
python_use_unqualified_type_names = True

DRAFT = tags.has("draft")  # type: ignore[name-defined]  # noqa: F821  (Sphinx gives it)
smartquotes = not DRAFT
html_theme = "basic" if DRAFT else "furo"
html_title = "cloister"
html_static_path = ["_static"]
html_js_files, html_css_files = ["copy.js"], ["copy.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {} if DRAFT else {"source_repository": None, "top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"


class ByLastName(PythonDomain):
    """Sphinx compares a name that it looks for with each of our thousands; here, with those of the same last part."""

    ends: tuple[int, dict[str, list[str]]] = (0, {})

    def find_obj(self, env: Any, modname: str, classname: str, name: str, *more: Any, **named: Any) -> Any:
        every = self.objects
        if self.ends[0] != len(every):
            ends = defaultdict(list)
            for each in every:
                ends[each.rpartition(".")[2]].append(each)
            self.ends = len(every), ends
        near = self.ends[1].get(name.removesuffix("()").rpartition(".")[2], [])
        self.data["objects"] = {each: every[each] for each in near}
        try:
            return super().find_obj(env, modname, classname, name, *more, **named)
        finally:
            self.data["objects"] = every


def _prepare(_app: Any) -> None:
    if DRAFT:
        logging.disable(logging.DEBUG)
        figures.blank_for_build()
        _app.builder.search = False
    else:
        figures.draw_for_build()
    reference.write_all(each=3 if DRAFT else 1)


def _plain_text(_app: Any, _what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    lines[:] = reference.as_rest(lines)


def _tables(_app: Any, _page: str, source: list[str]) -> None:
    source[0] = hub_pages.with_tables(source[0])


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.add_domain(ByLastName, override=True)
    app.connect("builder-inited", _prepare)
    app.connect("source-read", _tables)
    app.connect("autodoc-process-docstring", _plain_text, priority=400)
