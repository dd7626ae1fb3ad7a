"""What a decision is made from: who, which object, its grants and policies, the context, and the institution's own rules.

Frozen facts and nothing else: whoever decides has read them from the database before, so that a decision can be repeated, and
tested, from the facts alone. `None` where a set is meant says "no limit"; an empty set says "none at all".

Grants, rules and policies are shapes (`strict.py`): people write them as JSON, and the database keeps them so. What is kept goes
through `to_keep`: a text that can't be read closes whatever it governs (`closing_rule` and `closing_policy` stand in for it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Annotated, ClassVar, TypeAlias

from cloister.errors import InvalidParameter
from cloister.hub.decisions.policy.actions import N_, actions
from cloister.hub.decisions.policy.strict import (
    End,
    Flag,
    Form,
    Identifier,
    Identifiers,
    Line,
    Moment,
    Name,
    Names,
    Networks,
    Number,
    Shape,
    Share,
    at,
    identifier,
    items,
    mapping,
    name,
    set_of,
    tuple_of,
    wrong,
)
from cloister.privacy.guarantee import Guarantee

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SENSITIVITIES = ("", "public", "internal", "confidential", "special")
"""How sensitive something is, from least to most; "special" are the categories that the law names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """The person who acts. An empty id is somebody who has not signed in.

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
class Members(Shape):
    """Who is in a role on an object. Each kind that is stated must hold: one of the people, institutions and projects, and all of
    the certificates and attributes. Nothing stated is nobody; `anybody` is everyone who has signed in. People are named by their
    id, or by the e-mail address that they have here, now or later.

    >>> Members(institutions=frozenset({"north"}), training=frozenset({"GCP"})).anybody
    False
    """

    people: Identifiers | None = None
    institutions: Names | None = None
    projects: Identifiers | None = None
    training: Names = frozenset()
    attributes: Attributes = field(default_factory=dict)
    anybody: Flag = False

    @property
    def narrowed(self) -> bool:
        """Whether people, institutions or projects are named."""
        return not (self.people is None and self.institutions is None and self.projects is None)

    def _check(self, place: str) -> None:
        if self.anybody and self.narrowed:
            raise wrong(place, "“everyone” already includes the people listed", '{"anybody": true}')
        if not (self.narrowed or self.anybody or self.training or self.attributes):
            raise wrong(place, "no one is named", '{"people": ["…"]}, or {"anybody": true}')


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Hours(Shape):
    """Minutes of some days of the week, Monday being 0, in the hub's own time zone (that of `Context.now`).

    >>> Hours(days=(0, 1, 2, 3, 4), start=8 * 60, end=18 * 60).hold(datetime.fromisoformat("2026-11-20T17:59:00+00:00"))
    True
    """

    days: Days
    start: From
    end: To

    def hold(self, now: datetime) -> bool:
        """Whether a moment lies inside: the first minute does, the last one does not."""
        return now.weekday() in self.days and self.start <= now.hour * 60 + now.minute < self.end

    def _check(self, place: str) -> None:
        if self.start >= self.end:
            raise wrong(place, "it ends before it begins", "two entries, one until 24:00 and one from 00:00")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules(Shape):
    """What those in a role may do, and under which conditions; all conditions of one grant hold together.

    >>> Rules(actions=frozenset({"question.ask"}), purposes=frozenset({"research"})).columns is None
    True
    """

    actions: Grantable
    purposes: Names | None = None
    not_before: Moment | None = None
    until: End | None = None
    columns: Identifiers | None = None
    rows: Line = ""
    """A condition on rows, as SQL: those who act under this grant see the rows for which it holds."""
    share: Share | None = None
    """What one person may draw from the population's budget under this grant."""
    networks: Networks | None = None
    hours: Times | None = None
    risk: Number | None = None
    """How much better than a coin an attacker's best guess whether one person is in the data may become by what somebody draws
    under this grant: 0 is not at all, 1 is certainty (`hub/decisions/policy/risk.py`)."""
    algorithms: Identifiers | None = None
    """Guests' algorithms that may run. None: no guest's algorithm; stated: those, and no plain question."""
    methods: Methods | None = None
    """The methods by which models may be trained, by the names of `cloister.learn.METHODS`. They limit nothing else."""
    only_with: Identifiers | None = None
    """The only other objects that may be asked together with this one."""

    def _check(self, place: str) -> None:
        if not self.actions:
            raise wrong(at(place, "actions"), "a grant allows at least one action", '["question.ask"]')
        if self.not_before is not None and self.until is not None and self.not_before >= self.until:
            raise wrong(at(place, "until"), "it is not after not_before", '"2026-12-31"')
        if "algorithm.run" in self.actions and not self.algorithms and self.only_with is None:
            instead = '["…"]; on an algorithm, "only_with": ["a data set"]'
            raise wrong(at(place, "algorithms"), "a grant to run algorithms must list the algorithms", instead)
        _about_models(self, place)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantFacts(Shape):
    """A role on an object: who is in it, what they may do, and who gave it.

    >>> GrantFacts(id="g1", role="reader", members=Members(anybody=True), rules=Rules(actions=frozenset({"learn.run"}))).revoked
    False
    """

    called: ClassVar[str] = N_("the grant")
    id: str
    role: Name
    members: Annotated[Members, Form(Members.read)]
    rules: Annotated[Rules, Form(Rules.read)]
    revoked: bool = False
    granted_by: str = ""

    def _check(self, place: str) -> None:
        for key in ("role", "members", "rules"):
            if getattr(self, key) is None:
                raise wrong(place, f"it has no {key!r}", '{"role": …, "members": {…}, "rules": {…}}')


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Part(Shape):
    """What takes part in a forbidden combination: an object, a column, a column of an object, or whatever bears a label.

    >>> Part(object="health", column="diagnosis")
    Part(object='health', column='diagnosis', label='')
    """

    object: Identifier = ""
    column: Identifier = ""
    label: Name = ""


Combination: TypeAlias = frozenset[Part]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Source(Shape):
    """Where something comes from: an object, its version, and the columns of it that were read; whose it was, and whose rows it
    held, for the institution's rules.

    >>> Source(object="health", version="3", columns=("age", "sex")).columns
    ('age', 'sex')
    """

    object: Identifier
    version: Identifier = ""
    columns: Columns = ()
    behind: Columns = ()
    """Columns that were read by the condition on the rows that somebody may see, and that nobody asked about."""
    institution: Name = ""
    population: Identifier = ""

    def _check(self, place: str) -> None:
        if self.object is None:
            raise wrong(place, "it names no object", '{"object": "health"}')


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(Shape):
    """What is attached to data and travels with them: by the owner, or by a provider to what they gave. It binds the owner too.

    >>> Policy(purposes=frozenset({"research"}), prohibitions=frozenset({"synthesise.run"})).retention is None
    True
    """

    called: ClassVar[str] = N_("the policy")
    purposes: Names | None = None
    prohibitions: Actions = frozenset()
    labels: Names = frozenset()
    consent: Names = frozenset()
    sensitivity: Sensitivity = ""
    retention: End | None = None
    combinable_with: Identifiers | None = None
    forbidden: Combinations = frozenset()
    sources: Annotated[frozenset[Source], Form(set_of(Source.read))] = frozenset()
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
    """Its owner closed it: nobody asks about it, and what came from it is shown to nobody further (`shares.py`)."""
    parts: tuple[str, ...] = ()
    """The ids of the data sets that it is made of: whatever is asked of it is asked of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What is known of one population's money: what this act asks for, what was spent before, and what this person drew; or the
    budget, or the share, that this act would set.

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
class MandatoryRule(Shape):
    """A rule of the institution, above every owner. The first fields say where it applies, the others what it demands there.

    Where `actions` is None it applies to everything that reads rows or releases; its ceilings apply wherever a cost, a budget or
    a share is stated.

    >>> MandatoryRule(id="m1", title="Clinical data", labels=frozenset({"clinical"}), training=frozenset({"GCP"})).deny
    False
    """

    called: ClassVar[str] = N_("the rule")
    where: ClassVar[tuple[str, ...]] = ("institution", "labels", "populations", "for_institutions", "actions")
    id: str
    title: Line = ""
    institution: Name = ""
    """Whose objects it governs; empty: everyone's."""
    labels: Names = frozenset()
    """Objects that bear one of these; empty: all."""
    populations: Identifiers | None = None
    for_institutions: Names | None = None
    """People of these institutions; None: everyone."""
    actions: Actions | None = None
    deny: Flag = False
    epsilon_of_population: Number | None = None
    epsilon_of_allotment: Number | None = None
    delta: Number | None = None
    forbidden: Combinations = frozenset()
    training: Names = frozenset()
    second_factor: Flag = False
    purposes: Names | None = None
    networks: Networks | None = None
    methods: Methods | None = None
    """The methods by which models may be trained; None: all."""

    def _check(self, place: str) -> None:
        demands = [form for key, form in self.forms().items() if key not in ("title", *self.where)]
        if all(getattr(self, each.field) == each.default for each in demands):  # a limit of 0 forbids everything
            raise wrong(place, "it demands nothing", '{"title": "Clinical", "labels": ["clinical"], "second_factor": true}')
        if self.delta is not None and self.delta >= 1:
            raise wrong(at(place, "delta"), "it must be less than 1", '"1e-6"')
        _about_models(self, place)


def _about_models(rules: Rules | MandatoryRule, place: str) -> None:
    """A list of methods beside actions that train no model would never be looked at."""
    named = rules.actions
    if rules.methods is not None and named is not None and not any(actions()[each].by_method for each in named):
        why = "it is about training models, which is not among the actions"
        raise wrong(at(place, "methods"), why, '"actions": ["learn.run"]')


def _action(value: object, place: str) -> str:
    found = name(value, place)
    if found not in actions():
        known = ", ".join(actions())
        raise wrong(place, "the hub knows no such action", known)
    return found


def _grantable(value: object, place: str) -> str:
    name = _action(value, place)
    if not actions()[name].grantable:
        grantable = ", ".join(each.name for each in actions().values() if each.grantable)
        raise wrong(place, f"{name!r} stays with the owner", grantable)
    return name


def _methods(value: object, place: str) -> frozenset[str]:
    """An empty list could be meant as all and as none, so it says neither."""
    found = items(value, place, identifier)
    if not found:
        raise wrong(place, "it names no method; without the list, all may be used", '["GaussianNB"]')
    return frozenset(found)


def _attributes(value: object, place: str) -> dict[str, str]:
    return {name(key, place): name(each, f"{place}.{key}") for key, each in mapping(value, place).items()}


def _day(value: object, place: str) -> int:
    if value not in DAYS:
        raise wrong(place, "it is not a day of the week", ", ".join(DAYS))
    return DAYS.index(str(value))


def _minute(value: object, place: str) -> int:
    text = value if isinstance(value, str) and value.isascii() else ""
    hour, colon, minute = text.partition(":")
    if colon and len(text) == len("08:00") and hour.isdigit() and minute.isdigit():
        found = int(hour) * 60 + int(minute)
        if int(minute) < 60 and found <= 24 * 60:
            return found
    raise wrong(place, "it is not a time of day", '"08:00"')


def clock(minute: int) -> str:
    """A minute of the day as a clock shows it.

    >>> clock(8 * 60)
    '08:00'
    """
    return f"{minute // 60:02}:{minute % 60:02}"


def _combination(value: object, place: str) -> Combination:
    parts = frozenset(items(value, place, _part))
    if len(parts) < 2:
        raise wrong(place, "a combination has two different parts at least", '[{"object": "health"}, {"object": "census"}]')
    return parts


def _part(value: object, place: str) -> Part:
    found = Part.read(value, place)
    if not value:
        raise wrong(place, "it names nothing", '{"object": "health", "column": "diagnosis"}, or {"label": "clinical"}')
    return found


def _sensitivity(value: object, place: str) -> str:
    if value not in SENSITIVITIES[1:]:
        raise wrong(place, "it is not one of the levels", ", ".join(SENSITIVITIES[1:]))
    return str(value)


def _hours(value: object, place: str) -> Hours:
    return Hours.read(value, place, days=tuple(range(7)), start=0, end=24 * 60)


Actions = Annotated[frozenset[str], Form(set_of(_action))]
Grantable = Annotated[frozenset[str], Form(set_of(_grantable))]
Methods = Annotated[frozenset[str], Form(_methods)]
Attributes = Annotated[Mapping[str, str], Form(_attributes)]
Sensitivity = Annotated[str, Form(_sensitivity)]
Columns = Annotated[tuple[str, ...], Form(lambda value, place: tuple(sorted(set(items(value, place, identifier)))))]
Combinations = Annotated[frozenset[Combination], Form(set_of(_combination))]
Times = Annotated[tuple[Hours, ...], Form(tuple_of(_hours))]
Days = Annotated[
    tuple[int, ...],
    Form(lambda value, place: tuple(sorted(set(items(value, place, _day)))), lambda days: [DAYS[each] for each in days]),
]
From = Annotated[int, Form(_minute, clock, "from")]
To = Annotated[int, Form(_minute, clock, "to")]
