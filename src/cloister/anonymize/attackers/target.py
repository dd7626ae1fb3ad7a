"""What an attacker has, and what an attack came to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes, alike
from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.recoding import Recoded
from cloister.anonymize.risks.words import per_cent
from cloister.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class Attack:
    """How far an attacker got with a table.

    `success` is a share of the people: of those whose rows were to be protected, suppressed ones included. `before` is the same
    against the raw table, `baseline` what is reached with no row of the target's.

    >>> attack = Attack(name="linkage", sentence="…", success=0.02, before=0.6, baseline=0.0)
    >>> print(attack)
    linkage: 2.0 % (raw table: 60.0 %, without the table: 0 %)
    """

    name: str
    sentence: str
    """What was tried and what it came to, in plain words."""
    success: float
    before: float
    baseline: float
    margin: float = 0.0
    """The half-width of a 95 % interval of the success; 0 where it was counted and not sampled."""
    column: str | None = None
    surest: float | None = None
    """The largest probability that it gives to a value of somebody, where that is what it is about."""

    @property
    def gain(self) -> float:
        """What the released table adds to what is reached without it; not below 0."""
        return max(0.0, self.success - self.baseline)

    @property
    def succeeds(self) -> bool:
        """Whether it gets further with the table than without it, by more than chance."""
        return self.gain > self.margin

    def __str__(self) -> str:
        where = f" of {self.column!r}" if self.column else ""
        within = f" ± {per_cent(self.margin)}" if self.margin else ""
        return (
            f"{self.name}{where}: {per_cent(self.success)}{within} (raw table: {per_cent(self.before)}, "
            f"without the table: {per_cent(self.baseline)})"
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            **{each: getattr(self, each) for each in ("name", "column", "sentence", "success", "before", "baseline", "margin")},
            **({"surest": self.surest} if self.surest is not None else {}),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Target:
    """A raw table and what was published of it, row beside row.

    The attacker knows the raw quasi-identifiers of everybody in the table and the class in which each was published: as much as
    anybody can know who looks at this table alone.
    """

    raw: Encoded
    recoded: Recoded
    hierarchies: Mapping[str, Ladder] = field(default_factory=dict)
    """Of sensitive columns: which values are alike."""

    @property
    def quasi(self) -> list[str]:
        """The quasi-identifiers."""
        return list(self.recoded.columns)

    @property
    def sensitive(self) -> Mapping[str, EncodedColumn]:
        """The sensitive columns."""
        return self.recoded.sensitive

    @property
    def after(self) -> Classes:
        """Classes of the published table."""
        return self.recoded.classes

    @cached_property
    def before(self) -> Classes:
        """Classes of the raw table."""
        columns = [self.raw.columns[name] for name in self.quasi]
        ids, count = alike([column.codes for column in columns], [len(column) for column in columns])
        return Classes.of(ids, count, sensitive=self.sensitive, weights=self.raw.weights)

    @property
    def people(self) -> int:
        """Rows of the raw table."""
        return self.raw.total

    @cached_property
    def weights(self) -> npt.NDArray[np.int64]:
        """How many rows each row stands for."""
        return self.raw.weights if self.raw.weights is not None else np.ones(self.raw.rows, dtype=np.int64)

    def share(self, classes: Classes, told: npt.NDArray[np.bool_]) -> float:
        """The share of all people who are in some of the classes."""
        return float(classes.sizes[told].sum() / self.people) if self.people else 0.0


def target_of(
    raw: Encoded, recoded: Recoded, *, sensitive: Sequence[str] | None = None, hierarchies: Mapping[str, Ladder] | None = None
) -> Target:
    """A target, checked: every column is there, and rows stand beside rows."""
    missing = [name for name in recoded.columns if name not in raw.columns]
    if missing or raw.rows != len(recoded.suppressed):
        raise InvalidParameter(
            "The attack is invalid",
            why=f"the raw table lacks {missing[0]!r}" if missing else "the two tables have different rows",
            instead="attack(anonymizer.problem_.table, anonymizer.recoded_)",
        )
    if sensitive is not None:
        unknown = [name for name in sensitive if name not in raw.columns]
        if unknown:
            raise InvalidParameter(
                "The attack is invalid",
                why=f"the raw table lacks the sensitive column {unknown[0]!r}",
                instead='encode(frame, [*quasi, "disease"])',
            )
        columns = {name: raw.columns[name] for name in sensitive}
        from dataclasses import replace

        recoded = replace(recoded, sensitive=columns, weights=raw.weights)
    return Target(raw=raw, recoded=recoded, hierarchies=dict(hierarchies or {}))
