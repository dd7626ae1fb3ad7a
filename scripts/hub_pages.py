"""The tables of the hub's reference pages, made from the code: settings, actions and roles, codes and routes of the API.

A page has a mark, `<!-- table: settings -->`, where its table goes. `docs/conf.py` puts it there when the pages are
built; the tree keeps the words around it.
"""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any


def settings() -> str:
    """Every setting: its name, what holds without it, what it means."""
    from cloister.hub.settings import known_settings

    lines = ["| setting | without it | what it means |", "|---|---|---|"]
    for name, each in known_settings().items():
        default = "" if each.default in (MISSING, "") else f"`{each.default}`"
        secret = " *Secret: shown nowhere.*" if each.metadata["secret"] else ""
        lines.append(f"| `{name}` | {default} | {_cell(each.metadata['about'])}{secret} |")
    return "\n".join(lines)


def permissions() -> str:
    """Every action and who may do it, in the order of their names."""
    from cloister.hub.decisions.policy import actions, role_table
    from cloister.hub.services import all_services

    all_services()  # each registers its actions as it is imported
    lines = ["| action | what it is | who |", "|---|---|---|"]
    for row in sorted(role_table(), key=lambda row: row.action):
        mark = "" if actions()[row.action].by_token else " (no token)"
        lines.append(f"| `{row.action}` | {_cell(row.title)}{mark} | {_who(row.cells)} |")
    return "\n".join(lines)


def _who(cells: Mapping[str, str]) -> str:
    """What everyone has who is signed in, and then each role that has something else.

    >>> _who({"nobody": "no", "anybody": "own", "administrator": "all", "steward": "all", "owner": "own"})
    'everyone: own; administrator, steward: all'
    """
    everyone = cells["anybody"]
    by_cell: dict[str, list[str]] = {}
    for role, cell in cells.items():
        if role not in ("nobody", "anybody") and cell not in ("no", everyone):
            by_cell.setdefault(cell, []).append(role)
    visitors = {"no": []}.get(cells["nobody"], [f"visitors: {cells['nobody']}"])
    signed_in = {"no": []}.get(everyone, [f"everyone: {everyone}"])
    return "; ".join([*visitors, *signed_in, *(f"{', '.join(roles)}: {cell}" for cell, roles in by_cell.items())])


def routes() -> str:
    """Every route of the API and the action that it names."""
    lines = ["| method | address under `/api/v1` | what it does | action |", "|---|---|---|---|"]
    lines += [f"| {method} | `{path}` | {_cell(title)} | `{action}` |" for method, path, title, action in _routes()]
    return "\n".join(lines)


def codes() -> str:
    """Every code of a problem, with its status."""
    from cloister.hub.problems import _STATUS

    known = {(status, code): (kind.__doc__ or "").strip().splitlines()[0] for kind, status, code in _STATUS}
    known |= {
        (404, "missing"): "There is no such address or thing, or not for this person: these are not told apart.",
        (405, "method"): "The address does not take that method.",
        (413, "too-large"): "The request is larger than it may be.",
        (422, "invalid"): "A parameter, or the body, is not what the description says.",
        (500, "failed"): "What nobody foresaw: a reference, which the log has too, and nothing else.",
    }
    lines = ["| status | code | means |", "|---|---|---|"]
    lines += [f"| {status} | `{code}` | {_cell(known[status, code])} |" for status, code in sorted(known)]
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {"settings": settings, "permissions": permissions, "codes": codes, "routes": routes}


@functools.cache
def made(name: str) -> str:
    """The table of a name."""
    return TABLES[name]()


def with_tables(text: str) -> str:
    """A page's text with each table where its mark is."""
    return re.sub(r"<!-- table: (\w+) -->", lambda mark: made(mark[1]), text)


@functools.cache
def api() -> dict[str, Any]:
    """What the hub says of its API."""
    from cloister.hub.app import make_app
    from cloister.hub.hub import Hub
    from cloister.hub.services import all_services
    from cloister.hub.settings import Settings

    with tempfile.TemporaryDirectory() as folder, Hub(Settings(data=Path(folder) / "hub", workers=0), all_services()) as hub:
        app = make_app(hub)
        described: dict[str, Any] = app.openapi()
        described["x-actions"] = dict(_actions(app.router.routes))
    return described


def _routes() -> Iterator[tuple[str, str, str, str]]:
    described = api()
    for path, methods in sorted(described["paths"].items()):
        for method, what in methods.items():
            short = path.removeprefix("/api/v1")
            yield method.upper(), short, what["summary"], described["x-actions"][path, method.upper()]


def _actions(routes: Any) -> Iterator[tuple[tuple[str, str], str | None]]:
    from fastapi.routing import APIRoute, iter_route_contexts

    from cloister.hub.guard import action_of

    for context in iter_route_contexts(routes):
        route = context.route
        if isinstance(route, APIRoute):
            for method in context.methods or ():
                yield (context.path or "", method), action_of(route)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
