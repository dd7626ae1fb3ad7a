"""Computed columns: a small language of expressions with one meaning on every engine.

    forms.py        bounds and expression of what is being worked out
    operations.py   the few operations that an engine must spell
    scalar.py       Scalar, and its leaves: a column (Ref) and a constant (Const)
    arithmetic.py   Add, Subtract, Multiply, Modulo, Negate, Absolute, Sign
    rounding.py     Round, Floor, Ceiling, Clamp
    quotients.py    Divide, Sqrt, Ln, Exp, Power
    choices.py      Case, Coalesce, NullIf, LeastOf, GreatestOf, Truth
    dates.py        DatePart, DateTrunc, DateShift, DateDiff
    places.py       GridCell, Lattice, RegionOf, Within
    distances.py    InBox, Metres, Near, NearestRegion
    texts.py        TextFunction
    casts.py        Cast
    computed.py     the domains that only computed columns have
    evaluate.py     the same without an engine, over the codes of a public domain; lanes.py are its arrays

A computed column is a function of its own row and of nothing else, so removing a person removes that person's values and
changes no other. Its bounds follow from the declared bounds by interval arithmetic, and each undefined result (x / 0, LN(0),
SQRT(-1), a day beyond the calendar) is NULL: no row can make a question fail, and no value can pass the bounds that the noise
is scaled to.

>>> from cloister.tables.declaring.columns import Integer, Real
>>> domains = {"age": Integer(17, 90), "pay": Real(0, 1000, step="0.01")}
>>> Round(Multiply(Ref("pay"), Const(12)), 0).domain(domains)
Integer(low=0, high=12000, nullable=False)
"""

from cloister.tables.expression.arithmetic import Absolute, Add, Modulo, Multiply, Negate, Sign, Subtract
from cloister.tables.expression.casts import Cast
from cloister.tables.expression.choices import Case, Coalesce, GreatestOf, LeastOf, NullIf, Truth
from cloister.tables.expression.dates import DateDiff, DatePart, DateShift, DateTrunc
from cloister.tables.expression.distances import InBox, Metres, Near, NearestRegion
from cloister.tables.expression.places import GridCell, Lattice, RegionOf, Within
from cloister.tables.expression.quotients import Divide, Exp, Ln, Power, Sqrt
from cloister.tables.expression.rounding import Ceiling, Clamp, Floor, Round
from cloister.tables.expression.scalar import Const, Ref, Scalar
from cloister.tables.expression.texts import TextFunction

__all__ = [
    "Absolute", "Add", "Case", "Cast", "Ceiling", "Clamp", "Coalesce", "Const", "DateDiff", "DatePart", "DateShift",
    "DateTrunc", "Divide", "Exp", "Floor", "GreatestOf", "GridCell", "InBox", "Lattice", "LeastOf", "Ln", "Metres",
    "Modulo", "Multiply", "Near", "NearestRegion", "Negate",
    "NullIf", "Power", "Ref", "RegionOf", "Round", "Scalar", "Sign", "Sqrt", "Subtract", "TextFunction", "Truth", "Within",
]  # fmt: skip
