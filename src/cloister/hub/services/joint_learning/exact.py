"""Exact components of rows at sites, with a key holder: work of the frame that leaves by the marked door.

LDA's directions are those of DCA with the same ρ, scaled (`together/circuits/moments.py`): one circuit serves both.

The hub has no row: each site encrypts its sums, the key holder garbles, the hub evaluates (`cloister.together.exact`). The owner
of the data set orders it, nobody else; each site's own owner says yes to the very plan, in their own process; who forbids
anonymised tables, which leave by this door too, forbids it. The NotPrivate event is in the hub's ledger, and in each site's own,
before a site reads a row. Sites take the result; one that was away has it from the one who ordered it.

Rows that are in this hub are not learned so: a key holder would hide them from nobody who does not hold them already.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy.orm import Session as Db

from cloister.crypto import fingerprint
from cloister.errors import InvalidParameter
from cloister.hub.description import example
from cloister.hub.hub import Caller, Hub
from cloister.hub.labels import check_purpose
from cloister.hub.platform.catalogue import lines_of
from cloister.hub.platform.jobs import Stopped
from cloister.hub.records.catalogue import DataSet
from cloister.hub.releases.kinds import ReleaseKind, View, json_file, stored
from cloister.hub.services.joint_learning.learning import ASKING, BETWEEN, parties
from cloister.hub.services.joint_learning.order import ACTION, check_columns, check_components, check_method
from cloister.hub.services.joint_learning.results import page_of
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import AuthorisedOrder, Terms, Words
from cloister.hub.work.one_table import own_rows, private_table
from cloister.hub.work.ordering import agreed, asked, whole
from cloister.hub.work.orders import OrderedWork, Product, Running, job_of
from cloister.stored import Stored

if TYPE_CHECKING:
    from cloister.query import Session
    from cloister.tables import PrivateTable
    from cloister.together import Coordinator, KeyHolderLine
    from cloister.together.circuits.program import Program

EVALUATING = N_("evaluating the circuit")
HOW = "z = (2 (x − low) / (high − low) − 1) · components transposed"
_MOST_ROWS = 2**24
_COUNTING = Lock()
_TELLS = {
    "PCA": N_(
        "%(components)s of %(columns)s principal components, exact: functions of all rows, without noise. They go to you and to "
        "all sites. A site that takes its own rows off learns what follows about the others. One component more narrows it "
        "further; all of them with their values would be the covariances themselves."
    ),
    "DCA": N_(
        "%(components)s discriminant components of %(columns)s columns, exact: functions of all rows, without noise. They go to "
        "you and to all sites. A site that takes its own rows off learns what follows about the others."
    ),
}
WORDS = Words(
    name="The exact joint result",
    invalid=N_("The exact joint learning is invalid"),
    denied=N_("The exact joint learning was denied"),
    withheld=N_("The exact joint result was not released"),
)


@dataclass(frozen=True, kw_only=True)
class ExactJoint:
    """Exact directions of the rows of several sites, with a key holder."""

    __pydantic_config__ = example(
        table="hospitals", columns=["age", "pay"], method="DCA", label="ill", rows="10000", approval="yes", purpose="research"
    ) | {"extra": "forbid"}

    table: str
    columns: tuple[str, ...] = asked(N_("Columns"))
    method: str = asked(N_("Method"))
    label: str = asked(N_("Label"), default="")
    components: str = asked(N_("Components"), default="")
    rows: str = asked(N_("Rows"))
    approval: str = asked(N_("Approval"), default="")
    purpose: str = ""
    title: str = ""

    project = algorithm = ""
    """It is made in no project, and under no algorithm."""

    def __post_init__(self) -> None:
        check_columns(self.columns)
        check_method(self.method, self.label)
        if self.method == "PCA":
            check_components(self.components, len(self.columns))
        if not 2 <= whole(self.rows) <= _MOST_ROWS:
            raise InvalidParameter(
                "The rows are invalid",
                why=f"it is a whole number from 2 to {_MOST_ROWS}: at most so many at each site, which is public",
                instead="10000",
            )
        check_purpose(self.purpose)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        return (*self.columns, *([self.label] if self.label else []))


STORED = Stored(
    ExactJoint, "ExactJoint", "table", "columns", "method", "label", "components", "rows", "approval", "purpose", "title"
)
"""As a job holds it."""


class Circuit(NamedTuple):
    """What would be evaluated."""

    gates: int
    bytes: int
    seconds: float
    """Of one core, each party."""


@dataclass(frozen=True, kw_only=True)
class AuthorisedExact(AuthorisedOrder[ExactJoint]):
    """An order that may be carried out, and who takes part."""

    row: DataSet
    table: PrivateTable
    coordinator: Coordinator
    line: KeyHolderLine
    circuit: Circuit
    components: int


class _Exact(OrderedWork[ExactJoint, AuthorisedExact]):
    """Orders of exact joint learning."""

    job, title, action, words, stored, marked = "joint_learning.exact", N_("Exact joint learning"), ACTION, WORDS, STORED, True
    extra, audited = "together", ("method",)
    stages = {  # noqa: RUF012
        "preparing the tables": 0.0,
        ASKING: 0.1,
        EVALUATING: 0.2,
        N_("handing out the result"): 0.9,
    }

    def ready(
        self, hub: Hub, db: Db, caller: Caller, order: ExactJoint, *, progress: Any = None, paid: Any = None
    ) -> AuthorisedExact:
        def columns(session: Session, name: str) -> tuple[str, ...]:
            private_table(session, name, order.names, WORDS.invalid)
            return order.names

        terms = Terms(action=ACTION, purpose=order.purpose, method=order.method)
        row, found = own_rows(hub, db, caller, order.table, terms, WORDS, columns)
        table = private_table(found.session, row.name, order.names, WORDS.invalid)
        coordinator = getattr(table.source, "coordinator", None)
        if coordinator is None:
            raise InvalidParameter(
                WORDS.invalid,
                why="the rows are not at sites, and a key holder hides rows of other places from this hub",
                instead="a data set at sites: /sites; or joint learning with noise",
            )
        line = lines_of(hub).of_settings()
        if line is None:
            raise InvalidParameter(
                WORDS.invalid,
                why="this hub knows no key holder of exact results",
                instead='key_holder = "NAME DIGITS" in hub.toml',
            )
        from cloister.together.exact.request import declared_of

        sites = len(parties(table))
        if whole(order.rows) * sites > _MOST_ROWS:
            why = f"{sites} sites have at most {_MOST_ROWS} rows together"
            raise InvalidParameter("The rows are invalid", why=why, instead=str(_MOST_ROWS // sites))
        _, _, classes = declared_of(table, order.columns, order.label)
        components = classes - 1 if classes else whole(order.components)
        return AuthorisedExact(
            **vars(found),
            order=order,
            row=row,
            table=table,
            coordinator=coordinator,
            line=line,
            circuit=_circuit(len(order.columns), whole(order.rows), classes, components, sites),
            components=components,
        )

    def rehearse(self, found: AuthorisedExact) -> None:
        if not agreed(found.order.approval):
            raise InvalidParameter(
                "The approval is invalid",
                why="exact components are not differentially private, and the owner approves that in so many words",
                instead="yes",
            )

    def run(self, hub: Hub, found: AuthorisedExact, stage: Running) -> Product:
        from cloister.together.exact.learning import ExactLearning
        from cloister.together.exact.request import result_of
        from cloister.together.following import followed

        order, names, answers = found.order, parties(found.table), Counter[str]()

        def heard(name: str) -> None:
            answers[name] += 1
            stage.tell(f"{ASKING}{BETWEEN}{sum(each > 0 for each in answers.values())} / {len(names)}")

        def going(_: str, share: float) -> None:
            if stage.stopped():
                raise Stopped
            stage.tell(f"{EVALUATING}{BETWEEN}{100 * share:.0f} %")

        who, what = found.session.who, f"{found.components} exact components of {found.row.name} (not differentially private)"
        stage.tell(ASKING)
        with followed(heard):
            learning = ExactLearning.begin(
                found.coordinator,
                found.line,
                found.table,
                columns=order.columns,
                label=order.label,
                components=found.components,
                rows=whole(order.rows),
                purpose=order.purpose,
                who=who,
                name=found.row.name,
            )
            for population in found.populations:
                hub.ledger.note_not_private(population, who=who, what=what)
            columns = learning.columns(going)
        stage.tell("handing out the result")
        taken = learning.hand_out(columns)
        told = {"method": order.method, **result_of(learning.request, columns), "how": HOW, "sites": len(names)}
        details = {"table": found.row.name, "method": order.method, "columns": list(order.columns), "taken": len(taken)}
        return Product(body=json.dumps(told, ensure_ascii=False).encode(), details=details)


def _circuit(columns: int, rows: int, classes: int, components: int, sites: int) -> Circuit:
    """By public numbers alone. One that is too large is refused, with its size and time."""
    from cloister.together.exact.request import MOST_BYTES

    with _COUNTING:  # seconds of a core: one at a time, and what waited for the same one finds it
        most = min((1 << rows.bit_length()) - 1, _MOST_ROWS // sites)  # as many bits, as large
        program = _program(columns, most, classes, components, sites)
    program.check_size(MOST_BYTES)
    return Circuit(program.gates, program.bytes, program.seconds)


@lru_cache(maxsize=256)
def _program(columns: int, rows: int, classes: int, components: int, sites: int) -> Program:
    from cloister.together.circuits import Moments

    return Moments(features=columns, rows=rows, classes=classes).program(components, sites)


def before(_: Hub, found: Any) -> dict[str, Any]:
    """Before it is ordered: what the output tells, to whom, who must say yes, how long it takes and how much is sent."""
    circuit, holder = found.circuit, found.line
    return {
        "tells": _TELLS["DCA" if found.order.label else "PCA"],
        "components": str(found.components),
        "columns": str(len(found.order.columns)),
        "owners": ", ".join(parties(found.table)),
        "populations": ", ".join(found.populations),
        "holder": holder.name,
        "fingerprint": fingerprint(holder.holder),
        "seconds": round(2 * circuit.seconds + 1.5 * len(parties(found.table)), 1),
        "megabytes": round(circuit.bytes / 1e6, 1),
        "gates": circuit.gates,
    }


def _shown(view: View) -> dict[str, Any]:
    _, told = view.language.gettext, json.loads(view.row.body)
    sites = _("%(number)s of %(all)s sites") % {"number": view.row.details["taken"], "all": told["sites"]}
    return page_of(view, told, (_("Handed to"), sites), HOW)


RESULT = ReleaseKind(
    name="exact joint",
    path="/exact-joint-results",
    trail="exact-joint-result",
    title=N_("Exact joint results"),
    made_at="/joint-learning",
    missing=N_("There is no such exact joint result"),
    private=False,
    template="joint_learning/exact_result.html",
    shown=_shown,
    told=stored,
    files={"json": json_file("exact-joint")},
)
_Exact.release = RESULT
EXACT = _Exact()
EXACT_JOB = job_of(EXACT)
