"""What a decision is made from: who, which object, its grants and policies, the context, and the institution's own rules.

Frozen facts and nothing else: whoever decides has read them from the database before, so that a decision can be repeated, and
tested, from the facts alone. `None` where a set is meant says "no limit"; an empty set says "none at all".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from ipaddress import IPv4Network, IPv6Network
from typing import TypeAlias

from cloister.errors import InvalidParameter
from cloister.privacy.guarantee import Guarantee

Network: TypeAlias = IPv4Network | IPv6Network
SENSITIVITIES = ("", "public", "internal", "confidential", "special")
"""How sensitive something is, from least to most; "special" are the categories that the law names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """The person who acts. An empty id is somebody who has not logged in.

    >>> Who(id="p1", roles=frozenset({"analyst"})).token_scopes is None
    True
    """

    id: str = ""
    email: str = ""
    roles: frozenset[str] = frozenset()
    institution: str = ""
    projects: frozenset[str] = frozenset()
    training: Mapping[str, datetime] = field(default_factory=dict)
    """Certificates, each with the moment until which it is valid."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    token_scopes: frozenset[str] | None = None
    """None: in a browser. Else what the API token may do: `question.ask`, a whole area, `question.*`, or everything, `*`."""
    second_factor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Who is in a role on an object. Each kind that is stated must hold: one of the people, institutions and projects, and all of
    the certificates and attributes. Nothing stated is nobody; `anybody` is everyone who has logged in. People are named by their
    id, or by the e-mail address that they have here, now or later.

    >>> Members(institutions=frozenset({"north"}), training=frozenset({"GCP"})).anybody
    False
    """

    people: frozenset[str] | None = None
    institutions: frozenset[str] | None = None
    projects: frozenset[str] | None = None
    training: frozenset[str] = frozenset()
    attributes: Mapping[str, str] = field(default_factory=dict)
    anybody: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Hours:
    """Minutes of some days of the week, Monday being 0, in the hub's own time zone (that of `Context.now`).

    >>> Hours(days=(0, 1, 2, 3, 4), start=8 * 60, end=18 * 60).hold(datetime.fromisoformat("2026-11-20T17:59:00+00:00"))
    True
    """

    days: tuple[int, ...]
    start: int
    end: int

    def hold(self, now: datetime) -> bool:
        """Whether a moment lies inside: the first minute does, the last one does not."""
        return now.weekday() in self.days and self.start <= now.hour * 60 + now.minute < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What those in a role may do, and under which conditions; all conditions of one grant hold together.

    >>> Rules(actions=frozenset({"question.ask"}), purposes=frozenset({"research"})).columns is None
    True
    """

    actions: frozenset[str]
    purposes: frozenset[str] | None = None
    not_before: datetime | None = None
    until: datetime | None = None
    columns: frozenset[str] | None = None
    rows: str = ""
    """A condition on rows, as SQL: those who act under this grant see the rows for which it holds."""
    share: Guarantee | None = None
    """What one person may draw from the population's budget under this grant."""
    networks: tuple[Network, ...] | None = None
    hours: tuple[Hours, ...] | None = None
    risk: Fraction | None = None
    """How much better than a coin an attacker's best guess whether one person is in the data may become by what somebody draws
    under this grant: 0 is not at all, 1 is certainty (`hub/policy/risk.py`)."""
    algorithms: frozenset[str] | None = None
    """Guests' algorithms that may run. None: no guest's algorithm; stated: those, and no plain question."""
    methods: frozenset[str] | None = None
    """The methods by which models may be trained, by the names of `cloister.learn.METHODS`. They limit nothing else."""
    only_with: frozenset[str] | None = None
    """The only other objects that may be asked together with this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantFacts:
    """A role on an object: who is in it, what they may do, and who gave it.

    >>> GrantFacts(id="g1", role="reader", members=Members(anybody=True), rules=Rules(actions=frozenset({"dataset.see"}))).revoked
    False
    """

    id: str
    role: str
    members: Members
    rules: Rules
    revoked: bool = False
    granted_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Part:
    """What takes part in a forbidden combination: an object, a column, a column of an object, or whatever bears a label.

    >>> Part(object="health", column="diagnosis")
    Part(object='health', column='diagnosis', label='')
    """

    object: str = ""
    column: str = ""
    label: str = ""


Combination: TypeAlias = frozenset[Part]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Source:
    """Where something comes from: an object, its version, and the columns of it that were read; whose it was, and whose rows it
    held, for the institution's rules.

    >>> Source(object="health", version="3", columns=("age", "sex")).columns
    ('age', 'sex')
    """

    object: str
    version: str = ""
    columns: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    """Columns that were read by the condition on the rows that somebody may see, and that nobody asked about."""
    institution: str = ""
    population: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is attached to data and travels with them: by the owner, or by a provider to what they gave. It binds the owner too.

    >>> Policy(purposes=frozenset({"research"}), prohibitions=frozenset({"synthesise.run"})).retention is None
    True
    """

    purposes: frozenset[str] | None = None
    prohibitions: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    consent: frozenset[str] = frozenset()
    sensitivity: str = ""
    retention: datetime | None = None
    combinable_with: frozenset[str] | None = None
    forbidden: frozenset[Combination] = frozenset()
    sources: frozenset[Source] = frozenset()
    given: bool = field(default=False, compare=False)
    """Whether who gave the data attached it: nobody else can change it. It says whom to ask, and nothing about what holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """The object that something is done to: a data set, a release, an algorithm, a project, a job.

    >>> Object(kind="dataset", id="d1", name="health", owner="p1").labels
    frozenset()
    """

    kind: str
    id: str
    name: str = ""
    owner: str = ""
    institution: str = ""
    labels: frozenset[str] = frozenset()
    population: str = ""
    columns: frozenset[str] = frozenset()
    grants: tuple[GrantFacts, ...] = ()
    policies: tuple[Policy, ...] = ()
    column_policies: Mapping[str, Policy] = field(default_factory=dict)
    closed: bool = False
    """Its owner closed it: nobody asks about it, and what came from it is shown to nobody further (`hub/policy/shares.py`)."""
    parts: tuple[str, ...] = ()
    """The ids of the data sets that it is made of: whatever is asked of it is asked of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What is known of one population's money: what this act asks for, what was spent before, and what this person drew; or the
    budget, or the allotment, that this act would set.

    >>> Spend().asked is None
    True
    """

    asked: Guarantee | None = None
    spent: Guarantee | None = None
    drawn: Guarantee | None = None
    budget: Guarantee | None = None
    allotment: Guarantee | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """When, from where, for what, with what.

    >>> Context(now=datetime.fromisoformat("2026-11-20"))
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: now=2026-11-20 00:00:00 is invalid: it has no time zone.
      Instead: now=datetime.now(UTC)
    """

    now: datetime
    address: str = ""
    purpose: str = ""
    columns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The columns that are touched, by object. An object that is missing here is one of which this is not yet known."""
    behind: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The columns that a grant's own condition on rows reads besides: every rule counts them, but for that grant's columns."""
    together: tuple[Object, ...] = ()
    """The other objects that are asked at the same time."""
    spend: Mapping[str, Spend] = field(default_factory=dict)
    algorithm: str = ""
    method: str = ""
    """By which a model is trained."""
    project: str = ""
    risk: Fraction | None = None
    """The risk that this act reaches, where that is known otherwise than by what it costs."""

    def __post_init__(self) -> None:
        if self.now.utcoffset() is None:
            why = "it has no time zone"
            raise InvalidParameter(f"now={self.now} is invalid", why=why, instead="now=datetime.now(UTC)")

    def read(self, number: str) -> frozenset[str]:
        """Every column that is read of an object, asked about or not.

        >>> from datetime import UTC
        >>> context = Context(now=datetime.now(UTC), columns={"d1": frozenset({"age"})}, behind={"d1": frozenset({"pay"})})
        >>> sorted(context.read("d1"))
        ['age', 'pay']
        """
        return self.columns.get(number, frozenset()) | self.behind.get(number, frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class MandatoryRule:
    """A rule of the institution, above every owner. The first fields say where it applies, the others what it demands there.

    Where `actions` is None it applies to everything that reads rows or releases; its ceilings apply wherever a cost, a budget or
    an allotment is stated.

    >>> MandatoryRule(id="m1", title="Clinical data", labels=frozenset({"clinical"}), training=frozenset({"GCP"})).deny
    False
    """

    id: str
    title: str = ""
    institution: str = ""
    """Whose objects it governs; empty: everyone's."""
    labels: frozenset[str] = frozenset()
    """Objects that bear one of these; empty: all."""
    populations: frozenset[str] | None = None
    for_institutions: frozenset[str] | None = None
    """People of these institutions; None: everyone."""
    actions: frozenset[str] | None = None
    deny: bool = False
    epsilon_of_population: Fraction | None = None
    epsilon_of_allotment: Fraction | None = None
    delta: Fraction | None = None
    forbidden: frozenset[Combination] = frozenset()
    training: frozenset[str] = frozenset()
    second_factor: bool = False
    purposes: frozenset[str] | None = None
    networks: tuple[Network, ...] | None = None
    methods: frozenset[str] | None = None
    """The methods by which models may be trained; None: all."""
