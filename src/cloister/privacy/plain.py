"""Guarantees as plain data, exact and without a class's name: as models write them. The words are stored: they never change."""

from collections.abc import Mapping

from cloister.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from cloister.privacy.rational import text_of


def guarantee_to_plain(guarantee: Guarantee) -> dict[str, str]:
    """Its kind, and its numbers as exact texts.

    >>> guarantee_to_plain(PureDP("0.1"))
    {'kind': 'pure', 'epsilon': '0.1'}
    """
    match guarantee:
        case PureDP():
            return {"kind": "pure", "epsilon": text_of(guarantee.epsilon)}
        case ApproxDP():
            return {"kind": "approx", "epsilon": text_of(guarantee.epsilon), "delta": text_of(guarantee.delta)}
        case ZCDP():
            return {"kind": "zcdp", "rho": text_of(guarantee.rho), "delta": text_of(guarantee.delta)}


def guarantee_from_plain(written: Mapping[str, str]) -> Guarantee | None:
    """The other way; None where its kind is not known.

    >>> guarantee_from_plain({"kind": "approx", "epsilon": "1", "delta": "0.00001"})
    ApproxDP(epsilon='1', delta='0.00001')
    """
    match written["kind"]:
        case "pure":
            return PureDP(written["epsilon"])
        case "approx":
            return ApproxDP(written["epsilon"], written["delta"])
        case "zcdp":
            return ZCDP(written["rho"], written["delta"])
    return None
