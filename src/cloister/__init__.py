"""cloister: share what the data says, not the data.

>>> import cloister as cl
>>> people = cl.PrivateTable({"age": [30, 40, 50] * 100, "sex": ["F", "M", "F"] * 100},
...                          columns={"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])})
>>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
...     answer = session.sql("SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex", spend="0.1")
...     answer.to_pydict()["sex"], str(answer.cost)
(['F', 'M'], 'ε = 0.1')

The public names, and nothing else; each loads what it needs when it is first used, so that `import cloister` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cloister.lazily import Lazily

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cloister import synth as synth
    from cloister import vault as vault
    from cloister.client import RemoteSession as RemoteSession
    from cloister.client import connect as connect
    from cloister.errors import AccessDenied as AccessDenied
    from cloister.errors import BudgetExceeded as BudgetExceeded
    from cloister.errors import CloisterError as CloisterError
    from cloister.errors import EngineError as EngineError
    from cloister.errors import InvalidDeclaration as InvalidDeclaration
    from cloister.errors import InvalidParameter as InvalidParameter
    from cloister.errors import LedgerError as LedgerError
    from cloister.errors import MissingBound as MissingBound
    from cloister.errors import UnknownColumn as UnknownColumn
    from cloister.errors import UnknownTable as UnknownTable
    from cloister.errors import UnsupportedQuery as UnsupportedQuery
    from cloister.guests import Guest as Guest
    from cloister.guests import Table as Table
    from cloister.guests import Vector as Vector
    from cloister.guests import guest as guest
    from cloister.ledger import Ledger as Ledger
    from cloister.privacy import ZCDP as ZCDP
    from cloister.privacy import ApproxDP as ApproxDP
    from cloister.privacy import PureDP as PureDP
    from cloister.query import Session as Session
    from cloister.query.controls import ControlledSession as ControlledSession
    from cloister.query.controls import Controls as Controls
    from cloister.session import Release as Release
    from cloister.tables import Binned as Binned
    from cloister.tables import Boolean as Boolean
    from cloister.tables import Category as Category
    from cloister.tables import Date as Date
    from cloister.tables import Identifier as Identifier
    from cloister.tables import Integer as Integer
    from cloister.tables import Moment as Moment
    from cloister.tables import Place as Place
    from cloister.tables import PrivateTable as PrivateTable
    from cloister.tables import PublicTable as PublicTable
    from cloister.tables import Real as Real
    from cloister.tables import Text as Text
    from cloister.together import JointTable as JointTable
    from cloister.together import SealedTable as SealedTable

_NAMES = Lazily(__name__)

__all__ = [
    "ZCDP",
    "AccessDenied",
    "ApproxDP",
    "Binned",
    "Boolean",
    "BudgetExceeded",
    "Category",
    "CloisterError",
    "ControlledSession",
    "Controls",
    "Date",
    "EngineError",
    "Guest",
    "Identifier",
    "Integer",
    "InvalidDeclaration",
    "InvalidParameter",
    "JointTable",
    "Ledger",
    "LedgerError",
    "MissingBound",
    "Moment",
    "Place",
    "PrivateTable",
    "PublicTable",
    "PureDP",
    "Real",
    "Release",
    "RemoteSession",
    "SealedTable",
    "Session",
    "Table",
    "Text",
    "UnknownColumn",
    "UnknownTable",
    "UnsupportedQuery",
    "Vector",
    "__version__",
    "connect",
    "guest",
    "synth",
    "vault",
]

_ROOMS = frozenset({"synth", "vault"})


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"cloister.{name}")
    return _NAMES.get(name)


def __dir__() -> list[str]:
    return __all__
