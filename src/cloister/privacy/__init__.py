"""Floor 1, the calculus: what a promise is.

Here live guarantees, their conversions and composition, sensitivities, filters and accountants: pure mathematics on exact
numbers. No table, file, clock or randomness may enter, and nothing from a floor above.

Start with `guarantee` (the three kinds of promise), then `conversion` (from one to another) and `composition` (many at once).
`accounting` describes releases as events and adds them up; `filters` keeps an adaptive budget; `loss` composes a fixed batch
exactly.
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.privacy.accounting import Accountant as Accountant
    from cloister.privacy.accounting import ApproxAccountant as ApproxAccountant
    from cloister.privacy.accounting import LossAccountant as LossAccountant
    from cloister.privacy.accounting import PureAccountant as PureAccountant
    from cloister.privacy.accounting import RenyiAccountant as RenyiAccountant
    from cloister.privacy.accounting import ZCDPAccountant as ZCDPAccountant
    from cloister.privacy.amplification import poisson as poisson
    from cloister.privacy.amplification import shuffled as shuffled
    from cloister.privacy.amplification import without_replacement as without_replacement
    from cloister.privacy.composition import advanced as advanced
    from cloister.privacy.composition import best_of as best_of
    from cloister.privacy.composition import heterogeneous as heterogeneous
    from cloister.privacy.composition import optimal as optimal
    from cloister.privacy.composition import optimal_delta as optimal_delta
    from cloister.privacy.composition import parallel as parallel
    from cloister.privacy.composition import sequential as sequential
    from cloister.privacy.conversion import delta_of_approx as delta_of_approx
    from cloister.privacy.conversion import delta_of_pure as delta_of_pure
    from cloister.privacy.conversion import delta_of_zcdp as delta_of_zcdp
    from cloister.privacy.conversion import epsilon_of_pure as epsilon_of_pure
    from cloister.privacy.conversion import epsilon_of_renyi as epsilon_of_renyi
    from cloister.privacy.conversion import epsilon_of_zcdp as epsilon_of_zcdp
    from cloister.privacy.conversion import simple_epsilon_of_zcdp as simple_epsilon_of_zcdp
    from cloister.privacy.conversion import zcdp_of_approx as zcdp_of_approx
    from cloister.privacy.conversion import zcdp_of_pure as zcdp_of_pure
    from cloister.privacy.conversion import zcdp_within as zcdp_within
    from cloister.privacy.events import Composed as Composed
    from cloister.privacy.events import DiscreteGaussianRelease as DiscreteGaussianRelease
    from cloister.privacy.events import DiscreteLaplaceRelease as DiscreteLaplaceRelease
    from cloister.privacy.events import Event as Event
    from cloister.privacy.events import GaussianRelease as GaussianRelease
    from cloister.privacy.events import LaplaceRelease as LaplaceRelease
    from cloister.privacy.events import Nothing as Nothing
    from cloister.privacy.events import NotPrivate as NotPrivate
    from cloister.privacy.events import Promised as Promised
    from cloister.privacy.events import RandomizedResponse as RandomizedResponse
    from cloister.privacy.events import Repeated as Repeated
    from cloister.privacy.events import Sampled as Sampled
    from cloister.privacy.events import to_dp_accounting as to_dp_accounting
    from cloister.privacy.filters import AdvancedFilter as AdvancedFilter
    from cloister.privacy.filters import ApproxFilter as ApproxFilter
    from cloister.privacy.filters import PureFilter as PureFilter
    from cloister.privacy.filters import PureOdometer as PureOdometer
    from cloister.privacy.filters import RenyiFilter as RenyiFilter
    from cloister.privacy.filters import RenyiOdometer as RenyiOdometer
    from cloister.privacy.filters import SlidingFilter as SlidingFilter
    from cloister.privacy.filters import ZCDPFilter as ZCDPFilter
    from cloister.privacy.gaussian import delta_of_gaussian as delta_of_gaussian
    from cloister.privacy.gaussian import epsilon_of_gaussian as epsilon_of_gaussian
    from cloister.privacy.gaussian import mu_squared_of_gaussian as mu_squared_of_gaussian
    from cloister.privacy.gaussian import sigma_of_gaussian as sigma_of_gaussian
    from cloister.privacy.groups import between_neighbours as between_neighbours
    from cloister.privacy.groups import for_groups as for_groups
    from cloister.privacy.groups import to_bounded as to_bounded
    from cloister.privacy.guarantee import ZCDP as ZCDP
    from cloister.privacy.guarantee import ApproxDP as ApproxDP
    from cloister.privacy.guarantee import Guarantee as Guarantee
    from cloister.privacy.guarantee import PureDP as PureDP
    from cloister.privacy.guarantee import zero_of as zero_of
    from cloister.privacy.inference import About as About
    from cloister.privacy.inference import Inference as Inference
    from cloister.privacy.inference import advantage as advantage
    from cloister.privacy.inference import loss_within as loss_within
    from cloister.privacy.loss import PrivacyLossDistribution as PrivacyLossDistribution
    from cloister.privacy.rational import Exact as Exact
    from cloister.privacy.rational import exact as exact
    from cloister.privacy.rational import exact_nonnegative as exact_nonnegative
    from cloister.privacy.rational import exact_positive as exact_positive
    from cloister.privacy.rational import exact_probability as exact_probability
    from cloister.privacy.rational import float_down as float_down
    from cloister.privacy.rational import float_up as float_up
    from cloister.privacy.rational import fraction_up as fraction_up
    from cloister.privacy.rational import text_of as text_of
    from cloister.privacy.renyi import RenyiCurve as RenyiCurve
    from cloister.privacy.sensitivity import Neighbours as Neighbours
    from cloister.privacy.sensitivity import Sensitivity as Sensitivity

__all__, __getattr__, __dir__ = Lazily(__name__).public
