"""What a broken twin is: a mechanism with a claim that it doesn't keep, beside one that keeps it, and two worlds that show it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.attacks.audit import audit
from cloister.attacks.channel import ChannelAudit, audit_channel
from cloister.attacks.result import AuditResult
from cloister.noise import Random
from cloister.privacy.guarantee import Guarantee

Matrix = Sequence[Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class Twin:
    """A mistake that was made, as a mechanism that can be run, and only in order to be caught.

    Nothing here protects anyone: `broken` doesn't keep `claims`, and `mended`, which does, is there for comparison; it draws its
    noise in floating point.
    """

    name: str
    """A short name, unique among the twins."""
    mistake: str
    """What is done wrong, and by whom where it was published."""
    reason: str
    """Why it is wrong."""
    claims: Guarantee
    """What is promised."""
    truth: float
    """The ε that it really has (at the claimed δ), in these two worlds or in any; infinity where none holds."""
    left: Any
    right: Any
    broken: Callable[[Any, int, Random], Any]
    mended: Callable[[Any, int, Random], Any]
    keeps: Guarantee | None = None
    """What the mended one promises, where it isn't the claim itself."""
    runs: int = 200_000

    def audit(self, *, runs: int | None = None, confidence: str = "0.999999999", random: Random | None = None) -> AuditResult:
        """The audit of the broken mechanism against what it claims."""
        return audit(
            self.broken, self.left, self.right, runs=runs or self.runs, against=self.claims, confidence=confidence, random=random
        )

    def audit_mended(
        self, *, runs: int | None = None, confidence: str = "0.999999999", random: Random | None = None
    ) -> AuditResult:
        """The audit of the mended mechanism against what it promises."""
        promise = self.keeps or self.claims
        return audit(
            self.mended, self.left, self.right, runs=runs or self.runs, against=promise, confidence=confidence, random=random
        )


@dataclass(frozen=True, kw_only=True)
class ChannelTwin:
    """A mistake whose whole law can be written down, and is audited by arithmetic instead of by runs."""

    name: str
    mistake: str
    reason: str
    claims: Guarantee
    truth: float
    broken: Callable[[], Matrix]
    mended: Callable[[], Matrix]
    keeps: Guarantee | None = None

    def audit(self, **ignored: object) -> ChannelAudit:
        """The exact privacy of the broken channel."""
        return audit_channel(self.broken())

    def audit_mended(self, **ignored: object) -> ChannelAudit:
        """The exact privacy of the mended channel."""
        return audit_channel(self.mended())


def found_epsilon(twin: Twin | ChannelTwin, result: AuditResult | ChannelAudit) -> float:
    """The ε that an audit of this twin shows, at the δ that the twin claims.

    >>> from cloister.attacks.broken import twin
    >>> duchi = twin("ties dropped on one side")
    >>> round(found_epsilon(duchi, duchi.audit()), 3)
    2.099
    """
    return float(np.float64(result.epsilon_at(twin.claims.delta)))
