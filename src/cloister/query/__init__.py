"""Questions in SQL: parse, check against an allow-list, ask at the door.

Lives here: everything that knows SQL, from text to questions, and the session that people use; `controls/`, the second, marked
door for trusted insiders, which is not differential privacy. May not live here: noise, charges, and rows outside of `controls/`.
"""

from cloister.query.parse import Parsed, parse
from cloister.query.session import Session
from cloister.query.writing import read_sql, write_sql

__all__ = ["Parsed", "Session", "parse", "read_sql", "write_sql"]
