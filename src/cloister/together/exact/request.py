"""What exact components are asked by, and what a site refuses of it: by its roster, its declaration and the key holder's word."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.crypto import canonical_json, fingerprint
from cloister.crypto.paillier import PublicKey
from cloister.errors import InvalidParameter
from cloister.tables import Boolean, Category, Integer, PrivateTable, Real
from cloister.together.messages import refused, unpack
from cloister.together.service_provider import ExactPlan

if TYPE_CHECKING:
    from cloister.together.roster import Roster

Floats = np.ndarray[Any, np.dtype[np.float64]]
MOST_BYTES = 16_000_000_000
"""Of a circuit: 15 components of 50 columns are 12 GB."""
SAME_VERSION = "the same version of cloister at the hub, the sites and the key holder"


@dataclass(frozen=True, kw_only=True)
class ExactRequest:
    """A plan, and what it is about: which columns and label, for whom, and the key holder's word for its key."""

    plan: ExactPlan
    holder: str
    """The key holder's name."""
    signed: bytes
    """Its message with the key."""
    columns: tuple[str, ...]
    label: str = ""
    purpose: str = ""
    who: str = ""

    @property
    def text(self) -> bytes:
        """The one text of it."""
        told: dict[str, Any] = {"format": 1, "plan": self.plan.text, "holder": self.holder, "key": self.signed.hex()}
        told |= {"columns": list(self.columns), "label": self.label, "purpose": self.purpose, "who": self.who}
        return canonical_json(told).encode()

    @property
    def id(self) -> str:
        """By which messages name it."""
        return hashlib.sha256(self.text).hexdigest()

    @classmethod
    def read(cls, text: bytes) -> ExactRequest:
        """Again from its text; `RoundRefused` for one that no request has."""
        try:
            told = json.loads(text)
            found = cls(
                plan=ExactPlan.from_text(told["plan"]),
                signed=bytes.fromhex(told["key"]),
                columns=tuple(map(str, told["columns"])),
                **{name: str(told[name]) for name in ("holder", "label", "purpose", "who")},
            )
            if told["format"] != 1 or found.text != text:
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidParameter):
            raise refused("it has no plan of this version", SAME_VERSION) from None
        return found

    def check(self, roster: Roster, table: PrivateTable) -> None:
        """Refuse, at a site, what is not of its roster, not under the key holder's own key, or about other columns."""
        plan, kinds = self.plan, table.columns
        if dict(plan.owners) != dict(roster.sites) or plan.user != roster.hub:
            raise refused("its parties are not those of the roster", "a plan of all sites")
        told = unpack(self.signed, "exact key", None, {self.holder: plan.provider})
        if told.body != key_text(roster.hub, plan.agreed, plan.key, plan.proof):
            raise refused("the key holder signed another key, or for another plan", "the key as it came from the key holder")
        plan.check_key()
        bounds = tuple(zip(plan.low, plan.high, strict=True))
        classes = _classes(kinds.get(self.label)) if self.label else 0
        if (
            len(set(self.columns)) != len(self.columns)
            or bounds != tuple(_bounds(kinds.get(name)) for name in self.columns)
            or self.label in self.columns
            or classes != plan.moments.classes
        ):
            raise refused("its columns are declared otherwise here", "numbers by their declared bounds, and a label")

    def about(self, roster: Roster) -> list[Any]:
        """What an owner agrees to: all but what is fresh in each attempt."""
        plan = self.plan
        how = [plan.components, plan.moments.rows, plan.moments.classes, plan.moments.fraction]
        told = [list(self.columns), self.label, how, roster.digest, self.holder, plan.provider.hex(), self.purpose, self.who]
        return ["exact components", *told]

    @property
    def words(self) -> str:
        """The same for the owner."""
        plan = self.plan
        named = ", ".join(map(repr, self.columns))
        by = f", by the classes of {self.label!r}" if self.label else ""
        return "\n".join(
            (
                f"for {self.who!r}, for the purpose {self.purpose!r}: NOT differentially private, no budget bounds it",
                f"{plan.tells}; at most {plan.moments.rows:,} rows of a site",
                f"of {named}{by}",
                f"your sums leave encrypted, once, under a key of the key holder {self.holder!r}, {fingerprint(plan.provider)}:",
                "compare that with its operator; masks between the sites hide yours from hub and key holder together, too,",
                "who could read the sums of all sites and nothing of one",
                "the result goes to them at the hub, who may share it, and to all sites",
            )
        )


def key_text(hub: bytes, agreed: bytes, key: PublicKey, proof: Sequence[int]) -> bytes:
    """What a key holder signs: its key, for this hub and for the one plan whose digest this is."""
    told = {
        "format": ExactPlan.format,
        "hub": hub.hex(),
        "plan": agreed.hex(),
        "key": key.to_json(),
        "proof": [f"{each:x}" for each in proof],
    }
    return canonical_json(told).encode()


def declared_of(table: PrivateTable, columns: Sequence[str], label: str) -> tuple[tuple[float, ...], tuple[float, ...], int]:
    """The bounds of columns, and the classes of a label; refused where a declaration has none."""
    kinds = table.columns
    for name in columns:
        if _bounds(kinds.get(name)) is None:
            raise InvalidParameter(
                f"The column {name[:200]!r} is invalid",
                why="components are of numbers with declared bounds that differ",
                instead=f'"{name[:200]}": cl.Real(0, 100, step=1)',
            )
    classes = _classes(kinds.get(label)) if label else 0
    if label and (classes is None or label in columns):
        raise InvalidParameter(
            f"The label {label[:200]!r} is invalid", why="a label has declared values", instead="a column that is a category"
        )
    low, high = zip(*(_bounds(kinds.get(name)) or (0.0, 1.0) for name in columns), strict=True)
    return low, high, classes or 0


def _bounds(domain: Any) -> tuple[float, float] | None:
    if not isinstance(domain, Integer | Real) or float(domain.low) >= float(domain.high):
        return None
    return float(domain.low), float(domain.high)


def _classes(domain: Any) -> int | None:
    found = domain.high_code - domain.low_code + 1 if isinstance(domain, Boolean | Category) else 0
    return found if found > 1 else None


def result_of(request: ExactRequest, columns: Floats) -> dict[str, Any]:
    """Components as plain data: rows are projected by z = (2 (x − low) / (high − low) − 1) · componentsᵀ."""
    plan = request.plan
    told = [
        {"name": name, "low": low, "high": high} for name, low, high in zip(request.columns, plan.low, plan.high, strict=True)
    ]
    return {"columns": told, "components": columns.T.tolist(), "label": request.label, "promise": "not differentially private"}
