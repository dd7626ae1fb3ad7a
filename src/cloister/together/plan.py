"""The plan of a round: a request under its charge, where, by whom and for what it is asked, as the one text that the hub signs.

How many numbers a round has, and how wide they are, is not in the plan: each party works it out of the request's text and of what
is declared, by `round_about` alone. What a session knows beside (a tighter width) has no part in it, or two parties would differ.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from cloister.crypto import canonical_json
from cloister.errors import EngineError, InvalidDeclaration, UnsupportedQuery
from cloister.noise import default_random
from cloister.noise.laws import LAWS
from cloister.noise.shares import NoiseShares
from cloister.printable import is_text, shown
from cloister.privacy import Guarantee
from cloister.tables import Answering, Domain, Groups, PrivateTable
from cloister.tables.engines.noised import Combination, Integers, LevelSums, NoisedRequest, exact_integers
from cloister.tables.engines.row_sums import RowSums
from cloister.together.accounting import cost_of
from cloister.together.roster import SignedRoster
from cloister.together.rounds import Round

_MOST_ROWS = 40
"""Rows of all sites, as a power of two: what sums have room for."""
_LAWS = tuple(each.kind for each in LAWS)
LONGEST_WORDS = 200


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is asked (a request's text), by which prepared table, and for whom and what as the hub has it.

    >>> Plan.read(Plan(request="{}", token="7", purpose="a report").text).purpose
    'a report'
    """

    request: str
    token: str
    """A name that no two tables of a hub have in common."""
    purpose: str = ""
    who: str = ""

    @property
    def text(self) -> bytes:
        """What the hub signs."""
        about = {name: words for name, words in (("purpose", self.purpose), ("who", self.who)) if words}
        return canonical_json({"request": self.request, "asked at": self.token, **about}).encode()

    @classmethod
    def read(cls, text: bytes) -> Plan:
        """Again from its text; `UnsupportedQuery` for a text that no plan has."""
        try:
            told = json.loads(text)
            found = cls(request=told["request"], token=told["asked at"], purpose=told.get("purpose", ""), who=told.get("who", ""))
            known = all(isinstance(each, str) for each in (found.request, found.token, found.purpose, found.who))
            named = all(not each or is_text(each, LONGEST_WORDS) for each in (found.purpose, found.who))
            if not known or not named or found.text != text:
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UnsupportedQuery(
                "A plan was not read", why="its form is wrong", instead="the plan as its hub wrote it"
            ) from None
        return found


def declaration_of(table: PrivateTable) -> str:
    """What a hub and its sites compare of a table."""
    columns = {name: domain.describe() for name, domain in table.columns.items()}
    return canonical_json({"columns": columns, "unit": table.unit, "max_rows": table.max_rows})


def check_words(**words: object) -> None:
    """Refuses words that no plan can have, and no rule can fit: a list, blanks, what is too long or can't be shown."""
    for name, each in words.items():
        if each != "" and not is_text(each, LONGEST_WORDS):
            why = f"it is one text that can be shown, of 1 to {LONGEST_WORDS} characters"
            raise InvalidDeclaration(f"{name}={shown(repr(each)[:100])} is invalid", why=why, instead=f'{name}="…"')


class Elsewhere(Answering):
    """What is answered by plans that others agree to, about rows that nobody here reads."""

    elsewhere: ClassVar[bool] = True
    source: Any
    """Of which `purpose` and `who` stand in place of what the session says of each question, where they are given."""
    base: PrivateTable
    """The table, as it is declared, whatever is asked of it."""
    token: str
    """No two ledgers ask under one charge, whatever theirs are called; `token_of` what the engine was given."""
    nowhere: ClassVar[str]
    """Why there are no exact values."""

    def _nowhere(self, *_: Any, **__: Any) -> NoReturn:
        raise EngineError("Exact values are not available", why=self.nowhere, instead="SQL")

    aggregate = each = rows = _fetch = _stream = plan = _planned = _nowhere
    _publish = _remove = _owner_report = _owner_offenders = _nowhere

    def _bring(self, other: Any) -> None:
        return None

    def _plan(self, request: NoisedRequest) -> Plan:
        given = self.source.purpose or request.purpose, self.source.who or request.who
        purpose, who = (shown(each.strip())[:LONGEST_WORDS] for each in given)  # or the first of a long one are all blanks
        text = request.canonical()
        token = hashlib.sha256(canonical_json([self.token, purpose, who, text]).encode()).hexdigest()
        return Plan(request=text, token=token, purpose=purpose, who=who)

    def _besides(self, request: NoisedRequest) -> list[Guarantee]:
        """What others cost under the same charge: a site or key holder that can't pay for all says so before it."""
        return [cost_of(each, self.base if isinstance(each.table, str) else each.table) for each in request.besides]

    def _reading(self, work: Any) -> Any:
        return work()


def token_of(secret: str | None) -> str:
    """What plans of a table are told apart by: the same after a restart, so that what a killed hub had asked is asked again in
    the same words, and others answer with what they keep and charge nothing.

    >>> token_of("00ff") == token_of("00ff"), token_of(None) == token_of(None)
    (True, False)
    """
    return default_random().bytes(16).hex() if secret is None else hashlib.sha256(f"asked at {secret}".encode()).hexdigest()


def round_about(request: NoisedRequest, plan: Plan, signed: SignedRoster, columns: Mapping[str, Domain]) -> Round:
    """The round about a request that was checked, of a table or relation with these columns."""
    numbers = sum(int(np.prod(shape)) for shape in shapes_of(request))
    words = words_of(request, len(signed.roster.sites), columns)
    return Round(signed=signed, plan=plan.text, numbers=numbers, words=words, number=request.number)


def shares_of(round_: Round, request: NoisedRequest) -> Iterator[tuple[Any, NoiseShares]]:
    """Each of the request's integers, with the shares of its noise."""
    for each in request.integers:
        law: Any = each.law
        yield each, round_.roster.noise(law)


def shapes_of(request: NoisedRequest) -> list[tuple[int, ...]]:
    """The shape of each of the request's integers, from what its maps make of no rows."""
    if request.fit is not None:
        return [each.map.shape for each in request.integers if isinstance(each.map, RowSums)]
    empty: list[Groups] = []
    for aggregation in request.asked:
        length = 0 if aggregation.keys else 1
        keys = tuple(np.zeros(length, dtype=np.int64) for _ in aggregation.keys)
        empty.append(Groups(keys, {each.name: np.zeros(length, dtype=np.int64) for each in aggregation.aggregates}))
    return [np.shape(each) for each in exact_integers(request, empty).values()]


def words_of(request: NoisedRequest, sites: int, columns: Mapping[str, Domain]) -> int:
    """How many words of 64 bits have room for every sum, with its noise and sign: at most 2^40 rows in all, and the noise of all
    sites beyond 2^10 scales once in 2^1000 numbers."""
    most, largest = 0, {each.name: each.largest(columns) for asked in request.aggregations for each in asked.aggregates}
    for each in request.integers:
        law: Any = each.law
        if not isinstance(law, _LAWS):
            continue
        one = (int(law.scale) + 1 << 10) * sites
        width = width_between(each.map.parts, largest) if isinstance(each.map, Combination) else width_of(each, request)
        most = max(most, (width << _MOST_ROWS) + one)
    return -(-(most.bit_length() + 1) // 64)


def width_between(parts: tuple[tuple[str, int], ...], largest: Mapping[str, int]) -> int:
    """How far one row moves Σ coefficient × aggregate at most, if it moves each aggregate by its largest value.

    >>> width_between((("sum", -1), ("values", 90)), {"sum": 90, "values": 1})
    180
    """
    return sum(abs(coefficient) * largest[name] for name, coefficient in parts)


def width_of(integers: Integers, request: NoisedRequest) -> int:
    """How far one row moves one number."""
    if isinstance(integers.map, Combination):
        return integers.map.width
    if isinstance(integers.map, RowSums):
        return integers.map.length
    if isinstance(integers.map, LevelSums):
        return max(map(abs, request.hierarchies[integers.map.hierarchy].weights))
    return integers.map.strategy.l1
