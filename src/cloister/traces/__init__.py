"""What moves: readings without end, places and journeys, published with guarantees that name what they protect.

    levels.py       event, window and user level, and what follows for a person
    counter.py      running sums of a stream
    stored.py       the same, and tables of counts, kept in a ledger: charged to a population, resumed after a crash
    window_stream.py  tables of counts at every step, with one ε for w steps in a row
    policies.py     its budget over time; averaging.py: an estimator that tries many models
    local_stream.py  the same from people who trust nobody: each reports once in w steps, so people are shared out, not ε
    watch.py        a question in SQL at every step of the clock (running.py: sums, feed.py: rows, moments.py: the clock)
    planar.py       places at a distance, from the phone: a guarantee a metre, exact noise on a lattice, one report a place
    next_point.py   one journey from the phone, each next point around the last released one, with anchors
    journeys.py     synthetic journeys from noisy counts of trips and moves on a public grid
    roads.py        a public road graph, synthetic journeys on it, and the filter that knows it
    cleaning.py     points that cannot be: outside, at 0/0, swapped, out of order, too fast; counted for the owner
    stays.py        where somebody stayed; filtering.py: what a smoother takes off a noisy trace
    measures.py     how near released journeys are to the real ones, in nine measures
    groups.py       counts of stays that protect people who move together
    quadtree.py     the same at every scale: ranges, and clusters of stays
    crowd.py        how often a few known places single a journey out, in traces and in what is released of them
    square_root.py  the factorisation behind counters for ρ: whole numbers, a few kilobytes; tree.py: the binary tree for ε
    banded.py       the same for sums of the last steps, and for readings of a person that are far apart

Lives here: what depends on the order of things in time or on where they are. May not live here: an engine, a table's
declaration, or noise of its own making (`noise` has the laws).
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.traces.averaging import ModelAverage as ModelAverage
    from cloister.traces.cleaning import CleanPoints as CleanPoints
    from cloister.traces.cleaning import clean_points as clean_points
    from cloister.traces.counter import Counter as Counter
    from cloister.traces.crowd import Crowd as Crowd
    from cloister.traces.crowd import unique_in_the_crowd as unique_in_the_crowd
    from cloister.traces.filtering import FilterAttack as FilterAttack
    from cloister.traces.filtering import filter_attack as filter_attack
    from cloister.traces.groups import Groups as Groups
    from cloister.traces.groups import Stays as Stays
    from cloister.traces.groups import fit_stays as fit_stays
    from cloister.traces.journeys import Journeys as Journeys
    from cloister.traces.journeys import fit_journeys as fit_journeys
    from cloister.traces.levels import WindowLevel as WindowLevel
    from cloister.traces.local_stream import LocalStream as LocalStream
    from cloister.traces.measures import JourneyMeasures as JourneyMeasures
    from cloister.traces.measures import journey_measures as journey_measures
    from cloister.traces.next_point import NextPoint as NextPoint
    from cloister.traces.next_point import ReleasedJourney as ReleasedJourney
    from cloister.traces.planar import GeoIndistinguishability as GeoIndistinguishability
    from cloister.traces.planar import PermanentReports as PermanentReports
    from cloister.traces.planar import PlanarLaplace as PlanarLaplace
    from cloister.traces.policies import Absorption as Absorption
    from cloister.traces.policies import Adaptive as Adaptive
    from cloister.traces.policies import Changes as Changes
    from cloister.traces.policies import Decreasing as Decreasing
    from cloister.traces.policies import Distribution as Distribution
    from cloister.traces.policies import Increasing as Increasing
    from cloister.traces.policies import Policy as Policy
    from cloister.traces.policies import Sampled as Sampled
    from cloister.traces.policies import Shares as Shares
    from cloister.traces.policies import Threshold as Threshold
    from cloister.traces.policies import Uniform as Uniform
    from cloister.traces.quadtree import Quadtree as Quadtree
    from cloister.traces.quadtree import fit_quadtree as fit_quadtree
    from cloister.traces.roads import RoadGraph as RoadGraph
    from cloister.traces.roads import RoadJourneys as RoadJourneys
    from cloister.traces.roads import fit_road_journeys as fit_road_journeys
    from cloister.traces.saved_journeys import journeys_from_json as journeys_from_json
    from cloister.traces.stays import StayPoints as StayPoints
    from cloister.traces.stays import stay_points as stay_points
    from cloister.traces.stored import StoredCounter as StoredCounter
    from cloister.traces.stored import StoredWindowStream as StoredWindowStream
    from cloister.traces.window_stream import Estimator as Estimator
    from cloister.traces.window_stream import GroupMean as GroupMean
    from cloister.traces.window_stream import LastRelease as LastRelease
    from cloister.traces.window_stream import LocalLevel as LocalLevel
    from cloister.traces.window_stream import WindowStream as WindowStream

__all__, __getattr__, __dir__ = Lazily(__name__).public
