"""The key holder as a process of its own: it dials out to its hub and waits there for messages, as sites do.

    batch   a batch's header and sealed key      → agreed, or refused
    plan    what the hub is about to charge      → agreed, or refused
    pads    the same under its charge            → sums, with the key holder's noise inside, or refused
    exact … keys and steps of circuits           → `together/exact`, where its operator allows them

The hub knows the key holder by its key, and the key holder the hub: each is written down at the other after its fingerprint was
compared. What the hub asks is signed, and so is each answer.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from cloister.crypto import SigningKey, canonical_json
from cloister.errors import InvalidDeclaration
from cloister.privacy import Guarantee
from cloister.privacy.plain import guarantee_to_plain
from cloister.together.agent import Caller
from cloister.together.checking import MOST_NUMBERS
from cloister.together.coordinator import Mailboxes, refusal
from cloister.together.messages import pack, unpack
from cloister.together.messages import refused as no_message
from cloister.together.roster import PROTOCOL
from cloister.together.rounds import HUB
from cloister.together.sealed.holder import KeyHolder


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """A hub and its key holder, by their signing keys.

    >>> list(Pairing(name="keys", holder=bytes(32), hub=b"1" * 32).roster.sites)
    ['keys']
    """

    name: str
    holder: bytes
    hub: bytes

    @property
    def roster(self) -> Pairing:
        """Nobody else is in it."""
        return self

    @property
    def sites(self) -> Mapping[str, bytes]:
        """Who calls."""
        return {self.name: self.holder}

    @property
    def digest(self) -> str:
        """SHA-256 of its text."""
        return hashlib.sha256(canonical_json({"pairing": self.plain(), "protocol": PROTOCOL}).encode()).hexdigest()

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return {"name": self.name, "key holder": self.holder.hex(), "hub": self.hub.hex()}

    def check(self) -> None:
        """Two keys of their own."""
        if len(self.holder) != 32 or len(self.hub) != 32 or self.holder == self.hub:
            raise InvalidDeclaration(
                "The keys are invalid",
                why="hub and key holder have a key of 32 bytes each",
                instead="the first 64 digits of each",
            )


class KeyHolderLine(Mailboxes):
    """The hub's end: the mailbox of its key holder, which stands for it in a `SealedTable`. `serving` starts the web server.

    >>> holder, hub = KeyHolder("keys"), SigningKey(bytes(32))
    >>> line = KeyHolderLine(hub, "keys", holder.public)
    >>> str(line.presence["keys"])
    'it never called'
    """

    party: ClassVar[str] = "key-holder"
    command: ClassVar[str] = "csp"

    def __init__(self, key: SigningKey, name: str, key_holder: bytes, **other: Any) -> None:
        super().__init__(key, Pairing(name=name, holder=key_holder[:32], hub=key.public), **other)
        self.name = name

    @property
    def holder(self) -> bytes:
        """Its signing key."""
        return self.signed.roster.sites[self.name]

    def exact(self, step: str, body: bytes, most: int = 0) -> bytes:
        """Brings it a step of exact components."""
        return self._answer(f"exact {step}", body, most)

    def accept(self, data: bytes) -> str:
        """Brings it a batch's header."""
        return self._answer("batch", data).decode()

    def agreed(self, text: bytes, besides: Iterable[Guarantee] = ()) -> None:
        """Asks it in advance."""
        self._answer("plan", text, besides=[guarantee_to_plain(each) for each in besides])

    def answer(self, text: bytes) -> bytes:
        """What it answers under a charge."""
        return self._answer("pads", text, 8 * MOST_NUMBERS)

    def _answer(self, kind: str, body: bytes, most: int = 0, **fields: Any) -> bytes:
        about, reads = hashlib.sha256(body).hexdigest(), kind == "pads"
        message = pack(kind, about, HUB, self.key, body, **fields)
        with contextlib.closing(self.ask({self.name: message}, about, most + (1 << 16), reads)) as answers:
            for _, found, _ in answers:
                if found.kind == "refused":
                    raise refusal(found, self.party)
                return found.body
        raise self.silent(self.name, reads)


class KeyHolderAgent(Caller):
    """The key holder's end: answers one hub, whose public key it was given. `exact`: whether its operator allows exact
    components, which are not differentially private.

    >>> from cloister.together.messages import opened
    >>> agent = KeyHolderAgent(KeyHolder("keys"), SigningKey(bytes(32)).public)
    >>> opened(agent.answer(b"garbage")).kind
    'refused'
    """

    called, whose = "key holder", "operator"

    def __init__(self, holder: KeyHolder, hub: bytes, *, exact: bool = False) -> None:
        if holder.owners is None and holder.budgets:
            raise InvalidDeclaration(
                f"The key holder {holder.name!r} has no owners",
                why="a hub could bring it rows of its own that name anybody's people",
                instead='owners={"patients": [key]}, of each population the public keys of its owners',
            )
        self.holder, self.name, self.key, self._note = holder, holder.name, holder.signing, holder.note
        self.pairing = Pairing(name=holder.name, holder=holder.signing.public, hub=hub)
        self.pairing.check()
        self._exact: Mapping[str, Callable[[bytes], bytes]] | None = None
        self._allows = exact

    @property
    def joined(self) -> str:
        """The digest of the pairing."""
        return self.pairing.digest

    def _answered(self, data: bytes) -> bytes:
        found = unpack(data, None, None, {HUB: self.pairing.hub})
        kinds: Mapping[str, Callable[[bytes], bytes | str | None]] = {
            "batch": self.holder.accept,
            "plan": lambda text: self.holder.agreed(text, found.besides),
            "pads": self.holder.answer,
            **(self._of_exact() if found.kind.startswith("exact ") else {}),
        }
        if found.kind not in kinds or found.round != hashlib.sha256(found.body).hexdigest():
            raise no_message("no key holder answers such a one", "the messages of this version")
        said = kinds[found.kind](found.body) or b""
        return pack("agreed", found.round, self.name, self.key, said.encode() if isinstance(said, str) else said)

    def _of_exact(self) -> Mapping[str, Callable[[bytes], bytes]]:
        """What answers steps of exact components: it is loaded when the first comes."""
        if self._exact is None:
            from cloister.together.exact.keys import ExactKeys

            made = ExactKeys(self.name, self.key, self.pairing.hub, allowed=self._allows, note=self.holder.note)
            self._exact = made.kinds
        return self._exact
