"""A site's part in exact components: its owner is asked about each plan, and its encrypted moments leave once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.crypto import AgreementKey, canonical_json
from cloister.errors import AccessDenied, CloisterError, EngineError
from cloister.tables import PrivateTable
from cloister.together.exact.request import ExactRequest, Floats, result_of
from cloister.together.messages import refused, unbundled, unpack
from cloister.together.rounds import HUB
from cloister.together.service_provider import SendingOwner

if TYPE_CHECKING:
    from cloister.together.agent import Note
    from cloister.together.roster import Roster
    from cloister.together.site import SitePart

AT_SITES = ("exact", "exact moments", "exact columns")
RESULTS = "exact results"
"""Where a site's journal has them."""
_SENT, _READING = "sent", "reading"
_MOST_KEYS = 64


class ExactSite:
    """A site's part: what it checks, what its owner is asked, and what it sends."""

    def __init__(self, part: SitePart, roster: Roster, note: Note, keys: OrderedDict[str, AgreementKey]) -> None:
        self._part, self._site, self._roster, self._note = part, part.site, roster, note
        self._keys = keys
        """By plan, for the masks with the other sites: in memory alone, and used once."""

    def answer(self, kind: str, body: bytes) -> bytes:
        """The body of the answer to a message of the hub."""
        text, *rest = [body] if kind == "exact" else unbundled(body) or [b""]
        request = ExactRequest.read(text)
        request.check(self._roster, self._site.table)
        if kind == "exact columns":
            self._keep(request, b"".join(rest))
            return b""
        if kind == "exact":
            self._agreed(request)
            return self._key_for(request)
        return self._sent(request, rest)

    def _key_for(self, request: ExactRequest) -> bytes:
        """The public half of this site's key for the masks of a plan; the signature of the answer is of it too."""
        if request.id not in self._keys:
            self._keys[request.id] = AgreementKey.generate()
            while len(self._keys) > _MOST_KEYS:
                self._keys.popitem(last=False)
        return self._keys[request.id].public

    def _shared(self, request: ExactRequest, agreed: Sequence[bytes]) -> dict[str, bytes]:
        """A secret with each other site, by the keys that all sites signed for this plan."""
        told = [unpack(each, "agreed", request.id, self._roster.sites) for each in agreed]
        keys, own = {each.sender: each.body for each in told}, self._keys.get(request.id)
        name = self._site.name
        if own is None or keys.get(name) != own.public or len(told) != len(keys) or set(keys) != set(self._roster.sites):
            raise refused("it has not the keys that all sites gave for this plan", "a new order")
        purpose = f"exact masks {request.id}".encode()
        return {other: own.shared(key, purpose) for other, key in keys.items() if other != name}

    def _agreed(self, request: ExactRequest, round_id: str = "") -> None:
        """Raises what the owner denies."""
        ask, label = getattr(self._site.policy, "exact", None), self._site.label
        of, of_table = (["table", label], f"\nof the table {label!r}") if label else ([], "")
        why = (
            "its owner has no policy that is asked about exact results"
            if ask is None
            else ask([*request.about(self._roster), *of], request.words + of_table, request.purpose, request.who, round_id)
        )
        if why is not None:
            raise AccessDenied(
                f"The site {self._site.name!r} denied exact components", why=why, instead="noise; or an owner who allows the plan"
            )

    def _sent(self, request: ExactRequest, agreed: Sequence[bytes]) -> bytes:
        """The message with the moments. What it tells is in the ledger, and the owner's yes used, before a row is read."""
        site, name = self._site, f"exact {request.id}"
        if not site.journal.has(name):
            self._agreed(request)  # what is denied leaves nothing on the disk
        kept = site.journal.of(name)
        with kept.locked():
            if (sent := kept.get(_SENT)) is not None:
                return sent
            if kept.get(_READING) is not None:
                raise EngineError(
                    f"The site {site.name!r} dropped out", why="it was stopped while it read its rows", instead="a new order"
                )
            shared = self._shared(request, agreed)
            self._agreed(request, request.id)
            how: dict[str, Any] = {"told": lambda _: None, "shared": shared, "random": site.random}
            owner = SendingOwner(request.plan, site.name, site._key, **how)
            what = f"exact components of {', '.join(request.columns)} (not differentially private)"
            site.ledger.note_not_private(site.population, who=request.who or HUB, what=what[:500])
            kept.put(_READING, b"")
            del self._keys[request.id]
            message = self._read(request, owner)
            kept.put(_SENT, message)
        self._note("exact", {"about": request.id, "who": request.who, "purpose": request.purpose})
        return message

    def _read(self, request: ExactRequest, owner: SendingOwner) -> bytes:
        """Whatever fails with rows looks alike from outside: what an engine says may be of a row."""
        try:
            with self._part._in_time(charged=True):
                values, labels = _rows(self._part.rows, self._site.table, request)
            return owner.message(values, labels)
        except Exception as error:
            failed = f"{error.what}: {error.why}" if isinstance(error, CloisterError) else type(error).__name__
        self._note("failed", {"about": request.id, "what": failed})
        raise EngineError(
            f"The site {self._site.name!r} dropped out",
            why="it could not send its sums",
            instead="more rows=; or its owner sees why",
        )

    def _keep(self, request: ExactRequest, data: bytes) -> None:
        """The result, where this site took part."""
        journal = self._site.journal
        if not journal.has(f"exact {request.id}") or journal.of(f"exact {request.id}").get(_SENT) is None:
            raise refused("this site sent nothing for it", "a plan that it took part in")
        found = request.plan.columns_in(data)
        journal.of(RESULTS).put(request.id, canonical_json(result_of(request, found)).encode())


def _rows(prepared: Any, table: PrivateTable, request: ExactRequest) -> tuple[Floats, np.ndarray[Any, Any] | None]:
    """Rows without a missing value, and each one's class by its place among the declared values."""
    names = [*request.columns, *([request.label] if request.label else [])]
    codes = prepared.rows(names)
    known = np.ones(len(codes[names[0]]), dtype=bool)
    for name in names:
        known &= np.asarray(codes[name]) != table.columns[name].null_code
    values = np.column_stack([_decoded(table.columns[name], codes[name][known]) for name in request.columns])
    if not request.label:
        return values, None
    return values, np.asarray(codes[request.label][known]).astype(np.int64) - table.columns[request.label].low_code


def _decoded(domain: Any, codes: Any) -> Floats:
    distinct, places = np.unique(codes, return_inverse=True)
    return np.array([float(domain.decode(each)) for each in distinct.tolist()] or [0.0])[places]
