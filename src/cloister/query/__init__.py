"""Questions in SQL: parse, check against an allow-list, ask at the door.

Lives here: everything that knows SQL, from text to questions, and the session that people use; `controls/`, the second, marked
door for trusted insiders, which is not differential privacy. May not live here: noise, charges, and rows outside of `controls/`.
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily
from cloister.query.parse import Parsed, parse
from cloister.query.session import Session

if TYPE_CHECKING:
    from cloister.query.writing import read_sql as read_sql
    from cloister.query.writing import write_sql as write_sql

_lazily = Lazily(__name__)

__all__ = ["Parsed", "Session", "parse", *_lazily.all]
__getattr__ = _lazily.get
