"""Several attributes of each person: one of them asked, drawn by chance, or all of them with a share of ε each."""

from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from cloister.errors import InvalidParameter
from cloister.local.frequency.direct import DirectEncoding
from cloister.local.frequency.domain import Domain, Indices, domain_of
from cloister.local.frequency.estimates import Estimate
from cloister.local.frequency.hashing import LocalHashing
from cloister.local.frequency.oracle import FrequencyOracle, Reports, Sketch
from cloister.local.protocols.coins import check_epsilon
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.privacy import Exact, PureDP

Name = TypeVar("Name", bound=Hashable)
Make = Callable[[Any, Any], FrequencyOracle]


class SeveralAttributes:
    """The frequencies of several attributes, from one report of each person.

    Sampling: chance picks one of the k attributes, and it's reported with the whole ε. Splitting: all k are reported, with ε/k
    each. `how` says which; by default that one whose estimated counts have the lesser variance, summed over attributes at equal
    frequencies. For one value of share f among n people,

        sampling    k·n·v(ε) + (k − 1)·n·f(1 − f)        splitting    n·v(ε/k)

    with v(ε) the variance of one report: with small ε, v grows as 1/ε², and sampling is better by a factor k.

    Guarantee: ε-local privacy for all attributes together. Proof: sampling looks at one attribute only, and which one is drawn
    before; splitting composes k reports of ε/k (Dwork & Roth 2014, theorem 3.14).

    `oracle` makes the protocol of an attribute from its domain and ε; by default direct encoding or local hashing, whichever errs
    less. Values of one person are not reported together, so nothing is learned of how attributes go together: `Marginals` does.

    >>> several = SeveralAttributes({"smokes": ["yes", "no"], "town": range(50)}, epsilon=1)
    >>> several.how
    'sampling'
    >>> people = {"smokes": ["no"] * 15_000 + ["yes"] * 5_000, "town": np.arange(20_000) % 50}
    >>> reports = several.randomize(people, random=Random.deterministic(1))
    >>> estimates = several.estimate(several.aggregate(reports))
    >>> bool(abs(estimates["smokes"].counts[0] - 5_000) < estimates["smokes"].margin(0.999)[0])
    True
    """

    epsilon: Fraction
    how: str
    oracles: dict[str, FrequencyOracle]

    def __init__(
        self, domains: Mapping[str, Any], epsilon: Exact = 1, *, how: str | None = None, oracle: Make | None = None
    ) -> None:
        self.epsilon = check_epsilon(epsilon)
        self._domains = checked_domains(domains)
        if how not in (None, "sampling", "splitting"):
            raise InvalidParameter(
                f"how={how!r} is invalid", why="there are two ways", instead='how="sampling" or how="splitting", or leave it out'
            )
        make = least_error if oracle is None else oracle
        count = len(self._domains)
        whole = {name: make(domain, self.epsilon) for name, domain in self._domains.items()}
        parts = {name: make(domain, self.epsilon / count) for name, domain in self._domains.items()}
        self.variances = {
            "sampling": sum(count * _typical(each) + (count - 1) * _sampled(each) for each in whole.values()),
            "splitting": sum(_typical(each) for each in parts.values()),
        }
        self.how = how or min(self.variances, key=lambda way: self.variances[way])
        self.oracles = whole if self.how == "sampling" else parts
        if any(each.epsilon != self.epsilon / (1 if self.how == "sampling" else count) for each in self.oracles.values()):
            raise InvalidParameter(
                "oracle= is invalid",
                why="its protocols have another ε",
                instead="lambda domain, epsilon: DirectEncoding(domain, epsilon)",
            )

    variances: dict[str, float]
    """What either way comes to: the variances of one person's part in a count, summed over attributes."""

    @property
    def guarantee(self) -> PureDP:
        """The promise to each respondent, for all attributes together."""
        return PureDP(self.epsilon)

    def randomize(self, table: Mapping[str, Any], *, random: Random | None = None) -> dict[str, Reports]:
        """The reports of each attribute: of those who drew it, or of all. `table` has a list of values for each attribute."""
        places = columns_of(self._domains, table)
        if self.how == "sampling":
            return report_one(self.oracles, places, source(random))
        return {name: oracle._report(places[name], source(random)) for name, oracle in self.oracles.items()}

    def aggregate(self, reports: Mapping[str, Reports]) -> dict[str, Sketch]:
        """The sketch of each attribute's reports."""
        return sketches_of(self.oracles, reports)

    def estimate(self, sketches: Mapping[str, Sketch]) -> dict[str, Estimate]:
        """For each attribute, how many of all people hold each value. Where some were asked, counts are scaled up to all, and
        margins say that the others were not asked."""
        if self.how == "splitting":
            return {name: oracle.estimate(sketches[name]) for name, oracle in self.oracles.items()}
        people = sum(sketches[name].n for name in self.oracles)
        return {name: whole_estimate(oracle.estimate(sketches[name]), people) for name, oracle in self.oracles.items()}


def checked_domains(domains: Mapping[str, Any]) -> dict[str, Domain]:
    """Each attribute's domain; two attributes at least."""
    if not isinstance(domains, Mapping) or len(domains) < 2:
        raise InvalidParameter(
            "domains is invalid",
            why="several attributes are two or more, each with its domain",
            instead='{"smokes": ["yes", "no"], "age": range(18, 100)}',
        )
    return {str(name): domain_of(domain) for name, domain in domains.items()}


def columns_of(domains: Mapping[str, Domain], table: Mapping[str, Any]) -> dict[str, Indices]:
    """The places of each attribute's values, of as many people in each."""
    if not isinstance(table, Mapping) or set(table) != set(domains):
        raise InvalidParameter(
            "The values are invalid",
            why="they are not one list for each attribute, by its name",
            instead=f"randomize({{{', '.join(f'{name!r}: […]' for name in list(domains)[:3])}}})",
        )
    places = {name: domain.places(table[name]) for name, domain in domains.items()}
    if len({len(column) for column in places.values()}) != 1:
        raise InvalidParameter(
            "The values are invalid", why="the lists differ in length", instead="one value of each attribute for each person"
        )
    return places


def report_one(oracles: Mapping[Name, FrequencyOracle], places: Mapping[Name, Indices], random: Random) -> dict[Name, Reports]:
    """For each person one report: of that oracle which a uniform draw says."""
    names = list(oracles)
    drawn = random.below(len(names), len(places[names[0]]))
    return {name: oracles[name]._report(places[name][drawn == number], random) for number, name in enumerate(names)}


def sketches_of(oracles: Mapping[Name, FrequencyOracle], reports: Mapping[Name, Reports]) -> dict[Name, Sketch]:
    """A sketch for each oracle's reports."""
    if not isinstance(reports, Mapping) or set(reports) != set(oracles):
        raise InvalidParameter("The reports are invalid", why="they are of other attributes", instead="randomize(…)")
    return {name: oracle.aggregate(reports[name]) for name, oracle in oracles.items()}


def whole_estimate(estimate: Estimate, people: int) -> Estimate:
    """An estimate of those who were drawn, as one of all `people`: scaled, with the variance of drawing them added.

    Those asked are drawn without replacement, whence (n − asked)/(n − 1). One person more who holds the value changes the
    variance by that of their report, and by that of being drawn.

    >>> half = Estimate(counts=np.array([25.0]), n=50, variances=np.array([4.0]), values=("a",))
    >>> whole = whole_estimate(half, 100)
    >>> whole.counts.tolist(), whole.variances.round(2).tolist()
    ([50.0], [41.25])
    """
    asked = estimate.n
    if not asked:  # they may be anything from nobody to all
        nothing = np.zeros(len(estimate))
        return Estimate(counts=nothing, n=people, variances=nothing, values=estimate.values, bias=np.full(len(estimate), people))
    if asked == people:
        return estimate
    scale, left_out = people / asked, (people - asked) / (people - 1)
    shares = np.clip(estimate.counts / asked, 0.0, 1.0)
    drawing = people * scale * shares * (1 - shares) * left_out
    return Estimate(
        counts=estimate.counts * scale,
        n=people,
        variances=np.asarray(estimate.variances * scale**2 + drawing, dtype=np.float64),
        values=estimate.values,
        part=scale * max(estimate.part, 1.0),
        slope=scale * (estimate.slope + left_out),
    )


def least_error(domain: Any, epsilon: Any) -> FrequencyOracle:
    """Direct encoding or local hashing: whichever has the lesser variance.

    >>> least_error(range(5), 1).protocol, least_error(range(50), 1).protocol
    ('direct', 'hashing')
    """
    direct = DirectEncoding(domain, epsilon)
    if len(direct.domain) > 1 << 26:
        return direct
    hashing = LocalHashing(direct.domain, epsilon)
    return min((direct, hashing), key=lambda each: each.variance(1))


def _typical(oracle: FrequencyOracle) -> float:
    return oracle.variance(1, 1 / len(oracle.domain))


def _sampled(oracle: FrequencyOracle) -> float:
    share = 1 / len(oracle.domain)
    return share * (1 - share)
