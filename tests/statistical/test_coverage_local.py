"""Margins of surveys, of local protocols beyond single counts and means, and of mining cover as often as they say.

The harness, and what a failure means, is that of test_coverage.py. Here a p-value is a margin, too: it is below 1 − confidence in
at most so large a share of cases where nothing differs.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister import local
from cloister.local.survey import Number, Scale, Several, Word, YesNo
from cloister.local.survey.alike import alike_of
from cloister.local.survey.amounts import AmountChannel
from cloister.local.survey.channels import SeveralChannel, channel_of
from cloister.local.survey.counts import LISTED, Counts
from cloister.local.survey.findings import Finding, add_findings
from cloister.local.survey.one_of import OneOfChannel
from cloister.mining.top import TopItemsets
from cloister.noise import Random
from tests.statistical.test_coverage import CONFIDENCES, Case, Told, check, many

pytestmark = pytest.mark.statistical

# ── surveys ──────────────────────────────────────────────────────────────────────────────────────

LEVELS = ("0.5", "1", "3")


def found(channel: Any, answers: list[Any], random: Random) -> Finding:
    """The finding of honest reports, all made at once."""
    return channel.finding(counts_of(channel, answers, random))


def counts_of(channel: Any, answers: list[Any], random: Random) -> Counts:
    n = len(answers)
    if isinstance(channel, OneOfChannel):
        return channel.count(rows_of(channel.oracle.randomize(answers, random=random)) if n else [])
    if isinstance(channel, SeveralChannel):
        return channel.count(rows_of(channel.ticks.randomize(answers, random=random)) if n else [])
    if not isinstance(channel, AmountChannel):
        return Counts(n=n, parts={LISTED: np.sort(channel.heavy.randomize(answers, random=random)).astype(np.int64)})
    if channel.answered is None or channel.want == "mean":
        filled = [channel.middle if each is None else each for each in answers]
    else:
        points = random.below(channel.mechanism.grid + 1, n)
        filled = [channel._at(int(p), channel.mechanism.grid) if a is None else a for p, a in zip(points, answers, strict=True)]
    parts = {"sketch": channel.mechanism.aggregate(channel.mechanism.randomize(filled, random=random)).counts}
    if channel.answered is not None:
        told = channel.answered.randomize([int(each is not None) for each in answers], random=random)
        parts["answered"] = channel.answered.aggregate(told).counts
    return Counts(n=n, parts=parts)


def rows_of(reports: Any) -> list[list[int]]:
    return [[int(each) for each in np.ravel(row)] for row in reports]


def channels(question: Any, levels: tuple[str, ...]) -> list[Any]:
    return [channel_of(question, Fraction(level)) for level in levels]


def of_shares(question: Any, answers: list[Any], levels: tuple[str, ...], runs: int = 300) -> Case:
    """Counts and shares of the first answers, of everybody and at the first level; and the mean, where there is one."""

    def case(random: Random, scale: int) -> Any:
        asked = channels(question, levels)
        groups = [answers[place :: len(levels)] for place in range(len(levels))]
        labels = list(asked[0].labels)
        held = [np.array([sum(_holds(each, place) for each in some) for place in range(len(labels))]) for some in groups]
        truths = {"all": sum(held), "first": held[0]}
        scored = getattr(asked[0], "scores", ())

        def made() -> dict[str, Any]:
            each = [found(channel, some, random) for channel, some in zip(asked, groups, strict=True)]
            told = {"all": add_findings(each), "first": each[0]}
            out: dict[str, Any] = {}
            for who, finding in told.items():
                n, truth = finding.estimate.n, truths[who]
                rows = {c: finding.rows(c) for c in (0.9, 0.95, 0.99, 0.999)}
                shares = np.array([row["share"] for row in rows[0.9]])
                off = np.abs(shares - truth / n)[[0, -1]]
                out[f"shares of {who}"] = (
                    off,
                    lambda c, rows=rows: np.array([row["share_margin"] for row in rows[c]])[[0, -1]],
                )
                mean = finding.mean()
                scores = [score for score in scored if score is not None]
                if mean is not None and truth[: len(scores)].sum():
                    exact = float(np.dot(scores, truth[: len(scores)]) / truth[: len(scores)].sum())
                    out[f"mean of {who}"] = (abs(mean.value - exact), mean.margin)
            return out

        yield from many(runs * scale, made, f"{question.name}, {len(answers)} people at {', '.join(levels)}")

    return case


def _holds(answer: Any, place: int) -> bool:
    return place in answer if isinstance(answer, frozenset) else answer == place


def of_amounts(question: Number, answers: list[Any], levels: tuple[str, ...], runs: int = 300) -> Case:
    def case(random: Random, scale: int) -> Any:
        asked = channels(question, levels)
        groups = [answers[place :: len(levels)] for place in range(len(levels))]
        given = [each for each in answers if each is not None]
        low, high = float(question.low), float(question.high)

        def made() -> dict[str, Any]:
            finding = add_findings([found(channel, some, random) for channel, some in zip(asked, groups, strict=True)])
            out: dict[str, Any] = {}
            mean = finding.mean()
            if given:
                out["mean"] = (abs(mean.value - np.mean(given)), mean.margin)
            if question.want == "spread":
                place = np.clip(((np.array(given) - low) / (high - low) * 10).astype(int), 0, 9)
                truth = np.bincount(place, minlength=10).astype(float)
                if question.no_answer:
                    truth = np.append(truth, len(answers) - len(given))
                picks = [0, 5]
            else:
                truth = np.array([len(given), len(answers) - len(given)], dtype=float)
                picks = [0]
            rows = {c: finding.rows(c) for c in (0.9, 0.95, 0.99, 0.999)}
            counts = np.array([row["count"] for row in rows[0.9]])
            out["counts"] = (
                np.abs(counts - truth[: len(counts)])[picks],
                lambda c, rows=rows: np.array([row["margin"] for row in rows[c]])[picks],
            )
            return out

        about = f"{question.name}, {question.want}, {len(answers)} people at {', '.join(levels)}"
        yield from many(runs * scale, made, about)

    return case


def of_p_values(question: Any, draw: Any, levels: tuple[str, ...], people: int, runs: int = 400) -> Case:
    """Who chooses which level does not go with the answer: a p-value below 0.05 is seen 5 times in 100 at most."""

    def case(random: Random, scale: int) -> Any:
        asked = channels(question, levels)

        def made() -> dict[str, Any]:
            groups = [draw(people, random) for _ in levels]
            each = {c.epsilon: found(c, some, random) for c, some in zip(asked, groups, strict=True)}
            test = alike_of(question, each)
            p = 1.0 if test is None else test.p_value
            return {"p-value": (1 - p, lambda confidence: confidence)}

        yield from many(runs * scale, made, f"{question.name}, {people} people at each of {', '.join(levels)}")

    return case


def drawn(random: Random, chances: list[float], n: int) -> list[int]:
    uniform = (random.words(n) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return [int(each) for each in np.searchsorted(np.cumsum(chances)[:-1], uniform, side="right")]


def of_words(epsilon: str, shares: dict[str, float], people: int, runs: int = 20) -> Case:
    """The counts of the words that are looked up in another group; and of those that stood out in this one."""

    def case(random: Random, scale: int) -> Any:
        channel = channel_of(Word("city", "Where?", length=4), Fraction(epsilon))
        words = [word for word, share in shares.items() for _ in range(int(share * people))]
        truth = {word: words.count(word) for word in shares}
        words += [f"{place % 9999:04d}" for place in range(people - len(words))]

        def made() -> dict[str, Any]:
            counts = counts_of(channel, words, random)
            listed = [*shares, "zzzz"]
            looked = channel.look_up(counts, listed).estimate
            off = np.abs(looked.counts - [truth.get(word, 0) for word in listed])
            return {"looked up": (off[[0, -1]], lambda c: looked.margin(c)[[0, -1]])}

        yield from many(runs * scale, made, f"words, {people} people at {epsilon}")

    return case


# ── several attributes ───────────────────────────────────────────────────────────────────────────


def of_several(how: Any, people: int, epsilon: str, runs: int = 300) -> Case:
    def case(random: Random, scale: int) -> Any:
        domains = {"a": range(3), "b": range(5), "c": range(2)}
        table = {"a": [0] * people, "b": [place % 2 for place in range(people)], "c": [1] * people}
        truths = {"a": [people, 0], "b": [(people + 1) // 2, 0], "c": [0, people]}
        picks = {"a": [0, 2], "b": [0, 4], "c": [0, 1]}
        protocol = local.FakeData(domains, epsilon) if how == "fake" else local.SeveralAttributes(domains, epsilon, how=how)

        def made() -> dict[str, Any]:
            estimates = protocol.estimate(protocol.aggregate(protocol.randomize(table, random=random)))
            out: dict[str, Any] = {}
            for name, estimate in estimates.items():
                for what, told in ((name, estimate), (f"{name} consistent", estimate.consistent())):
                    out[what] = (
                        np.abs(told.counts[picks[name]] - truths[name]),
                        lambda c, told=told, name=name: told.margin(c)[picks[name]],
                    )
            return out

        yield from many(runs * scale, made, f"{how}, {people} people, ε = {epsilon}")

    return case


def of_marginals(people: int, epsilon: str, runs: int = 150) -> Case:
    def case(random: Random, scale: int) -> Any:
        marginals = local.Marginals({"a": range(2), "b": range(3), "c": range(2)}, epsilon)
        table = {"a": [0] * people, "b": [place % 2 for place in range(people)], "c": [place % 3 == 0 for place in range(people)]}
        table["c"] = [int(each) for each in table["c"]]
        truth = np.zeros((3, 2))
        for b, c in zip(table["b"], table["c"], strict=True):
            truth[b, c] += 1

        def made() -> dict[str, Any]:
            raw = marginals.estimate(marginals.aggregate(marginals.randomize(table, random=random)))
            out: dict[str, Any] = {}
            for what, told in (("raw", raw), ("consistent", raw.consistent())):
                off = np.abs(told.of("b", "c") - truth)
                out[what] = (
                    off[[0, 2], [0, 1]],
                    lambda c, told=told: told.margin("b", "c", confidence=c)[[0, 2], [0, 1]],
                )
            return out

        yield from many(runs * scale, made, f"marginals, {people} people, ε = {epsilon}")

    return case


def of_moments(people: int, epsilon: str, mechanism: Any, dimensions: int, runs: int = 300) -> Case:
    """Of several numbers a person tells of some."""

    def case(random: Random, scale: int) -> Any:
        protocol = mechanism(0, 10, epsilon, dimensions=dimensions)
        rows = np.stack([10 * ((np.arange(people) + 0.5) / people) ** (1 + d) for d in range(dimensions)], axis=1)

        def made() -> dict[str, Any]:
            means = protocol.mean(protocol.randomize(rows, random=random))
            off = np.nan_to_num(np.abs(means.value - rows.mean(axis=0)))
            return {"means": (off, means.margin)}

        yield from many(runs * scale, made, f"{mechanism.__name__}, {dimensions} numbers, {people} people, ε = {epsilon}")

    return case


def of_spread(people: int, epsilon: str, mechanism: Any, values: Any, runs: int = 300) -> Case:
    def case(random: Random, scale: int) -> Any:
        protocol = mechanism(0, 10, epsilon)
        given = np.resize(np.asarray(values, dtype=float), people)

        def made() -> dict[str, Any]:
            told = protocol.spread(protocol.randomize(given, random=random))
            return {"variance": (abs(told.value - given.var()), told.margin)}

        yield from many(runs * scale, made, f"{mechanism.__name__}, {people} people, ε = {epsilon}, {values[:3]}")

    return case


def of_circle(people: int, epsilon: str, values: Any, truth: float, runs: int = 300) -> Case:
    def case(random: Random, scale: int) -> Any:
        protocol = local.CircularPiecewise(0, 24, epsilon)
        given = np.resize(np.asarray(values, dtype=float), people)

        def made() -> dict[str, Any]:
            told = protocol.mean(protocol.randomize(given, random=random))
            off = abs(told.value - truth)
            return {"direction": (min(off, 24 - off), told.margin)}

        yield from many(runs * scale, made, f"circle, {people} people, ε = {epsilon}, {values[:3]}")

    return case


def of_distribution(people: int, epsilon: str, mechanism: Any, runs: int = 20) -> Case:
    def case(random: Random, scale: int) -> Any:
        protocol = mechanism(0, 10, epsilon, grid=32)
        given = 10 * ((np.arange(people) + 0.5) / people) ** 2
        truth = np.histogram(given, np.linspace(0, 10, 6))[0]

        def made() -> dict[str, Any]:
            told = protocol.distribution(protocol.randomize(given, random=random))
            bins, middle, mean = told.histogram(5), told.quantile("0.5"), told.mean
            return {
                "bins": (np.abs(bins.counts - truth)[[0, 4]], lambda c: bins.margin(c)[[0, 4]]),
                "median": (abs(middle.value - np.median(given)), middle.margin),
                "mean": (abs(mean.value - given.mean()), mean.margin),
            }

        yield from many(runs * scale, made, f"{mechanism.__name__}, {people} people, ε = {epsilon}")

    return case


def of_keys(people: int, epsilon: str, how: str, padding: int, runs: int = 300) -> Case:
    def case(random: Random, scale: int) -> Any:
        protocol = local.KeyValue(["a", "b", "c", "d"], 0, 10, epsilon, padding=padding, how=how)
        holders = max(1, people // 2)
        held: list[dict[str, float]] = [{"a": 10.0} if place < holders else {} for place in range(people)]
        if padding > 1:
            held = [{**each, "b": float(place % 11)} for place, each in enumerate(held)]
        truth = np.array([holders, people if padding > 1 else 0, 0, 0])
        exact = np.array([10.0, np.mean([place % 11 for place in range(people)])])

        def made() -> dict[str, Any]:
            told = protocol.estimate(protocol.aggregate(protocol.randomize(held, random=random)))
            out = {
                "counts": (np.abs(told.counts.counts - truth)[[0, 3]], lambda c: told.counts.margin(c)[[0, 3]]),
                "means": (abs(told.means[0] - exact[0]), lambda c: told.margin(c)[0]),
            }
            if padding > 1:
                out["means of all"] = (abs(told.means[1] - exact[1]), lambda c: told.margin(c)[1])
            return out

        yield from many(runs * scale, made, f"{how}, padding {padding}, {people} people, ε = {epsilon}")

    return case


def of_rappor(people: int, epsilon: str, method: str, listed: int, runs: int = 60, bits: int = 16, cohorts: int = 4) -> Case:
    """Two texts that are held, and others that are not."""

    def case(random: Random, scale: int) -> Any:
        rappor = local.RAPPOR.for_epsilon(epsilon, 2 * Fraction(epsilon), bits=bits, cohorts=cohorts)
        texts = [f"t{place}" for place in range(listed)]
        held = [texts[0]] * (people - people // 4) + [texts[1]] * (people // 4)
        truth = np.array([people - people // 4, people // 4, *[0] * (listed - 2)])

        def made() -> dict[str, Any]:
            told = rappor.decode(rappor.aggregate(rappor.randomize(held, random=random)), texts, method=method)
            off = np.abs(told.counts - truth)
            return {"held": (off[:2], lambda c: told.margin(c)[:2]), "none": (off[-2:], lambda c: told.margin(c)[-2:])}

        yield from many(runs * scale, made, f"RAPPOR {method}, {people} people, {listed} listed, ε = {epsilon}")

    return case


def of_heavy(people: int, epsilon: str, shares: tuple[float, ...], runs: int = 6) -> Case:
    """Strings that stood out, with what was said of their counts: all that were shown, as a reader sees them."""

    def case(random: Random, scale: int) -> Any:
        heavy = local.HeavyHitters(epsilon, length=2)
        offs: list[float] = []
        margins: dict[float, list[float]] = {}
        words = [chr(97 + place) for place, share in enumerate(shares) for _ in range(int(share * people))]
        truth = {word: words.count(word) for word in set(words)}
        words += ["" for _ in range(people - len(words))]
        truth[""] = words.count("")
        for _ in range(runs * scale):
            told = heavy.find(heavy.aggregate(heavy.randomize(words, random=random)), most=10)
            for confidence in CONFIDENCES:
                margins.setdefault(confidence, []).extend(told.margin(confidence).tolist())
            offs += [abs(count - truth.get(value, 0)) for value, count in zip(told.values, told.counts.tolist(), strict=True)]
        yield Told(f"heavy, {people} people, ε = {epsilon}", np.array(offs), lambda c: np.array(margins[c]))

    return case


# ── mining ───────────────────────────────────────────────────────────────────────────────────────


def of_itemsets(epsilon: str, delta: Any, held: tuple[int, ...], k: int, runs: int = 300) -> Case:
    """The counts of the sets that were chosen; and by how much a better one may have been missed."""

    def case(random: Random, scale: int) -> Any:
        items = [f"i{place}" for place in range(len(held))]
        baskets = [[item] for item, count in zip(items, held, strict=True) for _ in range(count)]
        mechanism = TopItemsets(items=items, k=k, epsilon=epsilon, delta=delta, max_items=2, max_size=1)
        truth = {(item,): count for item, count in zip(items, held, strict=True)}

        def made() -> dict[str, Any]:
            told = mechanism.release(baskets, random=random)
            off = np.array([abs(count - truth[items]) for items, count in zip(told.itemsets, told.counts.tolist(), strict=True)])
            left = max((count for items, count in truth.items() if items not in told.itemsets), default=0)
            missed = max(0, left - min(truth[items] for items in told.itemsets))
            return {"counts": (off, lambda c: np.full(len(off), told.margin(c))), "choice": (missed, told.choice_margin)}

        yield from many(runs * scale, made, f"itemsets, ε = {epsilon}, δ = {delta}, {held}")

    return case


YES = YesNo("yes", "Y?")
RATED = Scale("scale", "S?", list("abcde"))
TICKED = Several("several", "T?", list("abc"), most=2)
TICKS = [frozenset({0}), frozenset({0, 1}), frozenset({3})]
NUMBERS = (local.Piecewise, local.Hybrid, local.LocalLaplace, local.SquareWave, local.OptimalPiecewise)
SPREADS = ([0.0, 10.0], [2.5, 2.5], [0.0] * 9 + [10.0])


def cubes(people: int, *, some: bool) -> list[Any]:
    numbers = [10 * ((place + 0.5) / people) ** 3 for place in range(people)]
    return [None if some and place % 3 == 2 else each for place, each in enumerate(numbers)]


def amount(want: str, *, some: bool) -> Number:
    return Number("number", "N?", low=0, high=10, want=want, no_answer=some)  # type: ignore[arg-type]


def rare(people: int, random: Random) -> list[int]:
    return drawn(random, [0.02, 0.02, 0.9, 0.04, 0.01, 0.01], people)


def ends(people: int, random: Random) -> list[float]:
    return [[0.0, 10.0][place] for place in drawn(random, [0.95, 0.05], people)]


QUICK: dict[str, Case] = {
    **{f"yes or no of {n}": of_shares(YES, ([0, 1, 2] * n)[:n], LEVELS, 150) for n in (5, 20)},
    "a scale of 20": of_shares(RATED, [0, 4, 4, 5] * 5, LEVELS, 100),
    "several answers of 5": of_shares(TICKED, (TICKS * 2)[:5], ("1",), 150),
    "a mean of 5": of_amounts(amount("mean", some=True), cubes(5, some=True), LEVELS, 100),
    "bins of 100": of_amounts(amount("spread", some=False), cubes(100, some=False), ("1",), 20),
    **{f"p-values, {n}": of_p_values(RATED, rare, ("6", "8"), n, 150) for n in (5, 100)},
    "p-values of means": of_p_values(amount("mean", some=False), ends, ("8", "16"), 20, 150),
    **{f"one of several attributes, {n}": of_several("sampling", n, "3", 120) for n in (3, 40)},
    **{f"marginals of {n}": of_marginals(n, "3", 60) for n in (10, 40)},
    "several numbers": of_moments(5, "4", local.Hybrid, 3, 100),
    **{f"a variance of {n}": of_spread(n, "4", local.Piecewise, SPREADS[0], 100) for n in (1, 2, 20)},
    "a variance, Laplace": of_spread(2, "1", local.LocalLaplace, SPREADS[1], 100),
    "a direction of people nearly all around": of_circle(100, "1", [0.0, 10.0], 5.0, 1200),
    "a distribution": of_distribution(100, "1", local.SquareWave, 25),
    **{f"keys, {how}": of_keys(3, "3", how, 3, 150) for how in ("unary", "direct")},
    **{f"RAPPOR, {method}": of_rappor(40, "3", method, 5, 40) for method in ("unbiased", "nonnegative", "lasso")},
    "RAPPOR of two": of_rappor(2, "0.05", "unbiased", 3, 800),
    "keys that nearly no report tells falsely": of_keys(200, "8", "direct", 1, 120),
    "itemsets": of_itemsets("1", 0, (3,) * 6, 3, 150),
}

SLOW: dict[str, Case] = {
    **{
        f"{question.name}, {n}, {levels}": of_shares(question, (answers * n)[:n], levels)
        for question, answers in ((YES, [0, 1, 2]), (RATED, [0, 4, 4, 5]), (TICKED, TICKS))
        for n in (5, 20, 100)
        for levels in (("1",), LEVELS, ("6", "8"))
    },
    **{
        f"amounts, {want}, {n}, {some}, {levels}": of_amounts(
            amount(want, some=some), cubes(n, some=some), levels, 200 if want == "mean" else 20
        )
        for want in ("mean", "spread")
        for n in (5, 20, 100)
        for some in (True, False)
        for levels in (("1",), LEVELS, ("8", "16"))
    },
    **{
        f"p-values, {question.name}, {n}, {levels}": of_p_values(question, draw, levels, n)
        for question, draw in ((RATED, rare), (amount("mean", some=False), ends))
        for n in (2, 5, 20, 100)
        for levels in (("1", "2"), LEVELS, ("6", "8"))
    },
    **{f"words, {n}, {e}": of_words(e, {"ab": 0.5, "cd": 0.2}, n) for n in (10, 100, 1000) for e in ("1", "3")},
    **{
        f"{how}, {n}, {e}": of_several(how, n, e)
        for how in ("sampling", "splitting", "fake")
        for n in (3, 10, 40, 200)
        for e in ("1", "3", "6")
    },
    **{f"marginals, {n}, {e}": of_marginals(n, e) for n in (3, 10, 40, 200) for e in ("1", "3", "6")},
    **{
        f"{kind.__name__} of several, {n}, {e}": of_moments(n, e, kind, 3)
        for kind in (local.Duchi, *NUMBERS[:3])
        for n in (1, 2, 5, 20, 100)
        for e in ("1", "4")
    },
    **{
        f"variance, {kind.__name__}, {n}, {e}, {place}": of_spread(n, e, kind, values, 100)
        for kind in NUMBERS
        for n in (1, 2, 5, 20, 100)
        for e in ("1", "4")
        for place, values in enumerate(SPREADS)
    },
    **{
        f"circle, {n}, {e}, {apart}": of_circle(n, e, [0.0, 2.0 * apart], apart)
        for n in (1, 2, 20, 100, 1000)
        for e in ("1", "4")
        for apart in (1.0, 3.0, 5.0)
    },
    **{
        f"distribution, {kind.__name__}, {n}, {e}": of_distribution(n, e, kind, 10)
        for kind in (local.SquareWave, local.Piecewise, local.OptimalPiecewise)
        for n in (3, 20, 100, 2000)
        for e in ("1", "4")
    },
    **{
        f"keys, {how}, {padding}, {n}, {e}": of_keys(n, e, how, padding, 100)
        for how in ("unary", "direct")
        for padding in (1, 3)
        for n in (3, 10, 40, 200)
        for e in ("1", "4")
    },
    **{
        f"RAPPOR, {method}, {n}, {e}, {listed}": of_rappor(n, e, method, listed, 10)
        for method, listed in (("unbiased", 5), ("nonnegative", 5), ("lasso", 5), ("lasso", 100))
        for n in (2, 3, 10, 40, 200, 1000)
        for e in ("1", "3", "8")
    },
    **{f"heavy, {n}": of_heavy(n, "4", (0.3, 0.2, 0.02, 0.02, 0.02), 2) for n in (2000, 20_000)},
    **{
        f"itemsets, {e}, {delta}, {held}": of_itemsets(e, delta, held, 3, 60)
        for e in ("1", "4")
        for delta in (0, "1e-6")
        for held in ((30, 29, 10, 0, 0, 1), (3,) * 6)
    },
}


@pytest.mark.parametrize("name", QUICK)
def test_margins_cover_as_often_as_they_say(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for told in QUICK[name](Random.deterministic(33), 1):
            check(told)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # some make thousands of estimates, on machines that do other things besides
@pytest.mark.parametrize("name", SLOW)
def test_margins_cover_as_often_as_they_say_everywhere(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for told in SLOW[name](Random.deterministic(34), 5):
            check(told)
