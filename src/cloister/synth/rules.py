"""Rules that every drawn row obeys: `birth <= admission`, `age < 15 => marital = 'never married'`, `a + b = total`.

A rule is a condition on the columns of one row, in three-valued logic: a row breaks it where it is *false*. Where a missing
value leaves it open, it is not broken.

*Before measuring*, rows that break a rule are mapped (`Rules.mapped`): a date that comes too early becomes the other date, what
an implication asks for is set, a total becomes the sum of its parts. Claim: measuring the mapped table has the guarantee of
measuring the table itself. Proof: the map takes a row to a row and follows from rules and declarations, which are public; it
looks at no other row and drops none. So of two tables that differ in the rows of one person, the images differ in the images of
these rows, as many as they were: neighbours stay neighbours under the same `max_rows`, and a mechanism that is private for all
neighbours is so for these (a map of stability 1: McSherry 2009). Each step is an `Extended` or `Projected` relation, whose own
proofs stand in `tables/relations/relation.py`, and runs inside any engine. What the map cannot mend (`a != b`, or a table whose
engine computes no columns) is counted as it is, and the model's `unmapped` names such rules: only the drawing obeys them then.

*In the fit*, pairs of states of which no values obey the rules are cells of count 0 (`Rules.zeros`): structural zeros. A slope
drives the components out of them, as strong as a deviation of the noise.

An order of two columns in bins (`admission <= discharge`) leaves their difference open, which bins are too wide to tell. So
`discharge - admission` is a column of the fit of its own (`Rules.differences`): of each mended row by itself, so a map of
stability 1 as above, counted like any other column under the same charge, in bins that follow from declarations and grow with the
distance from its least value. Where noise hides the end of its range, the fit ends there: a few rows of noise far out would move
its mean by a factor.

*While drawing*, states come from the mixture. Of the columns of a sum or difference, that of the widest bins follows from the
others, however the rule is written (`_Rows`): so nothing is lost of those that bins tell well. Rows that break a rule are then
mended in turns (`Rules.settled`). What can't be is thrown away, and others drawn. Rows by themselves have the law of the mixture
no longer: the model says how many were kept, and its report how far single columns moved.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property, reduce
from graphlib import CycleError, TopologicalSorter
from itertools import permutations
from math import ceil, floor, lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.noise import Random
from cloister.session import Count, Measurer, Question, Spending
from cloister.synth.cutting import changes, leaves, scope_of, truth
from cloister.synth.pieces import Integers, Pieces
from cloister.synth.states import States
from cloister.tables import (
    And,
    Base,
    Boolean,
    Category,
    Column,
    Compare,
    Date,
    Domain,
    Expression,
    Extended,
    Integer,
    IsNull,
    Literal,
    Not,
    Or,
    PrivateTable,
    Projected,
    Real,
    Relation,
    Runs,
)
from cloister.tables.expression import expressions as conditions
from cloister.tables.expression import scalars
from cloister.tables.expression.evaluate import LaneScope
from cloister.tables.expression.forms import Form, shortest
from cloister.tables.expression.lanes import Lane
from cloister.tables.expression.scalars import Const, Ref, Scalar

Truths = npt.NDArray[np.bool_]
Codes = dict[str, Integers]

LEAST_ACCEPTED = 0.01
_MOST_RULES = 100
_TURNS = 100
"""How often values are drawn again inside their states, and change places."""
_WITNESSES = 2_000
_RANKED = 20
_MOST_POINTS = 4_000_000
_MOST_DIFFERENCES = 3
_GROWTH = 4
"""A bin of a difference has at most a fourth of its distance from the least one."""
_SEED = b"rows that show whether rules can be met together"


@dataclass(frozen=True, eq=False)
class Rule:
    """One condition of a text, which may join several by AND, and what it reads."""

    text: str
    condition: Expression
    computed: tuple[tuple[str, Scalar], ...]
    """The computed columns that it reads, each made of declared ones."""
    domains: Mapping[str, Domain]
    """The declared columns that it reads, or that are read for it."""

    @classmethod
    def of(cls, text: str, condition: Expression, computed: Mapping[str, Scalar], domains: Mapping[str, Domain]) -> Rule:
        """With what it reads of these columns."""
        used, kept = set(condition.columns()), dict[str, Scalar]()
        for name, scalar in reversed(list(computed.items())):  # each may stand on those before it
            if name in used:
                kept[name] = scalar
                used |= scalar.columns()
        read = {name: domain for name, domain in domains.items() if name in used}
        return cls(text, condition, tuple(reversed(kept.items())), read)

    def scope(self, codes: Mapping[str, Integers]) -> LaneScope:
        """The columns as arrays, with the computed ones."""
        found = scope_of(self.domains, {name: codes[name] for name in self.domains})
        for name, scalar in self.computed:
            found = LaneScope(self._known, {**found.codes, name: self.code(scalar, found)})
        return found

    def code(self, scalar: Scalar, scope: LaneScope) -> Lane:
        """`Scalar.code` of its columns."""
        found: Lane = scalar.code(scope) if isinstance(scalar, Ref) else shortest(self._form(scalar), scope.plain())
        return found

    @cached_property
    def _form(self) -> Callable[[Scalar], Form]:
        """What follows from declarations alone, worked out once for all rows and turns."""
        return cache(lambda scalar: scalar.form(self._known))

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what was worked out of it: functions, which can't be pickled."""
        return Rule, (self.text, self.condition, self.computed, self.domains)

    @cached_property
    def _known(self) -> dict[str, Domain]:
        """What each of its columns may hold, the computed ones included."""
        found = dict(self.domains)
        for name, scalar in self.computed:
            found[name] = scalar.domain(found)
        return found

    def broken(self, codes: Mapping[str, Integers]) -> Truths:
        """Which rows break it: false, neither true nor open."""
        found = truth(self.condition, self.scope(codes))
        return np.broadcast_to(~found.values.astype(bool) & ~found.null, (len(next(iter(codes.values()))),))

    @cached_property
    def solutions(self) -> list[tuple[str, Scalar]]:
        """For an equality, the columns that follow from the others, each with how: first the one that stands alone."""
        match self.condition:
            case Compare(op="=", left=Column(name=left), right=Column(name=right)):
                known = dict(self.computed)
            case _:
                return []
        alone = [name for name in (right, left) if name in self.domains]
        terms = _difference(*(_linear(known.get(name, Ref(name)), self.domains) for name in (left, right)))
        if terms is not None:
            order = [*alone, *(name for name in reversed(terms) if name and name not in alone)]
            return [(name, _solved(name, terms)) for name in order if abs(terms.get(name, 0)) == 1]
        others = {right: left, left: right}
        return [(name, Ref(others[name])) for name in alone if name not in self._behind(others[name])]

    @property
    def equality(self) -> bool:
        """Whether it says that two sides are equal."""
        return isinstance(self.condition, Compare) and self.condition.op == "="

    @cached_property
    def numbers(self) -> Mapping[str, Domain]:
        """What it reads, days as whole numbers."""
        return {
            name: Integer(each.low_code, each.high_code, nullable=each.nullable) if isinstance(each, Date) else each
            for name, each in self.domains.items()
        }

    @cached_property
    def terms(self) -> Mapping[str, Fraction]:
        """Where it compares sums of columns, the left one less the right one, the constant under no name; else nothing."""
        if not isinstance(self.condition, Compare):
            return {}
        known = dict(self.computed)
        left, right = (
            _linear(known.get(side.name, Ref(side.name)), self.numbers)
            if isinstance(side, Column)
            else _linear(Const(side.value), {})
            if isinstance(side, Literal)
            else None
            for side in (self.condition.left, self.condition.right)
        )
        return {name: each for name, each in (_difference(left, right) or {}).items() if each}

    def followers(self, spread: Mapping[str, float]) -> list[tuple[str, Rule, Scalar]]:
        """For an equality, the columns that follow from the others, each with how: of a sum first the one that `spread` is
        largest for, then that of the widest range."""
        if not self.terms:
            return [(name, self, scalar) for name, scalar in self.solutions]
        names = [name for name in self.terms if name]
        rule = replace(self, computed=(), domains={name: self.numbers[name] for name in names})
        able = [name for name in names if self.equality and abs(self.terms[name]) == 1]
        whole = sum(self.terms[name] for name in names)  # of a sum the total has another sign than its parts
        wide = {name: (each.high_code - each.low_code) * each.step for name in able for each in [rule.domains[name]]}
        able.sort(key=lambda name: (spread[name], wide[name], -whole * self.terms[name]), reverse=True)
        return [(name, rule, _solved(name, self.terms)) for name in able]

    @cached_property
    def difference(self) -> tuple[Rule, States] | None:
        """For an order of two columns, the larger less the smaller one: the equality that it is told by, and its bins."""
        op = self.condition.op if isinstance(self.condition, Compare) else "="
        names = sorted((name for name in self.terms if name), key=lambda name: self.terms[name], reverse=op.startswith(">"))
        if op in ("=", "!=") or sorted(self.terms[name] for name in names) != [-1, 1]:
            return None
        larger, smaller = names
        if all(self.domains[name].nullable for name in names) or any(self.numbers[name].origin for name in names):
            return None
        domain, name = self._subtracted(larger, smaller).domain(self.domains), f"{larger} - {smaller}"
        least = self.terms.get("", Fraction(0)) * (-1 if op.startswith(">") else 1) / domain.step
        starts = [max(ceil(least) if op.endswith("=") else floor(least) + 1, domain.low_code)]
        while starts[-1] <= domain.high_code:
            starts.append(min(starts[-1] + max((starts[-1] - starts[0]) // _GROWTH, 1), domain.high_code + 1))
        low, high = (each * domain.step for each in (starts[0], domain.high_code))
        if len(starts) < 2:
            return None
        own: Domain = Real(low, high, step=domain.step, nullable=domain.nullable)
        if isinstance(domain, Integer):
            own = Integer(int(low), int(high), nullable=domain.nullable)
        return self.told(larger, smaller, own), States(name, own, Runs(name, tuple(starts)), light=True)

    def told(self, larger: str, smaller: str, own: Domain) -> Rule:
        """The equality that a difference of two columns is told by."""
        name, scalar = f"{larger} - {smaller}", self._subtracted(larger, smaller)
        kept = {each: self.domains[each] for each in (larger, smaller)}
        return Rule(self.text, Compare("=", Column(f"{name}'"), Column(name)), ((f"{name}'", scalar),), {**kept, name: own})

    def _subtracted(self, larger: str, smaller: str) -> Scalar:
        if any(isinstance(self.domains[name], Date) for name in (larger, smaller)):
            return scalars.DateDiff("day", Ref(larger), Ref(smaller))
        return scalars.Subtract(Ref(larger), Ref(smaller))

    def _behind(self, name: str) -> set[str]:
        """A column, and those that it is computed from."""
        scalar = dict(self.computed).get(name)
        return {name}.union(*(self._behind(each) for each in scalar.columns())) if scalar is not None else {name}

    @cached_property
    def map(self) -> dict[str, Scalar]:
        """The columns that the map of rows sets: another value where the rule is broken, their own elsewhere; empty where no
        such map into declared values is known."""
        # the first branch is never taken: it keeps the order of the categories
        found: dict[str, Scalar] = {
            target: scalars.Case(((Literal(False), Ref(target)), (Not(self.condition), scalar)), Ref(target))
            for target, scalar in self.fixes.items()
        }
        return found if all(_alike(scalar.domain(self._known), self._known[target]) for target, scalar in found.items()) else {}

    def mapped(self, codes: Codes) -> Codes:
        """Rows after the map, as arrays."""
        scope, found = self.scope(codes), dict(codes)
        for target, scalar in self.map.items():
            with np.errstate(all="ignore"):
                lane = self.code(scalar, scope)
            found[target] = np.where(lane.null, self.domains[target].null_code, lane.values)
        return found

    def over(self, relation: Relation) -> Relation:
        """A relation after the map."""
        names, extended = tuple(relation.columns), relation
        beside = not any(scalar.columns() & dict(self.computed).keys() for _, scalar in self.computed)
        for some in filter(None, [self.computed] if beside else ((each,) for each in self.computed)):
            extended = Extended(source=extended, scalars=some)
        mark = "'"
        while any(f"{target}{mark}" in extended.columns for target in self.map):
            mark += "'"
        extended = Extended(source=extended, scalars=tuple((f"{target}{mark}", each) for target, each in self.map.items()))
        return Projected(source=extended, names=tuple((name, f"{name}{mark}" if name in self.map else name) for name in names))

    @cached_property
    def fixes(self) -> dict[str, Scalar]:
        """What to set which columns to, moved into what they declare, so that the condition becomes true; empty: not known."""
        return {name: _bounded(scalar, self.domains[name]) for name, scalar in (self._fixed(self.condition) or {}).items()}

    def _fixed(self, condition: Expression) -> dict[str, Scalar] | None:
        match condition:
            case And(parts=parts):
                found = [self._fixed(part) for part in parts]
                return None if None in found else {name: scalar for each in found if each for name, scalar in each.items()}
            case Or(parts=parts):
                return next((first for part in parts if (first := self._fixed(part))), None)
            case IsNull(column=Column(name=name)) if name in self.domains and self.domains[name].nullable:
                return {name: Const(None)}
            case conditions.Between(column=Column(name=name), low=low, high=high) if name in self.domains:
                return {name: scalars.LeastOf((scalars.GreatestOf((Ref(name), Const(low.value))), Const(high.value)))}
            case conditions.In(column=Column(name=name), values=(value, *_)) if name in self.domains and value is not None:
                return {name: Const(value)}
            case Compare(op=op, left=Column(name=name), right=Literal(value=value)) if name in self.domains:
                nearest = _nearest(name, self.domains[name], op, value)
                return None if nearest is None else {name: Const(nearest)}
            case Compare(op="=") if self.solutions:
                return dict(self.solutions[:1])
            case Compare(op=op, left=Column(name=left), right=Column(name=right)) if op != "!=":
                return self._moved(op, left, right)
        return None

    def _moved(self, op: str, left: str, right: str) -> dict[str, Scalar] | None:
        """One of two columns moved to the other: the later one in the text, unless only the earlier may be missing."""
        first, second = self.domains.get(left), self.domains.get(right)
        turn = second is None or (first is not None and first.nullable and not second.nullable)
        target, domain, other = (left, first, right) if turn else (right, second, left)
        if not isinstance(domain, Integer | Real | Date):
            return None
        up = op.startswith("<") != turn
        way = (1 if up else -1) if op in "<>" else 0
        moved: Scalar = Ref(other)
        if way:
            days = isinstance(domain, Date)
            moved = scalars.DateShift(moved, way, "day") if days else scalars.Add(moved, Const(way * domain.step))
        base, plus = self._shifted(other)
        found, beside = {target: moved}, self.domains.get(base)
        code = (domain.high_code if up else domain.low_code) - way
        if isinstance(beside, Integer | Real | Date) and domain.low_code <= code <= domain.high_code:
            days = isinstance(beside, Date)  # whose codes count them
            last = code - plus if days else _value(domain, code) - plus
            ends = [each if days else _value(beside, each) for each in (beside.low_code, beside.high_code)]
            if ends[1] > last >= ends[0] if up else ends[0] < last <= ends[1]:  # the other has to leave room
                limit = Const(beside.decode(int(last)) if days else last)
                found[base] = (scalars.LeastOf if up else scalars.GreatestOf)((Ref(base), limit))
        return found

    def _shifted(self, name: str) -> tuple[str, int | Fraction]:
        """The declared column that a computed one adds a number to, and the number; else itself."""
        scalar = dict(self.computed).get(name)
        terms = dict((_linear(scalar, self.numbers) if scalar is not None else None) or {name: Fraction(1)})
        plus = terms.pop("", Fraction(0))
        if [*terms.values()] != [1]:
            return name, 0
        return next(iter(terms)), int(plus) if plus.denominator == 1 else plus


@dataclass(frozen=True, eq=False)
class Rules:
    """All rules of a model, over its columns.

    >>> states = [States("low", Integer(0, 9)), States("high", Integer(0, 9, nullable=True))]
    >>> rules = Rules.of(["low <= high"], states, table="people")
    >>> rules.broken([np.array([5, 5, 5]), np.array([4, 6, 10])]).tolist()  # 10: missing
    [True, False, False]
    """

    rules: tuple[Rule, ...]
    states: tuple[States, ...]
    beside: tuple[States, ...] = ()
    """Differences that are columns of the fit, after the others: nobody is shown them."""

    @classmethod
    def of(cls, texts: Sequence[str], states: Sequence[States], *, table: str) -> Rules:
        """Read and checked: that each can be met, and all of them together. Public facts alone."""
        from cloister.synth.rule_texts import read

        if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
            raise InvalidParameter(f"rules={texts!r} is invalid", why="it is a list of texts", instead=f"rules=[{texts!r}]")
        if len(texts) > _MOST_RULES:
            raise InvalidParameter("rules= is invalid", why=f"there are more than {_MOST_RULES}", instead="fewer rules")
        domains = {each.name: each.domain for each in states}
        rules = cls(tuple(rule for text in dict.fromkeys(texts) for rule in read(text, table, domains)), tuple(states))
        rules._check()
        return rules

    @property
    def texts(self) -> tuple[str, ...]:
        """As they were written."""
        return tuple(dict.fromkeys(rule.text for rule in self.rules))

    def broken(self, codes: Sequence[Integers]) -> Truths:
        """Which rows break any of them."""
        named = self._named(codes)
        return np.asarray(np.logical_or.reduce([rule.broken(named) for rule in self.rules]))

    def most_broken(self, codes: Sequence[Integers]) -> str:
        """The rule that most rows break."""
        return max(self.texts, key=lambda text: int(self._only([text]).broken(codes).sum()))

    def touch(self, names: Iterable[str]) -> bool:
        """Whether a rule reads one of these columns."""
        return any(rule.domains.keys() & set(names) for rule in self.rules)

    def conditions(self, names: Sequence[str]) -> list[Expression]:
        """That a row breaks none of the rules that read these columns alone, as far as a question can ask for it: true or false,
        never open."""
        binned = {each.name for each in self.states if each.bins is not None}
        return [
            _settled(rule.condition, open_=True)
            for rule in self.rules
            if rule.domains.keys() <= set(names)
            and not rule.computed
            and not (binned & rule.domains.keys() and any(len(leaf.columns()) > 1 for leaf in leaves(rule.condition)))
        ]

    def settled(
        self, codes: Sequence[Integers], block: Integers, given: Mapping[int, Pieces], random: Random
    ) -> tuple[list[Integers], Truths]:
        """Rows mended in turns until the rules hold, and which of them do; `block` is the component of each row, in order."""
        rows = _Rows(self, self._named(codes), block, {self.states[place].name: each for place, each in given.items()}, random)
        for turn in range(_TURNS):
            if not rows.wrong.any():
                break
            rows.redraw()
            for rule in self.rules if turn % _RANKED == _RANKED - 1 else ():
                rows.rank(rule)
            rows.exchange(self.rules[turn % len(self.rules)], turn // len(self.rules))
        return list(rows.codes.values()), rows.wrong == 0

    @property
    def fitted(self) -> tuple[States, ...]:
        """All columns of the fit."""
        return self.states + self.beside

    @cached_property
    def differences(self) -> dict[str, tuple[Rule, States]]:
        """By name, the differences that orders of columns in bins leave open, and that no column holds: at most three."""
        binned, found = {each.name for each in self.states if each.bins is not None}, dict[str, tuple[Rule, States]]()
        sums = [rule.terms.keys() for rule in self.rules if rule.equality]
        for rule in self.rules:
            names = {name for name in rule.terms if name}
            if names & binned and not any(names <= each for each in sums) and rule.difference is not None:
                found.setdefault(rule.difference[1].name, rule.difference)
        own = {each.name for each in self.states}
        return {name: each for name, each in list(found.items())[:_MOST_DIFFERENCES] if name not in own}

    def telling(self, differences: Iterable[States]) -> Rules:
        """With these differences as columns of the fit, which the columns that they are of have to agree with."""
        beside, found = tuple(differences), dict[str, tuple[Rule, str, str]]()
        for rule in self.rules:  # a stored model may have some that would not be fitted today
            names = [name for name in rule.terms if name]
            if len(names) == 2 and isinstance(rule.condition, Compare) and rule.condition.op != "!=":
                for larger, smaller in permutations(names):
                    found.setdefault(f"{larger} - {smaller}", (rule, larger, smaller))
        told = []
        for each in beside:
            rule, larger, smaller = found[each.name]
            told.append(rule.told(larger, smaller, each.domain))
        return replace(self, rules=(*self.rules, *told), beside=beside)

    @property
    def unfitted(self) -> tuple[str, ...]:
        """The rules that tell how columns in bins lie to one another, where no column of the fit tells how far apart they are."""
        binned = {each.name for each in self.states if each.bins is not None}
        known = [rule.domains.keys() for rule in self.rules if rule.equality and (rule.terms or rule.solutions)]
        found = dict[str, None]()
        for rule in self.rules:
            for leaf in leaves(rule.condition):
                names = Rule.of(rule.text, leaf, dict(rule.computed), rule.domains).domains.keys()
                apart = len(names) > 1 and not (isinstance(leaf, Compare) and leaf.op == "!=")
                if apart and names & binned and not any(names <= each for each in known):
                    found[rule.text] = None
        return tuple(found)

    def with_differences(self, source: str | Relation, unmapped: Container[str]) -> tuple[Rules, str | Relation]:
        """With all differences that the rows of a relation have, and the relation with these as columns."""
        if isinstance(source, str):
            return self, source
        some = [(rule, states) for rule, states in self.differences.values() if rule.text not in unmapped]
        if not some:
            return self, source
        computed = tuple((states.name, rule.computed[0][1]) for rule, states in some)
        return self.telling(states for _, states in some), Extended(source=source, scalars=computed)

    def _named(self, codes: Sequence[Integers]) -> Codes:
        return {each.name: column for each, column in zip(self.fitted, codes, strict=True)}

    def _only(self, rules: Iterable[Rule | str]) -> Rules:
        kept = set(rules)
        return replace(self, rules=tuple(rule for rule in self.rules if rule in kept or rule.text in kept))

    @cached_property
    def zeros(self) -> dict[tuple[int, int], Truths]:
        """By pairs of columns, the pairs of states of which no values obey a rule."""
        found: dict[tuple[int, int], Truths] = {}
        for rule in self.rules:
            pair = [place for place, each in enumerate(self.states) if each.name in rule.domains]
            if len(pair) != 2 or rule.solutions or self._hidden(rule):
                continue
            (first, begin), (second, start) = (_points(self.states[place], rule) for place in pair)
            if len(first) * len(second) > _MOST_POINTS:
                continue
            grid = np.meshgrid(first, second, indexing="ij")
            codes = {self.states[place].name: each.ravel() for place, each in zip(pair, grid, strict=True)}
            obeyed = ~rule.broken(codes).reshape(grid[0].shape)
            some = np.logical_or.reduceat(np.logical_or.reduceat(obeyed, begin, axis=0), start, axis=1)
            key = (pair[0], pair[1])
            found[key] = found.get(key, np.False_) | ~some
        return {pair: table for pair, table in found.items() if table.any() and not table.all()}

    def _hidden(self, rule: Rule) -> bool:
        """Whether it asks for equal values of two columns in bins: points of a bin can't show that there are such."""
        equal = any(isinstance(leaf, Compare) and leaf.op == "=" and len(leaf.columns()) > 1 for leaf in leaves(rule.condition))
        binned = any(each.bins is not None for each in self.states if each.name in rule.domains)
        return binned and (equal or bool(rule.computed))

    def mapped(
        self, session: Measurer, table: str, declaration: PrivateTable, spend: Spending
    ) -> tuple[str | Relation, tuple[str, ...]]:
        """What is measured: the table with rows that break a rule mended; and the rules that this map does not mend."""
        relation: Relation = Base(name=table, table=declaration)
        try:
            able = [rule for rule in self.rules if rule.map]
            asked, codes, before = able, self._witnesses(missing=True), _WITNESSES + 1
            while asked and (wrong := int(self._only(able).broken(list(codes.values())).sum())) < before:
                for rule in asked:
                    relation, codes = rule.over(relation), rule.mapped(codes)
                # what mends one rule may break another
                asked, before = [rule for rule in able if rule.broken(codes).any()], wrong
            if isinstance(relation, Base):
                return table, self.texts
            session.explain(Question(table=relation, by=(), statistics=(Count(),)), spend)
        except UnsupportedQuery:  # an engine without computed columns
            return table, self.texts
        left = {rule.text for rule in self.rules if rule not in able or rule.broken(codes).any()}
        return relation, tuple(text for text in self.texts if text in left)

    def _check(self) -> None:
        names = [each.name for each in self.states]
        for text in self.texts:
            if not self._only([text])._met():
                raise refused(text, "no values that the columns declare obey it", names)
        for number, text in enumerate(self.texts[1:], 1):
            if not self._only(self.texts[: number + 1])._met():
                other = next((each for each in self.texts[:number] if not self._only([each, text])._met()), None)
                why = f"it contradicts {other!r}" if other else "no values were found that obey it and the rules before it"
                raise refused(text, why, names)

    def _met(self) -> bool:
        """Whether some row of declared values obeys them: by random rows, mended by the map."""
        codes = self._witnesses(missing=any(isinstance(leaf, IsNull) for rule in self.rules for leaf in leaves(rule.condition)))
        for _ in range(len(self.rules) + 2):
            if not self.broken(list(codes.values())).all():
                return True
            for rule in self.rules:
                codes = rule.mapped(codes)
        block = np.zeros(_WITNESSES, dtype=np.int64)
        return bool(self.settled(list(codes.values()), block, {}, Random.derived(_SEED + b", drawn"))[1].any())

    def _witnesses(self, *, missing: bool) -> Codes:
        """Rows of declared values, of a fixed generator: half of them anywhere, half at the ends of the columns."""
        random, codes, half = Random.derived(_SEED), Codes(), _WITNESSES // 2
        for each in self.states:
            states = random.below(each.number - (each.domain.nullable and not missing), _WITNESSES)
            codes[each.name] = each.pieces.at(states, each.number, random.uniform(_WITNESSES))
            low, high = each.domain.low_code, each.domain.high_code
            ends = np.clip([low, low + 1, high - 1, high], low, high)[random.below(4, half)]
            held = codes[each.name][half:] == each.domain.null_code
            codes[each.name][half:] = np.where(held, each.domain.null_code, ends)
        return codes


class _Rows:
    """Drawn rows while they are mended: their codes by column, and how many rules each of them breaks.

    A column that follows from others is computed. Values are drawn again inside their states. And a value changes places with
    that of another row of its component where fewer rules are broken then: columns are independent within a component, and
    keep their values there, so that single columns stay what they were.
    """

    def __init__(self, rules: Rules, codes: Codes, block: Integers, given: Mapping[str, Pieces], random: Random) -> None:
        self.rules, self.block, self.given, self.random = rules, block, given, random
        self.codes = {name: column.copy() for name, column in codes.items()}
        self.followers: dict[str, tuple[Rule, Scalar]] = {}
        """The columns that follow from the others: one for each equality, which no condition and no rule before it sets; each
        after those that it follows from."""
        spread = {each.name: _spread(each, codes[each.name]) for each in rules.fitted}
        differences, behind = {each.name for each in rules.beside}, dict[str, set[str]]()
        for rule in rules.rules:
            told = differences & rule.domains.keys()  # then a column may follow that is missing where the difference is
            missing = any(each.nullable for each in rule.domains.values())
            for target, own, scalar in rule.followers(spread):
                if target in {*given, *behind} or (told and rule.domains[target].nullable != missing):
                    continue
                tried = {**behind, target: own.domains.keys() - {target}}
                try:
                    order = tuple(TopologicalSorter(tried).static_order())
                except CycleError:
                    continue
                behind, found = tried, {**self.followers, target: (own, scalar)}
                self.followers = {name: found[name] for name in order if name in found}
                break
        self.missing = {name for name, (rule, _) in self.followers.items() if differences & rule.domains.keys()}
        """Where what they follow from is missing, these are."""
        self._compute(self.codes)
        self.wrong = self._count(self.codes)

    def redraw(self) -> None:
        """Other values of the same states."""
        left, fresh = np.flatnonzero(self.wrong), Codes()
        for states in self.rules.fitted:
            if states.bins is not None and self.rules.touch([states.name]):
                chosen = np.searchsorted(states.starts, self.codes[states.name][left], side="right") - 1
                pieces = self.given.get(states.name, states.pieces)
                fresh[states.name] = pieces.at(chosen, states.number, self.random.uniform(len(left)))
        self._try(left, fresh, np.arange(len(left)))

    def exchange(self, rule: Rule, turn: int) -> None:
        """One value of each row that breaks a rule changes places with that of another row of its component."""
        left = np.flatnonzero(self.wrong)
        left = left[rule.broken({name: self.codes[name][left] for name in rule.domains})]
        moved = [name for name in rule.domains if name not in self.followers]
        if not moved or not len(left):
            return
        name = moved[turn % len(moved)]
        first, size = np.searchsorted(self.block, np.arange(self.block[-1] + 1)), np.bincount(self.block)
        others = first[self.block[left]] + (self.random.uniform(len(left)) * size[self.block[left]]).astype(np.int64)
        others, kept = np.unique(others, return_index=True)
        alone = ~np.isin(others, left[kept])
        left, others = left[kept][alone], others[alone]
        fresh = {name: self.codes[name][np.concatenate([others, left])]}
        self._try(np.concatenate([left, others]), fresh, np.tile(np.arange(len(left)), 2))

    def rank(self, rule: Rule) -> None:
        """For an order of two columns: among rows that break it and three times as many others of their component, the later
        value goes by the rank of the earlier one."""
        order, block = rule.condition, self.block
        if not isinstance(order, Compare) or order.op in ("=", "!=") or self.followers.keys() & rule.domains.keys():
            return
        one, other = (side.name if isinstance(side, Column) else "" for side in (order.left, order.right))
        if one not in rule.domains or other not in rule.domains or one == other:
            return
        first, second, bad = self.codes[one], self.codes[other], rule.broken(self.codes)
        share = np.minimum(3 * np.bincount(block, bad) / np.maximum(np.bincount(block, ~bad), 1), 1.0)
        there = (first != rule.domains[one].null_code) & (second != rule.domains[other].null_code)
        rows = np.flatnonzero((bad | (self.random.uniform(len(bad)) < share[block])) & there)
        fresh = np.empty(len(rows), dtype=np.int64)
        fresh[np.lexsort((first[rows], block[rows]))] = second[rows[np.lexsort((second[rows], block[rows]))]]
        self._try(rows, {other: fresh}, block[rows])

    def _try(self, rows: Integers, fresh: Codes, together: Integers) -> None:
        """Give rows fresh values, and keep them where fewer rules are broken in all rows that go together."""
        some = {name: fresh[name] if name in fresh else column[rows] for name, column in self.codes.items()}
        self._compute(some)
        now = self._count(some)
        kept = (np.bincount(together, now - self.wrong[rows]) < 0)[together]
        for name in {*fresh, *self.followers}:
            self.codes[name][rows[kept]] = some[name][kept]
        self.wrong[rows[kept]] = now[kept]

    def _compute(self, codes: Codes) -> None:
        for target, (rule, scalar) in self.followers.items():
            _set(codes, rule, target, scalar, missing=target in self.missing)

    def _count(self, codes: Codes) -> Integers:
        return np.asarray(np.sum([rule.broken(codes) for rule in self.rules.rules], axis=0, dtype=np.int64))


def refused(text: object, why: str, names: Sequence[str]) -> InvalidParameter:
    """The refusal of a rule."""
    one, other = [*names, "b"][:2]
    return InvalidParameter(f"The rule {text!r} is invalid", why=why, instead=f'rules=["{one} <= {other}"]')


def _spread(states: States, codes: Integers) -> float:
    """How far apart the values of a bin are, in the mean of some rows."""
    wide, there = np.diff(states.starts) - 1, codes[codes != states.domain.null_code]
    mean = wide[np.searchsorted(states.starts, there, side="right") - 1].mean() * float(states.domain.step) if len(there) else 0.0
    return float(f"{mean:.1g}")  # what differs less is alike


def _set(codes: Codes, rule: Rule, target: str, scalar: Scalar, *, missing: bool) -> None:
    """Give a column its computed values where they are declared ones, in place; what is missing stays so, unless it follows
    `missing` from the others."""
    scope, domain, column = rule.scope(codes), rule.domains[target], codes[target]
    with np.errstate(all="ignore"):
        lane = rule.code(scalar, scope)
    if missing or not lane.null.all():
        source = scalar.domain(scope.domains) if isinstance(scalar, Ref) else rule._form(scalar).domain()
        values, fits = _recoded(lane, source, domain)
        absent = lane.null if missing and domain.nullable else False
        values = np.where(fits & (missing | (column != domain.null_code)), values, column)
        codes[target] = np.where(absent, domain.null_code, values)


def _recoded(lane: Lane, source: Domain, target: Domain) -> tuple[Integers, Truths]:
    """Codes of a computed column as codes of a declared one, and where they are such."""
    values = np.where(lane.null, 0, lane.values)
    if isinstance(source, Category | Boolean) or isinstance(target, Category | Boolean):
        unique, place = np.unique(values, return_inverse=True)
        codes = [target.encode(source.decode(int(code))) for code in unique]
        found = np.array([-1 if code is None else code for code in codes], dtype=np.int64)[place.reshape(values.shape)]
        return found, (found >= 0) & ~lane.null
    times, plus = source.step / target.step, (source.origin - target.origin) / target.step
    under = lcm(times.denominator, plus.denominator)
    if max(abs(source.low_code), abs(source.high_code)) * times * under > 2**60:
        values = values.astype(object)
    whole, rest = np.divmod(values * int(times * under) + int(plus * under), under)
    fits = np.asarray((rest == 0) & (whole >= target.low_code) & (whole <= target.high_code), dtype=bool) & ~lane.null
    return np.where(fits, whole, 0).astype(np.int64), fits


def _nearest(name: str, domain: Domain, op: str, value: Any) -> Any:
    """The declared value nearest to a literal for which the comparison holds; None where there is none."""
    if value is None or op == "!=":
        return None
    if isinstance(domain, Category | Boolean):
        return value if op == "=" else None
    at = conditions.threshold(domain, conditions.number_of(name, domain, value))
    code = {"=": floor(at), "<=": floor(at), "<": ceil(at) - 1, ">=": ceil(at), ">": floor(at) + 1}[op]
    if not domain.low_code <= code <= domain.high_code or (op == "=" and code != at):
        return None
    return _value(domain, code)


def _value(domain: Domain, code: int) -> Any:
    """The value of a code, exactly."""
    return domain.origin + code * domain.step if isinstance(domain, Real) else domain.decode(code)


def _bounded(scalar: Scalar, domain: Domain) -> Scalar:
    """Moved into what the column declares."""
    if isinstance(scalar, Const) or not isinstance(domain, Integer | Real | Date):
        return scalar
    return scalars.LeastOf((scalars.GreatestOf((scalar, Const(domain.low))), Const(domain.high)))


def _linear(scalar: Scalar, domains: Mapping[str, Domain]) -> dict[str, Fraction] | None:
    """A sum of numbers by column, the constant under no name; None for anything else."""
    match scalar:
        case Ref(name=name) if isinstance(domains.get(name), Integer | Real):
            return {name: Fraction(1)}
        case Const(kind="integer" | "number", value=value):
            return {"": Fraction(value)}
        case scalars.Negate(x=one):
            return _difference({}, _linear(one, domains))
        case scalars.Subtract(left=one, right=other) | scalars.DateDiff(unit="day", later=one, earlier=other):
            return _difference(_linear(one, domains), _linear(other, domains))
        case scalars.DateShift(x=one, unit="day", count=days):
            return _difference(_linear(one, domains), {"": Fraction(-days)})
        case scalars.Add(left=one, right=other):
            return _difference(_linear(one, domains), _difference({}, _linear(other, domains)))
    return None


def _difference(one: dict[str, Fraction] | None, other: dict[str, Fraction] | None) -> dict[str, Fraction] | None:
    """Of two sums; None where one of them is none."""
    if one is None or other is None:
        return None
    return {name: one.get(name, Fraction(0)) - other.get(name, Fraction(0)) for name in {**one, **other}}


def _solved(target: str, terms: Mapping[str, Fraction]) -> Scalar:
    """The column from all others of terms that sum to 0."""
    parts: list[Scalar] = []
    for name, each in terms.items():
        times = -each / terms[target]
        if name != target and times:
            parts.append(Const(times) if not name else Ref(name) if times == 1 else scalars.Multiply(Ref(name), Const(times)))
    return reduce(scalars.Add, parts) if parts else Const(0)


def _settled(condition: Expression, *, open_: bool) -> Expression:
    """A condition that says true or false where this one is open, and what it says elsewhere."""
    if isinstance(condition, And | Or):
        return type(condition)(*(_settled(part, open_=open_) for part in condition.parts))
    if isinstance(condition, Not):
        return Not(_settled(condition.part, open_=not open_))
    missing = [IsNull(name) for name in sorted(condition.columns())]
    if isinstance(condition, IsNull) or not missing:
        return condition
    return Or(condition, *missing) if open_ else And(condition, *(Not(each) for each in missing))


def _alike(one: Domain, other: Domain) -> bool:
    """Whether two columns hold the same values under the same codes."""
    parts = ("low_code", "high_code", "nullable", "step", "origin")
    if any(getattr(one, part) != getattr(other, part) for part in parts) or isinstance(one, Date) != isinstance(other, Date):
        return False
    return not isinstance(other, Category | Boolean) or one.values() == other.values()


def _points(states: States, rule: Rule) -> tuple[Integers, Integers]:
    """Codes of each state that tell whether it can obey a rule, and where those of each state begin: some between its ends, and
    those beside the literals that the column is compared with."""
    domain, marks = states.domain, set[int]()
    if states.bins is not None:
        marks = {code - before for code in changes(rule.condition, states) for before in (0, 1)}
    found, begins = list[int](), list[int]()
    for low, high in zip(states.starts[:-1].tolist(), (states.starts[1:] - 1).tolist(), strict=True):
        begins.append(len(found))
        between = {low, high, *(low + (high - low) * step // 8 for step in range(1, 8))}
        found += sorted(between | {mark for mark in marks if low <= mark <= high})
    if domain.nullable:
        begins.append(len(found))
        found.append(domain.null_code)
    return np.array(found, dtype=np.int64), np.array(begins, dtype=np.int64)
