"""Attackers, run on a table before it is released: how far each gets, against the raw table and against what is known anyway.

    certainty.py     homogeneity, background knowledge
    skewness.py      skewness, similarity
    linkage.py       a public list with names
    intersection.py  two releases about the same people
    minimality.py    the algorithm itself: what it would have left finer is ruled out
    learner.py       a learner that predicts the sensitive value
    running.py       all of them

>>> from cloister.anonymize.attackers import attack, example
>>> isinstance(example(), Target)
True
>>> print(attack(example(), learning=False)[0])
linkage: 33.3 % (raw table: 83.3 %, without the table: 16.7 %)
"""

from cloister.anonymize.attackers.certainty import background, homogeneity
from cloister.anonymize.attackers.intersection import intersection
from cloister.anonymize.attackers.learner import learner
from cloister.anonymize.attackers.linkage import linkage
from cloister.anonymize.attackers.minimality import minimality
from cloister.anonymize.attackers.running import attack, attack_tables, example
from cloister.anonymize.attackers.skewness import similarity, skewness
from cloister.anonymize.attackers.target import Attack, Target, target_of

__all__ = [
    "Attack",
    "Target",
    "attack",
    "attack_tables",
    "background",
    "example",
    "homogeneity",
    "intersection",
    "learner",
    "linkage",
    "minimality",
    "similarity",
    "skewness",
    "target_of",
]
