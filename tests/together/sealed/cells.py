"""Sealed tables for tests: the panel's rows in masked cells, and a key holder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cloister as cl
from cloister.crypto import SigningKey
from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.together import KeyHolder, Marginal, MaskedFormat, Sealer
from cloister.together.plan import Plan
from cloister.together.sealed.batches import Batch
from cloister.together.sealed.holder import SealedPlan
from tests.session.test_parts import COLUMNS, rows

MUCH = cl.ZCDP(10**30)
NUMBERS = {name: domain for name, domain in COLUMNS.items() if name != "town"}
MARGINALS = [
    Marginal(
        by=["sex"],
        squares=["age", "pay", "height"],
        products=[("age", "pay"), ("age", "height"), ("height", "pay")],
    ),
    Marginal(by=["sex", "age"]),
    Marginal(by=["wealth"]),
    Marginal(by=["sex", "height"], sums=["age", "pay"]),
]
AGES = MaskedFormat(
    columns={"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])},
    marginals=[Marginal(by=["sex"], sums=["age"])],
    population="patients",
    pad_to=8,
)
"""A format of few cells."""


def format_of(**other: Any) -> MaskedFormat:
    """The panel's."""
    given = {"columns": NUMBERS, "marginals": MARGINALS, "population": "patients", "pad_to": 16, **other}
    return MaskedFormat(**given)


OWNER = SigningKey(b"o" * 32)


def holder_of(budget: Guarantee = MUCH, **other: Any) -> KeyHolder:
    return KeyHolder(budgets={"patients": budget}, random=Random.deterministic(3), **other)


def panel(folder: Path, holder: KeyHolder, **other: Any) -> Path:
    """The panel's rows in two batches."""
    held = {name: values for name, values in rows().items() if name != "town"}
    sealer = Sealer(format_of(**other), holder.public, owner=OWNER)
    sealer.seal({name: values[:100] for name, values in held.items()}, folder / "first.masked")
    sealer.seal({name: values[100:] for name, values in held.items()}, folder / "second.masked")
    return folder


def ages(folder: Path, holder: KeyHolder, data: dict[str, Any] | None = None) -> Batch:
    """Five people in a batch that is accepted."""
    held = data or {"age": [20, 30, 40, 50, 60], "sex": ["F", "F", "M", "M", "M"]}
    path = Sealer(AGES, holder.public, owner=OWNER).seal(held, folder / "ages.masked")
    holder.accept(Batch(path).head.data)
    return Batch(path)


def asked(request: Any, *rows: tuple[str, Any], charge: str = "7") -> bytes:
    """What a hub sends that says what it likes."""
    return SealedPlan(plan=Plan(request=request.under(charge).canonical(), token="t"), rows=rows).text
