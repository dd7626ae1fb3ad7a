"""Which protocol for which question: the one with the least error, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from cloister.errors import check_whole
from cloister.local.frequency.direct import DirectEncoding, RandomizedResponse
from cloister.local.frequency.domain import domain_of
from cloister.local.frequency.hadamard import HadamardResponse
from cloister.local.frequency.hashing import LocalHashing
from cloister.local.frequency.histogram import HistogramEncoding
from cloister.local.frequency.oracle import FrequencyOracle
from cloister.local.frequency.subset import SubsetSelection
from cloister.local.frequency.unary import UnaryEncoding
from cloister.local.protocols.coins import check_epsilon
from cloister.privacy.rational import Exact

if TYPE_CHECKING:
    import altair as alt

_NEAR = 1.02
"""Errors within this factor are the same in practice; then the smaller report is better."""
_LONG = 1 << 14
"""Reports of so many bits are not asked of anybody's telephone."""
_WIDE = 1 << 13
"""Reports that are lists (as long as the domain, or a share of it) are not tried on larger domains."""

_Make = Callable[[Any, Any], FrequencyOracle]
_Histogram = cast("Callable[..., FrequencyOracle]", HistogramEncoding)  # it makes one of two kinds
_WAYS: dict[str, tuple[_Make, bool]] = {
    "direct encoding": (DirectEncoding, False),
    "subset selection": (SubsetSelection, True),
    "optimal local hashing": (LocalHashing, False),
    "Hadamard response": (HadamardResponse, False),
    "optimised unary encoding": (UnaryEncoding, True),
    "symmetric unary encoding": (lambda domain, epsilon: UnaryEncoding(domain, epsilon=epsilon, optimized=False), True),
    "histogram with a threshold": (lambda domain, epsilon: _Histogram(domain, epsilon=epsilon, threshold=True), True),
    "histogram, summed": (lambda domain, epsilon: _Histogram(domain, epsilon=epsilon), True),
}


@dataclass(frozen=True, kw_only=True)
class Option:
    """One protocol, and what to expect of it."""

    name: str
    oracle: FrequencyOracle
    margin: float
    """The half-width, at 95 %, of the estimated share of a value that few hold: as results will say it."""
    report_size: int
    """In bits."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """The best protocol for a question, the others beside it, and the reason.

    >>> advice = choose(["yes", "no", "perhaps"], epsilon=1, people=10_000)
    >>> advice.name, round(advice.best.margin, 3)
    ('direct encoding', 0.022)
    >>> choose(range(1000), epsilon=1, people=10_000).name
    'optimal local hashing'
    """

    size: int
    people: int
    epsilon: float
    options: tuple[Option, ...]
    """The best first; then by error."""

    @property
    def best(self) -> Option:
        """The one to take."""
        return self.options[0]

    @property
    def name(self) -> str:
        """Of the one to take."""
        return self.best.name

    @property
    def oracle(self) -> FrequencyOracle:
        """Ready to be used."""
        return self.best.oracle

    @property
    def why(self) -> str:
        """One sentence, from the numbers."""
        best = self.best
        least = min(self.options, key=lambda option: option.margin)
        told = f"{best.name}: with {self.people:,} people, a share is off by at most {best.margin:.2%} in 19 of 20 cases"
        if best is not least:
            bits = f"with {least.report_size:,} bits a report instead of {best.report_size:,}"
            return f"{told}; {least.name} has {least.margin:.2%}, the same in practice, {bits}"
        others = [option for option in self.options if option is not best and option.margin > best.margin * _NEAR]
        return f"{told}; next is {others[0].name} with {others[0].margin:.2%}" if others else told

    def __str__(self) -> str:
        lines = [self.why, f"  {'protocol':<28}{'margin':>9}{'bits a report':>16}"]
        lines += [f"  {option.name:<28}{option.margin:>9.2%}{option.report_size:>16,}" for option in self.options]
        return "\n".join(lines)

    def chart(self) -> alt.LayerChart:
        """All protocols and their margins, as bars."""
        import altair as alt

        from cloister.notebook import offline

        rows = [
            {"name": each.name, "margin": each.margin, "bits": f"{each.report_size:,} bits", "best": each is self.best}
            for each in self.options
        ]
        title = alt.Title(
            f"The share of one of {self.size:,} values, from {self.people:,} people at ε = {self.epsilon:g}",
            subtitle="half-width of the interval at 95 %; beside it, the size of a report",
        )
        base = alt.Chart(alt.Data(values=rows)).properties(width=420, title=title)
        y = alt.Y("name:N", sort=[row["name"] for row in rows], title=None, axis=alt.Axis(labelLimit=220))
        x = alt.X("margin:Q", title="margin of a share", axis=alt.Axis(format="%"))
        colour = alt.Color("best:N", legend=None, scale=alt.Scale(domain=[True, False], range=["#1f6f5c", "#b9c7c2"]))
        bars = base.mark_bar().encode(x=x, y=y, color=colour)
        return offline(alt.layer(bars, base.mark_text(align="left", dx=4).encode(x=x, y=y, text="bits:N")))


def choose(domain: Any, epsilon: Exact = 1, people: int = 1000) -> Advice:
    """The protocol with the least error for so many people; where errors are the same, the one with the smallest report.

    `domain` is a list of values, or how many there are. What is compared is the margin of a share that is near 0, which is what
    rare values suffer from: as results will say it, from each protocol's own variance. With many people that is the order of
    the variances; with few, one whose single reports weigh less, or whose variance grows less with the share, comes first. The
    others are taken to be spread evenly: where one value has nearly all, Hadamard response errs more, as its results say.

    >>> print(choose(2, epsilon=1, people=1000).why)
    randomised response: with 1,000 people, a share is off by at most 6.16% in 19 of 20 cases
    """
    check_whole(people, "people", 1, why="it is how many will answer", instead="people=1000")
    if isinstance(domain, int) and not isinstance(domain, bool):
        domain = range(max(0, domain))
    values, budget = domain_of(domain), check_epsilon(epsilon)
    if len(values) == 2:
        options = [_option("randomised response", RandomizedResponse(values, budget), people)]
    else:
        ways = {name: make for name, (make, long) in _WAYS.items() if not long or len(values) <= _WIDE}
        options = [_option(name, make(values, budget), people) for name, make in ways.items()]
    least = min(option.margin for option in options)
    near = [option for option in options if option.margin <= least * _NEAR and option.report_size <= _LONG]
    best = min(near or options, key=lambda option: option.report_size)  # of equals the first: the simpler one
    options.sort(key=lambda option: (option.margin, option.report_size))
    ordered = (best, *(option for option in options if option is not best))
    return Advice(size=len(values), people=people, epsilon=float(budget), options=ordered)


def _option(name: str, oracle: FrequencyOracle, people: int) -> Option:
    return Option(name=name, oracle=oracle, margin=oracle.margin(people), report_size=oracle.report_size)
