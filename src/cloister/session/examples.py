"""A small door and a small release, for the examples in docstrings."""

from cloister.privacy import PureDP
from cloister.session.door import Door
from cloister.session.planning.plan import Plan
from cloister.session.questions.question import Count, Question
from cloister.session.releases.release import Release
from cloister.tables import Category, Integer, PrivateTable


def small_door() -> Door:
    """Three hundred people and a budget of ε = 1.

    >>> with small_door() as door:
    ...     list(door.tables)
    ['people']
    """
    people = PrivateTable(
        {"age": [30, 40, 50] * 100, "sex": ["F", "M", "F"] * 100}, columns={"age": Integer(17, 90), "sex": Category(["F", "M"])}
    )
    return Door({"people": people}, budget=PureDP(1))


def small_plan() -> Plan:
    """The plan of their number by sex, for half of the budget.

    >>> str(small_plan().cost)
    'ε = 0.5'
    """
    with small_door() as door:
        return door.explain(Question(table="people", by=("sex",), statistics=(Count(),)), spend="0.5")


def small_release() -> Release:
    """Their number by sex, for half of the budget.

    >>> small_release().num_rows
    2
    """
    with small_door() as door:
        return door.measure(Question(table="people", by=("sex",), statistics=(Count(),)), spend="0.5")
