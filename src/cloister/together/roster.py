"""The roster: which sites answer together, by which keys they are known, and how many of them may fail.

Everybody signs it, so that the hub can't make up sites: a hub that invents N − 1 of N sites reads the N-th. Owners compare
fingerprints with one another, not through the hub. `missing` (t) counts sites that collude with the hub or drop out;
`threshold` (T) is how many must agree on who is left before anything is opened.

Why 2T > N + t: whoever signs one set of survivors signs no other, save up to t sites that collude. Two sets with T signatures
each would need 2(T − t) signatures of honest sites, of which there are N − t: 2(T − t) ≤ N − t, that is 2T ≤ N + t. The same
count shows that of the two seeds of a site at most one can be opened, since an honest site opens one of them. ∎ So three sites
of which one may collude all have to stay to the end, and of two sites each would see the other's: two are refused.

How much noise nobody knows: a sum is opened over `quorum` sites at least. A hub that lies chooses which: it cuts off honest sites
and keeps all t colluders, whose noise it knows. So `honest` = quorum − t is the least number of shares that are unknown to it,
and every share is sized for that number. From T > (N + t)/2 and t ≤ N − 2 it follows that honest ≥ 2: no sum is that of one
honest site. Where owners say how many may drop out (d, `dropouts`), the quorum is N − d, and honest = N − t − d: the noise of
all N has N/(N − t − d) of the variance of one. If they do not, d is as large as t where T leaves room for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cloister.crypto import SigningKey, canonical_json, fingerprint, is_signed
from cloister.errors import InvalidDeclaration
from cloister.noise.shares import NoiseShares, Whole
from cloister.printable import is_text

PROTOCOL = 1
MOST_SITES = 1000
_LONGEST = 100

_MOST_EPOCHS = 2**31


@dataclass(frozen=True, kw_only=True)
class Roster:
    """Who takes part. The order of the sites is part of it.

    >>> roster = Roster(sites={name: bytes([place]) * 32 for place, name in enumerate("abcde", 1)}, hub=bytes(32), missing=1)
    >>> roster.threshold, roster.quorum, roster.honest, len(roster.digest)
    (4, 4, 3, 64)
    >>> Roster(sites=roster.sites, hub=roster.hub, missing=1, dropouts=0).honest
    4
    """

    sites: Mapping[str, bytes]
    """By name, the public half of each site's signing key."""
    hub: bytes
    """That of the hub."""
    missing: int
    """t: how many sites may collude with the hub."""
    threshold: int = 0
    """T; 0 takes the least with 2T > N + t."""
    dropouts: int | None = None
    """How many sites may drop out, at most N − T; None: as many as may collude, where that leaves T."""
    epoch: int = 1
    """Counts the rosters of these sites: a changed one has the next number."""

    def __post_init__(self) -> None:
        sites, missing = dict(self.sites), self.missing
        object.__setattr__(self, "sites", sites)
        if not 3 <= len(sites) <= MOST_SITES:
            raise _invalid(
                f"{len(sites)} sites are not supported",
                "of two, each would see the other's numbers" if len(sites) == 2 else "a sum needs several that hide one another",
                f"from 3 to {MOST_SITES} sites",
            )
        if not all(is_name(name) for name in sites):
            raise _invalid("A site's name is invalid", "it can't be shown", 'sites={"north": key, …}')
        keys = [*sites.values(), self.hub]
        if any(not isinstance(key, bytes) or len(key) != 32 for key in keys) or len(set(keys)) < len(keys):
            raise _invalid(
                "The keys of the roster are invalid", "each party has a key of 32 bytes of its own", "key.public of each"
            )
        if isinstance(missing, bool) or not isinstance(missing, int) or not 0 <= missing <= len(sites) - 2:
            raise _invalid(
                f"missing={missing!r} is invalid",
                "at least two sites must be honest and present",
                f"missing={(len(sites) - 1) // 3}",
            )
        least = (len(sites) + missing) // 2 + 1
        if self.threshold == 0:
            object.__setattr__(self, "threshold", least)
        if not isinstance(self.threshold, int) or not least <= self.threshold <= len(sites):
            raise _invalid(
                f"threshold={self.threshold!r} is invalid",
                f"with {len(sites)} sites, {missing} of them missing, two different sets of survivors could both be signed",
                f"threshold={least}",
            )
        room, dropouts = len(sites) - self.threshold, self.dropouts
        if dropouts is not None and (isinstance(dropouts, bool) or not isinstance(dropouts, int) or not 0 <= dropouts <= room):
            raise _invalid(
                f"dropouts={dropouts!r} is invalid",
                f"of {len(sites)} sites {self.threshold} have to agree on who is left",
                f"dropouts={room}, or less",
            )
        if isinstance(self.epoch, bool) or not isinstance(self.epoch, int) or not 1 <= self.epoch < _MOST_EPOCHS:
            epoch = self.epoch if not isinstance(self.epoch, int) or self.epoch < 1 else _MOST_EPOCHS  # digits without end
            raise _invalid(f"epoch={epoch!r} is invalid", "it counts from 1, below 2147483648", "epoch=1")

    @property
    def quorum(self) -> int:
        """How many sites must be left at every step until numbers are sent, and so in the sum."""
        return max(self.threshold, len(self.sites) - (self.missing if self.dropouts is None else self.dropouts))

    @property
    def honest(self) -> int:
        """Of how many sites at least the noise is in a sum and unknown to the hub and t colluders, whoever the hub leaves out."""
        return self.quorum - self.missing

    def noise(self, law: Whole) -> NoiseShares:
        """A law of noise in shares of these sites.

        >>> roster = Roster(sites={name: name.encode() * 32 for name in "abcde"}, hub=bytes(32), missing=1)
        >>> from cloister.noise import DiscreteLaplace
        >>> roster.noise(DiscreteLaplace(scale=10)).total(3) == DiscreteLaplace(scale=10)
        True
        """
        return NoiseShares(law=law, parties=len(self.sites), honest=self.honest)

    @cached_property
    def points(self) -> Mapping[str, int]:
        """At which point each site has its shares of secrets."""
        return {name: place for place, name in enumerate(self.sites, 1)}

    @cached_property
    def text(self) -> bytes:
        """The one text of it: what everybody signs."""
        return canonical_json({"roster": self.plain(), "protocol": PROTOCOL}).encode()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the text, as hexadecimal digits."""
        return hashlib.sha256(self.text).hexdigest()

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        said = {} if self.dropouts is None else {"dropouts": self.dropouts}
        return {
            "sites": [[name, key.hex()] for name, key in self.sites.items()],
            "hub": self.hub.hex(),
            "missing": self.missing,
            "threshold": self.threshold,
            "epoch": self.epoch,
            **said,
        }

    @classmethod
    def from_plain(cls, told: Mapping[str, Any]) -> Roster:
        """Again from plain data.

        >>> roster = Roster(sites={name: name.encode() * 32 for name in "abc"}, hub=bytes(32), missing=0)
        >>> Roster.from_plain(roster.plain()) == roster
        True
        """
        return cls(
            sites={name: bytes.fromhex(key) for name, key in told["sites"]},
            hub=bytes.fromhex(told["hub"]),
            missing=told["missing"],
            threshold=told["threshold"],
            epoch=told["epoch"],
            dropouts=told.get("dropouts"),
        )

    def fingerprints(self) -> dict[str, str]:
        """What owners read out to one another.

        >>> Roster(sites={name: name.encode() * 32 for name in "abc"}, hub=bytes(32), missing=0).fingerprints()["a"]
        '3ba3 f5f4 3b92 6026 83c1'
        """
        return {name: fingerprint(key) for name, key in self.sites.items()}


@dataclass(frozen=True)
class SignedRoster:
    """A roster with what was signed of it. A site takes part under nothing else.

    >>> from cloister.crypto import SigningKey
    >>> keys = {name: SigningKey(name.encode() * 32) for name in "abc"}
    >>> roster = Roster(sites={name: key.public for name, key in keys.items()}, hub=bytes(32), missing=0)
    >>> SignedRoster.by(keys, roster).check()
    """

    roster: Roster
    signatures: Mapping[str, bytes]
    """Of each site, under its key of this roster."""
    rotations: Mapping[str, bytes] = field(default_factory=dict)
    """Of each site whose key is another than in the roster before, under that old key."""

    def __post_init__(self) -> None:
        for name in ("signatures", "rotations"):
            object.__setattr__(self, name, dict(getattr(self, name)))

    @classmethod
    def by(cls, keys: Mapping[str, SigningKey], roster: Roster) -> SignedRoster:
        """As the holders of these keys sign it: all in one process, to try it."""
        return cls(roster, {name: key.sign(roster.text) for name, key in keys.items()})

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        signed = {
            part: {name: each.hex() for name, each in texts.items()}
            for part, texts in (("signatures", self.signatures), ("rotations", self.rotations))
        }
        return {"roster": self.roster.plain(), **signed}

    @classmethod
    def from_plain(cls, told: Mapping[str, Any]) -> SignedRoster:
        """Again from plain data; nothing is checked.

        >>> roster = Roster(sites={name: name.encode() * 32 for name in "abc"}, hub=bytes(32), missing=0)
        >>> SignedRoster.from_plain(SignedRoster(roster, {"a": bytes(64)}).plain()) == SignedRoster(roster, {"a": bytes(64)})
        True
        """
        texts = ({name: bytes.fromhex(each) for name, each in told[part].items()} for part in ("signatures", "rotations"))
        return cls(Roster.from_plain(told["roster"]), *texts)

    def check(self) -> None:
        """`InvalidDeclaration` unless every site signed."""
        _ = self._checked

    @cached_property
    def _checked(self) -> bool:
        """Once for one roster and its signatures, which don't change: every round asks."""
        for name, key in self.roster.sites.items():
            if not is_signed(key, self.roster.text, self.signatures.get(name, b"")):
                raise _invalid(f"The roster is not signed by {name!r}", "every site signs it", f"the signature of {name!r}")
        return True

    def check_after(self, before: SignedRoster, *, missed: bool = False) -> None:
        """Whether this roster may take the place of that one: the next in number, signed by all of its sites; where a key
        changed, also by the old one; and a quorum of the old sites is still there (the others are revoked). Where rosters may
        have been `missed` that came between, by a site that was away, it is a later one for which all of that holds."""
        self.check()
        old, new = before.roster, self.roster
        if new.epoch <= old.epoch or (new.epoch > old.epoch + 1 and not missed):
            raise _invalid(
                f"A roster of number {new.epoch} is refused", f"{old.epoch + 1} is the next", "the roster after this one"
            )
        stayed = [name for name in old.sites if name in new.sites]
        for name in stayed:
            changed = new.sites[name] != old.sites[name]
            if changed and not is_signed(old.sites[name], new.text, self.rotations.get(name, b"")):
                raise _invalid(
                    f"The new key of {name!r} is refused",
                    "its old key did not sign the roster",
                    f"revoking {name!r}, or its old key",
                )
        if len(stayed) < old.threshold:
            raise _invalid(
                "The roster is refused",
                f"{len(stayed)} sites of the one before are left, and {old.threshold} are a quorum",
                "fewer sites revoked at once",
            )


def is_name(name: object) -> bool:
    """Whether a site may be called so.

    >>> is_name("north"), is_name(" "), is_name("..")
    (True, False, False)
    """
    return is_text(name, _LONGEST) and str(name).strip(".") != ""  # dots alone are a step up in an address


def _invalid(what: str, why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration(what, why=why, instead=instead)
