"""Methods that need rows: an objective that is perturbed, a gradient, an owner's or a guest's algorithm.

A method declares its guarantee before it sees a row; `Door.run` charges it, hands it the prepared rows (codes, after the cap),
and lets out nothing but the plain values that it releases. The door cannot check the method's proof: it trusts the method's
author, and `cloister.attacks.audit` is there to test that trust.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.session.planning.abilities import check_rows
from cloister.session.questions.question import unknown_column
from cloister.session.state.table_snapshot import Entry
from cloister.tables import PrivateTable

Rows = Mapping[str, npt.NDArray[Any]]


class RowMethod(Protocol):
    """What `Door.run` takes: the columns that it reads, what it is (public), its guarantee for a spend, and its release.

    A class may declare `stored`, a pair of texts: the name of its digests, which stays when module or class are renamed; and
    `by_unit = True`, to be handed "unit" too: numbers that say which rows are one person's. A method that can do with noisy sums
    over rows says so by `takes_sums`, and then has `rho`, `first_sum` and `release_sums`, too (`summing.py`).
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """Which columns it reads."""
        ...

    def describe(self) -> dict[str, Any]:
        """The method and its parameters as plain data, for the plan's digest."""
        ...

    def guarantee(self, spend: Guarantee, declaration: PrivateTable) -> Guarantee:
        """What it promises for that spend: at most the spend, in its kind; computed from declarations alone."""
        ...

    def release(self, rows: Rows, declaration: PrivateTable, guarantee: Guarantee, random: Random) -> Mapping[str, Any]:
        """The released values: numbers, texts, lists and arrays of them, and nothing else."""
        ...


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """What a run would charge.

    >>> from cloister.privacy import PureDP
    >>> print(RunPlan(population="people", cost=PureDP("0.1"), digest="…"))
    cost: ε = 0.1 of population 'people'
    nothing was spent and no row was read
    """

    population: str
    cost: Guarantee
    digest: str

    def __str__(self) -> str:
        return f"cost: {self.cost} of population {self.population!r}\nnothing was spent and no row was read"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a method released, and what it cost.

    >>> from cloister.privacy import PureDP
    >>> Outcome(values={"slope": 0.5}, cost=PureDP(1), digest="…", charge=1, when=0.0, marked=False).values["slope"]
    0.5
    """

    values: Mapping[str, Any]
    cost: Guarantee
    digest: str
    charge: int | str
    when: float
    marked: bool


def reads_units(method: RowMethod) -> bool:
    """Whether it is handed whose each row is: most methods declare nothing about it."""
    return bool(getattr(method, "by_unit", False))


def sums_of(method: RowMethod, declaration: PrivateTable) -> bool:
    """Whether a method learns from sums over rows, where the table's engine gives these and no rows."""
    able = declaration.abilities
    return not able.rows and able.row_sums and bool(getattr(method, "takes_sums", False))


def run_plan(method: RowMethod, entry: Entry, spend: Guarantee) -> RunPlan:
    """Charge and digest of a run, from declarations alone; a method that promises less than the spend buys is refused."""
    if not sums_of(method, entry.declaration):
        check_rows(entry.name, entry.declaration)
    for column in method.columns:
        if column not in entry.declaration.columns:
            raise unknown_column(column, entry.name, list(entry.declaration.columns))
    if reads_units(method) and "unit" in method.columns:
        raise InvalidParameter(
            "The column 'unit' is invalid",
            why="by this name the method is told whose a row is",
            instead="another name for the column",
        )
    cost = method.guarantee(spend, entry.declaration)
    if not cost <= spend:
        raise InvalidParameter(
            f"The method {type(method).__name__} is invalid",
            why=f"it costs {cost}, more than the spend of {spend}",
            instead=f"spend={cost!r}",
        )
    canonical = {
        "format": 1,
        "method": [*_stored_name(method), method.describe()],
        "columns": list(method.columns),
        "population": entry.population,
        "version": entry.version,
        "table": entry.fingerprint,
    }
    digest = hashlib.sha256(json.dumps(canonical, sort_keys=True, default=str).encode()).hexdigest()
    return RunPlan(population=entry.population, cost=cost, digest=digest)


def _stored_name(method: RowMethod) -> tuple[str, str]:
    """By what a method's digests know it: the pair of literals that its own class declares as `stored`. A class that declares
    none, or has inherited one, is somebody else's: it goes by its module and its name, which are theirs to keep."""
    kind = type(method)
    named: tuple[str, str] = vars(kind).get("stored", (kind.__module__, kind.__qualname__))
    return named


def digest_once(digest: str, once: str) -> str:
    """The digest under which a named piece of work is charged: that of its plan and its name.

    >>> digest_once("5f3a", "job 1") == digest_once("5f3a", "job 2")
    False
    """
    return hashlib.sha256(json.dumps({"format": 1, "plan": digest, "once": once}, sort_keys=True).encode()).hexdigest()


def outcome_of(blob: bytes, *, cost: Guarantee, digest: str, charge: int | str, when: float) -> Outcome:
    """What a stored blob says that was released."""
    told = json.loads(blob)
    return Outcome(values=told["values"], cost=cost, digest=digest, charge=charge, when=when, marked=told["marked"])


def run_blob(values: Mapping[str, Any], *, marked: bool) -> bytes:
    """The released values as JSON. Only plain data pass, by exact type: a subclass could carry rows in its attributes."""
    return json.dumps(
        {"format": 1, "marked": marked, "values": {str(name): _plain(value) for name, value in values.items()}}
    ).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if type(value) in (list, tuple):
        return [_plain(item) for item in value]
    if type(value) is dict:
        return {str(name): _plain(item) for name, item in value.items()}
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(type(value).__name__)
