"""Parties of a round for tests: sites with numbers, a hub, and what each of them received."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cloister.crypto import SigningKey
from cloister.noise import Random
from cloister.together import HubRound, Journal, MemoryJournal, Roster, Round, SignedRoster, SiteRound, run_round

HUB_KEY = SigningKey(b"H" * 32)
NAMES = "abcdefghijklmnopqrstuvwxyz"


def keys_of(count: int) -> dict[str, SigningKey]:
    """A signing key for each site."""
    return {name: SigningKey(name.encode() * 32) for name in NAMES[:count]}


def roster_of(count: int, missing: int = 0, **other: Any) -> Roster:
    """A roster of so many sites."""
    sites = {name: key.public for name, key in keys_of(count).items()}
    return Roster(sites=sites, hub=HUB_KEY.public, missing=missing, **other)


def signed_by_all(roster: Roster) -> SignedRoster:
    """With a signature of each of its sites."""
    return SignedRoster.by({name: keys_of(26)[name] for name in roster.sites}, roster)


@dataclass
class Parties:
    """A round of so many sites; `numbers` are theirs, and `received` is all that the hub got, with what it was an answer to."""

    numbers: Mapping[str, Any]
    missing: int = 0
    words: int = 1
    plan: bytes = b"a plan"
    seed: int = 1
    roster: Roster | None = None
    journals: Mapping[str, Journal] | None = None
    received: list[tuple[str, str, bytes]] = field(default_factory=list)
    sent: list[tuple[str, str, bytes]] = field(default_factory=list)
    read: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.roster = self.roster or roster_of(len(self.numbers), self.missing)
        size = len(next(iter(self.numbers.values())))
        self.round = Round(signed=signed_by_all(self.roster), plan=self.plan, numbers=size, words=self.words)
        self.journals = self.journals or {name: MemoryJournal() for name in self.numbers}
        self.hub = HubRound(HUB_KEY, self.round)
        self.sites = {name: self.site(name) for name in self.numbers}

    def site(self, name: str) -> SiteRound:
        """A site's part, as a process that begins now finds it."""
        assert self.journals is not None
        random = Random.deterministic(self.seed * 1000 + NAMES.index(name) + 100 * len(self.read))
        return SiteRound(
            name, keys_of(26)[name], self.round, lambda: self.values(name), journal=self.journals[name], random=random
        )

    def values(self, name: str) -> Any:
        """A site's numbers, and a note that they were read."""
        self.read.append(name)
        return self.numbers[name]

    def ask(self, name: str, message: bytes) -> bytes:
        """A site's answer, recorded."""
        self.sent.append((self.hub.step, name, message))
        found = self.sites[name].answer(message)
        self.received.append((self.hub.step, name, found))
        return found

    def step(self, absent: Sequence[str] = ()) -> bool:
        """One step in which all but some answer."""
        for name, message in self.hub.messages.items():
            if name not in absent:
                self.hub.take(self.ask(name, message))
        return self.hub.advance()

    def run(self, absent: Mapping[str, Sequence[str]] | None = None) -> np.ndarray[Any, Any]:
        """The whole round; `absent` says who does not answer from which step on."""
        gone: set[str] = set()

        def asked(name: str) -> Callable[[bytes], bytes | None]:
            def answer(message: bytes) -> bytes | None:
                gone.update((absent or {}).get(self.hub.step, ()))
                return None if name in gone else self.ask(name, message)

            return answer

        return run_round(self.hub, {name: asked(name) for name in self.sites})
