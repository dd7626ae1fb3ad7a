"""Who answers a SELECT: the door, where it names a declared table; the catalogue, where it names none.

A text that cannot be read goes to the door if any declared name stands in it, so that the refusal is that of a question. Wrong
roads lead nowhere: the catalogue holds nothing private, and the door charges only what was set to be spent.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from cloister.errors import CloisterError
from cloister.hub.postgres.catalogue.rewriting import plain
from cloister.hub.postgres.statements import Select
from cloister.hub.postgres.words import unquoted, without, words
from cloister.query.words import check_words, unheard

__all__ = ["Route", "SetConfig", "route", "set_config"]


@dataclass(frozen=True, kw_only=True)
class Route:
    """The text for whoever answers, whether that is the door, and which declared tables it names, in small letters."""

    text: str
    private: bool
    named: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SetConfig:
    """`SELECT set_config('name', 'value', local)`: how clients set with parameters."""

    name: str
    value: str
    local: bool


def route(question: Select, declared: Collection[str]) -> Route:
    """Where a question goes.

    >>> from cloister.hub.postgres.statements import read_all
    >>> [ask, look] = read_all("SELECT COUNT(*) FROM public.people; SELECT relname FROM pg_class")
    >>> route(ask, ["people"]), route(look, ["people"]).private
    (Route(text='SELECT COUNT(*) FROM people', private=True, named=frozenset({'people'})), False)
    """
    names = {name.lower() for name in declared}
    named = _named(question, names)
    private = named is None or bool(named)
    return Route(
        text=_without_schema(question.text, names) if private else question.text, private=private, named=named or frozenset()
    )


def set_config(question: Select) -> SetConfig | None:
    """The setting that a SELECT of set_config makes; None for every other SELECT."""
    own = [word for word in question.words if word.lower != "pg_catalog"]
    texts = [word.lower for word in own if word.text != "."]
    if texts[1:3] != ["set_config", "("] or ")" not in texts:
        return None
    inside = [word for word in own[: texts.index(")") + len(own) - len(texts)] if word.kind == "string"]
    if len(inside) != 2:
        return None
    return SetConfig(unquoted(inside[0].text), unquoted(inside[1].text), "true" in texts)


def _named(question: Select, names: Collection[str]) -> frozenset[str] | None:
    """The declared tables that a question names; None where it cannot be read, and the name of one stands in it."""
    try:
        with unheard():
            tokens = sqlglot.tokenize(plain(question.text), read="postgres")
            check_words([token for token, after in zip(tokens, [*tokens[1:], None], strict=True) if not _ordinal(token, after)])
            trees = sqlglot.parse(plain(question.text), read="postgres")
    except (sqlglot.errors.SqlglotError, CloisterError, RecursionError, ValueError):
        there = any(word.lower.lower() in names for word in question.words if word.kind in ("word", "quoted"))
        return None if there else frozenset()
    return frozenset(
        table.name.lower()
        for tree in trees
        if tree is not None
        for table in tree.find_all(exp.Table)
        if table.name.lower() in names and table.db.lower() in ("", "public") and not table.name.lower().startswith("pg_")
    )


def _ordinal(token: sqlglot.Token, after: sqlglot.Token | None) -> bool:
    return token.text.upper() == "WITH" and after is not None and after.text.upper() == "ORDINALITY"


def _without_schema(text: str, names: Collection[str]) -> str:
    """`public.people` is `people`."""
    own = words(text)
    gone = []
    for place, (first, dot, name) in enumerate(zip(own, own[1:], own[2:], strict=False)):
        before = own[place - 1].text if place else ""
        if first.lower == "public" and dot.text == "." and before != "." and name.lower.lower() in names:
            gone += [first, dot]
    return without(text, gone)
