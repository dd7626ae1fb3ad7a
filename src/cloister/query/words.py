"""From text to one parsed SELECT, in bounded time.

sqlglot reads far more than is answered here, and on some texts it would not come to an end. Three causes were measured, and all
are seen among the words (tokens) before anything is parsed:

- *Other statements.* COPY is one that may loop for ever. A statement can stand at the beginning, and after WITH: so the first
  word is SELECT, FROM (which DuckDB lets stand before SELECT) or WITH, and every WITH is followed by `name AS (SELECT …`, again
  and again, and then by SELECT.
- *Conditions.* Each is read, checked and bounded in time that grows with their number; at most 500 are joined by AND and OR.
- *Types and brackets within one another.* `DATE(`, `DECIMAL(`, `ARRAY[` and `{` are read first as a type and then as something
  else, so the time doubles with each level: 3 s at 16 levels in every dialect. They may be nested 5 deep, and 2 to the power
  of each one's depth may add up to 5,000, about a second. Functions, CASE, subqueries and plain parentheses take time in
  proportion to their length at any depth, and may be nested 60 deep.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import sqlglot
from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from cloister.printable import LONGEST_NAME, is_text
from cloister.query.dialect import dialect_named, parser_of
from cloister.query.options import Options, taken
from cloister.query.refusals import EXAMPLE, clipped, refused
from cloister.query.rewriting import outermost, without_all

_LONGEST = 50_000
_MOST_CONDITIONS = 500
_DEEPEST_DOUBLING, _DEEPEST = 5, 30
_MOST_DOUBLING, _MOST_TYPES = 5_000, 5
_WITH = "WITH totals AS (SELECT patient, SUM(cost) AS total FROM visits GROUP BY patient) SELECT AVG(total) FROM totals"
_FILTERS = threading.Lock()
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_JOINING = frozenset({TokenType.AND, TokenType.OR, TokenType.XOR})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_BEGUN = {TokenType.SELECT, TokenType.DISTINCT, TokenType.FROM, TokenType.COMMA, TokenType.L_PAREN, TokenType.GROUP_BY}
_ENDED = {TokenType.R_PAREN, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT}
_NESTED = frozenset(sqlglot.Parser.NESTED_TYPE_TOKENS)
_TYPES = (
    frozenset(sqlglot.Parser.TYPE_TOKENS) | frozenset(sqlglot.Parser.NESTED_TYPE_TOKENS) | {TokenType.DCOLON, TokenType.ALIAS}
)


def statement(sql: str, dialect: str | None) -> tuple[exp.Query, Options]:
    """The one SELECT that a text writes, and what its OPTIONS (…) said.

    >>> statement("SELECT TOP 3 sex FROM people", None)[0].sql()
    'SELECT sex FROM people LIMIT 3'
    """
    if not isinstance(sql, str) or not sql.strip():
        raise refused("An empty question is not supported", "there is nothing to answer", EXAMPLE)
    if len(sql) > _LONGEST:
        raise refused("The query is not supported", f"its text is longer than {_LONGEST} characters", EXAMPLE)
    reader = dialect_named(dialect)
    tokens, options = taken(without_all(reader.tokenize(sql)))
    check_words(tokens)
    _mark_top(tokens)
    trees = [tree for tree in parser_of(reader).parse(tokens, sql) if tree is not None]
    (tree,) = (tree for tree in trees if not isinstance(tree, exp.Semicolon))  # one statement, by its words
    query = outermost(tree)
    assert isinstance(query, exp.Select | exp.SetOperation), "it begins with SELECT, or with WITH and then SELECT"
    _check_names(query)
    return query, options


def _check_names(tree: exp.Expression) -> None:
    """A name that the text gives to something is one that can be shown: it may come to be a column of the answer."""
    for each in tree.find_all(exp.Alias, exp.TableAlias):
        given = (
            [each.args.get("alias"), *each.args.get("columns", ())] if isinstance(each, exp.Alias) else [each.this, *each.columns]
        )
        for name in given:
            text = name.name if isinstance(name, exp.Expression) else name
            if text and not is_text(text):
                raise refused(
                    f"The name {clipped(text)} is not supported",
                    f"a name has 1 to {LONGEST_NAME} characters, all of them printable",
                    "… AS n",
                )


def check_words(tokens: Sequence[Token]) -> None:
    """Refuse, before they are parsed, texts on which sqlglot would not come to an end, or reads a list without a first part.

    >>> import sqlglot
    >>> check_words(sqlglot.tokenize("SELECT SUM(age) FROM people WHERE (age IN (1, 2) OR (NOT (age > 40)))"))
    >>> check_words(sqlglot.tokenize("SELECT " + "DATE(" * 6 + "born" + ")" * 6))
    Traceback (most recent call last):
    ...
    cloister.errors.UnsupportedQuery: The query is not supported: types or brackets are nested deeper than 5.
      Instead: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex
    """
    kinds = [token.token_type for token in tokens]
    while kinds and kinds[-1] is TokenType.SEMICOLON:
        kinds.pop()
    if not kinds or TokenType.SEMICOLON in kinds:
        raise refused("The query is not supported", "it must be exactly one statement", EXAMPLE)
    first = next((place for place, kind in enumerate(kinds) if kind is not TokenType.L_PAREN), 0)
    if kinds[first] not in (TokenType.SELECT, TokenType.WITH, TokenType.FROM):
        raise refused(f"{clipped(tokens[first].text)} is not supported", "only SELECT is answered", EXAMPLE)
    if sum(kind in _JOINING for kind in kinds) > _MOST_CONDITIONS:
        raise refused("The query is not supported", f"more than {_MOST_CONDITIONS} conditions are joined in it", "x IN (1, 2, 3)")
    _check_nesting(kinds)
    for at, (kind, after) in enumerate(zip(kinds, [*kinds[1:], TokenType.R_PAREN], strict=True)):
        if kind is TokenType.WITH:
            _check_with(tokens, kinds, at)
        begun = kind in _BEGUN or kinds[at - 1 : at + 1] == [TokenType.SELECT, TokenType.ALL]
        if (begun and after is TokenType.COMMA) or (kind is TokenType.GROUP_BY and after in _ENDED):
            raise refused(f"{clipped(tokens[at].text)} is invalid", "it is not SQL that can be read", EXAMPLE)


def _check_nesting(kinds: Sequence[TokenType]) -> None:
    opened: list[bool] = []  # whether each open bracket doubles the work
    doubling, work, types, before = 0, 0, 0, TokenType.SELECT
    for kind in kinds:
        if kind in _OPENING:
            opened.append(kind is not TokenType.L_PAREN or before in _TYPES)
            doubling += opened[-1]
            work += opened[-1] * 2**doubling
            if doubling > _DEEPEST_DOUBLING:
                raise refused(
                    "The query is not supported", f"types or brackets are nested deeper than {_DEEPEST_DOUBLING}", EXAMPLE
                )
            if len(opened) > _DEEPEST:
                raise refused("The query is not supported", f"parentheses are nested deeper than {_DEEPEST}", EXAMPLE)
        elif kind in _CLOSING and opened:
            doubling -= opened.pop()
        types += kind is TokenType.LT and before in _NESTED
        if work > _MOST_DOUBLING or types > _MOST_TYPES:
            raise refused("The query is not supported", "it has too many types or brackets within one another", EXAMPLE)
        before = kind


def _check_with(tokens: Sequence[Token], kinds: Sequence[TokenType], at: int) -> None:
    """WITH name AS (SELECT …), name AS (SELECT …) SELECT; or WITH ROLLUP, CUBE, TOTALS, TIES or TIME behind another word."""
    following = tokens[at + 1].text.upper() if at + 1 < len(tokens) else ""
    named_so = kinds[at + 2 : at + 3] in ([TokenType.ALIAS], [TokenType.L_PAREN])  # WITH ties AS (…, WITH ties (…
    if following in ("ROLLUP", "CUBE", "TOTALS", "TIES", "TIME") and not named_so:
        return
    if following == "RECURSIVE":
        raise refused("WITH RECURSIVE is not supported", "a recursive query has no bound that is known in advance", _WITH)
    starts = at == 0 or kinds[at - 1] is TokenType.L_PAREN
    place = at + 1
    while starts:
        named = place + 3 < len(kinds) and (
            kinds[place] in (TokenType.VAR, TokenType.IDENTIFIER) or tokens[place].text.isidentifier()
        )
        if named and kinds[place + 1] is TokenType.L_PAREN:  # name (a, b) AS (SELECT …
            place = _behind_names(tokens, kinds, place + 1)
            named = place + 3 < len(kinds)
        if not named or kinds[place + 1] is not TokenType.ALIAS or kinds[place + 2] is not TokenType.L_PAREN:
            break
        if kinds[place + 3] not in (TokenType.SELECT, TokenType.WITH):
            break
        depth, place = 1, place + 3
        while depth and place < len(kinds):
            depth += (kinds[place] is TokenType.L_PAREN) - (kinds[place] is TokenType.R_PAREN)
            place += 1
        if place < len(kinds) and kinds[place] is TokenType.SELECT and not depth:
            return
        if place >= len(kinds) or kinds[place] is not TokenType.COMMA:
            break
        place += 1
    raise refused("This WITH is not supported", "it is not name AS (SELECT …), and then SELECT", _WITH)


def _behind_names(tokens: Sequence[Token], kinds: Sequence[TokenType], opened: int) -> int:
    """The closing parenthesis of a list of names; beyond the text where it is none."""
    for place in range(opened + 1, len(kinds)):
        if kinds[place] is TokenType.R_PAREN:
            return place
        if (
            kinds[place] is not TokenType.COMMA
            and kinds[place] is not TokenType.IDENTIFIER
            and not tokens[place].text.isidentifier()
        ):
            break
    return len(kinds)


def _mark_top(tokens: Sequence[Token]) -> None:
    """`SELECT TOP 3 …` in every dialect: only there, so that a column may be called top."""
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        numbered = after.token_type in (TokenType.NUMBER, TokenType.L_PAREN)
        first = before.token_type in (TokenType.SELECT, TokenType.DISTINCT) and token.token_type is TokenType.VAR
        if first and numbered and token.text.upper() == "TOP":
            token.token_type = TokenType.TOP


@contextmanager
def unheard() -> Iterator[None]:
    """sqlglot logs what it can't read, and the text may hold what a log must not; other threads' records pass.

    The list of filters is replaced, never changed: a record of another thread may be on its way through it.
    """
    mine = threading.get_ident()

    def of_others(record: logging.LogRecord) -> bool:
        return threading.get_ident() != mine

    logger = logging.getLogger("sqlglot")
    with _FILTERS:
        logger.filters = [*logger.filters, of_others]
    try:
        yield
    finally:
        with _FILTERS:
            logger.filters = [each for each in logger.filters if each is not of_others]
