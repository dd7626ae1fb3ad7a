"""Floor 1, the calculus: what a promise is.

Here live guarantees, their conversions and composition, sensitivities, filters and accountants: pure mathematics on exact
numbers. No table, file, clock or randomness may enter, and nothing from a floor above.

Start with `guarantee` (the three kinds of promise), then `conversion` (from one to another) and `composition` (many at once).
`accounting` describes releases as events and adds them up; `filters` keeps an adaptive budget; `loss` composes a fixed batch
exactly.
"""

from __future__ import annotations

from cloister.privacy.accounting import (
    Accountant,
    ApproxAccountant,
    LossAccountant,
    PureAccountant,
    RenyiAccountant,
    ZCDPAccountant,
)
from cloister.privacy.amplification import poisson, shuffled, without_replacement
from cloister.privacy.composition import advanced, best_of, heterogeneous, optimal, optimal_delta, parallel, sequential
from cloister.privacy.conversion import (
    delta_of_approx,
    delta_of_pure,
    delta_of_zcdp,
    epsilon_of_pure,
    epsilon_of_renyi,
    epsilon_of_zcdp,
    simple_epsilon_of_zcdp,
    zcdp_of_approx,
    zcdp_of_pure,
    zcdp_within,
)
from cloister.privacy.events import (
    Composed,
    DiscreteGaussianRelease,
    DiscreteLaplaceRelease,
    Event,
    GaussianRelease,
    LaplaceRelease,
    Nothing,
    NotPrivate,
    Promised,
    RandomizedResponse,
    Repeated,
    Sampled,
    to_dp_accounting,
)
from cloister.privacy.filters import (
    AdvancedFilter,
    ApproxFilter,
    PureFilter,
    PureOdometer,
    RenyiFilter,
    RenyiOdometer,
    ZCDPFilter,
)
from cloister.privacy.gaussian import delta_of_gaussian, epsilon_of_gaussian, mu_squared_of_gaussian, sigma_of_gaussian
from cloister.privacy.groups import between_neighbours, for_groups, to_bounded
from cloister.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP, zero_of
from cloister.privacy.loss import PrivacyLossDistribution
from cloister.privacy.rational import (
    Exact,
    exact,
    exact_nonnegative,
    exact_positive,
    exact_probability,
    float_down,
    float_up,
    fraction_up,
    text_of,
)
from cloister.privacy.renyi import RenyiCurve
from cloister.privacy.sensitivity import Neighbours, Sensitivity

__all__ = [
    "ZCDP",
    "Accountant",
    "AdvancedFilter",
    "ApproxAccountant",
    "ApproxDP",
    "ApproxFilter",
    "Composed",
    "DiscreteGaussianRelease",
    "DiscreteLaplaceRelease",
    "Event",
    "Exact",
    "GaussianRelease",
    "Guarantee",
    "LaplaceRelease",
    "LossAccountant",
    "Neighbours",
    "NotPrivate",
    "Nothing",
    "PrivacyLossDistribution",
    "Promised",
    "PureAccountant",
    "PureDP",
    "PureFilter",
    "PureOdometer",
    "RandomizedResponse",
    "RenyiAccountant",
    "RenyiCurve",
    "RenyiFilter",
    "RenyiOdometer",
    "Repeated",
    "Sampled",
    "Sensitivity",
    "ZCDPAccountant",
    "ZCDPFilter",
    "advanced",
    "best_of",
    "between_neighbours",
    "delta_of_approx",
    "delta_of_gaussian",
    "delta_of_pure",
    "delta_of_zcdp",
    "epsilon_of_gaussian",
    "epsilon_of_pure",
    "epsilon_of_renyi",
    "epsilon_of_zcdp",
    "exact",
    "exact_nonnegative",
    "exact_positive",
    "exact_probability",
    "float_down",
    "float_up",
    "for_groups",
    "fraction_up",
    "heterogeneous",
    "mu_squared_of_gaussian",
    "optimal",
    "optimal_delta",
    "parallel",
    "poisson",
    "sequential",
    "shuffled",
    "sigma_of_gaussian",
    "simple_epsilon_of_zcdp",
    "text_of",
    "to_bounded",
    "to_dp_accounting",
    "without_replacement",
    "zcdp_of_approx",
    "zcdp_of_pure",
    "zcdp_within",
    "zero_of",
]
