"""How easily people are found in a table, and what is learnt of them then.

summary.py: `risk`, and what it finds. population.py: against a table of the population. uniques.py: people who are unique in a
population of which only the size is known. words.py, page.py: the same for people to read, print and sign.
"""

from cloister.anonymize.risks.summary import Risk, SensitiveRisk, digest_of, risk, risk_of, risk_of_released
from cloister.anonymize.risks.uniques import Uniques

__all__ = ["Risk", "SensitiveRisk", "Uniques", "digest_of", "risk", "risk_of", "risk_of_released"]
