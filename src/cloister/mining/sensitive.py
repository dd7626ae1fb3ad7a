"""Sensitive rules as a person writes them, and what hiding them means.

A rule is hidden where a miner with the same thresholds does not find it: fewer than `least` baskets hold it, or its confidence
is below the threshold. A sensitive rule that the thresholds do not find to begin with is hidden already, and nothing is changed
for it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cloister.errors import InvalidParameter
from cloister.mining.baskets import Baskets, Item
from cloister.mining.itemsets import mine
from cloister.mining.rules import Found, Rule, find_rules
from cloister.mining.thresholds import Thresholds

_LINE = 'rules=[("beer", "bread"), (("tea", "milk"), ("jam",)), "tea, milk -> jam"]'


@dataclass(frozen=True, kw_only=True)
class Sensitive:
    """A rule to hide, as places: both sides ascending."""

    antecedent: tuple[int, ...]
    consequent: tuple[int, ...]

    @property
    def whole(self) -> tuple[int, ...]:
        """Both sides together."""
        return tuple(sorted((*self.antecedent, *self.consequent)))

    def text(self, baskets: Baskets) -> str:
        """In words."""
        sides = (", ".join(str(baskets.items[place]) for place in side) for side in (self.antecedent, self.consequent))
        return " → ".join(sides)


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Baskets, thresholds, what is to be hidden, and all rules that are found before."""

    baskets: Baskets
    thresholds: Thresholds
    asked: tuple[Sensitive, ...]
    found: Found

    @staticmethod
    def of(baskets: Baskets, thresholds: Thresholds, asked: Sequence[Sensitive]) -> Problem:
        """Mines the baskets."""
        found = find_rules(mine(baskets, thresholds.least), thresholds)
        return Problem(baskets=baskets, thresholds=thresholds, asked=tuple(asked), found=found)

    @cached_property
    def sensitive(self) -> tuple[Sensitive, ...]:
        """Those that the thresholds find."""
        return tuple(rule for rule in self.asked if (rule.antecedent, rule.whole) in self.found.keys)

    @cached_property
    def items(self) -> tuple[int, ...]:
        """All that stand in a rule that is to be hidden: nothing else is ever changed."""
        return tuple(sorted({place for rule in self.sensitive for place in rule.whole}))


def sensitive_rules(baskets: Baskets, rules: Any) -> tuple[Sensitive, ...]:
    """Read what a person wrote: pairs of sides, texts with an arrow, or rules that were mined; each once.

    >>> baskets = Baskets.of([["tea", "milk"], ["jam"]])
    >>> [rule.text(baskets) for rule in sensitive_rules(baskets, [("tea", "milk"), "tea, milk -> jam", (("milk", "tea"), "jam")])]
    ['tea → milk', 'tea, milk → jam']
    """
    if isinstance(rules, str | Rule) or not isinstance(rules, Iterable):
        raise InvalidParameter(f"rules={rules!r} is invalid", why="it is a list of rules", instead=_LINE)
    read = [_rule(baskets, rule) for rule in rules]
    if not read:
        raise InvalidParameter("rules=[] is invalid", why="nothing is to be hidden", instead=_LINE)
    return tuple(dict.fromkeys(read))


def named_in(rules: Any) -> list[Item]:
    """All that rules name as items, where nobody knows yet what the baskets hold.

    >>> named_in([("tea, milk", ("jam",)), "tea -> rum"])
    ['tea, milk', 'jam', 'tea', 'rum', 'tea', 'rum']
    """
    sides: list[Any] = []
    for rule in rules if isinstance(rules, list) else ():
        if isinstance(rule, str):  # other commas than the plain one are commas where no item has one
            sides += [side for held in ([], ["，"]) for side in _of_text(Baskets.of([held]), rule)]
        else:
            sides += (
                [rule.antecedent, rule.consequent] if isinstance(rule, Rule) else rule if isinstance(rule, tuple | list) else []
            )
    return [each for side in sides for each in (side if isinstance(side, tuple | list | set | frozenset) else [side])]


def _rule(baskets: Baskets, rule: Any) -> Sensitive:
    if isinstance(rule, Rule):
        sides: tuple[Any, Any] = (rule.antecedent, rule.consequent)
    elif isinstance(rule, str):
        sides = _of_text(baskets, rule)
    elif isinstance(rule, tuple | list) and len(rule) == 2:
        sides = (rule[0], rule[1])
    else:
        raise InvalidParameter(f"The rule {rule!r} is invalid", why="a rule has two sides", instead=_LINE)
    antecedent, consequent = (_side(baskets, side, rule) for side in sides)
    if set(antecedent) & set(consequent):
        raise InvalidParameter(f"The rule {_shown(rule)} is invalid", why="its sides share an item", instead=_LINE)
    return Sensitive(antecedent=antecedent, consequent=consequent)


def _of_text(baskets: Baskets, text: str) -> tuple[list[Item], list[Item]]:
    for arrow in ("→", "->"):
        left, found, right = text.partition(arrow)
        if found and arrow not in right:
            named = {str(item): item for item in baskets.items}
            one, other = ([named.get(part, part) for part in _parts(side, named)] for side in (left, right))
            return one, other
    raise InvalidParameter(
        f"The rule {text!r} is invalid", why="a text says a rule with one arrow between its sides", instead=_LINE
    )


def _parts(side: str, named: Collection[str]) -> list[str]:
    """The items of one side. Where a piece between two commas is none, a comma may stand in an item's name."""
    commas = "," if any(re.search("[，、]", item) for item in named) else "[,，、]"
    pieces = [piece.strip() for piece in re.split(commas, side) if piece.strip()]
    within = sorted((item for item in named if re.search(commas, item)), key=len, reverse=True)
    if not within or all(piece in named for piece in pieces):
        return pieces
    whole = "|".join(map(re.escape, within))
    found = re.findall(rf"\s*((?:{whole})(?=\s*(?:{commas}|$))|(?:(?!{commas}).)+)", side)
    return [piece.strip() for piece in found if piece.strip()]


def _side(baskets: Baskets, side: Any, rule: Any) -> tuple[int, ...]:
    known = baskets.places
    items = list(side) if isinstance(side, tuple | list | set | frozenset) and not _is_item(known, side) else [side]
    if not items:
        raise InvalidParameter(f"The rule {_shown(rule)} is invalid", why="one of its sides is empty", instead=_LINE)
    for item in items:
        if not _is_item(known, item):
            near = difflib.get_close_matches(str(item), [str(each) for each in baskets.items], n=1)
            why = f"no basket holds {item!r}" + (f"; there is {near[0]!r}" if near else "")
            raise InvalidParameter(f"The rule {_shown(rule)} is invalid", why=why, instead=_LINE)
    return tuple(sorted({known[item] for item in items}))


def _is_item(known: Any, value: Any) -> bool:
    try:
        return value in known
    except TypeError:
        return False


def _shown(rule: Any) -> str:
    return f"'{rule}'" if isinstance(rule, Rule) else repr(rule)
