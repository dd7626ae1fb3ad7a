"""The client of a proxy: a program's collections where the keys are not in its process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from cloister import errors
from cloister.errors import CloisterError, EngineError, InvalidParameter
from cloister.vault.errors import Conflict, DuplicateKey, Tampered
from cloister.vault.explanation import Explanation
from cloister.vault.results import Deleted, Documents, Inserted, Updated
from cloister.vault.values import decode, encode

METHODS: dict[str, tuple[str, ...]] = {
    "insert_one": ("document",),
    "insert_many": ("documents",),
    "find": ("filter", "projection", "sort", "skip", "limit"),
    "find_one": ("filter", "projection", "sort", "skip"),
    "update_one": ("filter", "update", "upsert", "version"),
    "update_many": ("filter", "update", "upsert"),
    "replace_one": ("filter", "document", "upsert", "version"),
    "delete_one": ("filter",),
    "delete_many": ("filter",),
    "count_documents": ("filter",),
    "create_index": ("keys", "unique"),
    "aggregate": ("pipeline",),
    "version": ("identity",),
    "explain": ("filter", "sort", "skip", "limit"),
    "layers": (),
}
"""What a proxy does for others, and the arguments in their order."""
_KINDS: dict[str, type[CloisterError]] = {
    each.__name__: each
    for each in (
        *(
            getattr(errors, name)
            for name in ("AccessDenied", "EngineError", "InvalidParameter", "UnknownColumn", "UnsupportedQuery")
        ),
        Conflict,
        DuplicateKey,
        Tampered,
    )
}
_RESULTS: dict[str, Callable[..., Any]] = {
    "insert_one": Inserted,
    "insert_many": Inserted,
    "update_one": Updated,
    "update_many": Updated,
    "replace_one": Updated,
    "delete_one": Deleted,
    "delete_many": Deleted,
    "explain": Explanation,
}
_SECONDS = 60.0


class RemoteCollection:
    """A collection behind a proxy: the methods of `Collection` that read and write documents, with the same results.

    >>> connect("http://127.0.0.1:8766", token="…").collection("people")
    <RemoteCollection 'people'>
    """

    def __init__(self, call: Callable[[str, bytes], Any], name: str) -> None:
        self.name, self._call = name, call

    def __repr__(self) -> str:
        return f"<RemoteCollection {self.name!r}>"

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method not in METHODS:
            raise AttributeError(method)

        def called(*given: Any, **named: Any) -> Any:
            if len(given) > len(METHODS[method]):
                raise InvalidParameter(
                    "The arguments are invalid", why=f"{method} takes fewer", instead=", ".join(METHODS[method]) or "none"
                )
            arguments = dict(zip(METHODS[method], given, strict=False)) | named
            found = self._call(f"collections/{quote(self.name, safe='')}/{method}", encode_arguments(arguments))
            if method == "find":
                return self._documents(found, arguments)
            if method == "explain":
                found = {name: tuple(each) if isinstance(each, list) else each for name, each in found.items()}
            return _RESULTS[method](**found) if method in _RESULTS else found

        return called

    def _documents(self, found: list[dict[str, Any]], arguments: dict[str, Any]) -> Documents:
        """What was found; a chain asks the proxy again, which reads no more than an order with a limit needs."""

        def again(sort: Any, skip: int, limit: int) -> Documents:
            asked: Documents = self.find(**arguments | {"sort": sort, "skip": skip, "limit": limit})
            return asked

        return Documents(found, again, arguments.get("sort"), arguments.get("skip", 0), arguments.get("limit", 0))


class RemoteVault:
    """The collections of a proxy."""

    def __init__(self, url: str, token: str, authority: str | Path | None) -> None:
        import httpx

        from cloister.crypto import client_context

        try:
            base, parts = httpx.URL(url), urlsplit(url)
            _ = parts.port  # each refuses some that the other takes
        except (ValueError, TypeError, httpx.InvalidURL):
            raise InvalidParameter("The address is invalid", why="it can't be read", instead="https://…") from None
        if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
            raise InvalidParameter("The address is invalid", why="without TLS only this machine is asked", instead="https://…")
        self._broken = httpx.HTTPError
        self._client = httpx.Client(
            base_url=base,
            headers={b"authorization": f"Bearer {token}".encode()},
            timeout=_SECONDS,
            trust_env=parts.scheme == "https",  # what goes to this machine goes through no HTTP_PROXY
            verify=client_context(authority) if parts.scheme == "https" else True,
        )

    def collection(self, name: str) -> RemoteCollection:
        """A collection that the proxy's owner declared."""
        return RemoteCollection(self._call, name)

    def __getitem__(self, name: str) -> RemoteCollection:
        return self.collection(name)

    def view(self, name: str, *, purpose: str, filter: Any = None) -> list[dict[str, Any]]:  # noqa: A002 - as pymongo calls it
        """The documents of a view, with a person's token."""
        given = encode_arguments({"purpose": purpose, "filter": filter})
        found: list[dict[str, Any]] = self._call(f"views/{quote(name, safe='')}", given)
        return found

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> RemoteVault:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, path: str, text: bytes) -> Any:
        try:
            answer = self._client.post(f"/{path}", content=text)
            found = decode(answer.content)
        except (self._broken, ValueError, TypeError):
            found = answer = None
        if answer is None or (answer.status_code != 200 and not isinstance(found, dict)):
            raise EngineError("The proxy did not answer", why="it is out of reach, or is no proxy", instead="the same later")
        if answer.status_code != 200:
            kind = _KINDS.get(str(found.get("kind")), EngineError)
            what, why, instead = (str(found.get(part, "")) for part in ("what", "why", "instead"))
            raise kind(what, why=why, instead=instead)
        return found


def connect(url: str, *, token: str, authority: str | Path | None = None) -> RemoteVault:
    """The collections of a vault whose keys are with a proxy (`cloister vault proxy`); `authority` is a file of whoever vouches
    for its certificate, where this system does not.

    >>> people = connect("https://proxy.example.org:8766", token="…").collection("people")
    >>> people.find({"age": {"$gte": 40}})  # doctest: +SKIP
    [{'_id': 2, 'town': 'Bern', 'age': 52}]
    """
    return RemoteVault(url, token, authority)


def encode_arguments(arguments: dict[str, Any]) -> bytes:
    """Arguments as JSON. Operators stand in filters, so keys with $ are allowed here; the proxy refuses them inside values."""
    if isinstance(arguments, dict):
        parts = (encode(name) + b":" + encode_arguments(value) for name, value in arguments.items())
        return b"{" + b",".join(parts) + b"}"
    if isinstance(arguments, list | tuple):
        return b"[" + b",".join(map(encode_arguments, arguments)) + b"]"
    return encode(arguments)
