"""One writing for the parts of a question: names in small letters, no comments; and the same with its constants left out."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.generator import Generator


class _Bare(Generator):  # type: ignore[misc]
    """Writes `?` for a constant, and one for a whole list of them."""

    def literal_sql(self, expression: exp.Literal) -> str:
        """A constant."""
        return "?"

    def in_sql(self, expression: exp.In) -> str:
        """Among constants, however many."""
        if expression.expressions and all(isinstance(each, exp.Literal) for each in expression.expressions):
            return f"{self.sql(expression, 'this')} IN (?)"
        return str(super().in_sql(expression))


class Wording:
    """Writes several parts of one tree, which is its caller's own: writing may change it.

    >>> import sqlglot
    >>> part, wording = sqlglot.parse_one("age IN (1, 2) /* some */"), Wording()
    >>> wording.text(part), wording.template(part)
    ('age IN (1, 2)', 'age IN (?)')
    """

    def __init__(self) -> None:
        self._text = Generator(normalize=True, comments=False)
        self._template = _Bare(normalize=True, comments=False)

    def text(self, part: exp.Expression) -> str:
        """As it stands."""
        return str(self._text.generate(part, copy=False))

    def template(self, part: exp.Expression) -> str:
        """Without its constants."""
        return str(self._template.generate(part, copy=False))
