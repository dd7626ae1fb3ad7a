"""Every broken twin is caught, its mended counterpart is not, and what the docs page of mistakes tells of them is right."""

from __future__ import annotations

import ast
import math
import re
from functools import lru_cache
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from cloister.attacks import AuditResult, ChannelAudit
from cloister.attacks.broken import TWINS, ChannelTwin, Twin, found_epsilon, local, looked_up, sensitivity, twin, useless
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.privacy.gaussian import epsilon_of_gaussian
from tests.tiers import some_by_day

NAMES = [each.name for each in TWINS]
BY_DAY = {NAMES[0], NAMES[-1], *(name for name in NAMES if crc32(name.encode()) % 3 == 0)}
NAMED = some_by_day("name", NAMES, BY_DAY.__contains__)
"""By day a third, of the same names in each test: their audits are shared."""
ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "cloister"
PAGE = ROOT / "docs" / "explanation" / "mistakes.md"
NUMBERS = re.compile(r"^\*Claimed: (.+?)\. Found: ε (≥|=) ([\d.]+|∞)\. True: (.+?)\.\*$", re.MULTILINE)


@lru_cache
def found_of(name: str) -> AuditResult | ChannelAudit:
    """One audit of each broken twin, for the tests that speak of it."""
    return twin(name).audit(random=Random.deterministic(1))


@NAMED
def test_the_broken_twin_is_caught(name: str) -> None:
    """The claim is refuted with confidence 1 − 10⁻⁹, and what is found is no more than what is true."""
    broken = twin(name)
    found = found_of(name)
    assert found.contradicts(broken.claims)
    assert found_epsilon(broken, found) <= broken.truth * (1 + 1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_the_mended_twin_is_not(name: str) -> None:
    mended = twin(name)
    found = mended.audit_mended(random=Random.deterministic(2))
    assert not found.contradicts(mended.keeps or mended.claims)


def test_what_is_true_of_the_classical_gaussian_is_so_by_its_whole_law() -> None:
    """And not by the event of losing more than the ε that was claimed: at δ, that event alone shows 10.24."""
    broken = twin("the classical Gaussian beyond ε = 1")
    least = float(epsilon_of_gaussian(str(100 / (2 * math.log(125_000))), "1e-5"))
    assert broken.truth == pytest.approx(least, abs=1e-3)
    assert found_epsilon(broken, found_of(broken.name)) == pytest.approx(least)


def entry(name: str) -> str:
    """The paragraphs of one twin, from its bold name to the next."""
    paragraphs = rf"^\*\*{re.escape(name)}\.\*\*.*?(?=^\*\*|^## |\Z)"
    found = re.search(paragraphs, PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL | re.IGNORECASE)
    assert found, f"add a paragraph to docs/explanation/mistakes.md:\n\n{expected(twin(name))}"
    return found.group()


def expected(each: Twin | ChannelTwin) -> str:
    """What the page should say."""
    found = found_epsilon(each, found_of(each.name))
    exact = isinstance(each, ChannelTwin)
    shown = f"= {found:.4g}" if exact else f"≥ {math.floor(found * 10) / 10}"
    true = "no ε at all" if math.isinf(each.truth) else f"ε = {each.truth:.4g}"
    title = each.name[0].upper() + each.name[1:]
    return f"**{title}.** {each.mistake} {each.reason}\n\n*Claimed: {each.claims}. Found: ε {shown}. True: {true}.*\n"


@NAMED
def test_the_page_tells_of_each_twin(name: str) -> None:
    each, said = twin(name), entry(name)
    assert f"{each.mistake} {each.reason}" in said, expected(each)
    numbers = NUMBERS.search(said)
    assert numbers, expected(each)
    assert numbers[1] == str(each.claims)
    assert numbers[2] == ("=" if isinstance(each, ChannelTwin) else "≥")
    found = found_epsilon(each, found_of(name))
    assert found - 0.15 <= float(numbers[3]) <= found * 1.0005, expected(each)
    assert numbers[4] == ("no ε at all" if math.isinf(each.truth) else f"ε = {each.truth:.4g}")


def test_the_page_tells_of_nothing_else() -> None:
    assert len(NUMBERS.findall(PAGE.read_text(encoding="utf-8"))) == len(TWINS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_no_twin_is_caught_by_luck(seed: int) -> None:
    for each in TWINS:
        assert each.audit(random=Random.deterministic(seed)).contradicts(each.claims), each.name
        assert not each.audit_mended(random=Random.deterministic(seed)).contradicts(each.keeps or each.claims), each.name


def test_twins_have_names_of_their_own_and_say_what_is_wrong() -> None:
    assert len(set(NAMES)) == len(NAMES)
    for each in TWINS:
        assert each.mistake.endswith((".", ")"))
        assert each.reason.endswith((".", ")"))
        assert each.truth > float(getattr(each.claims, "epsilon", 0))
        assert isinstance(each, Twin | ChannelTwin)
    with pytest.raises(InvalidParameter, match="none of this name"):
        twin("an honest mechanism")


def test_nothing_but_the_command_that_shows_it_uses_what_is_broken() -> None:
    users = set()
    for path in SOURCES.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "broken" in path.relative_to(SOURCES).parts or "broken" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(each.name for each in node.names)]
            else:
                names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            users |= {path.relative_to(SOURCES).as_posix() for each in names if "broken" in each.split(".")}
    assert users == {"cli/audited.py"}


def test_the_numbers_of_the_naive_bayes_variance() -> None:
    values = [0.0] * 10
    assert np.var([*values, 82.0]) - np.var(values) == pytest.approx(555.7, abs=0.05)
    assert pytest.approx(74.5, abs=0.05) == 10 * 82 / 11
    worst = max(np.var([0.0] * n + [82.0]) - np.var([0.0] * n) for n in range(1, 50))
    assert worst <= 82**2 / 4  # what the mended one adds noise for


def test_a_centred_scatter_moves_by_four_n_over_n_plus_one() -> None:
    left, right = (np.asarray(each) for each in (sensitivity.CENTRED_SCATTER.left, sensitivity.CENTRED_SCATTER.right))
    n = len(left)
    moved = np.square(right - right.mean()).sum() - np.square(left - left.mean()).sum()
    assert moved == pytest.approx(4 * n / (n + 1))
    assert sensitivity.CENTRED_SCATTER.truth == pytest.approx(moved)


def test_the_support_of_the_pure_wishart_moves() -> None:
    """W₁(2, 3/2ε) is exponential with mean 3/ε; outputs within 1 of its end are impossible in the neighbour."""
    assert 1 - math.exp(-1 / 3) == pytest.approx(0.28, abs=0.005)


@pytest.mark.parametrize(("dimensions", "published"), [(2, 8.16), (4, 5.98), (6, 5.19)])
def test_ties_of_duchi(dimensions: int, published: float) -> None:
    def ratio(ties: str) -> float:
        rows: np.ndarray = np.array(local.duchi_channel(dimensions, ties=ties))
        return float((rows.max(axis=0) / rows.min(axis=0)).max())

    assert ratio("one") == pytest.approx(published, abs=0.01)
    assert ratio("both") == pytest.approx(1 + math.e)
    assert ratio("half") == pytest.approx(math.e)


@pytest.mark.parametrize("dimensions", [2, 4])
def test_ties_that_are_shared_leave_the_mean_without_bias(dimensions: int) -> None:
    """With half of each tie, B = C_d·(e + 1)/(e − 1) with C_d = 2^(d−1)/binom(d−1, d/2)."""
    corners = np.array([[1 if place >> i & 1 else -1 for i in range(dimensions)] for place in range(2**dimensions)])
    order = np.array(sorted(corners.tolist()))
    rows: np.ndarray = np.array(local.duchi_channel(dimensions, ties="half"))
    reach = 2 ** (dimensions - 1) / math.comb(dimensions - 1, dimensions // 2) * (math.e + 1) / (math.e - 1)
    assert reach * rows @ order == pytest.approx(order)


def test_sampling_and_a_fixed_generalisation_keep_what_is_claimed() -> None:
    """δ of Li, Qardaji & Su (2012), Theorem 5: the largest P[Bin(n, β) > γn] over n with γn large enough for a class of k."""
    keep, k = looked_up._SAMPLED, looked_up._CLASS
    gamma = (math.e - 1 + keep) / math.e
    assert -math.log(1 - keep) <= 1
    delta = max(
        sum(math.comb(n, j) for j in range(math.floor(gamma * n) + 1, n + 1)) * keep**n
        for n in range(math.ceil(k / gamma - 1), 200)
    )
    assert delta <= float(looked_up.ANONYMISATION_BY_LOOKING.claims.delta)


def test_the_numbers_of_what_is_wrong_without_leaking() -> None:
    noise = [2 / 0.1**2, 2 / 0.2**2]
    assert useless.unweighted_average_variance(noise) == pytest.approx(62.5)
    assert useless.weighted_average_variance(noise) == pytest.approx(40)
    assert pytest.approx(22.2, abs=0.03) == 2 / 0.3**2
    assert useless.threshold_encoding_p_published(0.25, 5) == pytest.approx(-2.26, abs=0.005)
    assert useless.threshold_encoding_p(0.25, 5) == pytest.approx(0.923, abs=0.0005)
    assert useless.piecewise_by_coin_mean(0.5, 1) == pytest.approx(1.03, abs=0.005)
    assert useless.exponential_mechanism([50, 20, 30], 0.5) == pytest.approx([0.993, 0.0005, 0.0067], abs=0.0005)


@pytest.mark.statistical
def test_the_coin_biases_piecewise_as_computed() -> None:
    n = 200_000
    broken = local.PIECEWISE_BY_COIN.broken(0.5, n, Random.deterministic(1)).mean()
    mended = local.PIECEWISE_BY_COIN.mended(0.5, n, Random.deterministic(1)).mean()
    error = 5 * local._REACH / math.sqrt(n)
    assert broken == pytest.approx(useless.piecewise_by_coin_mean(0.5, 1), abs=error)
    assert mended == pytest.approx(0.5, abs=error)
