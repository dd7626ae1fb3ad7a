"""What is refused on a page is refused in Chinese: each kind of refusal that people can meet there, provoked on a hub."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from cloister.hub.records.catalogue import DataSet
from cloister.hub.web.render import LANGUAGE_COOKIE
from cloister.privacy import ApproxDP, PureDP
from tests.hub.access.forms import token
from tests.hub.house import PEOPLE, READS, House, Visitor

TALK = re.compile(r"\b[A-Za-z][a-z]+ [a-z]{2,}\b")
"""Two words of English, one after the other."""
UNTOLD = re.compile(
    r"<(code|pre|option|textarea|script)\b.*?</\1>|'[^']*'|\"[^\"]*\"|https?://\S+|"
    r"<dt>(?:决定性规则|The rule that decided)</dt><dd>[^<]*</dd>",
    re.DOTALL,
)
"""What people and programs wrote."""
MAY = (*READS, "release.download", "release.share", "question.manage", "question.see", "learn.run")
VISITS = {
    "columns": {
        "patient": {"kind": "identifier"},
        "ward": {"kind": "text"},
        "day": {"kind": "date", "low": "2026-01-01", "high": "2026-12-31"},
        "stay": {"kind": "integer", "low": 0, "high": 30},
    },
    "unit": "patient",
    "max_rows": 3,
}
ROWS = {
    "patient": [f"p{each % 90}" for each in range(200)],
    "ward": [("north", "south")[each % 2] for each in range(200)],
    "day": ["2026-03-01"] * 200,
    "stay": [each % 20 for each in range(200)],
}


@dataclass
class Scene:
    """A hub with data sets of three kinds, and everybody who meets a refusal there, in a Chinese browser."""

    house: House
    owner: Visitor
    ana: Visitor
    steward: Visitor
    boss: Visitor
    giver: Visitor

    def send(self, who: Visitor, path: str, page: str = "", /, **form: Any) -> str:
        """A form of a page, sent: what came back, or what the page says to which it leads."""
        made = who.client.get(page or path)
        found = re.findall(r'name="(key|form_token)" value="([^"]+)"', made.text)
        fields = {name: html.unescape(value) for name, value in found}
        assert "form_token" in fields, made.text[:300]
        answer = who.client.post(path, data={**fields, **form})
        return self.shown(who, answer)

    def shown(self, who: Visitor, answer: Any) -> str:
        if answer.status_code in (302, 303):
            answer = who.client.get(answer.headers["location"])
        text: str = answer.text
        return text


@pytest.fixture
def scene(house: House) -> Scene:
    owner = house.person("owner", email="olga@example.org", name="Olga")
    ana = house.person("analyst", email="ana@example.org", name="Ana")
    everybody = [
        owner,
        ana,
        house.person("steward"),
        house.person("administrator"),
        house.person("provider", email="gil@example.org"),
    ]
    people = house.sample_data_set("people", owner=owner, budget=PureDP(1))
    approx = house.sample_data_set("visits", owner=owner, budget=ApproxDP(2, "1e-6"), rows=ROWS, declaration=VISITS)
    house.sample_data_set("hidden", owner=house.person("owner"))
    for each in (people, approx):
        house.grant(each, ana, by=owner, actions=MAY)
    with house.hub.database.begin() as db:
        db.get_one(DataSet, people.id).provider = "gil@example.org"
    for each in everybody:
        each.client.cookies.set(LANGUAGE_COOKIE, "zh_CN")
    return Scene(house, *everybody)


def refusals(page: str) -> list[str]:
    """The parts of a page that say what is wrong: callouts, the lists above forms, what the page before left to say."""
    found = re.findall(r'<div class="callout (?:bad|warn)[^"]*".*?</div>\s*</div>', page, re.DOTALL)
    found += re.findall(r'<p class="error".*?</p>|<span class="error".*?</span>', page, re.DOTALL)
    return found


def english(part: str) -> str:
    """What a part says in English, where it says anything."""
    text = html.unescape(re.sub(r"<[^>]+>", " ", UNTOLD.sub(" ", html.unescape(UNTOLD.sub(" ", part)))))
    found = TALK.search(" ".join(text.split()))
    return " ".join(text.split()) if found else ""


def checked(page: str, about: Any) -> None:
    parts = refusals(page)
    assert parts, (about, page[:2000])
    left = [said for part in parts if (said := english(part))]
    assert not left, (about, left)


SQL = [
    "",
    "hello",
    "SELECT",
    "SELECT 1",
    "DELETE FROM people",
    "DROP TABLE people; SELECT COUNT(*) FROM people",
    "SELECT * FROM people",
    "SELECT age FROM people",
    "SELECT COUNT(*) FROM nowhere",
    "SELECT COUNT(*) FROM hidden",
    "SELECT COUNT(height) FROM people",
    "SELECT AVG(height) FROM people",
    "SELECT AVG(sex) FROM people",
    "SELECT SUM(sex) FROM people",
    "SELECT MAX(age) FROM people",
    "SELECT MEDIAN(sex) FROM people",
    "SELECT COUNT(*) AS n, COUNT(*) AS n FROM people",
    "SELECT COUNT(*) FROM people GROUP BY",
    "SELECT age, COUNT(*) FROM people GROUP BY sex",
    "SELECT COUNT(*) FROM people WHERE age",
    "SELECT COUNT(*) FROM people WHERE age > 'x'",
    "SELECT COUNT(*) FROM people WHERE sex LIKE '%F%'",
    "SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM people)",
    "SELECT COUNT(*) FROM people WHERE RANDOM() > 0.5",
    "SELECT COUNT(*) FROM people LIMIT 3",
    "SELECT COUNT(*) FROM people ORDER BY age",
    "SELECT COUNT(*) FROM people HAVING COUNT(*) > 3",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING age > 3",
    "SELECT DISTINCT age FROM people",
    "SELECT COUNT(*) OVER () FROM people",
    "SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM people",
    "SELECT COUNT(*) FROM people, people",
    "SELECT COUNT(*) FROM people NATURAL JOIN visits",
    "SELECT COUNT(*) FROM people CROSS JOIN visits",
    "SELECT COUNT(*) FROM people JOIN visits ON people.age = visits.stay",
    "SELECT COUNT(*) FROM people a LEFT JOIN people b ON a.age < b.age",
    "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM visits)",
    "SELECT CORR(age, sex) FROM people",
    "SELECT AVG(age / 0) FROM people",
    "SELECT AVG(age * age * age * age * age * age * age * age * age) FROM people",
    "SELECT SUM(CASE WHEN sex = 'F' THEN age ELSE 'x' END) FROM people",
    "SELECT AVG(CAST(sex AS INTEGER)) FROM people",
    "SELECT QUANTILE(age, 2) FROM people",
    "SELECT SUM(DISTINCT age) FROM people",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    "SELECT patient, COUNT(*) FROM visits GROUP BY patient",
    "SELECT COUNT(*) FROM visits WHERE day > 'soon'",
    "SELECT AVG(day) FROM visits GROUP BY day, stay, ward",
    "SELECT AVG(stay) FROM visits WHERE ward",
    "WITH t AS (SELECT * FROM people) SELECT COUNT(*) FROM t",
    "SELECT COUNT(*) FROM (SELECT age FROM people LIMIT 2) t",
    "SELECT COUNT(*) FROM information_schema.tables",
    "SELECT read_csv('x')",
    "SELECT COUNT(*) FROM read_csv('x')",
    'SELECT COUNT(*) AS "" FROM people',
    "SELECT SUM(age + ) FROM people",
    "SELECT COUNT(*) FROM people WHERE (age > 3",
    "SELECT COUNT(*) FROM people -- \x01",
]
"""Questions that are wrong, each in its own way; a few are answered, and then nothing is refused."""
FIELDS: list[dict[str, str]] = [
    {"spend": "much"},
    {"spend": "-1"},
    {"spend": "0"},
    {"spend": "5"},
    {"spend": "1e400"},
    {"spend": ""},
    {"spend": "", "within": "fifty"},
    {"spend": "", "within": "-3"},
    {"spend": "0.1", "within": "5"},
    {"by": "margin", "spend": "", "within": ""},
    {"by": "margin", "spend": "0.0001", "within": "0.01"},
    {"by": "margin", "spend": "0.1", "within": "5", "sql": "SELECT AVG(age) FROM people"},
    {"by": "margin", "spend": "", "within": "5", "pilot": "0.01", "sql": "SELECT AVG(age) FROM people"},
    {"by": "margin", "spend": "0.1", "within": "5", "pilot": "x", "sql": "SELECT AVG(age) FROM people"},
    {"purpose": "x" * 1001},
    {"project": "none"},
    {"algorithm": "never-was"},
    {"sql": "x" * 50_001},
    {"key": ""},
]
COUNT = "SELECT COUNT(*) AS n FROM people"


def test_wrong_questions(scene: Scene) -> None:
    """One hub for all of them. Few are answered, so that a change of the language of questions does not empty this test."""
    refused, known = 0, {"form_token": token(scene.ana, "/ask")}
    for sql in SQL:
        form = {"sql": sql, "spend": "0.01", "confidence": "0.95"}
        explained = scene.ana.client.post("/ask/explain", data={**known, **form})
        if explained.status_code == 200 and "callout bad" not in explained.text:
            continue
        refused += explained.status_code >= 400
        checked(explained.text, sql)
        checked(scene.send(scene.ana, "/ask", **form), sql)
    assert refused >= len(SQL) - 14


def test_wrong_fields_of_the_workbench(scene: Scene) -> None:
    for fields in FIELDS:
        checked(scene.send(scene.ana, "/ask", **{"sql": COUNT, "spend": "0.1", "confidence": "0.95", **fields}), fields)


def test_what_budgets_and_policies_refuse(scene: Scene) -> None:
    """Share, purpose, hours, network, columns, algorithm, risk, retention, prohibition; the owner, the giver, the institution."""
    house, owner, ana = scene.house, scene.owner, scene.ana
    rules: list[dict[str, Any]] = [
        {"purposes": ["care"]},
        {"columns": ["sex"]},
        {"share": {"epsilon": "0.01"}},
        {"risk": "0.001"},
        {"networks": ["10.0.0.0/8"]},
        {"hours": [{"days": ["sunday"], "from": "01:00", "to": "02:00"}]},
        {"until": "2026-01-01T00:00:00Z"},
        {"not_before": "2030-01-01T00:00:00Z"},
        {"algorithms": ["none"]},
    ]
    for place, rule in enumerate(rules):
        row = house.sample_data_set(f"d{place}", owner=owner)
        house.grant(row, ana, by=owner, actions=MAY, **rule)
        form = {"sql": f"SELECT AVG(age) AS a FROM d{place}", "spend": "0.9", "purpose": "research", "confidence": "0.95"}
        checked(scene.send(ana, "/ask", **form), rule)
    policies: list[dict[str, Any]] = [
        {"purposes": ["care"]},
        {"prohibitions": ["question.ask"]},
        {"retention": "2020-01-01"},
        {"purposes": 3},
    ]
    for place, policy in enumerate(policies):
        for part in ("policy", "contribution"):
            row = house.sample_data_set(f"p{place}-{part}".replace("-", "_"), owner=owner)
            house.grant(row, ana, by=owner, actions=MAY)
            with house.hub.database.begin() as db:
                db.get_one(DataSet, row.id).metadata_ = {"policy": {}, "columns": {}, "contribution": {}, part: policy}
                from cloister.hub.generation import bump

                bump(db)
            checked(scene.send(ana, "/ask", sql=f"SELECT COUNT(*) AS n FROM {row.name}", spend="0.1", purpose="x"), policy)
    for body in (
        {"title": "None", "deny": True},
        {"title": "Trained", "training": ["GCP"]},
        {"title": "Ceiling", "epsilon_of_population": "0.05"},
        {"title": "Purpose", "purposes": ["care"]},
        {"title": "Here", "networks": ["10.0.0.0/8"]},
    ):
        made = scene.steward.client.post("/api/v1/policy/rules", json=body, headers=scene.steward.csrf())
        assert made.status_code in (201, 422), made.text
        if made.status_code == 201:
            checked(scene.send(ana, "/ask", sql=COUNT, spend="0.1", purpose="research"), body)
            scene.steward.client.delete(f"/api/v1/policy/rules/{made.json()['id']}", headers=scene.steward.csrf())


Act = Callable[[Scene], str]
ACTS: dict[str, Act] = {
    "a page that is not there": lambda s: s.ana.client.get("/no/such/page").text,
    "a data set that is not open": lambda s: s.ana.client.get("/datasets/hidden").text,
    "a release of nobody": lambda s: s.ana.client.get("/releases/none").text,
    "a page of another role": lambda s: s.ana.client.get("/people").text,
    "the trail": lambda s: s.ana.client.get("/trail").text,
    "a form of another page": lambda s: s.ana.client.post("/ask", data={"sql": COUNT}).text,
    "a method that an address does not take": lambda s: s.ana.client.delete("/ask").text,
    "a query that is not understood": lambda s: s.ana.client.get("/releases?which=other").text,
    "a log-in": lambda s: _logging_in(s),
    "a password": lambda s: s.send(s.ana, "/account/password", current="x", password="short", again="short"),
    "a token": lambda s: s.send(s.ana, "/account/tokens", name="", scopes=["question.ask"], days="9999"),
    "an invitation": lambda s: s.send(s.boss, "/people/invite", email="nobody", roles=["analyst"]),
    "a population's larger budget": lambda s: s.send(s.owner, "/budgets/people/raise", "/budgets/people", amount="0.5", why="x"),
    "a larger budget that is no number": lambda s: s.send(
        s.owner, "/budgets/people/raise", "/budgets/people", amount="much", why="x"
    ),
    "a share of nobody": lambda s: s.send(s.owner, "/budgets/people/shares", "/budgets/people", who="", amount="0.1"),
    "a share beyond the budget": lambda s: s.send(
        s.owner, "/budgets/people/shares", "/budgets/people", who="ana@example.org", amount="x"
    ),
    "a δ above the floor": lambda s: s.send(
        s.owner, "/budgets/visits/raise", "/budgets/visits", amount="3", delta="0.001", why="more"
    ),
    "a grant without actions": lambda s: s.send(s.owner, "/datasets/people/access/new", role="r", people="ana@example.org"),
    "a grant to nobody": lambda s: s.send(s.owner, "/datasets/people/access/new", role="r", actions=["question.ask"]),
    "a grant with a wrong condition": lambda s: s.send(
        s.owner, "/datasets/people/access/new", role="r", people="ana@example.org", actions=["question.ask"], rows="height > 3"
    ),
    "a grant that ended": lambda s: s.send(
        s.owner, "/datasets/people/access/new", role="r", people="ana@example.org", actions=["question.ask"], until="soon"
    ),
    "a grant with a share of another kind": lambda s: s.send(
        s.owner, "/datasets/people/access/new", role="r", people="ana@example.org", actions=["question.ask"], share="x"
    ),
    "a rule that demands nothing": lambda s: s.send(s.steward, "/policy/rules", "/policy", title="None"),
    "a rule with a wrong number": lambda s: s.send(s.steward, "/policy/rules", "/policy", title="T", epsilon_of_population="x"),
    "a request without a purpose": lambda s: s.send(s.ana, "/access/requests/new?data_set=people", data_set="people", purpose=""),
    "a project's name": lambda s: s.send(s.ana, "/projects", name="No Name", title="", purpose=""),
    "a description": lambda s: s.send(s.owner, "/datasets/people/describe", "/datasets/people/manage", title="", retention="x"),
    "what is combined with nothing that is": lambda s: s.send(
        s.owner, "/datasets/people/describe", "/datasets/people/manage", title="T", combinable_with="nothing"
    ),
    "a deletion": lambda s: s.send(s.owner, "/datasets/people/delete", "/datasets/people/manage", confirmed="no"),
    "a provider's policy": lambda s: s.send(s.giver, "/contributions/people", retention="soon"),
    "a saved question's name": lambda s: s.send(s.ana, "/ask/save", "/ask", sql=COUNT, spend="0.1", title=""),
    "a model without features": lambda s: s.send(s.ana, "/learn", table="people", method="GaussianNB", spend="0.1", target="sex"),
    "a model of a target that is none": lambda s: s.send(
        s.ana, "/learn", table="people", method="GaussianNB", spend="0.1", target="age", features=["age"]
    ),
    "a model that costs too much": lambda s: s.send(
        s.ana, "/learn/expected", "/learn", table="people", method="GaussianNB", spend="x", target="sex", features=["age"]
    ),
    "a model by no method": lambda s: s.send(
        s.ana, "/learn", table="people", method="None", spend="0.1", target="sex", features=["age"]
    ),
    "an anonymised table without parts": lambda s: s.send(s.owner, "/anonymised/new", table="people", k="5"),
    "a k that is no number": lambda s: s.send(s.owner, "/anonymised/new", table="people", k="x", part_0="quasi"),
    "an upload": lambda s: _uploaded(s, "x.csv", b"PK\x03\x04"),
    "an upload in UTF-16": lambda s: _uploaded(s, "x.csv", "age\n3\n".encode("utf-16-le")),
    "an upload of no rows": lambda s: _uploaded(s, "x.csv", b"age,sex\n"),
    "an upload of one name twice": lambda s: _uploaded(s, "x.csv", b"age,age\n1,2\n"),
    "an upload of wild quotes": lambda s: _uploaded(s, "x.csv", b'"age,sex\n1,2\n'),
    "no Parquet file": lambda s: _uploaded(s, "x.parquet", b"PAR1xxxxxxxxxxxx"),
    "a connection": lambda s: s.send(s.owner, "/register/connect", "/register", address="http://x"),
    "a survey without questions": lambda s: _survey(s),
}
"""What people do on the other pages, and may not."""


def _logging_in(s: Scene) -> str:
    client = s.house.client()
    client.cookies.set(LANGUAGE_COOKIE, "zh_CN")
    found = re.search(r'name="form_token" value="([^"]+)"', client.get("/login").text)
    assert found is not None
    form = {"form_token": html.unescape(found[1]), "email": "nobody@example.org", "password": "wrong and long enough"}
    text: str = client.post("/login", data=form).text
    return text


def _uploaded(s: Scene, name: str, content: bytes) -> str:
    data = {"form_token": token(s.owner, "/register")}
    kind = "parquet" if name.endswith(".parquet") else "csv"
    return s.shown(s.owner, s.owner.client.post("/register", data={**data, "kind": kind}, files={"file": (name, content)}))


def _survey(s: Scene) -> str:
    made = s.owner.client.post("/api/v1/surveys", json={"title": "S"}, headers=s.owner.csrf()).json()["id"]
    return s.send(s.owner, f"/surveys/{made}/open", f"/surveys/{made}")


@pytest.mark.parametrize("name", ACTS)
def test_what_is_refused_on_other_pages(scene: Scene, name: str) -> None:
    checked(ACTS[name](scene), name)


def test_refusals_that_are_looked_for_are_seen(scene: Scene) -> None:
    """In English each of these pages fails the check: it looks where they speak."""
    scene.ana.client.cookies.set(LANGUAGE_COOKIE, "en")
    for page in (
        scene.send(scene.ana, "/ask", sql="SELECT * FROM people", spend="0.1"),
        scene.ana.client.get("/no/such/page").text,
        scene.send(scene.ana, "/ask", sql=COUNT, spend="5"),
    ):
        assert any(english(part) for part in refusals(page)), page
    assert PEOPLE
