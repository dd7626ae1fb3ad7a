"""The laws of integer noise by name: as a stored answer, a release and a request to an engine write them.

The names and the names of the fields are stored: they never change, and classes and fields may (`cloister.stored`). A new law of
noise is stored and read everywhere as soon as it stands here.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from cloister.noise.gaussian import DiscreteGaussian
from cloister.noise.laplace import DiscreteLaplace
from cloister.noise.shares import SummedNoise
from cloister.stored import Stored

NoiseLaw: TypeAlias = DiscreteLaplace | DiscreteGaussian | SummedNoise

LAWS: tuple[Stored[Any], ...] = (
    Stored(DiscreteLaplace, "DiscreteLaplace", "scale", "sensitivity"),
    Stored(DiscreteGaussian, "DiscreteGaussian", "scale_squared", "sensitivity_squared"),
    Stored(SummedNoise, "SummedNoise", "parts"),
)
_NUMBER = re.compile(r"-?[0-9]+(?:[./][0-9]+)?")
_LONGEST = 8192
_BY_KIND = {each.kind: each for each in LAWS}
_BY_NAME = {each.name: each for each in LAWS}


def law_plain(law: NoiseLaw) -> dict[str, Any]:
    """A law as plain data: its name, and exact numbers as texts.

    >>> law_plain(DiscreteLaplace(scale="0.5"))
    {'law': 'DiscreteLaplace', 'scale': '1/2', 'sensitivity': '1'}
    """
    form = _BY_KIND[type(law)]
    return {"law": form.name, **{name: _plain(value) for name, value in form.told(law).items()}}


def law_from(told: Mapping[str, Any]) -> NoiseLaw:
    """The law again; KeyError for one that is not known.

    >>> law = SummedNoise(parts=[(DiscreteLaplace(scale=10), "4/3")])
    >>> law_from(law_plain(law)) == law
    True
    """
    form = _BY_NAME[told["law"]]
    made: NoiseLaw = form.made({name: _read(value) for name, value in told.items() if name != "law"})
    return made


def number_from(text: str) -> Fraction:
    """A number from the text that stands for it, as whole numbers, a fraction or a decimal; ValueError for another. An exponent
    is refused: twelve characters with one can stand for more digits than there is memory for.

    >>> number_from("3/4"), number_from("-0.5")
    (Fraction(3, 4), Fraction(-1, 2))
    """
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        raise ValueError("no number, or too long a one")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ValueError("no number has 0 below it") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return law_plain(value)


def _read(value: Any) -> Any:
    if isinstance(value, str):
        return number_from(value)
    if isinstance(value, Mapping):
        return law_from(value)
    return tuple(_read(each) for each in value)
