"""Marginals by least squares against least squares written out; shares against other shares; noises put together against all of
them; whole numbers that add up; ranges against asking one by one."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from cloister.errors import InvalidParameter
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.privacy import ZCDP, PureDP
from cloister.session.releases.uncertainty import Term, half_width, variance
from cloister.session.workloads.marginal_shares import alike, best_shares, total_variance
from cloister.session.workloads.marginal_terms import gathered
from cloister.session.workloads.marginals import cell_variances, cells, consistent, copies_of, precision, subsets, union
from cloister.session.workloads.ranges import range_plan
from cloister.session.workloads.workload import rounded

SIZES = (2, 16, 5)
ROLLUP = [(), (0,), (0, 1), (0, 1, 2)]
CUBE = list(subsets((0, 1, 2)))


def queries(sizes, axes):
    """The matrix of a marginal over the finest table."""
    return reduce(np.kron, [np.eye(n) if axis in axes else np.ones((1, n)) for axis, n in enumerate(sizes)], np.ones((1, 1)))


def _evenly(wanted):
    """What would be spent on each if they were asked one by one."""
    return {axes: Fraction(1, len(set(wanted))) for axes in dict.fromkeys(wanted)}


def noises_in(sizes, axes, laws):
    """All noises in a cell."""
    noise = {measured: variance(terms) for measured, terms in laws.items()}
    return copies_of(sizes, axes, laws, {effect: precision(sizes, noise, effect) for effect in subsets(axes)})


def shape(sizes, axes):
    return tuple(sizes[axis] for axis in axes)


def made(sizes, scales, seed=1, law=DiscreteGaussian):
    """A table of counts, and each marginal of it with noise of its scale."""
    random = np.random.default_rng(seed)
    table = random.integers(0, 1000, size=sizes)
    readings = {}
    for axes, scale in scales.items():
        sums = table.sum(axis=tuple(axis for axis in range(len(sizes)) if axis not in axes))
        noise = law(scale=scale)
        readings[axes] = (sums + np.rint(random.normal(0, float(scale), np.shape(sums))).astype(int), (Term(1.0, noise),))
    return table, readings


@st.composite
def problems(draw):
    """Axes, measured marginals with scales, and wanted ones that follow from them."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    family = list(subsets(tuple(range(len(sizes)))))
    measured = draw(st.lists(st.sampled_from(family), min_size=1, unique=True))
    covered = sorted({part for axes in measured for part in subsets(axes)})
    wanted = draw(st.lists(st.sampled_from(covered), min_size=1, unique=True))
    scales = {axes: draw(st.integers(1, 40)) for axes in measured}
    return sizes, scales, wanted


@given(problems(), st.integers(0, 100))
@settings(max_examples=150, deadline=None)
def test_estimates_and_variances_are_those_of_least_squares(problem, seed):
    sizes, scales, wanted = problem
    _, readings = made(sizes, scales, seed)
    deviations = {axes: math.sqrt(variance(terms)) for axes, (_, terms) in readings.items()}
    rows = np.concatenate([queries(sizes, axes) / deviations[axes] for axes in readings])
    answers = np.concatenate([np.ravel(values) / deviations[axes] for axes, (values, _) in readings.items()])
    cells_found = np.linalg.lstsq(rows, answers, rcond=None)[0]
    spread = np.linalg.pinv(rows)
    found = consistent(sizes, readings, wanted)
    said = cell_variances(sizes, {axes: deviation**2 for axes, deviation in deviations.items()}, wanted)
    for axes in wanted:
        table, terms = found[axes]
        np.testing.assert_allclose(table.ravel(), queries(sizes, axes) @ cells_found, rtol=1e-9, atol=1e-8)
        each = ((queries(sizes, axes) @ spread) ** 2).sum(axis=1)
        np.testing.assert_allclose(each, said[axes], rtol=1e-9)
        assert variance(terms) == pytest.approx(said[axes], rel=1e-9)


@given(problems())
@settings(max_examples=100, deadline=None)
def test_weights_and_their_numbers_are_those_of_least_squares(problem):
    sizes, scales, wanted = problem
    _, readings = made(sizes, scales)
    noise = {axes: variance(terms) for axes, (_, terms) in readings.items()}
    rows = np.concatenate([queries(sizes, axes) / math.sqrt(noise[axes]) for axes in readings])
    deviations = np.concatenate([np.full(cells(sizes, axes), math.sqrt(noise[axes])) for axes in readings])
    for axes in wanted:
        exact = (queries(sizes, axes) @ np.linalg.pinv(rows))[0] / deviations
        copies = noises_in(sizes, axes, {each: terms for each, (_, terms) in readings.items()})
        listed = np.concatenate([[], *[np.full(each.number, each.term.weight) for each in copies]])
        listed = np.concatenate([listed, np.zeros(len(exact) - len(listed))]) if len(listed) <= len(exact) else listed
        np.testing.assert_allclose(np.sort(listed), np.sort(exact), atol=1e-9)


def test_what_comes_back_adds_up_and_is_unbiased():
    scales = {(0, 1, 2): 30, (0,): 20, (1, 2): 25}
    table, readings = made(SIZES, scales)
    found = consistent(SIZES, readings, CUBE)
    finest = found[(0, 1, 2)][0]
    for axes in CUBE:
        np.testing.assert_allclose(found[axes][0], finest.sum(axis=tuple(a for a in range(3) if a not in axes)), rtol=1e-9)
    exact = {axes: (table.sum(axis=tuple(a for a in range(3) if a not in axes)), readings[axes][1]) for axes in scales}
    for axes, (values, _) in consistent(SIZES, exact, CUBE).items():
        np.testing.assert_allclose(values, table.sum(axis=tuple(a for a in range(3) if a not in axes)), rtol=1e-9)


def test_margins_cover_as_often_as_they_say():
    random, noise = Random.deterministic(5), DiscreteLaplace(scale=20)
    covered, rounds = dict.fromkeys(ROLLUP, 0), 400
    truth = np.zeros((2, 3, 2), dtype=np.int64)
    for _ in range(rounds):
        readings = {
            axes: (
                noise.release(np.zeros(cells(truth.shape, axes), dtype=np.int64), random=random).reshape(
                    shape(truth.shape, axes)
                ),
                (Term(1.0, noise),),
            )
            for axes in ((), (0, 1, 2))
        }
        for axes, (table, terms) in consistent(truth.shape, readings, ROLLUP).items():
            covered[axes] += bool(abs(table.flat[0]) <= half_width(terms, 0.9))
    for count in covered.values():  # 5 standard deviations of a binomial: false alarm below 1e-6
        assert abs(count - 0.9 * rounds) <= 5 * math.sqrt(0.09 * rounds)


def test_what_is_not_measured_is_refused():
    _, readings = made(SIZES, {(0,): 10, (1,): 10})
    with pytest.raises(InvalidParameter, match="keeps the axes"):
        consistent(SIZES, readings, [(0, 1)])
    with pytest.raises(InvalidParameter, match="shape"):
        consistent(SIZES, {(0,): (np.zeros(3), (Term(1.0, DiscreteGaussian(scale=1)),))}, [()])
    for wrong in ([(1, 0)], [(0, 0)], [(3,)], []):
        with pytest.raises(InvalidParameter, match="wanted"):
            cell_variances(SIZES, {(0, 1, 2): 1.0}, wrong)
    with pytest.raises(InvalidParameter, match="sizes"):
        cell_variances((2, 0), {(0,): 1.0}, [()])


def exact_half_widths(copies, levels):
    """The margins of the sum of all noises, from the product of their characteristic functions."""
    deviation = math.sqrt(sum(each.term.variance * each.number for each in copies))
    number, step = 1 << 18, 160 * deviation / (1 << 18)
    frequency = 2 * np.pi * np.fft.fftfreq(number, step)
    log = np.zeros(number)
    for each in copies:
        square = (each.term.spread * frequency) ** 2
        log -= each.number * (np.log1p(square) if isinstance(each.term.noise, DiscreteLaplace) else square / 2)
    density = np.maximum(np.fft.ifft(np.exp(log)).real, 0)[: number // 2]
    density[0] /= 2
    beyond = 1 - (np.cumsum(density) - density / 2) / density.sum()
    return [
        float(np.interp(math.log(1 - level), np.log(beyond[::-1] + 1e-300), np.arange(number // 2)[::-1])) * step
        for level in levels
    ]


MEASURED = [
    {(0, 1, 2): 200},
    {(0, 1, 2): 200, (): 2000},
    {(0, 1, 2): 200, (0,): 800},
    {(0, 1, 2): 200, (0, 1): 400, (0,): 400, (): 400},
    {(0, 1): 300, (1, 2): 300, (0, 2): 300},
]


@pytest.mark.parametrize("scales", MEASURED)
@pytest.mark.parametrize("law", [DiscreteLaplace, DiscreteGaussian])
def test_noises_put_together_have_the_margin_of_all(scales, law):
    levels = {0.5: 1.02, 0.8: 1.01, 0.95: 1.01, 0.999: 1.01, 0.999999: 1.025}
    _, readings = made(SIZES, scales, law=law)
    laws = {axes: terms for axes, (_, terms) in readings.items()}
    for axes in sorted({part for kept in scales for part in subsets(kept)}):
        copies = noises_in(SIZES, axes, laws)
        terms = gathered(copies)
        assert len(terms) <= 17
        slack = 0.5 if len(copies) == 1 and copies[0].number == 1 else 0.0  # the exact margin of one noise is a whole number
        for (level, most), exact in zip(levels.items(), exact_half_widths(copies, list(levels)), strict=True):
            assert exact * 0.999 - slack <= half_width(terms, level) <= exact * most + slack


def test_small_scales_keep_their_steps():
    one = Term(1.0, DiscreteLaplace(scale=Fraction(1, 2)))
    assert gathered(noises_in((3,), (0,), {(0,): (one,)})) == (one,)
    assert gathered(noises_in((3,), (), {(0,): (one,)})) == (one, one, one)


def objective(sizes, wanted, measure, candidates, point, weights):
    shares = {axes: Fraction(float(share)) for axes, share in zip(candidates, point, strict=True) if share > 0}
    try:
        return total_variance(sizes, wanted, measure, shares, weights=weights)
    except InvalidParameter:
        return math.inf


FAMILIES = [ROLLUP, CUBE, [(0,), (1,), (2,)], [(0, 1), (1, 2)], [(1,)], [(), (0, 1, 2)]]


@pytest.mark.parametrize("wanted", FAMILIES)
@pytest.mark.parametrize("measure", ["pure", "zcdp"])
@pytest.mark.parametrize("even", [False, True])
def test_no_other_shares_are_better(wanted, measure, even):
    sizes = (2, 6, 3)
    weights = alike(sizes, wanted) if even else None
    best = best_shares(sizes, wanted, measure, weights=weights)
    least = total_variance(sizes, wanted, measure, best, weights=weights)
    assert sum(best.values()) == 1
    assert least <= total_variance(sizes, wanted, measure, _evenly(wanted), weights=weights) * (1 + 1e-12)
    candidates = list(subsets(union(wanted)))
    random = np.random.default_rng(3)
    for concentration in (0.05, 0.3, 1.0):
        for point in random.dirichlet(np.full(len(candidates), concentration), size=150):
            assert least <= objective(sizes, wanted, measure, candidates, point, weights) * (1 + 2e-4)
    for start in random.dirichlet(np.ones(len(candidates)), size=4):
        found = optimize.minimize(
            lambda z: math.log(objective(sizes, wanted, measure, candidates, z**2 / (z**2).sum() + 1e-12, weights)),
            np.sqrt(start),
        )
        assert least <= math.exp(found.fun) * (1 + 3e-4)


@pytest.mark.parametrize("wanted", FAMILIES)
@pytest.mark.parametrize("even", [False, True])
def test_gaussian_shares_reach_the_closed_form_where_it_is_of_marginals(wanted, even):
    """(Σ √(a_T d_T / N))² bounds every strategy of effects from below; it is reached where its λ_T, as sums over the marginals
    that hold T, need no negative share."""
    weights = alike(SIZES, wanted) if even else dict.fromkeys(wanted, 1.0)
    number, effects = cells(SIZES, range(3)), list(subsets((0, 1, 2)))
    dimension = {effect: math.prod(SIZES[axis] - 1 for axis in effect) for effect in effects}
    # the variance of θ_T's share of each wanted table, in units of 1/λ_T, where λ_T is the eigenvalue on the effect's space
    asked = {
        effect: sum(
            weights[axes] * dimension[effect] * number / cells(SIZES, axes) for axes in wanted if set(effect) <= set(axes)
        )
        for effect in effects
    }
    bound = sum(math.sqrt(asked[effect] * dimension[effect] / number) for effect in effects) ** 2
    ideal = {effect: math.sqrt(asked[effect] / dimension[effect]) for effect in effects}
    shares = {
        axes: cells(SIZES, axes)
        * sum((-1) ** (len(effect) - len(axes)) * ideal[effect] for effect in effects if set(axes) <= set(effect))
        for axes in effects
    }
    least = total_variance(SIZES, wanted, "zcdp", best_shares(SIZES, wanted, "zcdp", weights=weights), weights=weights)
    assert least >= bound * (1 - 1e-9)
    if min(shares.values()) >= -1e-12:
        assert least == pytest.approx(bound, rel=2e-4)


@given(
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    picks=st.lists(st.integers(0, 15), min_size=1, max_size=6, unique=True),
    measure=st.sampled_from(["pure", "approx", "zcdp"]),
)
@settings(max_examples=40, deadline=None)
def test_never_worse_than_splitting_evenly(sizes, picks, measure):
    family = list(subsets(tuple(range(len(sizes)))))
    wanted = sorted({family[pick % len(family)] for pick in picks})
    for weights in (None, alike(sizes, wanted)):
        best = best_shares(sizes, wanted, measure, weights=weights)
        assert sum(best.values()) == 1
        assert all(share > 0 for share in best.values())
        least = total_variance(sizes, wanted, measure, best, weights=weights)
        assert least <= total_variance(sizes, wanted, measure, _evenly(wanted), weights=weights) * (1 + 1e-12)


def test_alike_makes_every_table_of_a_rollup_and_a_cube_better_than_one_by_one():
    for wanted in (ROLLUP, CUBE):
        for measure, power in (("pure", 2), ("zcdp", 1)):
            best = best_shares(SIZES, wanted, measure, weights=alike(SIZES, wanted))
            found = cell_variances(SIZES, {axes: 1 / float(share) ** power for axes, share in best.items()}, wanted)
            assert max(found.values()) < len(wanted) ** power


def test_sensitivities_say_what_may_be_measured_and_what_it_costs():
    assert set(best_shares((2, 3), [(0,)], "pure", sensitivities={(0, 1): 1})) == {(0, 1)}
    cheap = best_shares((2, 3), [(0,), (1,)], "zcdp", sensitivities={(0,): 1, (1,): 5})
    assert cheap[(1,)] > Fraction(4, 5)
    with pytest.raises(InvalidParameter, match="sensitivities"):
        best_shares((2, 3), [(0, 1)], "pure", sensitivities={(0,): 1})
    with pytest.raises(InvalidParameter, match="sensitivities"):
        best_shares((2, 3), [(0, 1)], "pure", sensitivities={})


def test_many_axes_still_find_shares():
    sizes = (2, 16, 5, 9, 3, 4, 7, 2)
    wanted = [(0, 1), (1, 2), (3, 4), (4, 5), (5, 6, 7), ()]
    for measure in ("pure", "zcdp"):
        best = best_shares(sizes, wanted, measure)
        assert sum(best.values()) == 1
        assert total_variance(sizes, wanted, measure, best) <= total_variance(sizes, wanted, measure, _evenly(wanted))


class TestRounding:
    @given(problems(), st.integers(0, 100))
    @settings(max_examples=100, deadline=None)
    def test_whole_numbers_add_up(self, problem, seed):
        sizes, scales, wanted = problem
        _, readings = made(sizes, scales, seed)
        tables = {axes: table for axes, (table, _) in consistent(sizes, readings, wanted).items()}
        whole = rounded(sizes, tables)
        for axes, table in whole.items():
            assert table.dtype.kind == "i"
            assert table.shape == shape(sizes, axes)
            for fewer in whole:
                if set(fewer) <= set(axes):
                    assert (table.sum(axis=tuple(i for i, a in enumerate(axes) if a not in fewer)) == whole[fewer]).all()

    def test_a_rollup_moves_no_cell_by_more_than_one(self):
        for seed in range(20):
            _, readings = made(SIZES, {(0, 1, 2): 50, (0,): 20}, seed)
            tables = {axes: table for axes, (table, _) in consistent(SIZES, readings, ROLLUP).items()}
            for axes, table in rounded(SIZES, tables).items():
                assert np.abs(table - tables[axes]).max() <= 1 + 1e-9

    def test_a_cube_moves_its_cells_by_little(self):
        squares = {axes: [] for axes in CUBE}
        for seed in range(20):
            _, readings = made(SIZES, {(0, 1, 2): 50, (0,): 20}, seed)
            tables = {axes: table for axes, (table, _) in consistent(SIZES, readings, CUBE).items()}
            for axes, table in rounded(SIZES, tables).items():
                assert np.abs(table - tables[axes]).max() <= 2
                squares[axes].append(np.mean((table - tables[axes]) ** 2))
        assert max(np.sqrt(np.mean(each)) for each in squares.values()) <= 0.65

    def test_whole_numbers_stay_as_they_are(self):
        table = np.arange(12.0).reshape(3, 4) * 2**45
        tables = {(): table.sum(), (0,): table.sum(axis=1), (0, 1): table}
        assert (rounded((3, 4), tables)[(0, 1)] == table).all()

    def test_numbers_beyond_64_bits_keep_adding_up(self):
        table = np.array([2.0**70, 3.0, 0.5])
        whole = rounded((3,), {(0,): table, (): table.sum()})
        assert whole[()] == sum(whole[(0,)].tolist())

    def test_too_many_cells_are_refused(self):
        with pytest.raises(InvalidParameter, match="not rounded"):
            rounded((4000, 4000), {(0,): np.zeros(4000), (1,): np.zeros(4000)})


class TestRanges:
    @pytest.mark.parametrize("pure", [True, False])
    def test_together_is_never_worse_than_one_by_one(self, pure):
        random = np.random.default_rng(2)
        for number in (1, 2, 5, 12):
            ends = [sorted(random.choice(75, size=2, replace=False).tolist()) for _ in range(number)]
            plan = range_plan(74, [tuple(pair) for pair in ends], pure=pure)
            assert plan.gain >= 0.99

    @pytest.mark.parametrize("pure", [True, False])
    def test_the_said_variances_are_those_of_least_squares(self, pure):
        plan = range_plan(40, [(0, 10), (5, 25), (20, 40), (0, 40)], pure=pure)
        asked = plan.mechanism(PureDP(1) if pure else ZCDP(1))
        rows = plan.strategy.factors[0].apply(np.eye(len(plan.atoms)))
        weights = plan.workload.products[0][0].dense() @ np.linalg.pinv(rows)
        np.testing.assert_allclose((weights**2).sum(axis=1) * asked.noise.variance, plan.variances, rtol=1e-6)

    def test_answers_are_about_the_cells(self):
        counts = np.arange(20) * 1000
        ranges = [(0, 4), (2, 9), (15, 20)]
        plan = range_plan(20, ranges, pure=True)
        places = plan.place(np.arange(20))
        atoms = np.bincount(places[places >= 0], weights=counts[places >= 0], minlength=len(plan.atoms)).astype(np.int64)
        answers = plan.mechanism(PureDP(100)).release(atoms, random=Random.deterministic(1))
        np.testing.assert_allclose(answers, [counts[start:stop].sum() for start, stop in ranges], atol=2)

    def test_wrong_ranges_are_refused(self):
        for wrong in ([], [(3, 3)], [(-1, 4)], [(0, 11)], [(0, 1, 2)], [(0, 2.0)]):
            with pytest.raises(InvalidParameter, match="ranges"):
                range_plan(10, wrong, pure=True)
        with pytest.raises(InvalidParameter, match="other kind"):
            range_plan(10, [(0, 5)], pure=True).mechanism(ZCDP(1))
