"""What moves: readings without end, places and journeys, published with guarantees that name what they protect.

    levels.py       event, window and user level, and what follows for a person
    counter.py      running sums of a stream
    stored.py       the same, kept in a ledger: charged to a population, resumed after a crash
    window_stream.py  tables of counts at every step, with one ε for w steps in a row; policies.py: budget over time
    watch.py        a question in SQL at every step of the clock (running.py: sums, feed.py: rows, moments.py: the clock)
    planar.py       places at a distance, from the phone: a guarantee a metre, exact noise on a lattice, one report a place
    journeys.py     synthetic journeys from noisy counts of trips and moves on a public grid
    stays.py        where somebody stayed; filtering.py: what a smoother takes off a noisy trace
    crowd.py        how often a few known places single a journey out, in traces and in what is released of them
    square_root.py  the factorisation behind them for ρ: whole numbers, a few kilobytes; tree.py: the binary tree for ε

Lives here: what depends on the order of things in time or on where they are. May not live here: an engine, a table's
declaration, or noise of its own making (`noise` has the laws).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.traces.counter import Counter as Counter
    from cloister.traces.crowd import Crowd as Crowd
    from cloister.traces.crowd import unique_in_the_crowd as unique_in_the_crowd
    from cloister.traces.filtering import FilterAttack as FilterAttack
    from cloister.traces.filtering import filter_attack as filter_attack
    from cloister.traces.journeys import Journeys as Journeys
    from cloister.traces.journeys import fit_journeys as fit_journeys
    from cloister.traces.levels import WindowLevel as WindowLevel
    from cloister.traces.planar import GeoIndistinguishability as GeoIndistinguishability
    from cloister.traces.planar import PermanentReports as PermanentReports
    from cloister.traces.planar import PlanarLaplace as PlanarLaplace
    from cloister.traces.policies import Absorption as Absorption
    from cloister.traces.policies import Adaptive as Adaptive
    from cloister.traces.policies import Distribution as Distribution
    from cloister.traces.policies import Policy as Policy
    from cloister.traces.policies import Sampled as Sampled
    from cloister.traces.policies import Shares as Shares
    from cloister.traces.policies import Uniform as Uniform
    from cloister.traces.stays import StayPoints as StayPoints
    from cloister.traces.stays import stay_points as stay_points
    from cloister.traces.stored import StoredCounter as StoredCounter
    from cloister.traces.window_stream import Estimator as Estimator
    from cloister.traces.window_stream import GroupMean as GroupMean
    from cloister.traces.window_stream import LastRelease as LastRelease
    from cloister.traces.window_stream import LocalLevel as LocalLevel
    from cloister.traces.window_stream import WindowStream as WindowStream

_lazily = Lazily(
    __name__,
    {
        ".counter": "Counter",
        ".crowd": "Crowd unique_in_the_crowd",
        ".filtering": "FilterAttack filter_attack",
        ".journeys": "Journeys fit_journeys",
        ".levels": "WindowLevel",
        ".planar": "GeoIndistinguishability PermanentReports PlanarLaplace",
        ".policies": "Absorption Adaptive Distribution Policy Sampled Shares Uniform",
        ".stays": "StayPoints stay_points",
        ".stored": "StoredCounter",
        ".window_stream": "Estimator GroupMean LastRelease LocalLevel WindowStream",
    },
)

__all__ = _lazily.all
__getattr__ = _lazily.get
__dir__ = _lazily.dir
