"""Hide sensitive rules: one call, every method, and what the result says of itself.

>>> from cloister.mining import hide_rules
>>> baskets = [["beer", "crisps"]] * 4 + [["beer", "crisps", "jam"]] * 2 + [["beer"]] * 3 + [["jam", "tea"]] * 5
>>> result = hide_rules(baskets, [("beer", "crisps")], min_support="0.2", min_confidence="0.6")
>>> result.effects.hiding_failure, result.effects.lost, result.effects.removed
(0.0, 0, 1)

What hiding did beside hiding: the four measures of the field, by mining again and comparing. With R the rules that the
thresholds find, R_s the sensitive ones among them, a dash for after:

    hiding failure   |R_s(D′)| / |R_s(D)|                       sensitive rules that are still found
    lost rules       |R̃_s(D) ∖ R̃_s(D′)| / |R̃_s(D)|               others that are found no more
    ghost rules      |R(D′) ∖ R(D)| / |R(D′)|                   rules that were not there before
    dissimilarity    Σ|f_D − f_D′| / Σ f_D  over all items       how much of the data changed, f being how often an item is held

(Oliveira & Zaïane 2002, 2003; Verykios et al. 2004.) A share of nothing is 0. Rules below the thresholds are none.
"""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from cloister.errors import InvalidParameter, MissingDependency, check_one_of, check_whole
from cloister.mining.baskets import Baskets, Codes
from cloister.mining.borders import along_border, farthest, lightest
from cloister.mining.exact import Columns, Proof, hide_exactly
from cloister.mining.itemsets import mine
from cloister.mining.lowering import lower_1a, lower_1b, lower_2a, lower_2b, smallest_first
from cloister.mining.reading import Read, read_with_shape
from cloister.mining.rules import find_rules
from cloister.mining.sensitive import Problem, Sensitive, sensitive_rules
from cloister.mining.thresholds import Thresholds
from cloister.mining.worked import Worked
from cloister.noise import Random
from cloister.privacy import Exact, exact_positive
from cloister.stored import Stored

Method: TypeAlias = Literal["auto", "1.a", "1.b", "2.a", "2.b", "SWA", "BBA", "max-min", "exact"]
METHODS: dict[str, str] = {
    "1.a": "raise the count of X (entries are made up)",
    "1.b": "take items of Y out",
    "2.a": "take items of X or Y out",
    "2.b": "take the most frequent item out, below the least support",
    "SWA": "sliding window",
    "BBA": "border-based, lightest entry",
    "max-min": "border-based, max–min",
    "exact": "integer program",
}
"""Every method, and what it does."""
Progress: TypeAlias = Callable[[str], None]
NOT_PRIVATE = (
    "NOT differentially private: hidden is what one miner with these thresholds would find, and nothing else. Every other count "
    "is exact."
)
LINKS = "stays as it is: it links each basket to those of every other copy, and shows which were changed"


@dataclass(frozen=True, kw_only=True)
class SideEffects:
    """Counts, and the four measures of them.

    >>> effects = SideEffects(sensitive=2, failed=0, others=8, lost=2, rules=6, ghosts=0, entries=100, changed_counts=5,
    ...     removed=5, added=0, touched=5)
    >>> effects.hiding_failure, effects.lost_rules, effects.ghost_rules, effects.dissimilarity
    (0.0, 0.25, 0.0, 0.05)
    """

    sensitive: int
    """Sensitive rules that were found before, |R_s(D)|."""
    failed: int
    """Of these those still found."""
    others: int
    """Rules found before that are not sensitive."""
    lost: int
    """Of these those found no more."""
    rules: int
    """Rules found after."""
    ghosts: int
    """Of these those not found before."""
    entries: int
    """Σ f_D."""
    changed_counts: int
    """Σ|f_D − f_D′|."""
    removed: int
    """Entries taken out of a basket."""
    added: int
    """Entries put into a basket that did not hold them: made up."""
    touched: int
    """Baskets that are not what they were."""

    @property
    def hiding_failure(self) -> float:
        """|R_s(D′)| / |R_s(D)|."""
        return _share(self.failed, self.sensitive)

    @property
    def lost_rules(self) -> float:
        """|R̃_s(D) ∖ R̃_s(D′)| / |R̃_s(D)|."""
        return _share(self.lost, self.others)

    @property
    def ghost_rules(self) -> float:
        """|R(D′) ∖ R(D)| / |R(D′)|."""
        return _share(self.ghosts, self.rules)

    @property
    def dissimilarity(self) -> float:
        """Σ|f_D − f_D′| / Σ f_D."""
        return _share(self.changed_counts, self.entries)


def side_effects(problem: Problem, after: Baskets) -> SideEffects:
    """Mine the changed baskets, and compare."""
    before = problem.found.keys
    now = find_rules(mine(after, problem.thresholds.least), problem.thresholds).keys
    sensitive = {(rule.antecedent, rule.whole) for rule in problem.sensitive}
    removed = added = 0
    touched = np.zeros(len(after), dtype=np.bool_)
    for place in problem.items:
        was, is_ = problem.baskets.column(place), after.column(place)
        removed += int((was & ~is_).sum())
        added += int((is_ & ~was).sum())
        touched |= was != is_
    return SideEffects(
        sensitive=len(sensitive),
        failed=len(sensitive & now),
        others=len(before - sensitive),
        lost=len(before - sensitive - now),
        rules=len(now),
        ghosts=len(now - before),
        entries=int(problem.baskets.counts.sum()),
        changed_counts=int(np.abs(problem.baskets.counts - after.counts).sum()),
        removed=removed,
        added=added,
        touched=int(touched.sum()),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


@dataclass(frozen=True, kw_only=True)
class HiddenRule:
    """A sensitive rule before and after.

    >>> print(HiddenRule(rule="a → b", there_before=True, support=(0.5, 0.25), confidence=(0.8, 0.4)))
    a → b: support 50.00% → 25.00%, confidence 80.0% → 40.0%
    """

    rule: str
    there_before: bool
    support: tuple[float, float]
    confidence: tuple[float, float]

    def __str__(self) -> str:
        if not self.there_before:
            return f"{self.rule}: was not found before, and nothing was changed for it"
        (s, t), (c, d) = self.support, self.confidence
        return f"{self.rule}: support {s:.2%} → {t:.2%}, confidence {c:.1%} → {d:.1%}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Sanitised:
    """Changed baskets, what it cost, and what they still tell.

    >>> found = hide_rules([["a", "b"], ["a", "b"], ["a"]], ["a → b"], min_support="0.5", min_confidence="0.6")
    >>> isinstance(found, Sanitised), found.effects.hiding_failure
    (True, 0.0)
    """

    data: Any
    """In the shape in which the baskets were given."""
    baskets: Baskets
    method: str
    effects: SideEffects
    rules: tuple[HiddenRule, ...]
    proof: Proof | None
    """Of the exact method alone: what is proved of the least number of lost rules."""
    thresholds: Thresholds
    linking: tuple[str, ...] = ()
    """What was kept, as was asked for, that links baskets to those of other copies: their order, their names."""

    @property
    def not_private(self) -> str:
        """What this is not, and what an attacker may still learn."""
        found = [rule for rule in self.rules if rule.there_before]
        lowest = min((rule.support[1] for rule in found), default=0.0)
        surest = min((rule.confidence[1] for rule in found), default=0.0)
        lines = [
            NOT_PRIVATE,
            f"Who mines with lower thresholds finds the rules again (support {lowest:.2%}, confidence {surest:.1%} are low enough"
            " for one of them); a method stops just below the threshold, so a rule that lies there stands out.",
            "Who has an older copy, or another extract of it, sees each change by comparing.",
            "A row that says much about one person says as much afterwards: people are not hidden, rules are.",
        ]
        lines += [f"{each} {LINKS}." for each in self.linking]
        return "\n".join(lines)

    def __str__(self) -> str:
        told = self.effects
        lines = [
            f"{told.sensitive} sensitive rules hidden by {self.method}"
            + ("" if not told.failed else f", {told.failed} of them NOT hidden"),
            *(f"  {rule}" for rule in self.rules),
            f"  lost rules {told.lost:,} of {told.others:,} ({told.lost_rules:.1%}), ghost rules {told.ghosts:,} of"
            f" {told.rules:,} ({told.ghost_rules:.1%}), dissimilarity {told.dissimilarity:.2%}",
            f"  {told.removed:,} entries taken out, {told.added:,} made up, in {told.touched:,} of {len(self.baskets):,} baskets",
        ]
        if self.proof is not None:
            lines.append(f"  {self.proof}")
        return "\n".join([*lines, self.not_private])

    def to_json(self) -> str:
        """The report; without the baskets."""
        return json.dumps(stated(self), ensure_ascii=False)


_COUNTS = Stored(
    SideEffects,
    "counts",
    *("sensitive", "failed", "others", "lost", "rules", "ghosts", "entries", "changed_counts", "removed", "added", "touched"),
)
"""As a report holds them."""


def stated(result: Sanitised) -> dict[str, Any]:
    """The report as plain data."""
    told, proof = result.effects, result.proof
    return {
        "method": result.method,
        "hiding_failure": told.hiding_failure,
        "lost_rules": told.lost_rules,
        "ghost_rules": told.ghost_rules,
        "dissimilarity": told.dissimilarity,
        "counts": _COUNTS.told(told),
        "rules": [
            {"rule": each.rule, "there_before": each.there_before, "support": each.support, "confidence": each.confidence}
            for each in result.rules
        ],
        "proof": proof and {"optimal": proof.optimal, "bound": proof.bound, "gap": proof.gap, "text": str(proof)},
        "not_private": result.not_private,
    }


def hide_rules(
    baskets: Any,
    rules: Any,
    *,
    min_support: Exact,
    min_confidence: Exact,
    method: Method = "auto",
    insertions: bool = False,
    time_limit: Exact = 30,
    window: int = 10_000,
    shuffle: bool = True,
    keep_names: bool = False,
    random: Random | None = None,
    progress: Progress = lambda stage: None,
    **columns: str,
) -> Sanitised:
    """Change baskets until no sensitive rule is found with these thresholds.

    Parameters
    ----------
    baskets
        Lists of lists, a long table (its columns named by `basket=` and `item=`) or a wide one: see `read_baskets`.
    rules
        What to hide: `("beer", "crisps")`, `(("tea", "milk"), "jam")`, `"tea, milk -> jam"`, or rules that were mined.
    min_support, min_confidence
        The thresholds below which a rule counts as hidden; as shares, exact.
    method
        "auto": the exact one, and the best heuristic where it is too large or scipy is missing. Or one of `METHODS`.
    insertions
        Whether the exact method may put items into baskets, as 1.a does: entries that are made up.
    time_limit
        Seconds for the exact method. Where they end before a proof, the result says the gap.
    window
        Of the sliding window algorithm: how many baskets.
    shuffle, keep_names
        Baskets leave in a secret order, drawn by `random`, and numbered afresh: their order or their names would link each to
        every other copy, and show what was changed. Either is kept only where this asks for it, which is warned of and stands in
        the report.
    progress
        Is told what goes on.

    A method that cannot hide them all (1.a, where too few baskets lack X) is refused; `compare` shows such an attempt.
    """
    check_method(method)
    read, problem = problem_of(baskets, rules, min_support, min_confidence, columns)
    exactly = method in ("auto", "exact")
    heuristics = [name for name in METHODS if name not in ("1.a", "exact")] if exactly else [method]
    if exactly and insertions:
        heuristics.append("1.a")
    results = answers(
        read,
        problem,
        heuristics,
        exact=exactly,
        fallback=method == "auto",
        insertions=insertions,
        seconds=float(exact_positive(time_limit, "time_limit")),
        window=window,
        progress=progress,
    )
    hidden = [each for each in results if not each.effects.failed]
    if not hidden:
        raise InvalidParameter(
            f"method={method!r} is invalid",
            why="it cannot hide these rules: too few baskets lack an antecedent that could be completed",
            instead='method="auto"',
        )
    best = min(hidden, key=lambda each: (each.effects.lost, each.effects.removed + each.effects.added))
    if exactly:
        best = next((each for each in hidden if each.method == "exact"), best)
    linking = (*([] if shuffle else ["the order of the baskets"]), *(["what baskets are called"] if keep_names else []))
    for each in linking:
        warnings.warn(f"{each} {LINKS}. Instead: hide_rules(…) without shuffle=False or keep_names=True", stacklevel=2)
    order = (random or Random()).permutation(len(best.baskets)) if shuffle else np.arange(len(best.baskets))
    # the columns of a wide table stand as they stood: no row decides their order
    sort = shuffle and read.shape != "wide"
    after = best.baskets.leaving(np.asarray(order, dtype=np.int64), named=keep_names, items_in_order=sort)
    return replace(best, baskets=after, data=read.written(after), linking=linking)


def check_method(method: str) -> None:
    """Refuse a name that no method has."""
    known = ("auto", *METHODS)
    check_one_of(method, "method", known, why=f"known are {', '.join(known)}", instead='method="auto"')


def problem_of(
    baskets: Any, rules: Any, min_support: Exact, min_confidence: Exact, columns: dict[str, str]
) -> tuple[Read, Problem]:
    read = read_with_shape(baskets, **columns)
    thresholds = Thresholds.of(len(read.baskets), min_support=min_support, min_confidence=min_confidence)
    asked = sensitive_rules(read.baskets, rules)
    return read, Problem.of(read.baskets, thresholds, asked)


def answers(
    read: Read,
    problem: Problem,
    heuristics: Sequence[str],
    *,
    exact: bool,
    fallback: bool,
    insertions: bool,
    seconds: float,
    window: int,
    progress: Progress,
) -> list[Sanitised]:
    """What each of these methods comes to; the exact one starts from the others' answers."""
    works: dict[str, Callable[[], Worked]] = {
        "1.a": lambda: lower_1a(problem),
        "1.b": lambda: lower_1b(problem),
        "2.a": lambda: lower_2a(problem),
        "2.b": lambda: lower_2b(problem),
        "SWA": lambda: slide(problem, window=window),
        "BBA": lambda: along_border(problem, lightest),
        "max-min": lambda: along_border(problem, farthest),
    }
    found: list[tuple[str, Columns, Proof | None]] = []
    for name in heuristics:
        progress(name)
        found.append((name, works[name]().columns, None))
    if exact:
        starts = [columns for _, columns, _ in found]
        if "2.a" not in heuristics:  # which always hides, as 1.a alone may not
            starts.append(lower_2a(problem).columns)
        try:
            best, proof = hide_exactly(problem, starts, insertions=insertions, seconds=seconds, progress=progress)
            found.append(("exact", best, proof))
        except (InvalidParameter, MissingDependency):
            if not fallback:
                raise
    progress("counting side effects")
    return [_sanitised(read, problem, name, columns, proof) for name, columns, proof in found]


def _sanitised(read: Read, problem: Problem, method: str, columns: Columns, proof: Proof | None) -> Sanitised:
    after = problem.baskets.with_columns(columns) if columns else problem.baskets
    return Sanitised(
        data=read.written(after),
        baskets=after,
        method=method,
        effects=side_effects(problem, after),
        rules=tuple(_told(problem, after, rule) for rule in problem.asked),
        proof=proof,
        thresholds=problem.thresholds,
    )


def _told(problem: Problem, after: Baskets, rule: Sensitive) -> HiddenRule:
    n = max(1, len(problem.baskets))
    counts = [[int(each.holding(side).sum()) for each in (problem.baskets, after)] for side in (rule.whole, rule.antecedent)]
    whole, left = counts
    return HiddenRule(
        rule=rule.text(problem.baskets),
        there_before=rule in problem.sensitive,
        support=(whole[0] / n, whole[1] / n),
        confidence=(whole[0] / max(1, left[0]), whole[1] / max(1, left[1])),
    )


def slide(problem: Problem, *, window: int = 10_000) -> Worked:
    """Support, in windows of so many baskets.

    The sliding window algorithm: one pass over the baskets, a window at a time (Oliveira & Zaïane, ICDM 2003).

    In each window, for each sensitive set: the baskets that hold it, smallest first; of these a share (1 − ψ), rounded up,
    loses one item: that which most of the sensitive sets in this basket share, so that one removal serves several. ψ is the
    set's disclosure threshold. Here it follows from the thresholds: (least − 1)/count, the largest that hides. The paper breaks
    ties by chance; here the item that is held most often goes. Each window is rounded up by itself, so small windows take out
    more."""
    check_whole(window, "window", 1, why="it is a number of baskets", instead="window=10_000")
    worked = Worked(problem)
    sets = list(dict.fromkeys(rule.whole for rule in problem.sensitive))
    holders = {each: worked.holders(each) for each in sets}
    allowed = problem.thresholds.least - 1
    counts = {place: worked.count((place,)) for place in problem.items}
    shared = _shared(worked, sets)
    for start in range(0, len(problem.baskets), window):
        inside = {each: found[(found >= start) & (found < start + window)] for each, found in holders.items()}
        for each in sets:
            total, here = len(holders[each]), len(inside[each])
            wanted = -(-here * (total - allowed) // total) if total > allowed else 0
            still = worked.holding(each)[inside[each]]
            for basket in smallest_first(worked, inside[each][still])[: max(0, wanted - int((~still).sum()))].tolist():
                worked.remove(max(each, key=lambda place: (shared[place][basket], counts[place], -place)), basket)
    return worked


def _shared(worked: Worked, sets: list[tuple[int, ...]]) -> dict[int, Codes]:
    """Of each item and basket, how many of the sensitive sets that the basket holds have the item."""
    found = {place: np.zeros(len(worked.problem.baskets), dtype=np.int64) for place in worked.problem.items}
    for each in sets:
        held = worked.holding(each)
        for place in each:
            found[place] += held
    return found
