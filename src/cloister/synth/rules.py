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

*While drawing*, states come from the mixture, and rows that break a rule are mended in turns (`Rules.settled`). What can't be is
thrown away, and others drawn. Rows by themselves have the law of the mixture no longer: the model says how many were kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.errors import CloisterError, InvalidParameter, UnsupportedQuery
from cloister.noise import Random
from cloister.session import Count, Measurer, Question
from cloister.session.questions.spend import Spending
from cloister.synth.states import Integers, Pieces, States, uniform
from cloister.tables import (
    And,
    Base,
    Between,
    Boolean,
    Category,
    Column,
    Compare,
    Date,
    Domain,
    Expression,
    Extended,
    In,
    Integer,
    IsNull,
    Literal,
    Not,
    Or,
    PrivateTable,
    Projected,
    Real,
    Relation,
)  # fmt: skip
from cloister.tables.expression.evaluate import LaneScope
from cloister.tables.expression.expressions import number_of, threshold
from cloister.tables.expression.lanes import Lane

if TYPE_CHECKING:
    from cloister.tables.expression.scalars import Scalar

Truths = npt.NDArray[np.bool_]
Codes = list[Integers]

LEAST_ACCEPTED = 0.01
_MOST_RULES = 100
_TURNS = 100
"""How often values are drawn again inside their states, and change places."""
_WITNESSES = 2_000
_RANKED = 20
_MOST_POINTS = 4_000_000
_SEED = b"rows that show whether rules can be met together"
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Rule:
    """One text, the condition that it writes, and the computed columns that the condition reads."""

    text: str
    condition: Expression
    computed: tuple[tuple[str, Scalar], ...]
    columns: tuple[str, ...]
    """The declared columns that it reads."""

    def split(self) -> list[Rule]:
        """Its parts, where it joins several by AND."""
        parts = self.condition.parts if isinstance(self.condition, And) else (self.condition,)
        return [self._part(part) for part in parts]

    def _part(self, condition: Expression) -> Rule:
        used = condition.columns()
        computed = tuple(each for each in self.computed if each[0] in used)
        named = used.union(*(scalar.columns() for _, scalar in computed))
        return Rule(self.text, condition, computed, tuple(name for name in self.columns if name in named))

    def scope(self, domains: Mapping[str, Domain], codes: Mapping[str, Integers]) -> LaneScope:
        """The columns as arrays, with the computed ones."""
        known = {name: domains[name] for name in self.columns}
        lanes = {name: Lane(codes[name], codes[name] == domains[name].null_code) for name in self.columns}
        for name, scalar in self.computed:
            scope = LaneScope(known, lanes)
            lanes = {**lanes, name: scalar.code(scope)}
            known = {**known, name: scalar.domain(known)}
        return LaneScope(known, lanes)

    def broken(self, domains: Mapping[str, Domain], codes: Mapping[str, Integers]) -> Truths:
        """Which rows break it: false, neither true nor open."""
        with np.errstate(all="ignore"):
            found = self.condition.condition(self.scope(domains, codes))
        length = len(next(iter(codes.values())))
        return np.broadcast_to(~found.values.astype(bool) & ~found.null, (length,))


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

    @classmethod
    def of(cls, texts: Sequence[str], states: Sequence[States], *, table: str) -> Rules:
        """Read and checked: that each can be met, and all of them together. Public facts alone."""
        from cloister.synth.rule_texts import read

        domains = {each.name: each.domain for each in states}
        if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
            raise InvalidParameter(f"rules={texts!r} is invalid", why="it is a list of texts", instead=f"rules=[{texts!r}]")
        if len(texts) > _MOST_RULES:
            raise InvalidParameter("rules= is invalid", why=f"there are more than {_MOST_RULES}", instead="fewer rules")
        found = []
        for text in dict.fromkeys(texts):
            condition, computed = read(text, table, domains)
            named = condition.columns().union(*(scalar.columns() for _, scalar in computed))
            columns = tuple(name for name in domains if name in named)
            if not columns:
                raise refused(text, "it reads no column", domains)
            rule = Rule(text, condition, computed, columns)
            try:
                rule.broken(domains, {name: np.array([domains[name].low_code]) for name in columns})
            except CloisterError as error:
                raise refused(text, f"{error.what}: {error.why}", domains) from None
            found.append(rule)
        rules = cls(tuple(found), tuple(states))
        rules._check()
        return rules

    @property
    def texts(self) -> tuple[str, ...]:
        """As they were written."""
        return tuple(rule.text for rule in self.rules)

    @cached_property
    def domains(self) -> dict[str, Domain]:
        """What each column may hold."""
        return {each.name: each.domain for each in self.states}

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each column stands."""
        return {each.name: place for place, each in enumerate(self.states)}

    def broken(self, codes: Codes) -> Truths:
        """Which rows break any of them."""
        return np.asarray(np.logical_or.reduce([self._broken(rule, codes) for rule in self.rules]))

    def _broken(self, rule: Rule, codes: Codes) -> Truths:
        return rule.broken(self.domains, {name: codes[self.places[name]] for name in rule.columns})

    def most_broken(self, codes: Codes) -> str:
        """The rule that most rows break."""
        return max(self.rules, key=lambda rule: int(self._broken(rule, codes).sum())).text

    def touch(self, names: Sequence[str]) -> bool:
        """Whether a rule reads one of these columns."""
        return any(name in rule.columns for rule in self.rules for name in names)

    def conditions(self, names: Sequence[str]) -> list[Expression]:
        """That a row breaks none of the rules that read these columns alone, as far as a question can ask for it: true or false,
        never open."""
        found = []
        for rule in self._parts:
            compared = any(len(leaf.columns()) > 1 for leaf in leaves(rule.condition))
            binned = any(self.states[self.places[name]].bins is not None for name in rule.columns)
            if set(rule.columns) <= set(names) and not rule.computed and not (compared and binned):
                found.append(_settled(rule.condition, open_=True))
        return found

    # drawing

    def settled(self, codes: Codes, block: Integers, given: Mapping[int, Pieces], random: Random) -> tuple[Codes, Truths]:
        """Rows mended in turns until the rules hold, and which of them do; `block` is the component of each row, in order.

        A column that follows from others is computed. Values are drawn again inside their states. And a value changes places with
        that of another row of its component where fewer rules are broken then: columns are independent within a component, and
        keep their values there, so that single columns stay what they were.
        """
        found = [column.copy() for column in codes]
        free = [self.places[name] for name in self.domains if self.touch([name])]
        follow = {self.places[target] for _, target, _ in self._followers(given)}
        first, size = np.searchsorted(block, np.arange(block.max(initial=-1) + 1)), np.bincount(block)
        self._compute(found, given)
        wrong = self._count(found, given)
        for turn in range(_TURNS):
            left = np.flatnonzero(wrong)
            if not len(left):
                break
            self._try(
                found, wrong, left, left, given, {place: self._again(place, found[place][left], given, random) for place in free}
            )
            if turn % _RANKED == _RANKED - 1:
                for part in self._parts:
                    if not {self.places[name] for name in part.columns} & follow:
                        self._rank(found, wrong, part, block, given, random)
            part = self._parts[turn % len(self._parts)]
            left = np.flatnonzero(wrong)
            left = left[self._broken(part, [column[left] for column in found])]
            moved = [place for name in part.columns if (place := self.places[name]) not in follow]
            if not moved or not len(left):
                continue
            place = moved[turn // len(self._parts) % len(moved)]
            others = first[block[left]] + (uniform(len(left), random) * size[block[left]]).astype(np.int64)
            others, kept = np.unique(others, return_index=True)
            alone = ~np.isin(others, left[kept])
            left, others = left[kept][alone], others[alone]
            both = np.concatenate([left, others])
            self._try(found, wrong, both, left, given, {place: found[place][np.concatenate([others, left])]})
        return found, wrong == 0

    def _try(
        self,
        codes: Codes,
        wrong: Integers,
        rows: Integers,
        asked: Integers,
        given: Mapping[int, Pieces],
        fresh: Mapping[int, Integers],
    ) -> None:
        """Give rows fresh values, and keep them where fewer rules are broken than before; in place. Where there are twice as many
        rows as were asked for, the later half are the partners of the first, and go with them."""
        some = [fresh[place] if place in fresh else column[rows] for place, column in enumerate(codes)]
        self._compute(some, given)
        now = self._count(some, given)
        better = (now < wrong[rows]) if len(rows) == len(asked) else _pairwise(now) < _pairwise(wrong[rows])
        better = better if len(rows) == len(asked) else np.concatenate([better, better])
        for place in {*fresh, *self.computed}:
            codes[place][rows[better]] = some[place][better]
        wrong[rows[better]] = now[better]

    def _rank(
        self, codes: Codes, wrong: Integers, part: Rule, block: Integers, given: Mapping[int, Pieces], random: Random
    ) -> None:
        """For an order of two columns: among rows that break it and three times as many others of their component, the later
        value goes by the rank of the earlier one, where fewer rules are broken in the component then; in place."""
        order = part.condition
        if not (isinstance(order, Compare) and order.op in ("<", "<=", ">", ">=") and set(part.columns) == order.columns()):
            return
        if len(part.columns) < 2:
            return
        one, other = (self.places[side.name] for side in (order.left, order.right) if isinstance(side, Column))
        bad = self._broken(part, codes)
        share = np.minimum(3 * np.bincount(block, bad) / np.maximum(np.bincount(block, ~bad), 1), 1.0)
        there = (codes[one] != self.states[one].domain.null_code) & (codes[other] != self.states[other].domain.null_code)
        rows = np.flatnonzero((bad | (uniform(len(bad), random) < share[block])) & there)
        fresh = np.empty(len(rows), dtype=np.int64)
        fresh[np.lexsort((codes[one][rows], block[rows]))] = codes[other][rows[np.lexsort((codes[other][rows], block[rows]))]]
        some = [fresh if place == other else column[rows] for place, column in enumerate(codes)]
        self._compute(some, given)
        now = self._count(some, given)
        fewer = np.bincount(block[rows], now - wrong[rows], minlength=len(share)) < 0
        kept = fewer[block[rows]]
        for place in {other, *self.computed}:
            codes[place][rows[kept]] = some[place][kept]
        wrong[rows[kept]] = now[kept]

    def _again(self, place: int, codes: Integers, given: Mapping[int, Pieces], random: Random) -> Integers:
        """Other values of the same states."""
        states = self.states[place]
        if states.bins is None:
            return codes
        chosen = np.searchsorted(states.starts, codes, side="right") - 1
        return given.get(place, states.pieces).at(chosen, states.number, uniform(len(codes), random))

    def _count(self, codes: Codes, given: Mapping[int, Pieces]) -> Integers:
        """How many rules each row breaks; conditions on what is computed are rules too."""
        found = np.zeros(len(codes[0]), dtype=np.int64)
        for rule in self._parts:
            found += self._broken(rule, codes)
        for place, allowed in given.items():
            if place in self.computed:
                found += ~allowed.within(codes[place])
        return found

    @cached_property
    def _parts(self) -> list[Rule]:
        return [part for rule in self.rules for part in rule.split()]

    @cached_property
    def computed(self) -> frozenset[int]:
        """The places of columns that may follow from others."""
        return frozenset(self.places[name] for rule in self._equalities for name, _ in _solutions(rule, self.domains))

    def _compute(self, codes: Codes, given: Mapping[int, Pieces]) -> None:
        """What a rule makes equal to other columns follows from them; in place."""
        for rule, target, scalar in self._followers(given):
            self._set(codes, rule, target, scalar, np.ones(len(codes[0]), dtype=bool))

    def _followers(self, given: Mapping[int, Pieces]) -> list[tuple[Rule, str, Scalar]]:
        """For each equality the column that follows from the others, and how; no condition and no rule before it sets it."""
        done, found = {self.states[place].name for place in given}, []
        for rule in self._equalities:
            free = [each for each in _solutions(rule, self.domains) if each[0] not in done]
            if free:
                done.add(free[0][0])
                found.append((rule, *free[0]))
        return found

    @cached_property
    def _equalities(self) -> list[Rule]:
        return [part for part in self._parts if _solutions(part, self.domains)]

    def _set(self, codes: Codes, rule: Rule, target: str, scalar: Scalar, where: Truths, *, null: bool = False) -> None:
        """Give a column its computed values where they are declared ones; what is missing stays so, unless `null`."""
        scope = rule.scope(self.domains, {name: codes[self.places[name]] for name in rule.columns})
        with np.errstate(all="ignore"):
            lane = scalar.code(scope)
        place, domain = self.places[target], self.domains[target]
        column = codes[place]
        values, fits = _recoded(lane, scalar, scope.domains, domain)
        values, fits = np.broadcast_to(values, column.shape), np.broadcast_to(fits, column.shape)
        change = where & fits & (column != domain.null_code)
        codes[place] = np.where(change, values, column)
        if null and domain.nullable:
            codes[place] = np.where(where & np.broadcast_to(lane.null, column.shape), domain.null_code, codes[place])

    # the fit

    @cached_property
    def zeros(self) -> dict[tuple[int, int], Truths]:
        """By pairs of columns, the pairs of states of which no values obey a rule."""
        found: dict[tuple[int, int], Truths] = {}
        for rule in (part for each in self.rules for part in each.split()):
            pair = tuple(sorted(self.places[name] for name in rule.columns))
            if len(pair) != 2 or _solutions(rule, self.domains) or self._equal_inside(rule):
                continue
            first, second = ([*_points(self.states[place], rule)] for place in pair)
            if len(first[0]) * len(second[0]) > _MOST_POINTS:
                continue
            grid = np.meshgrid(first[0], second[0], indexing="ij")
            codes = {self.states[place].name: each.ravel() for place, each in zip(pair, grid, strict=True)}
            obeyed = ~rule.broken(self.domains, codes).reshape(grid[0].shape)
            some = np.logical_or.reduceat(np.logical_or.reduceat(obeyed, first[1], axis=0), second[1], axis=1)
            key = (pair[0], pair[1])
            found[key] = found[key] | ~some if key in found else ~some
        return {pair: table for pair, table in found.items() if table.any() and not table.all()}

    def _equal_inside(self, rule: Rule) -> bool:
        """Whether it asks for equal values of two columns in bins: points of a bin can't show that there are such."""
        binned = any(self.states[self.places[name]].bins is not None for name in rule.columns)
        equal = any(isinstance(leaf, Compare) and leaf.op == "=" and len(leaf.columns()) > 1 for leaf in leaves(rule.condition))
        return binned and (equal or bool(rule.computed))

    # the map of real rows

    def mapped(
        self, session: Measurer, table: str, declaration: PrivateTable, spend: Spending
    ) -> tuple[str | Relation, tuple[str, ...]]:
        """What is measured: the table with rows that break a rule mended; and the rules that this map does not mend."""
        relation: Relation = Base(name=table, table=declaration)
        left = []
        try:
            for rule in (part for each in self.rules for part in each.split()):
                mended = self._mended(relation, rule)
                relation = relation if mended is None else mended
                left += [rule.text] if mended is None else []
            if not isinstance(relation, Base):
                session.explain(Question(table=relation, by=(), statistics=(Count(),)), spend)
        except UnsupportedQuery:  # an engine without computed columns
            return table, self.texts
        return (table if isinstance(relation, Base) else relation), tuple(dict.fromkeys(left))

    def _mended(self, relation: Relation, rule: Rule) -> Relation | None:
        from cloister.tables.expression.scalars import Case, Ref

        fixes = _fixes(rule.condition, rule, self.domains)
        if not fixes:
            return None
        names = tuple(relation.columns)
        extended: Relation = Extended(source=relation, scalars=rule.computed) if rule.computed else relation
        broken = Not(rule.condition)
        fixed: list[tuple[str, Scalar]] = []
        renamed: dict[str, str] = {}
        for target, scalar in fixes.items():
            name = f"{target}'"
            while name in extended.columns or name in renamed.values():
                name += "'"
            # the first branch is never taken: it keeps the order of the categories
            branches = ((Literal(False), Ref(target)), (broken, _bounded(scalar, self.domains[target])))
            fixed.append((name, Case(branches, Ref(target))))
            renamed[target] = name
        extended = Extended(source=extended, scalars=tuple(fixed))
        if not all(_alike(extended.columns[name], self.domains[target]) for target, name in renamed.items()):
            return None
        return Projected(source=extended, names=tuple((name, renamed.get(name, name)) for name in names))

    # whether they can be met

    def _check(self) -> None:
        for rule in self.rules:
            if not self._met([rule]):
                raise refused(rule.text, "no values that the columns declare obey it", self.domains)
        for number, rule in enumerate(self.rules):
            if not self._met(self.rules[: number + 1]):
                other = next((each.text for each in self.rules[:number] if not self._met([each, rule])), None)
                why = f"it contradicts {other!r}" if other else "no values were found that obey it and the rules before it"
                raise refused(rule.text, why, self.domains)

    def _met(self, rules: Sequence[Rule]) -> bool:
        """Whether some row of declared values obeys them: by random rows, mended by the map."""
        some = Rules(tuple(rules), self.states)
        missing = any(isinstance(leaf, IsNull) for rule in rules for leaf in leaves(rule.condition))
        random, codes = Random.derived(_SEED), []
        for each in self.states:
            most = each.number - (each.domain.nullable and not missing)
            codes.append(each.pieces.at(random.below(most, _WITNESSES), each.number, uniform(_WITNESSES, random)))
        parts = [part for rule in rules for part in rule.split()]
        for _ in range(len(parts) + 2):
            if not some.broken(codes).all():
                return True
            for part in parts:
                wrong = some._broken(part, codes)
                for target, scalar in (_fixes(part.condition, part, self.domains) or {}).items():
                    some._set(codes, part, target, _bounded(scalar, self.domains[target]), wrong, null=True)
        return bool(some.settled(codes, np.zeros(_WITNESSES, dtype=np.int64), {}, random)[1].any())


def refused(text: object, why: str, domains: Mapping[str, Domain]) -> InvalidParameter:
    """The refusal of a rule."""
    names = [*domains, "b"]
    return InvalidParameter(f"The rule {text!r} is invalid", why=why, instead=f'rules=["{names[0]} <= {names[1]}"]')


def leaves(condition: Expression) -> list[Expression]:
    """The comparisons that a condition is made of."""
    if isinstance(condition, And | Or):
        return [leaf for part in condition.parts for leaf in leaves(part)]
    return leaves(condition.part) if isinstance(condition, Not) else [condition]


def _fixes(condition: Expression, rule: Rule, domains: Mapping[str, Domain]) -> dict[str, Scalar] | None:
    """What to set which columns to, so that a condition becomes true; None where that isn't known."""
    from cloister.tables.expression.scalars import Const, GreatestOf, LeastOf, Ref

    match condition:
        case And():
            parts = [_fixes(part, rule, domains) for part in condition.parts]
            return None if None in parts else {name: each for part in parts if part for name, each in part.items()}
        case Or():
            return next((found for part in condition.parts if (found := _fixes(part, rule, domains))), None)
        case Not(part=part):
            if isinstance(part, And | Or):
                return _fixes((Or if isinstance(part, And) else And)(*(Not(each) for each in part.parts)), rule, domains)
            if isinstance(part, Compare):
                return _fixes(Compare(_OPPOSITE[part.op], part.left, part.right), rule, domains)
            return _fixes(part.part, rule, domains) if isinstance(part, Not) else None
        case IsNull(column=column):
            return {column.name: Const(None)} if domains[column.name].nullable else None
        case Between(column=column, low=low, high=high) if column.name in domains:
            return {column.name: LeastOf((GreatestOf((Ref(column.name), Const(low.value))), Const(high.value)))}
        case In(column=column, values=values) if column.name in domains and values[0] is not None:
            return {column.name: Const(values[0])}
        case Compare(op=op, left=Column() as left, right=Literal() as right) if left.name in domains:
            value = _nearest(left.name, domains[left.name], op, right.value)
            return None if value is None else {left.name: Const(value)}
        case Compare(op="=") if solved := _solutions(rule, domains):
            return dict(solved[:1])
        case Compare(op=op, left=Column() as left, right=Column() as right) if op != "!=":
            return _moved(op, left.name, right.name, rule, domains)
    return None


def _moved(op: str, left: str, right: str, rule: Rule, domains: Mapping[str, Domain]) -> dict[str, Scalar] | None:
    """One of two columns moved to the other: the later one in the text, unless only the earlier may be missing."""
    from cloister.tables.expression.scalars import Add, Const, DateShift, Ref

    known = dict(rule.computed)
    turn = right in known or (left in domains and domains[left].nullable and not (right in domains and domains[right].nullable))
    target, other = (left, right) if turn else (right, left)
    if target not in domains or not isinstance(domains[target], Integer | Real | Date):
        return None
    way = {"<": 1, ">": -1}.get(op, 0) * (-1 if turn else 1)
    moved: Scalar = Ref(other)
    if way:
        moved = (
            DateShift(moved, way, "day") if isinstance(domains[target], Date) else Add(moved, Const(way * domains[target].step))
        )
    return {target: moved}


def _nearest(name: str, domain: Domain, op: str, value: Any) -> Any:
    """The declared value nearest to a literal for which the comparison holds; None where there is none."""
    if value is None or op == "!=":
        return None
    if isinstance(domain, Category | Boolean):
        return value if op == "=" else None
    at = threshold(domain, number_of(name, domain, value))
    code = {"=": floor(at), "<=": floor(at), "<": ceil(at) - 1, ">=": ceil(at), ">": floor(at) + 1}[op]
    if not domain.low_code <= code <= domain.high_code or (op == "=" and code != at):
        return None
    return domain.origin + code * domain.step if isinstance(domain, Real) else domain.decode(code)


def _bounded(scalar: Scalar, domain: Domain) -> Scalar:
    """Moved into what the column declares."""
    from cloister.tables.expression.scalars import Const, GreatestOf, LeastOf

    if isinstance(scalar, Const) or not isinstance(domain, Integer | Real | Date):
        return scalar
    low, high = (domain.low, domain.high)
    return LeastOf((GreatestOf((scalar, Const(low))), Const(high)))


def _solutions(rule: Rule, domains: Mapping[str, Domain]) -> list[tuple[str, Scalar]]:
    """For an equality, the columns that follow from the others, each with how: first the one that stands alone."""
    from cloister.tables.expression.scalars import Ref

    condition = rule.condition
    if not (isinstance(condition, Compare) and condition.op == "="):
        return []
    left, right = condition.left, condition.right
    if not isinstance(left, Column) or not isinstance(right, Column):
        return []
    known = dict(rule.computed)
    alone = [side.name for side in (right, left) if side.name in domains]
    sides = [_linear(known.get(side.name, Ref(side.name)), known, domains) for side in (left, right)]
    if sides[0] is not None and sides[1] is not None:
        terms = {name: sides[0].get(name, Fraction(0)) - sides[1].get(name, Fraction(0)) for name in {**sides[0], **sides[1]}}
        order = [*alone, *(name for name in reversed(terms) if name and name not in alone)]
        return [(name, _solved(name, terms)) for name in order if abs(terms.get(name, 0)) == 1]
    found: list[tuple[str, Scalar]] = []
    for target in alone:
        other = left.name if target == right.name else right.name
        reads = known[other].columns() if other in known else {other}
        if target not in reads:
            found.append((target, Ref(other)))
    return found


def _linear(scalar: Scalar, known: Mapping[str, Scalar], domains: Mapping[str, Domain]) -> dict[str, Fraction] | None:
    """A sum of numbers by column, the constant under no name; None for anything else."""
    from cloister.tables.expression.scalars import Add, Const, Negate, Ref, Subtract

    match scalar:
        case Ref(name=name):
            if name in known:
                return _linear(known[name], known, domains)
            return {name: Fraction(1)} if isinstance(domains.get(name), Integer | Real) else None
        case Const(kind="integer" | "number", value=value):
            return {"": Fraction(value)}
        case Negate():
            inner = _linear(next(scalar.inner()), known, domains)
            return None if inner is None else {name: -times for name, times in inner.items()}
        case Add(left=one, right=other) | Subtract(left=one, right=other):
            first, second = _linear(one, known, domains), _linear(other, known, domains)
            if first is None or second is None:
                return None
            sign = -1 if isinstance(scalar, Subtract) else 1
            return {name: first.get(name, Fraction(0)) + sign * second.get(name, Fraction(0)) for name in {**first, **second}}
    return None


def _solved(target: str, terms: Mapping[str, Fraction]) -> Scalar:
    """The column from all others of terms that sum to 0."""
    from cloister.tables.expression.scalars import Add, Const, Multiply, Ref

    found: Scalar | None = None
    for name, times in terms.items():
        times = -times / terms[target]
        if name == target or not times:
            continue
        part: Scalar = Const(times) if not name else Ref(name) if times == 1 else Multiply(Ref(name), Const(times))
        found = part if found is None else Add(found, part)
    return Const(0) if found is None else found


def _recoded(lane: Lane, scalar: Scalar, domains: Mapping[str, Domain], target: Domain) -> tuple[Integers, Truths]:
    """Computed codes as codes of a declared column, and where they are such."""
    from cloister.tables.expression.scalars import Const

    if isinstance(scalar, Const) and scalar.value is None:
        return np.zeros(lane.null.shape, dtype=np.int64), np.zeros(lane.null.shape, dtype=bool)
    source = scalar.domain(domains)
    values = np.where(lane.null, 0, lane.values)
    if isinstance(source, Category | Boolean) or isinstance(target, Category | Boolean):
        unique, place = np.unique(values, return_inverse=True)
        codes = [target.encode(source.decode(int(code))) for code in unique]
        found = np.array([-1 if code is None else code for code in codes], dtype=np.int64)[place.reshape(values.shape)]
        return found, (found >= 0) & ~lane.null
    over = np.lcm.reduce([each.denominator for each in (source.step, source.origin, target.step, target.origin)]).item()
    top = values.astype(object) if max(abs(source.low_code), abs(source.high_code)) * over * source.step > 2**60 else values
    top = top * int(source.step * over) + int((source.origin - target.origin) * over)
    under = int(target.step * over)
    whole = top // under
    fits = np.asarray((whole * under == top) & (whole >= target.low_code) & (whole <= target.high_code), dtype=bool) & ~lane.null
    return np.where(fits, whole, 0).astype(np.int64), fits


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
    same = (one.low_code, one.high_code, one.nullable) == (other.low_code, other.high_code, other.nullable)
    if isinstance(other, Category | Boolean):
        return same and one.values() == other.values()
    return same and one.step == other.step and one.origin == other.origin and isinstance(one, Date) == isinstance(other, Date)


def _pairwise(counts: Integers) -> Integers:
    """The first half and the second, added."""
    half = len(counts) // 2
    return np.asarray(counts[:half] + counts[half:])


def _points(states: States, rule: Rule) -> tuple[Integers, Integers]:
    """Codes of each state that tell whether it can obey a rule, and where those of each state begin: some between its ends, and
    those beside the literals that the column is compared with."""
    domain, marks = states.domain, set[int]()
    if states.bins is not None:
        for leaf in leaves(rule.condition):
            values: Sequence[Any] = ()
            if isinstance(leaf, Compare):
                values = [side.value for side in (leaf.left, leaf.right) if isinstance(side, Literal)]
            elif isinstance(leaf, Between):
                values = [leaf.low.value, leaf.high.value]
            elif isinstance(leaf, In):
                values = leaf.values
            if states.name in leaf.columns():
                for value in values:
                    if value is not None:
                        at = floor(threshold(domain, number_of(states.name, domain, value)))
                        marks.update((at - 1, at, at + 1))
    starts = states.starts
    found, begins = list[int](), list[int]()
    for low, high in zip(starts[:-1].tolist(), (starts[1:] - 1).tolist(), strict=True):
        begins.append(len(found))
        between = {low, high, *(low + (high - low) * step // 8 for step in range(1, 8))}
        found += sorted(between | {mark for mark in marks if low <= mark <= high})
    if domain.nullable:
        begins.append(len(found))
        found.append(domain.null_code)
    return np.array(found, dtype=np.int64), np.array(begins, dtype=np.int64)
