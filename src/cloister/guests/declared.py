"""Way "declared": a mechanism with a proof of its author's, run once on all rows, after two people admitted it.

Guarantee: the spend, on the author's word; nothing here can prove it. What stands for it: the proof that reviewers read; an audit
that tried to tell two neighbouring tables apart by what the code returns (`audit_declared`); the same audit of a twin whose noise
is a tenth, which it must catch, or it says nothing; and two people who put their names to it. Neighbours: one person with all of
their rows. What leaves is held to the declared numbers and ranges, whatever the code does, and its noise is drawn by the host's
exact samplers: inside, chance repeats. The answer comes at a time that declarations fix.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.attacks import AuditResult, audit
from cloister.errors import AccessDenied, CloisterError, InvalidParameter
from cloister.guests.blocks import NearRows, blocks_of, check_whole_people
from cloister.guests.sandbox.grid import slot_of
from cloister.guests.sandbox.wasm import Opened, Sandbox
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.privacy import ApproxDP, Guarantee, PureDP, exact_positive
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from cloister.guests.algorithm import Guest

_MOST_DRAWS, _LARGEST_SCALE = 1000, 10**12
_FOR_DRAWS = 1.0
"""Seconds of the slot for the noise that the host draws."""
_WEAKER, _AT_ONCE, _CROWD = 10, 200, 20
_MANY = """

def many_of_this_guest(text, spend, times):
    import json
    found = []
    for _ in range(times):
        try:
            found.append({entry}(json.loads(text), spend))
        except Exception:
            found.append(None)
    return found
"""


@dataclass(frozen=True, kw_only=True)
class Declared(NearRows):
    """A guest on all rows at once, as a method that needs rows (`cloister.session.RowMethod`)."""

    stored: ClassVar[tuple[str, str]] = ("cloister.guests.declared", "Declared")

    def describe(self) -> dict[str, Any]:
        """The code by its digest, and what is declared of it."""
        about = {"guest": self.digest, "entry": self.entry, "output": self.output.describe()}
        return {**about, "seconds": self.seconds, "memory": self.memory, "format": 1}

    def guarantee(self, spend: Guarantee, declaration: PrivateTable) -> Guarantee:
        """All that was given."""
        check_whole_people(declaration)
        return spend

    def release(
        self, rows: Mapping[str, npt.NDArray[Any]], declaration: PrivateTable, guarantee: Guarantee, random: Random
    ) -> Mapping[str, Any]:
        """One run, held to the declared shape, when its time is over."""
        [block] = blocks_of(rows, declaration, self.inputs, 1, random)
        with self.opened or self.open() as sandbox:
            ran = sandbox.run([block, terms(guarantee)], ask=HostNoise(random))
        codes = self.output.codes(ran.value if ran.done else None)
        sandbox.grid.await_end(slot_of(1, self.seconds) + _FOR_DRAWS)
        return self.output.values(codes.astype(np.float64))

    def open(self, *, paced: bool = True) -> Opened:
        """As that of `Blocks`."""
        return Sandbox(self.code, self.entry, seconds=self.seconds, memory=self.memory, paced=paced)


class HostNoise:
    """What a declared guest may ask the host for: `noise("laplace", scale)` or `noise("gaussian", scale)`, a whole number by an
    exact sampler; so many times, and nothing else.

    >>> noise = HostNoise(Random.deterministic(1))
    >>> isinstance(json.loads(noise('{"noise": "laplace", "scale": "3/2"}'))["noise"], int)
    True
    >>> noise('{"sql": "SELECT 1", "spend": "1"}')
    '{"refused": "a declared guest asks for noise alone: noise(\\\\"laplace\\\\", scale) or noise(\\\\"gaussian\\\\", scale)"}'
    """

    def __init__(self, random: Random, *, weaker: int = 1, draws: int = _MOST_DRAWS) -> None:
        self._random, self._weaker, self._left = random, weaker, draws

    def __call__(self, question: str) -> str:
        """One draw, or why not."""
        try:
            told = json.loads(question)
            law = {"laplace": DiscreteLaplace, "gaussian": DiscreteGaussian}[told["noise"]]
            scale = exact_positive(str(told["scale"])[:200], "scale")
            if not Fraction(1, _LARGEST_SCALE) <= scale <= _LARGEST_SCALE or self._left < 1:
                raise ValueError
            self._left -= 1
            drawn = law(scale=scale / self._weaker, sensitivity=1).sample(1, random=self._random)
            return json.dumps({"noise": int(drawn[0])})
        except (CloisterError, ValueError, KeyError, TypeError, RecursionError):
            refused = 'a declared guest asks for noise alone: noise("laplace", scale) or noise("gaussian", scale)'
            return json.dumps({"refused": refused})


def terms(spend: Guarantee) -> dict[str, str]:
    """What a declared guest is told about its spend, as exact texts.

    >>> terms(PureDP("0.5")), terms(ApproxDP(1, "1e-6"))["delta"]
    ({'epsilon': '1/2'}, '1/1000000')
    """
    if isinstance(spend, PureDP):
        return {"epsilon": str(spend.epsilon)}
    if isinstance(spend, ApproxDP):
        return {"epsilon": str(spend.epsilon), "delta": str(spend.delta)}
    return {"rho": str(spend.rho)}


@dataclass(frozen=True, kw_only=True)
class DeclaredAudit:
    """What an audit of a declared guest found, and the same of its twin with a tenth of the noise."""

    digest: str
    declared: str
    """Of code and table (`declared_digest`)."""
    spend: Guarantee
    found: AuditResult
    twin: AuditResult

    @property
    def kept(self) -> bool:
        """Whether nothing was found that the declared guarantee forbids."""
        return not self.found.contradicts(self.spend)

    @property
    def telling(self) -> bool:
        """Whether the twin was caught: an audit that can't tell it apart says nothing of the guest either."""
        return self.twin.contradicts(self.spend)

    def __str__(self) -> str:
        verdict = "kept, as far as was tried" if self.kept else "BROKEN"
        power = "caught" if self.telling else "NOT caught: this audit says nothing"
        found = f"declared {self.spend}: {verdict} ({self.found.runs:,} runs a side)\n{self.found}"
        return f"{found}\ntwin with a tenth of the noise: {power}"

    def told(self) -> str:
        """In one line, for the provenance of results."""
        return f"at least ε = {max(self.found.epsilon, 0):.3g} of {self.spend} in {self.found.runs:,} runs"


def audit_declared(
    guest: Guest, table: PrivateTable, spend: Guarantee, *, runs: int = 2000, random: Random | None = None
) -> DeclaredAudit:
    """Try to tell two made-up tables apart that differ in one person at the far end of everything: by the guest, and by its twin.

    No row of the table is read: its declarations say what rows may look like.
    """
    from cloister.noise import default_random

    chance = random or default_random()
    left, right = _neighbours(guest.made_up(table), table)
    many = guest.code + _MANY.format(entry=guest.entry)
    about = {"digest": guest.digest, "declared": declared_digest(guest, table)}
    with Sandbox(many, "many_of_this_guest", seconds=guest.seconds * _AT_ONCE, memory=guest.memory << 20) as sandbox:

        def found(weaker: int) -> AuditResult:
            mechanism = partial(_runs, guest, sandbox, spend, weaker)
            return audit(mechanism, left, right, runs=runs, against=spend, random=chance)

        return DeclaredAudit(**about, spend=spend, found=found(1), twin=found(_WEAKER))


def _runs(guest: Guest, sandbox: Sandbox, spend: Guarantee, weaker: int, data: Any, n: int, random: Random) -> npt.NDArray[Any]:
    """The guest n times, many in one interpreter, each on a copy of the rows: what would leave of each."""
    assert guest.output is not None
    found: list[npt.NDArray[np.int64]] = []
    text = json.dumps(data)
    while len(found) < n:
        times = min(_AT_ONCE, n - len(found))
        ran = sandbox.run([text, terms(spend), times], ask=HostNoise(random, weaker=weaker, draws=_MOST_DRAWS * times))
        values = ran.value if ran.done and isinstance(ran.value, list) and len(ran.value) == times else [None] * times
        found += [guest.output.codes(each) for each in values]
    return np.array(found)


def _neighbours(block: Mapping[str, list[Any]], table: PrivateTable) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """A crowd of people at the lower end of everything; and the same crowd with one more at the upper end, with as many rows as
    the table lets a person have."""
    ends = {name: sorted({each for each in values if each is not None}) or [None] for name, values in block.items()}
    right = {name: [each[0]] * _CROWD for name, each in ends.items()}
    whose, most = table.unit, table.max_rows or 1
    if whose is not None and whose in right:  # each row of the crowd is somebody else's
        others = ends[whose][:-1] or ends[whose]
        right[whose] = [others[place % len(others)] for place in range(_CROWD)]
    return {name: [*right[name], *[each[-1]] * most] for name, each in ends.items()}, right


@dataclass(frozen=True, kw_only=True)
class Admission:
    """Who admitted which text to rows; for a declared mechanism also the audit that it passed. Names that differ by case or
    blanks alone are one person's.

    >>> str(Admission(digest="41915d33", by=("Ana", "Ben", "ana ")))
    'admitted by Ana and Ben'
    """

    digest: str
    by: Sequence[str]
    audited: DeclaredAudit | None = None

    def __post_init__(self) -> None:
        if isinstance(self.by, str) or not all(isinstance(each, str) for each in self.by):
            raise InvalidParameter("by= is invalid", why="it is a list of names", instead='by=["Ana", "Ben"]')
        names: dict[str, str] = {}
        for each in self.by:
            plain = "".join(letter for letter in unicodedata.normalize("NFKC", each) if unicodedata.category(letter) != "Cf")
            if plain.strip():
                names.setdefault(" ".join(plain.casefold().split()), each.strip())
        object.__setattr__(self, "by", tuple(names.values()))

    def __str__(self) -> str:
        return f"admitted by {' and '.join(self.by)}" + (f"; audited to {self.audited.told()}" if self.audited else "")

    def why_not(self, guest: Guest, table: PrivateTable | None = None) -> str:
        """Why it does not let a declared mechanism near the rows of a table: its audit has to be of this code, to have broken
        nothing and to have caught the twin, and of what the table declares now; empty where it does."""
        audited, why = self.audited, ""
        if len(self.by) < 2:
            why = "two people read the code and the proof of a declared mechanism"
        elif not isinstance(audited, DeclaredAudit) or audited.digest != guest.digest:
            why = "it was not audited as it is now"
        elif table is not None and audited.declared != declared_digest(guest, table):
            why = "it was audited for a table that declares something else"
        elif not audited.kept:
            why = "its audit broke the declared guarantee"
        elif not audited.telling:
            why = "its audit could not even tell the twin with a tenth of the noise"
        return why


def declared_digest(guest: Guest, table: PrivateTable) -> str:
    """A name of the code and of all that a proof may lean on: what the table declares of the columns that it reads, and whose
    rows they are."""
    columns = {name: table.columns[name].describe() for name in sorted(guest.inputs) if name in table.columns}
    about = [guest.digest, columns, table.unit, table.max_rows]
    return sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()


def admit(guest: Guest, *, by: Sequence[str], audited: DeclaredAudit | None = None) -> Admission:
    """Admits a guest to rows: native code by somebody who read it, a declared mechanism by two, after an audit that broke nothing
    and caught the twin."""
    declared = guest.way == "declared"
    made = Admission(digest=guest.digest, by=by, audited=audited if declared else None)
    why = "" if made.by else "nobody is named"
    if why := made.why_not(guest) if declared else why:
        instead = 'admit(guest, by=["Ana", "Ben"], audited=audit_declared(guest, table, spend))'
        raise AccessDenied(f"{guest.name} was not admitted", why=why, instead=instead)
    return made
