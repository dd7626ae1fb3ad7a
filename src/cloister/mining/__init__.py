"""Mined patterns, made safe to publish: itemsets and rules, rules hidden, noisy itemsets, classifiers that say less.

    baskets.py, reading.py     who holds what, from lists and tables, and back; long_tables.py: declared ones of a session
    thresholds.py              how often is often enough, exactly
    itemsets.py, rules.py      what is frequent, and what follows from what: for an owner's own eyes

Hiding sensitive rules::

    sensitive.py   which, and what it means that they are hidden
    worked.py      baskets that change; lowering.py (1.a, 1.b, 2.a, 2.b), borders.py (BBA, max–min)
    exact.py       the least that it can cost: program.py (what may be done, and the integer program)
    hiding.py      one call, the sliding window (SWA), and what is lost by it; comparison.py: all methods side by side
    from_tables.py a table of a session, by the marked door

Safe to publish, with a guarantee::

    top.py         the most frequent itemsets under differential privacy; top_tables.py: from a table of a session

Against membership inference::

    coarsened.py   classifiers whose output is made coarser; leak.py: an attack's success before and after

Hidden rules are not differentially private, and every result says so. What may not live here: hierarchies and k-anonymity
(`cloister.anonymize`), stronger attacks (`cloister.attacks`).

>>> from cloister.mining import association_rules
>>> found = association_rules([["tea", "milk"], ["tea"], ["tea", "milk"]], min_support="0.5", min_confidence="0.6")
>>> [str(rule) for rule in found]
['milk → tea', 'tea → milk']
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.mining.baskets import Baskets as Baskets
    from cloister.mining.coarsened import Coarsened as Coarsened
    from cloister.mining.comparison import Comparison as Comparison
    from cloister.mining.comparison import compare as compare
    from cloister.mining.exact import Proof as Proof
    from cloister.mining.from_tables import publish_baskets as publish_baskets
    from cloister.mining.hiding import METHODS as METHODS
    from cloister.mining.hiding import HiddenRule as HiddenRule
    from cloister.mining.hiding import Sanitised as Sanitised
    from cloister.mining.hiding import SideEffects as SideEffects
    from cloister.mining.hiding import hide_rules as hide_rules
    from cloister.mining.itemsets import FrequentItemsets as FrequentItemsets
    from cloister.mining.itemsets import Itemset as Itemset
    from cloister.mining.itemsets import frequent_itemsets as frequent_itemsets
    from cloister.mining.leak import Leak as Leak
    from cloister.mining.leak import Leaks as Leaks
    from cloister.mining.leak import attack_before_and_after as attack_before_and_after
    from cloister.mining.reading import read_baskets as read_baskets
    from cloister.mining.rules import Rule as Rule
    from cloister.mining.rules import Rules as Rules
    from cloister.mining.rules import association_rules as association_rules
    from cloister.mining.top import NoisyItemsets as NoisyItemsets
    from cloister.mining.top import TopItemsets as TopItemsets
    from cloister.mining.top_tables import top_itemsets as top_itemsets

_EXTRAS = {"sklearn": "learn", "scipy": "mining", "efficient_apriori": "mining"}
__all__, __getattr__, __dir__ = Lazily(__name__, extras=_EXTRAS).public
