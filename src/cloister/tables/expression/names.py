"""Names as SQL writes them: in quotes where they would be read as something else without."""

import re
from collections.abc import Iterable
from functools import cache

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


@cache
def _keywords(dialect: str) -> frozenset[str]:
    from sqlglot import Dialect  # here, because it takes longer to load than all that describes a table

    grammars = [Dialect.get_or_raise(each) for each in ("", dialect)]
    words = (each for one in grammars for each in (*one.tokenizer_class.KEYWORDS, *one.parser_class.NO_PAREN_FUNCTION_PARSERS))
    return frozenset(word for each in words for word in each.split())


def needs_quotes(name: str, dialect: str = "") -> bool:
    """Whether a name would be read as something else without quotes, in our own SQL and in a dialect.

    >>> needs_quotes("alter"), needs_quotes("Age"), needs_quotes("minus"), needs_quotes("minus", "oracle")
    (True, True, False, True)
    """
    return not _PLAIN.fullmatch(name) or name.upper() in _keywords(dialect)


def quoted(name: str) -> str:
    """A name of a column, a table or a result, as SQL writes it.

    >>> quoted("age"), quoted("Age group"), quoted("order"), quoted('a"b')
    ('age', '"Age group"', '"order"', '"a""b"')
    """
    return quotation(name) if needs_quotes(name) else name


def quotation(text: str) -> str:
    """A text in quotes, with those in it doubled."""
    return '"' + text.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def quoted_path(name: str) -> str:
    """A name with the schema before it.

    >>> quoted_path("main.order")
    'main."order"'
    """
    return ".".join(map(quoted, name.split(".")))


def alias(wanted: str, columns: Iterable[str]) -> str:
    """What a result may be called beside these columns: as is wanted, or with a number behind it.

    >>> alias("n", ["age"]), alias("n", ["N", "n_2"])
    ('n', 'n_3')
    """
    taken = {each.lower() for each in columns}
    return next(each for each in (wanted, *(f"{wanted}_{place}" for place in range(2, len(taken) + 3))) if each not in taken)
