"""A small world for the tests of the policy: people, objects with grants and policies, contexts, and an institution's rules."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from ipaddress import ip_network

from cloister.hub.decisions.policy import (
    Context,
    GrantFacts,
    Hours,
    MandatoryRule,
    Members,
    Object,
    Part,
    Policy,
    Rules,
    Source,
    Spend,
    Who,
)
from cloister.privacy.guarantee import ZCDP, ApproxDP, PureDP


def some(*names: str) -> frozenset[str]:
    """A set of names."""
    return frozenset(names)


NOW = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)  # a Friday
NEXT_YEAR = datetime(2027, 11, 20, 13, 0, tzinfo=UTC)
LAST_YEAR = datetime(2025, 11, 20, 13, 0, tzinfo=UTC)


def person(name: str, *roles: str, **more: object) -> Who:
    """Somebody of the institution North, unless it says otherwise."""
    return Who(**{"id": name, "email": f"{name}@north.example", "institution": "north", **more}, roles=frozenset(roles))  # type: ignore[arg-type]


_BOB = person("bob", "analyst")
_ADA = person("ada", "owner")

PEOPLE: dict[str, Who] = {
    "nobody": Who(),
    "plain": person("plain"),
    "root": person("root", "administrator"),
    "stew": person("stew", "steward"),
    "ada": _ADA,
    "odo": person("odo", "owner", institution="south"),
    "prov": person("prov", "provider"),
    "algo": person("algo", "algorithm-provider"),
    "csp": person("csp", "csp"),
    "bob": _BOB,
    "eve": person("eve", "analyst", institution="south"),
    "u3": person("u3", "analyst"),
    "carl": person("carl", "analyst"),
    "dora": person("dora", "analyst", "owner"),
    "mia": person("mia", "analyst"),
    "pia": person("pia", "analyst", projects=some("study", "other")),
    "gcp": person("gcp", "analyst", training={"GCP": NEXT_YEAR}, second_factor=True),
    "stale": person("stale", "analyst", training={"GCP": LAST_YEAR}, second_factor=True),
    "bob:token": replace(_BOB, token_scopes=some("question.ask")),
    "bob:area": replace(_BOB, token_scopes=some("question.*")),
    "bob:all": replace(_BOB, token_scopes=some("*")),
    "bob:none": replace(_BOB, token_scopes=some()),
    "ada:all": replace(_ADA, token_scopes=some("*")),
    "root:all": replace(person("root", "administrator"), token_scopes=some("*")),
    "ada:fired": replace(_ADA, roles=some()),
    "ada:both": replace(_ADA, second_factor=True, training={"GCP": NEXT_YEAR}),
    "bob:both": replace(_BOB, second_factor=True, training={"GCP": NEXT_YEAR}),
}


def grant(name: str, members: Members, *actions: str, revoked: bool = False, **rules: object) -> GrantFacts:
    """A grant by Ada."""
    return GrantFacts(
        id=name,
        role="reader",
        members=members,
        rules=Rules(actions=frozenset(actions), **rules),  # type: ignore[arg-type]
        revoked=revoked,
        granted_by="ada",
    )


def named(*people: str) -> Members:
    """These people."""
    return Members(people=frozenset(people))


_COLUMNS = some("age", "sex", "diagnosis")
_HEALTH = Object(
    kind="dataset",
    id="health",
    name="Health",
    owner="ada",
    institution="north",
    population="patients",
    columns=_COLUMNS,
    grants=(
        grant("g-all", Members(anybody=True), "dataset.see"),
        grant("g-bob", named("bob"), "question.ask", "budget.see", purposes=some("research")),
        grant("g-narrow", named("carl"), "question.ask", columns=some("age", "sex"), purposes=some("research")),
        grant("g-wide", named("carl"), "question.ask", columns=_COLUMNS, purposes=some("quality"), rows="age >= 18"),
        grant("g-gone", named("eve"), "question.ask", revoked=True),
        grant("g-algo", named("u3"), "algorithm.run", algorithms=some("a1")),
        grant("g-study", Members(projects=some("study")), "question.ask"),
        grant("g-gcp", Members(institutions=some("north"), training=some("GCP")), "learn.run"),
        grant("g-prov", named("prov"), "dataset.version", "dataset.describe"),
    ),
)
_LIMITED = Object(
    kind="dataset",
    id="limited",
    name="Limited",
    owner="ada",
    institution="north",
    population="clients",
    grants=(
        grant(
            "g-when",
            named("bob"),
            "question.ask",
            not_before=datetime(2026, 1, 1, tzinfo=UTC),
            until=datetime(2026, 12, 31, tzinfo=UTC),
        ),
        grant("g-where", named("carl"), "question.ask", networks=(ip_network("10.0.0.0/8"), ip_network("2001:db8::/32"))),
        grant("g-hours", named("u3"), "question.ask", hours=(Hours(days=(0, 1, 2, 3, 4), start=480, end=1080),)),
        grant("g-risk", named("pia"), "question.ask", "anonymize.run", "release.download", risk=Fraction(1, 20)),
        grant("g-share", named("gcp"), "question.ask", share=PureDP(1)),
        grant("g-alone", named("eve"), "question.ask", only_with=some("health")),
        grant("g-methods", named("mia"), "learn.run", "question.ask", methods=some("GaussianNB", "PCA")),
        grant("g-stranger", named("plain"), "question.ask"),
        grant("g-stolen", named("prov"), "dataset.grant", "dataset.see"),
    ),
)
OBJECTS: dict[str, Object | None] = {
    "-": None,
    "health": _HEALTH,
    "limited": _LIMITED,
    "orphan": Object(kind="dataset", id="orphan"),
    "clinical": replace(_HEALTH, id="clinical", labels=some("clinical")),
    "given": replace(
        _HEALTH,
        id="given",
        policies=(Policy(purposes=some("research"), prohibitions=some("learn.run"), retention=datetime(2027, 1, 1, tzinfo=UTC)),),
    ),
    "genes": replace(
        _HEALTH,
        id="genes",
        columns=_COLUMNS | {"gene"},
        column_policies={"gene": Policy(purposes=some("genetics"), labels=some("genetic"))},
    ),
    "alone": replace(_HEALTH, id="alone", policies=(Policy(combinable_with=some("limited")),)),
    "census": Object(
        kind="dataset", id="census", name="Census", owner="odo", institution="south", columns=some("postcode", "age")
    ),
    "algorithm": Object(
        kind="algorithm",
        id="a1",
        owner="algo",
        grants=(grant("g-run", named("u3"), "algorithm.run", only_with=some("health")),),
    ),
    "release": Object(
        kind="release",
        id="r1",
        owner="bob",
        columns=some("n"),
        labels=some("clinical"),
        grants=(grant("g-link", Members(institutions=some("north")), "release.see"),),
        policies=(
            Policy(
                purposes=some("research"),
                prohibitions=some("release.download"),
                forbidden=frozenset(
                    {frozenset({Part(object="clinical", column="age"), Part(object="census", column="postcode")})}
                ),
                sources=frozenset({Source(object="clinical", version="1", columns=("age",))}),
            ),
        ),
    ),
    "question": Object(kind="question", id="s1", owner="bob", grants=(grant("g-lent", named("carl"), "question.manage"),)),
    "job": Object(kind="job", id="j1", owner="bob"),
    "token": Object(kind="token", id="t1", owner="bob"),
    "request": Object(kind="request", id="q1", owner="bob"),
    "project": Object(
        kind="project", id="study", owner="dora", grants=(grant("g-in", Members(projects=some("study")), "project.see"),)
    ),
    "gift": Object(kind="contribution", id="c1", owner="prov"),
}

_PLAIN = Context(now=NOW, address="192.0.2.7")
_RESEARCH = replace(_PLAIN, purpose="research")


def touching(*columns: str, of: str = "health", base: Context = _RESEARCH) -> Context:
    """The base, with columns of one object touched."""
    return replace(base, columns={of: frozenset(columns)})


def costing(population: str, **spend: object) -> Context:
    """Research that costs."""
    return replace(_RESEARCH, spend={population: Spend(**spend)})  # type: ignore[arg-type]


def beside(*names: str, base: Context = _RESEARCH, **columns: frozenset[str]) -> Context:
    """Research on other objects at the same time."""
    return replace(base, together=tuple(OBJECTS[name] for name in names), columns=columns)  # type: ignore[misc]


CONTEXTS: dict[str, Context] = {
    "-": _PLAIN,
    "research": _RESEARCH,
    "marketing": replace(_PLAIN, purpose="marketing"),
    "quality": replace(_PLAIN, purpose="quality"),
    "genetics": touching("gene", of="genes", base=replace(_PLAIN, purpose="genetics")),
    "gene": touching("age", "gene", of="genes"),
    "no gene": touching("age", of="genes"),
    "age": touching("age"),
    "diagnosis": touching("diagnosis"),
    "diagnosis, quality": touching("diagnosis", base=replace(_PLAIN, purpose="quality")),
    "too early": replace(_RESEARCH, now=datetime(2025, 12, 31, 23, 59, tzinfo=UTC)),
    "first moment": replace(_RESEARCH, now=datetime(2026, 1, 1, tzinfo=UTC)),
    "last moment": replace(_RESEARCH, now=datetime(2026, 12, 30, 23, 59, 59, tzinfo=UTC)),
    "too late": replace(_RESEARCH, now=datetime(2026, 12, 31, tzinfo=UTC)),
    "after retention": replace(_RESEARCH, now=datetime(2027, 1, 1, tzinfo=UTC)),
    "inside": replace(_RESEARCH, address="10.1.2.3"),
    "inside, six": replace(_RESEARCH, address="2001:db8::1"),
    "inside, mapped": replace(_RESEARCH, address="::ffff:10.1.2.3"),
    "no address": replace(_RESEARCH, address=""),
    "sunday": replace(_RESEARCH, now=datetime(2026, 11, 22, 13, 0, tzinfo=UTC)),
    "evening": replace(_RESEARCH, now=datetime(2026, 11, 20, 18, 0, tzinfo=UTC)),
    "morning": replace(_RESEARCH, now=datetime(2026, 11, 20, 8, 0, tzinfo=UTC)),
    "low risk": replace(_RESEARCH, risk=Fraction(1, 20)),
    "high risk": replace(_RESEARCH, risk=Fraction(1, 19)),
    "risk left": costing("clients", asked=PureDP("0.05"), drawn=PureDP("0.05")),
    "risk passed": costing("clients", asked=PureDP("0.05"), drawn=PureDP("0.051")),
    "risk of others": costing("clients", asked=PureDP("0.1"), spent=PureDP(3)),
    "share left": costing("clients", asked=PureDP("0.1"), drawn=PureDP("0.9")),
    "share passed": costing("clients", asked=PureDP("0.1"), drawn=PureDP("0.91")),
    "share used up": costing("clients", asked=PureDP("0.1"), drawn=PureDP(1)),
    "share in rho": costing("clients", asked=ZCDP("0.1"), drawn=ZCDP("0.1")),
    "share mixed": costing("clients", asked=ZCDP("0.1"), drawn=ApproxDP(1, "1e-6")),
    "full": costing("patients", asked=PureDP("0.1"), spent=PureDP("2.9"), drawn=PureDP("0.1")),
    "over": costing("patients", asked=PureDP("0.11"), spent=PureDP("2.9"), drawn=PureDP("0.1")),
    "over allotment": costing("patients", asked=PureDP("0.1"), spent=PureDP("1"), drawn=PureDP("0.91")),
    "delta": costing("patients", asked=ApproxDP("0.1", "1e-5"), spent=ApproxDP(0, 0)),
    "rho": costing("patients", asked=ZCDP("0.5")),
    "little rho": costing("patients", asked=ZCDP("0.001")),
    "unlike": costing("patients", asked=ZCDP("0.1"), spent=ApproxDP(1, "1e-7")),
    "budget": costing("patients", budget=PureDP(3)),
    "big budget": costing("patients", budget=PureDP("3.01")),
    "allotment": costing("patients", allotment=PureDP(1)),
    "big allotment": costing("patients", allotment=PureDP("1.01")),
    "bayes": replace(_RESEARCH, method="GaussianNB"),
    "forest": replace(_RESEARCH, method="RandomForestClassifier"),
    "a1": replace(_RESEARCH, algorithm="a1"),
    "a2": replace(_RESEARCH, algorithm="a2"),
    "a1 on health": beside("health", base=replace(_RESEARCH, algorithm="a1")),
    "a1 on limited": beside("limited", base=replace(_RESEARCH, algorithm="a1")),
    "study": replace(_RESEARCH, project="study"),
    "other": replace(_RESEARCH, project="other"),
    "with health": beside("health"),
    "with limited": beside("limited"),
    "with census": beside("census"),
    "with postcode": beside("census", health=some("age", "diagnosis"), census=some("postcode")),
    "postcode without diagnosis": beside("census", health=some("age"), census=some("postcode")),
    "release with postcode": beside("census", census=some("postcode")),
    "release with age": beside("census", census=some("age")),
    "with release": beside("release", health=some("age")),
}

RULES: dict[str, list[MandatoryRule]] = {
    "-": [],
    "ceiling": [
        MandatoryRule(
            id="m-ceiling",
            institution="north",
            epsilon_of_population=Fraction(3),
            epsilon_of_allotment=Fraction(1),
            delta=Fraction(1, 10**6),
        )
    ],
    "no delta": [MandatoryRule(id="m-pure", epsilon_of_population=Fraction(3))],
    "clinical": [
        MandatoryRule(
            id="m-clinical",
            labels=some("clinical", "genetic"),
            training=some("GCP"),
            second_factor=True,
            purposes=some("research", "genetics"),
        )
    ],
    "deny": [MandatoryRule(id="m-deny", labels=some("clinical"), for_institutions=some("south"), deny=True)],
    "network": [MandatoryRule(id="m-net", institution="north", networks=(ip_network("10.0.0.0/8"),))],
    "methods": [MandatoryRule(id="m-methods", institution="north", methods=some("GaussianNB", "Ridge"))],
    "linkage": [
        MandatoryRule(
            id="m-link",
            forbidden=frozenset(
                {frozenset({Part(object="health", column="diagnosis"), Part(object="census", column="postcode")})}
            ),
        )
    ],
    "labels": [
        MandatoryRule(id="m-labels", forbidden=frozenset({frozenset({Part(label="clinical"), Part(object="health")})})),
    ],
    "factor": [MandatoryRule(id="m-factor", actions=some("roles.give", "dataset.delete"), second_factor=True)],
    "patients": [MandatoryRule(id="m-patients", populations=some("patients"), deny=True)],
}
