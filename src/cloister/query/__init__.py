"""Questions in SQL: parse, check against an allow-list, ask at the door.

Lives here: everything that knows SQL, from text to questions, and the session that people use. May not live here: noise,
charges, rows.
"""

from cloister.query.parse import Parsed, parse
from cloister.query.session import Session

__all__ = ["Parsed", "Session", "parse"]
