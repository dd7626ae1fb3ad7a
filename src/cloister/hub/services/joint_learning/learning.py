"""Directions of several owners' rows as work of the frame: one charge to each owner's population, and one sum with noise in it.

Guarantee: that of the charge, to every person of each owner (`cloister.compress.Scatter.measure` over `together/pooled.py` or
`together/joint.py`); the directions are post-processing. What an owner finds by taking their own rows off is in it: neighbours
differ in one person of any one owner, and who knows all other rows is the adversary of the definition.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from cloister.errors import InvalidParameter
from cloister.hub.hub import Hub
from cloister.hub.services.joint_learning.order import ACTION, ORDER, JointLearning
from cloister.hub.services.joint_learning.results import HOW, JOINT
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import Words
from cloister.hub.work.one_table import ReadyTable, ready_table
from cloister.hub.work.orders import FREE, OrderedWork, Product, Running, job_of
from cloister.privacy import Guarantee
from cloister.query import Session
from cloister.tables import PrivateTable

ASKING = N_("asking the owners")
BETWEEN = " · "
"""Stands in a stage between what is translated and the names of those who have answered."""
_LONGEST = 150
_START, _A_PRODUCT = 0.5, 0.005
"""Seconds: of any order, and of a product of two columns at an owner (five owners of 2,000 rows, 5 and 20 columns)."""
_TELLS = N_(
    "%(components)s of %(columns)s directions and the mean of each column, with noise. They go to you and to the owners of all "
    "parts. Nobody sees rows of others, sums without noise, or one owner's part."
)
_TELLS_OF_SITES = N_(
    "%(components)s of %(columns)s directions and the mean of each column, with noise. They go to you. Nobody sees rows of "
    "others, sums without noise, or one site's part."
)


class _Learning(OrderedWork[JointLearning, ReadyTable[JointLearning]]):
    """Orders of joint learning."""

    job, title, action, release, stored = "joint_learning.learn", N_("Joint learning"), ACTION, JOINT, ORDER
    extra, audited = "learn", ("method",)
    stages = FREE | {N_("finding the directions"): 0.8, N_("handing out the result"): 0.9}
    words = Words(
        name="The joint result",
        invalid=N_("The joint learning is invalid"),
        denied=N_("The joint learning was denied"),
        withheld=N_("The joint result was not released"),
    )

    def ready(self, *given: Any, **how: Any) -> ReadyTable[JointLearning]:
        order: JointLearning = given[3]

        def charge(session: Session, table: PrivateTable, budget: Guarantee) -> Guarantee:
            from cloister.compress.from_tables import check_labels
            from cloister.compress.scatter import scatter_questions

            if not parties(table):
                raise InvalidParameter(
                    self.words.invalid, why="the data set has one owner", instead="a data set of several owners: /pools"
                )
            check_labels(table, order.columns, order.labels)
            _check_directions(table, order)
            questions, shares = scatter_questions(table, order.table, order.columns, order.label or None, None)
            return session.explain(questions, order.spend, shares=shares).cost

        return ready_table(self, *given, **how, columns=(*order.columns, *order.labels), charge=charge, method=order.method)

    def run(self, hub: Hub, found: ReadyTable[JointLearning], session: Running) -> Product:
        from cloister import compress
        from cloister.compress.from_tables import columns_told, projection_told
        from cloister.together.following import followed

        order, names = found.order, parties(found.table)
        made = {"PCA": compress.PCA, "DCA": compress.DCA, "LDA": compress.LDA}[order.method]()
        with followed(_following(names, session.tell)):
            scatter = compress.Scatter.measure(
                session(),
                order.table,
                spend=order.spend,
                columns=order.columns,
                utility=order.label or None,
                purpose=order.purpose,
            )
        fitted = made.set_params(n_components=int(order.components)).fit_scatter(scatter)
        assert scatter.cost is not None
        cost = dict.fromkeys(found.populations, scatter.cost)
        told = {"columns": columns_told(found.table, order.columns), **projection_told(order.method, fitted)}
        told |= {"parts": len(names), "guarantee": str(scatter.cost), "how": HOW}
        details = {"table": order.table, "method": order.method, "columns": list(order.columns), "parts": list(found.which.parts)}
        return Product(body=json.dumps(told, ensure_ascii=False).encode(), cost=cost, details=details)


def _check_directions(table: PrivateTable, order: JointLearning) -> None:
    """Refuse more of Fisher's discriminants than classes have between them, before they are paid for."""
    if order.method != "LDA":
        return
    label = table.columns[order.label]
    most = int(label.high_code - label.low_code)
    if int(order.components) > most:
        raise InvalidParameter(
            "The components are invalid", why=f"LDA has at most one for each class less one: {most}", instead=f"{most}, or DCA"
        )


def parties(table: PrivateTable) -> tuple[str, ...]:
    """Whose rows a table has: its data sets of several owners, or its sites; none where it has one owner."""
    held: Any = table.source
    found = getattr(held, "tables", None) or getattr(held, "sites", None)
    return tuple(found) if held.engine in ("pooled", "joint") and found else ()


def expected(_: Hub, found: ReadyTable[JointLearning]) -> list[dict[str, Any]]:
    """Before it is ordered: what each population is charged, how long it takes about, and what the output tells."""
    order, names = found.order, parties(found.table)
    seconds = _START + _A_PRODUCT * len(order.columns) ** 2 * len(names)
    costs = [{"population": each, "cost": str(found.charge)} for each in found.populations]
    told = {"components": order.components, "columns": str(len(order.columns))}
    told["tells"] = _TELLS if found.which.parts else _TELLS_OF_SITES
    return [*costs, {"owners": ", ".join(names), "seconds": round(seconds, 1)}, told]


def expected_in_words(hub: Hub, found: ReadyTable[JointLearning]) -> list[dict[str, Any]]:
    """The same for a program, which has no page that puts the numbers into the words."""
    *lines, told = expected(hub, found)
    return [*lines, told | {"tells": told["tells"] % told}]


def _following(names: Sequence[str], tell: Callable[[str], None]) -> Callable[[str], None]:
    """Says after each answer how many each owner has given."""
    answers = Counter[str]()

    def heard(name: str) -> None:
        answers[name] += 1
        told = BETWEEN.join(f"{each} {answers[each]}" for each in names)
        if len(told) > _LONGEST:
            told = f"{sum(answers[each] > 0 for each in names)} / {len(names)}"
        tell(f"{ASKING}{BETWEEN}{told}")

    return heard


LEARNING = _Learning()
LEARN = job_of(LEARNING)
