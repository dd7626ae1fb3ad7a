"""Randomised at the source: each person's own machine adds the chance, and nobody needs to be trusted.

The frame, which every protocol stands on::

    coins.py        coins whose probabilities are whole numbers of 2⁻⁶⁴, thrown the same in Python and in a browser
    domain.py       the values that a question may have
    oracle.py       values to reports to sketches to estimates; estimates.py: counts and numbers with margins

Protocols for frequencies: direct.py.

Lives here: what a respondent's machine does, and what is made of reports. No table, no ledger, no page: the hub's surveys
stand on this.

>>> from cloister.local import DirectEncoding
>>> oracle = DirectEncoding(["never", "once", "often"], epsilon=1)
>>> sketch = oracle.aggregate(oracle.randomize(["never", "often"] * 1000))
>>> estimate = oracle.estimate(sketch)
>>> len(estimate.counts), len(estimate.margin(0.95))
(3, 3)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloister.local.direct import DirectEncoding as DirectEncoding
    from cloister.local.direct import RandomizedResponse as RandomizedResponse
    from cloister.local.domain import Domain as Domain
    from cloister.local.estimates import Estimate as Estimate
    from cloister.local.estimates import Number as Number
    from cloister.local.estimates import add_estimates as add_estimates
    from cloister.local.oracle import FrequencyOracle as FrequencyOracle
    from cloister.local.oracle import Sketch as Sketch

_HOMES = {
    "direct": "DirectEncoding RandomizedResponse",
    "domain": "Domain",
    "estimates": "Estimate Number add_estimates",
    "oracle": "FrequencyOracle Sketch",
}
_HOME = {name: f"cloister.local.{module}" for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOME)
