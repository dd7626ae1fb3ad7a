"""SafePub: rows that are released under (ε, δ)-differential privacy.

parameters.py: how large k has to be. safepub.py: levels by the exponential mechanism, and the mechanism.
from_tables.py: on a table of a session.
"""

from cloister.anonymize.safepub.from_tables import SafeTable, publish_safely
from cloister.anonymize.safepub.safepub import SafelyPublished, SafePub

__all__ = ["SafePub", "SafeTable", "SafelyPublished", "publish_safely"]
