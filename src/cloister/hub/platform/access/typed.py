"""What was typed into a form, for showing it once more."""

from __future__ import annotations

from typing import Any

from cloister.hub.web.forms import Form

_LISTS = ("actions", "columns", "days", "methods", "prohibitions", "purposes")


class Typed(dict[str, Any]):
    """Fields by name; one that was not there is empty, so that a template may ask for any.

    >>> Typed({"role": "reader"})["people"]
    ''
    """

    def __missing__(self, name: str) -> str:
        return ""

    @classmethod
    def of(cls, form: Form, **first: Any) -> Typed:
        """The fields of a form; boxes of which several can be ticked are lists."""
        return cls(first | {name: form.all(name) if name in _LISTS else form[name] for name in form})
