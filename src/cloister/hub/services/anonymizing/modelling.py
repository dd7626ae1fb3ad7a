"""Which models an owner asks for: as they are typed, what is wrong with them, and as every class has to meet them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from cloister.errors import InvalidParameter
from cloister.privacy.rational import exact, plain_number

if TYPE_CHECKING:
    from cloister.anonymize import Hierarchy
    from cloister.anonymize.models.base import PrivacyModel
    from cloister.hub.services.anonymizing.order import Anonymizing

DIVERSITIES = ("distinct", "entropy", "recursive")
DISTANCES = ("", "equal", "ordered", "hierarchical", "kl")
LIKENESSES = ("basic", "enhanced")
_MOST_K, _MOST_L, _MOST = 100_000, 1_000, 1_000


def check_models(asked: Anonymizing, sensitive: Sequence[str], hierarchies: Mapping[str, str]) -> None:
    """Refuse what no model is, and models of a sensitive column where there is none."""
    if asked.diversity not in DIVERSITIES or asked.distance not in DISTANCES or asked.likeness not in LIKENESSES:
        raise InvalidParameter(
            "The models are invalid",
            why="unknown variant of l, t or β",
            instead=", ".join((*DIVERSITIES, *DISTANCES[1:], *LIKENESSES)),
        )
    whole = asked.l is None or asked.diversity == "entropy" or asked.l == int(asked.l)
    if isinstance(asked.k, bool) or not 1 <= asked.k <= _MOST_K or (asked.l is not None and not 1 <= asked.l <= _MOST_L):
        raise InvalidParameter("The models are invalid", why="k or l is out of range", instead="k = 5, l = 2")
    if not whole:
        raise InvalidParameter(
            "The value of l is invalid", why="it is not a whole number, and only entropy counts parts", instead="l = 2"
        )
    check_number("t", asked.t, _MOST if asked.distance == "kl" else 1)
    check_number("β", asked.beta, _MOST)
    for named, value, most in (("c", asked.c, _MOST), ("δ", asked.delta, _MOST), ("α", asked.alpha, 1)):
        check_number(named, value, most, above=True)
    if (asked.l or asked.t or asked.beta or asked.delta or asked.alpha) and not sensitive:
        raise InvalidParameter(
            "The models are invalid",
            why="all models but k speak of what others must not learn, and no column is that",
            instead="a sensitive column, or k alone",
        )
    if asked.l and asked.diversity == "recursive" and not asked.c:
        raise InvalidParameter("The models are invalid", why="recursive diversity has no c", instead="c = 3")
    bare = next((name for name in sensitive if not hierarchies.get(name, "").strip()), None) if asked.of_a_tree else None
    if bare is not None:
        raise InvalidParameter(
            "The models are invalid",
            why=f"t measures in hierarchies, and the sensitive column {bare!r} has none",
            instead="lines for its values, or another way to measure",
        )


def check_number(named: str, text: str, most: int, *, above: bool = False) -> None:
    """Refuse what is not a number from 0, or above it, to the most; an empty one is none."""
    if not text:
        return
    try:
        value = exact(text)  # which refuses exponents whose number would not fit in memory
    except InvalidParameter:
        value = Fraction(-1)
    if not 0 <= value <= most:
        raise InvalidParameter(
            f"The value of {named} is invalid", why=f"it is not a number from 0 to {most}", instead="a number such as 0.2"
        )
    if above and value == 0:
        raise InvalidParameter(f"The value of {named} is invalid", why="it is not above 0", instead="a number such as 0.2")


def models_of(asked: Anonymizing, k: int, written: Mapping[str, Hierarchy]) -> list[PrivacyModel]:
    """What every class has to meet; `written` are the hierarchies of sensitive columns, where t measures in them.

    >>> from cloister.hub.services.anonymizing.order import Anonymizing
    >>> asked = Anonymizing(table="people", parts={"age": "quasi", "ill": "sensitive"}, l=2, alpha="1/3")
    >>> [model.name for model in models_of(asked, 3, {})]
    ['3-anonymity', '2-diversity', '(1/3, 3)-anonymity']
    """
    from cloister.anonymize import AlphaKAnonymity, BetaLikeness, DeltaDisclosure, KAnonymity, LDiversity, TCloseness

    found: list[PrivacyModel] = [KAnonymity(k)]
    if asked.l is not None and asked.l > 1:
        l = int(asked.l) if asked.l == int(asked.l) else asked.l  # noqa: E741
        c = plain_number(asked.c) if asked.diversity == "recursive" else None
        found.append(LDiversity(l, kind=asked.diversity, c=c))
    if asked.of_a_tree:
        found += [TCloseness(plain_number(asked.t), hierarchy=each, column=name) for name, each in written.items()]
    elif asked.t:
        found.append(TCloseness(plain_number(asked.t), distance=asked.distance or None))
    if asked.beta:
        found.append(BetaLikeness(plain_number(asked.beta), enhanced=asked.likeness == "enhanced"))
    if asked.delta:
        found.append(DeltaDisclosure(plain_number(asked.delta)))
    if asked.alpha:
        found.append(AlphaKAnonymity(plain_number(asked.alpha), k))
    return found
