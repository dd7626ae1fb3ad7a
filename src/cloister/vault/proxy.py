"""A vault over HTTPS: programs speak documents to the proxy, and the proxy ciphertexts to the store.

    POST /collections/NAME/METHOD     Authorization: Bearer TOKEN
        its body: the arguments by name, as JSON; dates, bytes and long integers as `values.py` marks them
    POST /views/NAME                  Authorization: Bearer TOKEN of a person; {"purpose": …, "filter": …}
        200 the result · 400, 401, 404, 409, 413, 502 {"what", "why", "instead"}

The proxy has the keys, so it belongs to the owner, before a store that does not. Its web server speaks TLS, or serves its own
machine alone. It keeps no log of requests; what a request held is in no message. What the store altered is refused (502) and told
to `note`: an entry of the audit log, which is the alert.

The page of documents is a second application: documents as the client reads them, beside what the store has. Whoever serves such
a page could take the keys, so no hub does. It is for the operator's own browser on the proxy's machine: it answers on loopback,
under its own name and a key that the command prints, and to nobody else.
"""

from __future__ import annotations

import hmac
import html
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from cloister.errors import AccessDenied, CloisterError, EngineError, InvalidParameter, MissingDependency
from cloister.installed import install
from cloister.vault.changes import Note
from cloister.vault.errors import Conflict, DuplicateKey, Tampered
from cloister.vault.explanation import Explanation
from cloister.vault.remote import METHODS
from cloister.vault.results import Deleted, Inserted, Updated
from cloister.vault.values import LARGEST, decode, encode
from cloister.vault.vault import Vault
from cloister.vault.views import Views

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_LONGEST = 4 * LARGEST
_NOTED = 100
"""Characters of what a person sent that go into the log."""
_SHOWN = 20
"""Documents on the page."""
_STATUS: tuple[tuple[type[CloisterError], int], ...] = (
    (AccessDenied, 401),
    (Conflict, 409),
    (DuplicateKey, 409),
    (Tampered, 502),
    (EngineError, 502),
)


def documents(store: Vault, token: str, note: Note, views: Views | None = None) -> Starlette:
    """The application that programs call, and people for their views."""
    from starlette.concurrency import run_in_threadpool
    from starlette.routing import Route

    def act(name: str, method: str, text: bytes) -> bytes:
        if method not in METHODS:
            raise InvalidParameter("The method is invalid", why="no collection has it", instead=", ".join(METHODS))
        given = _arguments(text)
        if given.keys() - set(METHODS[method]):
            raise InvalidParameter(
                "The arguments are invalid", why=f"{method} takes others", instead=", ".join(METHODS[method]) or "none"
            )
        wanted = getattr(store.collection(name), method)
        try:
            inspect.signature(wanted).bind(**given)
        except TypeError:
            raise InvalidParameter(
                "The arguments are invalid", why=f"{method} lacks one", instead=", ".join(METHODS[method])
            ) from None
        found = wanted(**given)
        return encode(vars(found) if isinstance(found, Inserted | Updated | Deleted | Explanation) else found)

    async def called(request: Request) -> Response:
        import starlette.responses

        said = request.headers.get("authorization", "")
        if not hmac.compare_digest(said.encode(), f"Bearer {token}".encode()):
            raise AccessDenied("The call was denied", why="its token is not the proxy's", instead="cloister vault show")
        name, method = request.path_params["name"], request.path_params["method"]
        found = await run_in_threadpool(act, name, method, await _body(request))
        return starlette.responses.Response(found, media_type="application/json")

    def view(name: str, said: str, text: bytes) -> bytes:
        given, known = _arguments(text), views or Views(store, {})
        person, purpose = known.person(said.removeprefix("Bearer ")), str(given.get("purpose", ""))
        if not person:
            note("refused", {"what": "a view", "why": "its token is nobody's"})  # once in a row, whatever was sent
            raise AccessDenied("The view was denied", why="its token is nobody's", instead="the token of a person")
        if given.keys() - {"purpose", "filter"}:
            raise InvalidParameter("The arguments are invalid", why="a view takes others", instead="purpose, filter")
        about = {"view": name[:_NOTED], "person": person, "purpose": purpose[:_NOTED]}
        try:
            found = known.read(name, person=person, purpose=purpose, filter=given.get("filter"))
        except AccessDenied:
            note("denied", about)
            raise
        note("viewed", about | {"documents": str(len(found))})
        return encode(found)

    async def viewed(request: Request) -> Response:
        import starlette.responses

        said, text = request.headers.get("authorization", ""), await _body(request)
        found = await run_in_threadpool(view, request.path_params["name"], said, text)
        return starlette.responses.Response(found, media_type="application/json")

    routes = [("/collections/{name}/{method}", called), ("/views/{name}", viewed)]
    return _application([Route(path, _answering(act, note), methods=["POST"]) for path, act in routes])


def page(store: Vault, key: str, note: Note) -> Starlette:
    """The application of the operator's page."""
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import HTMLResponse
    from starlette.routing import Route

    async def shown(request: Request) -> Response:
        host = request.headers.get("host", "").rpartition(":")[0]
        if host not in ("127.0.0.1", "localhost", "[::1]") or not hmac.compare_digest(
            request.path_params["key"].encode(), key.encode()
        ):
            raise AccessDenied("The page was denied", why="its address is not the one that was printed", instead="that address")
        body = await run_in_threadpool(lambda: "".join(_section(store, name) for name in store.collections()))
        policy = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'", "referrer-policy": "no-referrer"}
        return HTMLResponse(
            _PAGE.format(body=body or "<p>No collection yet.</p>"), headers={**policy, "cache-control": "no-store"}
        )

    return _application([Route("/{key}", _answering(shown, note))])


def _section(store: Vault, name: str) -> str:
    """Some documents of a collection: as the client reads them, and as the store has them."""
    found = store.collection(name)
    reader = found.reader
    with reader.reading():
        handles = list(reader.state.leaves(reader.table))[:_SHOWN]
        pairs = [(row, reader.sealer.opened(row)) for row, _ in reader.known(handles)]
    layers = ", ".join(f"{field}: {' + '.join(words)}" for field, words in found.layers().items())
    rows = "".join(
        f"<tr><td><pre>{_escaped(json.dumps(json.loads(encode(document)), ensure_ascii=False, indent=1))}</pre></td>"
        f"<td><pre>{row.handle.hex()} epoch {row.epoch} version {row.version}\n"
        f"{_escaped(json.dumps(json.loads(row.body), indent=1))}</pre></td></tr>"
        for row, document in pairs
    )
    head = "<tr><th scope=col>You read</th><th scope=col>The store has</th></tr>"
    return f"<h2>{_escaped(name)}</h2><p>Stored as {reader.table}. {_escaped(layers)}</p><table>{head}{rows}</table>"


def _escaped(text: str) -> str:
    return html.escape(text.encode("utf-8", "replace").decode())


_PAGE = """<!doctype html><html lang=en><meta charset=utf-8><title>Documents and what the store has</title>
<style>body{{font:16px/1.5 system-ui;margin:2rem;max-width:80rem}}pre{{white-space:pre-wrap;overflow-wrap:anywhere;margin:0}}
table{{width:100%;table-layout:fixed;border-collapse:collapse}}th,td{{border:1px solid #888;padding:.5rem;vertical-align:top;
text-align:left}}</style><h1>Documents, and what the store has</h1>{body}</html>"""


def _application(routes: list[Any]) -> Starlette:
    try:
        from starlette.applications import Starlette
    except ImportError:
        raise MissingDependency("The proxy was not started", why="its parts are not installed", instead=install("hub")) from None
    return Starlette(routes=routes)


def _answering(act: Callable[[Request], Awaitable[Response]], note: Note) -> Callable[[Request], Awaitable[Response]]:
    async def answered(request: Request) -> Response:
        from starlette.responses import JSONResponse

        try:
            return await act(request)
        except CloisterError as error:
            status = next((number for kind, number in _STATUS if isinstance(error, kind)), 400)
            if isinstance(error, Tampered):
                note("alert", {"what": error.what, "why": error.why})
            kind = type(error).__name__
            return JSONResponse({"kind": kind, "what": error.what, "why": error.why, "instead": error.instead}, status)
        except Exception as error:  # its words may hold a value
            note("failed", {"what": type(error).__name__})
            return JSONResponse({"kind": "EngineError", "what": "The proxy failed", "why": "", "instead": "the same later"}, 500)

    return answered


async def _body(request: Request) -> bytes:
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > _LONGEST:
            raise InvalidParameter("The body is invalid", why="it is longer than 64 MiB", instead="fewer documents at a time")
    return bytes(found)


def _arguments(text: bytes) -> dict[str, Any]:
    try:
        found = decode(text or b"{}")
    except (ValueError, TypeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidParameter("The body is invalid", why="it is not a JSON object", instead='{"filter": {"age": {"$gte": 40}}}')
    return found
