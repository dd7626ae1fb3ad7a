"""The names under which values are written down: a literal for each class, and one for each of its fields.

A digest, a release or a job is looked up years after it was written, so nothing in it may follow what a class, a field or a
module is called in the code. Each class that is written down has a `Stored` beside what writes and reads it: its literals never
change, and the class and its fields may. A field that got another name since is given with both, the stored name first.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Form", "Stored", "canonical", "flush"]

T = TypeVar("T")
_PLAIN = frozenset({type(None), bool, int, float, str})


class Form(Protocol):
    """How the values of one class are written for a digest."""

    def text(self, value: Any, inner: Callable[[Any], str]) -> str:
        """The text of a value, made of the texts of what is in it."""
        ...


class Stored(Generic[T]):
    """A dataclass, the name that it is stored under, and those of its fields, in their order; all but those that go `without`.
    Fields that came `later` are told where they have another value than their default: what was written before reads the same.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class SpendingLimit:
    ...     amount: int
    ...     owner: str = ""
    >>> form = Stored(SpendingLimit, "Allotment", "amount", ("who", "owner"))
    >>> form.told(SpendingLimit(3, "ana"))
    {'amount': 3, 'who': 'ana'}
    >>> form.made({"amount": 3, "who": "ana"})
    SpendingLimit(amount=3, owner='ana')
    >>> form.text(SpendingLimit(3, "ana"), repr)
    "Allotment(amount=3, who='ana')"
    """

    def __init__(
        self, kind: type[T], name: str, *names: str | tuple[str, str], without: Collection[str] = (), later: Collection[str] = ()
    ) -> None:
        pairs = tuple((each, each) if isinstance(each, str) else each for each in names)
        if {*without, *(attribute for _, attribute in pairs)} != {each.name for each in fields(kind)}:  # type: ignore[arg-type]
            raise TypeError(f"the stored names of {kind.__name__} are not those of its fields")
        self.kind, self.name, self.pairs = kind, name, pairs
        self.attributes: Mapping[str, str] = dict(pairs)
        """The field that each stored name stands for."""
        self._defaults = {each.name: each.default for each in fields(kind) if each.name in later}  # type: ignore[arg-type]

    def told(self, value: T) -> dict[str, Any]:
        """The fields of a value under their stored names."""
        return {stored: getattr(value, attribute) for stored, attribute in self._pairs(value)}

    def given(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """What was told under stored names, under those of the fields. Another name raises KeyError."""
        return {self.attributes[stored]: value for stored, value in told.items()}

    def made(self, told: Mapping[str, Any], **more: Any) -> T:
        """The value that was told, with `more` in further fields; a field that was not told has its default."""
        return self.kind(**self.given(told), **more)

    def text(self, value: T, inner: Callable[[Any], str]) -> str:
        """The value as a digest has it: as Python would write it, if class and fields were called what they are stored as."""
        told = [f"{stored}={inner(getattr(value, attribute))}" for stored, attribute in self._pairs(value)]
        return f"{self.name}({', '.join(told)})"

    def _pairs(self, value: T) -> Sequence[tuple[str, str]]:
        """The pairs that a value's digest names: all, or without defaults."""
        if not self._defaults:
            return self.pairs
        left = self.untold(value)
        return [pair for pair in self.pairs if pair[1] not in left]

    def untold(self, value: T) -> set[str]:
        """The fields that came later and have their default."""
        return {name for name, default in self._defaults.items() if getattr(value, name) == default}


def canonical(value: Any, forms: Mapping[type, Form]) -> str:
    """A value as a digest has it: plain values as Python writes them, all others by their form. What has none raises TypeError,
    since a text that follows a name in the code would be another one day.

    >>> canonical((None, [True, 0.1], {"a": Fraction(1, 3)}), {})
    "(None, [True, 0.1], {'a': Fraction(1, 3)})"
    """
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    form = forms.get(kind)
    if form is not None:
        return form.text(value, lambda each: canonical(each, forms))
    if kind is tuple:
        return f"({canonical(value[0], forms)},)" if len(value) == 1 else f"({_listed(value, forms)})"
    if kind is list:
        return f"[{_listed(value, forms)}]"
    if kind is dict:
        return f"{{{', '.join([f'{canonical(key, forms)}: {canonical(each, forms)}' for key, each in value.items()])}}}"
    if kind is Fraction:
        return f"Fraction({value.numerator}, {value.denominator})"
    raise TypeError(f"a {kind.__name__} has no stored form")


def _listed(values: Any, forms: Mapping[type, Form]) -> str:
    return ", ".join([canonical(each, forms) for each in values])


def flush(path: Path) -> None:
    """What was written of a file, or of a folder's names, is on the disk when this returns.

    >>> flush(Path("."))
    """
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
