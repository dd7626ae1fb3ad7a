"""How a question is refused: by the name of what is refused, with the line to write instead; never with a value of a row."""

from sqlglot import exp

from cloister.errors import UnsupportedQuery

EXAMPLE = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
_LONGEST_SHOWN = 60


def refused(what: str, why: str, instead: str) -> UnsupportedQuery:
    """A refusal in three parts.

    >>> print(refused("NATURAL JOIN is not supported", "it names no columns", "JOIN visits USING (patient)"))
    NATURAL JOIN is not supported: it names no columns.
      Instead: JOIN visits USING (patient)
    """
    return UnsupportedQuery(what, why=why, instead=instead)


def unsupported(what: str, instead: str) -> UnsupportedQuery:
    """A refusal by name.

    >>> print(unsupported("QUALIFY", "… WHERE condition"))
    QUALIFY is not supported: no privacy proof covers it.
      Instead: … WHERE condition
    """
    return UnsupportedQuery(f"{what} is not supported", why="no privacy proof covers it", instead=instead)


def clipped(text: str) -> str:
    """The text, quoted, or its beginning where it is long: a refusal need not repeat a page.

    >>> clipped("x" * 10_000) == repr("x" * 60 + "…")
    True
    """
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")


def shown(tree: exp.Expression) -> str:
    """The SQL of a part of the question, as it was asked, for its refusal; its kind where sqlglot can't write it (deep nesting,
    its own gaps).

    >>> shown(exp.column("age") + 1)
    "'age + 1'"
    """
    try:
        asked = tree.transform(lambda node: node.meta.get("asked", node) if isinstance(node, exp.Column) else node)
        return clipped(asked.sql(comments=False))
    except Exception:  # whatever failed there, the refusal itself must not
        return str(tree.key).upper()


def whole(text: str) -> int | None:
    """The number that plain digits write; None for anything else, and for more digits than a place or a limit can have.

    >>> whole("12"), whole("1e3"), whole("²"), whole("9" * 5000)
    (12, None, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None
