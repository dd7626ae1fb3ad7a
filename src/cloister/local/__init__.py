"""Randomised at the source: each person's own machine adds the chance, and nobody needs to be trusted.

    protocols/   the promise, checked reports, exact coins; which protocol for what; levels, waves, crowds
    frequency/   how many people have each value: oracles, sketches, RAPPOR, heavy hitters
    numbers/     means and distributions of numbers
    key_values/  which keys people hold, and the values of these
    attributes/  several attributes of each person, and how they go together
    learning/    naive Bayes and regression from reports
    survey/      whole questionnaires on top of these
    browser/     the twin of all this in JavaScript, for survey pages

Lives here: what a respondent's machine does, and what is made of reports. No table, no ledger, no page: the hub's surveys
stand on this.

>>> from cloister.local import DirectEncoding
>>> oracle = DirectEncoding(["never", "once", "often"], epsilon=1)
>>> sketch = oracle.aggregate(oracle.randomize(["never", "often"] * 1000))
>>> estimate = oracle.estimate(sketch)
>>> len(estimate.counts), len(estimate.margin(0.95))
(3, 3)
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.local.attributes.fake import FakeData as FakeData
    from cloister.local.attributes.marginals import Marginals as Marginals
    from cloister.local.attributes.marginals import MarginalTables as MarginalTables
    from cloister.local.attributes.several import SeveralAttributes as SeveralAttributes
    from cloister.local.frequency.direct import DirectEncoding as DirectEncoding
    from cloister.local.frequency.direct import RandomizedResponse as RandomizedResponse
    from cloister.local.frequency.domain import Domain as Domain
    from cloister.local.frequency.estimates import Estimate as Estimate
    from cloister.local.frequency.estimates import Number as Number
    from cloister.local.frequency.estimates import add_estimates as add_estimates
    from cloister.local.frequency.hadamard import HadamardResponse as HadamardResponse
    from cloister.local.frequency.hashing import LocalHashing as LocalHashing
    from cloister.local.frequency.heavy import HeavyHitters as HeavyHitters
    from cloister.local.frequency.histogram import HistogramEncoding as HistogramEncoding
    from cloister.local.frequency.oracle import FrequencyOracle as FrequencyOracle
    from cloister.local.frequency.rappor import RAPPOR as RAPPOR
    from cloister.local.frequency.sketches import CountMeanSketch as CountMeanSketch
    from cloister.local.frequency.subset import SubsetSelection as SubsetSelection
    from cloister.local.frequency.unary import UnaryEncoding as UnaryEncoding
    from cloister.local.key_values.key_value import KeyValue as KeyValue
    from cloister.local.key_values.key_value_estimates import KeyValueEstimate as KeyValueEstimate
    from cloister.local.numbers.circular import CircularPiecewise as CircularPiecewise
    from cloister.local.numbers.distribution import Distribution as Distribution
    from cloister.local.numbers.duchi import Duchi as Duchi
    from cloister.local.numbers.hybrid import Hybrid as Hybrid
    from cloister.local.numbers.laplace import LocalLaplace as LocalLaplace
    from cloister.local.numbers.numeric import Numbers as Numbers
    from cloister.local.numbers.numeric import NumericMechanism as NumericMechanism
    from cloister.local.numbers.optimal import OptimalPiecewise as OptimalPiecewise
    from cloister.local.numbers.piecewise import Piecewise as Piecewise
    from cloister.local.numbers.piecewise import SquareWave as SquareWave
    from cloister.local.protocols.advice import Advice as Advice
    from cloister.local.protocols.advice import choose as choose
    from cloister.local.protocols.levels import LevelEstimate as LevelEstimate
    from cloister.local.protocols.levels import Levels as Levels
    from cloister.local.protocols.levels import spending as spending
    from cloister.local.protocols.longitudinal import LocalMemory as LocalMemory
    from cloister.local.protocols.protocol import Sketch as Sketch
    from cloister.local.protocols.shuffling import after_shuffling as after_shuffling
    from cloister.local.protocols.shuffling import largest_local_epsilon as largest_local_epsilon
    from cloister.local.protocols.shuffling import local_epsilon_for as local_epsilon_for
    from cloister.local.protocols.shuffling import shuffle as shuffle

__all__, __getattr__, __dir__ = Lazily(__name__).public
