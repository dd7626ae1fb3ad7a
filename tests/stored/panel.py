"""What digests, releases and documents are made of, for one thing of each kind: behind `names.json` and `releases.json`.

    python -m tests.stored.panel

An older version ran this, in its own working tree, and its output is kept here: `test_names.py` makes the same panel today and
wants the same bytes. Only public names stand here, so that the panel runs with both. What is new gets lines of its own; a line
that is there never changes, since somebody has a release, a model or a survey under it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import cloister as cl
from cloister import local
from cloister.anonymize.safepub import SafePub
from cloister.anonymize.safepub.from_tables import SafePubRows
from cloister.learn.assessment.judged_tables import Judging, Trial
from cloister.learn.assessment.judging import judge_of
from cloister.learn.frame.catalogue import METHODS
from cloister.learn.frame.encoding import Encoder
from cloister.learn.frame.from_tables import Learning, declare
from cloister.learn.frame.portable import load
from cloister.local.survey import Choice, Number, Place, Scale, Several, Survey, Word, YesNo, respond
from cloister.mining.top_tables import Picking
from cloister.noise import Random
from cloister.session import Count, Mean, Persons, Question, Sum
from cloister.session.questions.question import OverCap
from cloister.synth.choosing import Choosing
from cloister.synth.states import states_of
from cloister.tables import And, Between, Binned, Column, Compare, Expression, Identifier, In, IsNull, Like, Literal, Not, Or
from tests.learn.checks import model_of, rows_of

HERE = Path(__file__).parent
TOWNS = ["Delft", "Gouda", "Leiden"]
BUDGETS: dict[str, Any] = {"pure": cl.PureDP(10**6), "approx": cl.ApproxDP(10**6, "1e-3"), "zcdp": cl.ZCDP(10**6, "1e-3")}
RELEASED = {  # of each kind of formula, noise, column and reading
    "counts and sums": "SELECT sex, COUNT(*) AS n, COUNT(smoker) AS c, SUM(pay) AS s FROM people GROUP BY sex",
    "means": "SELECT smoker, AVG(age) AS a, AVG(pay) AS p FROM people GROUP BY smoker",
    "moments": "SELECT VARIANCE(age), STDDEV(pay), COVAR_POP(age, pay), CORR(age, pay), REGR_R2(pay, age) FROM people",
    "leaves": "SELECT MEDIAN(age) AS m, MIN(pay) AS lowest, MAX(born) AS latest, MODE(town) AS most FROM people",
    "one quantile of many values": "SELECT QUANTILE_CONT(fee, 0.25) AS q FROM visits",
    "a quantile of months": "SELECT MEDIAN(DATE_TRUNC('month', born)) AS m, MAX(age // 2) AS h FROM people",
    "a quantile of thirds": "SELECT MEDIAN(total) AS m FROM "
    "(SELECT patient, SUM(cost) / 3 AS total FROM visits GROUP BY patient) x",
    "a quantile of tens": "SELECT MEDIAN(cost * 10) AS m FROM visits",
    "modes": "SELECT MODE(smoker) AS s, MODE(age) AS a, MODE(town) AS t FROM people",
    "arithmetic": "SELECT ROUND(SUM(pay) / COUNT(*), 2) AS x, COALESCE(SUM(age) / NULLIF(COUNT(*), 0), -1) AS y FROM people",
    "a threshold": "SELECT visit, COUNT(*) AS n FROM visits GROUP BY visit",
    "sheets": "SELECT sex, town, COUNT(*) AS n FROM people GROUP BY CUBE (sex, town)",
    "months": "SELECT DATE_TRUNC('month', born) AS m, COUNT(*) AS n FROM people GROUP BY m ORDER BY n DESC LIMIT 3",
}
FOR_MARGINS = ("leaves", "one quantile of many values", "a quantile of months", "a quantile of thirds", "a quantile of tens")
"""Of these a pilot for a margin buys what every purchase bought once."""
WORKLOADS = {
    "marginals": [
        "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex",
        "SELECT town, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY town",
        "SELECT sex, town, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex, town",
    ],
    "ranges": [f"SELECT COUNT(*) AS n FROM people WHERE age < {age} AND sex = 'F'" for age in range(25, 90, 5)],
    "ranges of days": [f"SELECT COUNT(*) AS n FROM people WHERE born <= DATE '2026-{month:02}-28'" for month in range(1, 12)],
}

FURTHER = [
    "SELECT smoker, age > 40 AS old, COUNT(*) FROM people GROUP BY 1, 2",
    "SELECT MODE(smoker) AS s, MODE(ill) AS i, MODE(age) AS a, MODE(DATE_TRUNC('week', born)) AS w FROM people",
    "SELECT MIN(fee) AS f, MAX(cost * 3) AS c, MEDIAN(cost - age) AS d, QUANTILE_DISC(cost, 0.9) AS q "
    "FROM visits JOIN patients USING (patient)",
    "SELECT QUANTILE_CONT(pay, 0.1) AS p, QUANTILE_CONT(pay, 0.9) AS q, MAX(pay) - MIN(pay) AS r FROM people GROUP BY sex",
    "SELECT sex FROM people GROUP BY sex",
    "SELECT COUNT(*) FROM people WHERE town IN (SELECT a.town FROM towns a, towns b WHERE a.province = "
    "b.province AND b.inhabitants > 80)",
    "SELECT COUNT(*) FROM patients AS p WHERE NOT EXISTS (SELECT 1 FROM visits AS v WHERE v.patient = p.patient)",
    "SELECT SUM(ABS(age - 50)), SUM(age % 7), SUM(ROUND(pay)), SUM(CEIL(pay)), SUM(POWER(age, 2)) FROM people",
    "SELECT SUM(SQRT(age)), SUM(LN(age)), SUM(SIGN(age - 50)), SUM(age // 7) FROM people",
    "SELECT AVG(LEAST(GREATEST(pay / (age - 30), 0), 10)) FROM people",
    "SELECT sex, ward, COUNT(*) FROM patients JOIN visits USING (patient) GROUP BY sex, ward",
    "SELECT TOP 3 town, AVG(pay) FROM people GROUP BY town ORDER BY AVG(pay) DESC",
    "SELECT ward, SUM(cost, contribution_bounds_per_group => (0, 150)) AS total FROM visits GROUP BY ward",
]


def statements() -> list[str]:
    """The SQL whose plans the panel was made of: every statement of the documentation, and the tests' own."""
    lines = (HERE.parent / "query" / "questions.sql").read_text(encoding="utf-8").splitlines()
    pages = [
        *(HERE.parents[1] / "docs" / "reference").glob("sql.md"),
        *(HERE.parents[1] / "docs/reference/aggregates").glob("*.md"),
    ]
    for page in sorted(pages):
        for block in page.read_text(encoding="utf-8").split("```sql\n")[1:]:
            lines += block.split("```")[0].splitlines()
    return list(dict.fromkeys([*(line for line in lines if line.strip()), *RELEASED.values(), *FURTHER]))


def tables() -> dict[str, cl.PrivateTable | cl.PublicTable]:
    """Patients have visits and visits have drugs; people are one row a person; towns are public."""
    draw = np.random.default_rng(7)
    sex, town, age = cl.Category(["F", "M"]), cl.Category(TOWNS), cl.Integer(17, 90)
    year = cl.Date("2026-01-01", "2026-12-31")
    days = [f"2026-{1 + each % 12:02}-{1 + each % 28:02}" for each in range(240)]
    ages, pays = draw.integers(17, 91, 240).tolist(), (draw.integers(0, 201, 240) / 2).tolist()
    smokers = [[True, False, None][each % 3] for each in range(240)]
    people = {"age": ages, "sex": ["F", "M"] * 120, "pay": pays, "smoker": smokers, "born": days, "town": TOWNS * 80}
    people["ill"] = [0, 0, 1] * 80
    patients = {"patient": list(range(60)), "sex": ["F", "M"] * 30, "age": ages[:60], "town": TOWNS * 20}
    visits = {"patient": [each % 60 for each in range(180)], "visit": list(range(180)), "ward": ["A", "B", "C"] * 60}
    visits |= {"cost": draw.integers(0, 101, 180).tolist(), "day": days[:180], "fee": (draw.integers(0, 201, 180) / 4).tolist()}
    drugs = {"visit": list(range(180)), "dose": [each % 10 for each in range(180)], "drug": ["p", "q"] * 90}
    hospital: dict[str, Any] = {"population": "patients", "version": "1"}
    of_people = {"age": age, "sex": sex, "pay": cl.Real(0, 100, step="0.5"), "smoker": cl.Boolean(nullable=True)}
    of_people["ill"] = cl.Category([0, 1])
    of_visits = {"visit": Identifier(), "ward": cl.Category(["A", "B", "C"]), "cost": cl.Integer(0, 100), "day": year}
    of_visits["fee"] = cl.Real(0, 50_000, step="0.25")
    return {
        "people": cl.PrivateTable(people, columns={**of_people, "born": year, "town": town}, population="people", version="1"),
        "patients": cl.PrivateTable(
            patients, columns={"sex": sex, "age": age, "town": town}, unit="patient", max_rows=1, **hospital
        ),
        "visits": cl.PrivateTable(visits, columns=of_visits, unit="patient", max_rows=4, **hospital),
        "drugs": cl.PrivateTable(
            drugs,
            columns={"dose": cl.Integer(0, 9), "drug": cl.Category(["p", "q"])},
            unit="visit",
            max_rows=2,
            through="visits.visit",
            **hospital,
        ),
        "baskets": cl.PrivateTable(
            {"person": [1, 1, 2], "basket": [1, 1, 2], "item": ["tea", "milk", "tea"]},
            columns={"basket": Identifier(), "item": cl.Category(["tea", "milk", "rice"])},
            unit="person",
            max_rows=3,
            version="1",
        ),
        "towns": cl.PublicTable(
            {"town": [*TOWNS, "Utrecht"], "province": ["ZH", "ZH", "ZH", "UT"], "inhabitants": [100, 70, 120, 350]}
        ),
    }


@contextmanager
def opened(budget: Any) -> Iterator[cl.Session]:
    """A session about all tables, whose noise is no secret."""
    with cl.Session(tables(), budget=budget, random=Random.deterministic(4)) as session:
        yield session


def plans(*kinds: str) -> dict[str, dict[str, str]]:
    """By budget: the digest of each plan; what is refused has none."""
    found: dict[str, dict[str, str]] = {}
    for kind in kinds or ("approx", "zcdp"):  # under pure ε the same is measured as with a δ
        with opened(BUDGETS[kind]) as session:
            told = found[kind] = {}
            for sql in statements():
                tried(told, sql, lambda sql=sql: session.explain(sql, spend=1).digest)  # type: ignore[misc]
            for name, texts in WORKLOADS.items():
                told[f"workload of {name}"] = " ".join(each.provenance.digest for each in session.workload(texts, spend=7))
            for name, question in questions().items():
                tried(told, name, lambda question=question: session.explain(question, spend=1).digest)  # type: ignore[misc]
    return found


def tried(told: dict[str, str], name: str, made: Callable[[], str]) -> None:
    """Note what is made, unless it is refused."""
    try:
        told[name] = made()
    except cl.CloisterError:
        return


def questions() -> dict[str, Question]:
    """What a craft asks without SQL: each kind of key and condition."""
    age, sex, town = Column("age"), Column("sex"), Column("town")
    old, female = Compare(">", age, Literal(40)), Compare("=", sex, Literal("F"))
    conditions: dict[str, Expression] = {
        "a comparison": old,
        "a comparison of columns": Compare("<=", age, Column("pay")),
        "AND": And(old, female),
        "OR": Or(old, female, Compare("!=", town, Literal("Delft"))),
        "OR in AND": And(Or(old, female), Not(Like("town", "D%"))),
        "AND in OR": Or(And(old, female), And(Not(old), Not(female))),
        "NOT": Not(And(old, female)),
        "NOT NOT": Not(Not(old)),
        "IN": In("town", ("Delft", "Leiden")),
        "BETWEEN": Between("age", 30, 50),
        "IS NULL": IsNull("smoker"),
        "LIKE": Like("town", "%e_d%"),
        "a truth value": Column("smoker"),
        "a day": Compare(">=", Column("born"), Literal("2026-05-01")),
        "a fraction": Compare("<", Column("pay"), Literal(Fraction(1, 3))),
        "TRUE": Compare("=", Column("smoker"), Literal(True)),
        "NULL": Compare("=", age, Literal(None)),
    }
    counted = (Count(), Sum(column="pay"), Mean(column="age"))
    found = {name: Question(table="people", statistics=counted, where=where) for name, where in conditions.items()}
    found["bins"] = Question(table="people", statistics=counted, by=(Binned("age", [17, 30, 65, 90]), "sex"))
    found["bins of days"] = Question(table="people", statistics=counted, by=(Binned("born", ["2026-01-01", "2026-07-01"]),))
    found["persons"] = Question(table="visits", statistics=(Persons(), Count()), by=("ward",))
    found["people over the cap"] = Question(table="visits", statistics=(OverCap(),))
    return found


def methods() -> dict[str, str]:
    """The digest of each method that needs rows."""
    found: dict[str, str] = {}
    spend = cl.ApproxDP(1, "1e-6")
    with opened(BUDGETS["approx"]) as session:
        declared = session.tables["people"]
        assert isinstance(declared, cl.PrivateTable)

        def digest(name: str, method: Any, table: str = "people") -> None:
            found[name] = session.explain_run(method, table, spend).digest

        for name, model in models().items():
            target = "smoker" if model._counts else {"class": "sex", "number": "pay"}.get(model.target_kind)
            encoder = Encoder.of(declared.columns, ["age", "smoker", "town"] if name == "CategoricalNB" else ["age", "town"])
            declare(model, encoder, declared, target)
            model.rehearsed = False  # digests alone are asked: some of these could not be learnt
            run = Learning(model=model, encoder=encoder, target=target)
            tried(found, f"learning {name}", lambda run=run: session.explain_run(run, "people", spend).digest)  # type: ignore[misc]
            if target is not None:
                measure: Any = "accuracy" if model.target_kind == "class" else "r2"
                trial = Trial(model=model, measure=measure, encoder=encoder, target=target, test=Fraction(1, 5))
                tried(found, f"trial of {name}", lambda trial=trial: session.explain_run(trial, "people", spend).digest)  # type: ignore[misc]
        fitted = load(Path(HERE / "models" / "GaussianNB.json"))
        encoder = Encoder.of(declared.columns, ["age", "smoker"])
        digest("judging", Judging(model=fitted, judge=judge_of(fitted, "accuracy"), encoder=encoder, target="ill"))
        digest("somebody else's", Elsewhere())
        digest("top itemsets", Picking(item="item", basket="basket", k=2, min_size=1, max_size=2), "baskets")
        publishing = SafePub(epsilon=1, delta="1e-6", columns={"sex": declared.column("sex"), "town": declared.column("town")})
        digest("safe publication", SafePubRows(publishing))
        states = tuple(states_of({name: declared.column(name) for name in ("age", "sex", "town")}, None, table="people"))
        for method in ("mst", "aim"):
            digest(f"synthetic by {method}", Choosing(states=states, method=method, about=()))
    return found


def models_written() -> dict[str, list[str]]:
    """What the JSON of each model calls its parts."""
    found = {}
    for name in METHODS:
        model = model_of(name)
        document = json.loads(model.fit(*rows_of(name)).to_json())
        found[name] = sorted(
            {*document, *(f"{part}.{each}" for part in ("parameters", "learned") for each in keys(document[part]))}
        )
    return found


def keys(node: Any) -> Iterator[str]:
    """The names in a part of a model: of what it holds, and of what its mappings hold."""
    if isinstance(node, dict):
        for name, inner in node.items():
            yield name
            yield from keys(inner)
        yield from (str(pair[0]) for pair in node.get("mapping", ()) if isinstance(pair[0], str))
    elif isinstance(node, list):
        for inner in node:
            yield from keys(inner)


class Elsewhere:
    """A method that is not of this library: it goes by its module and its name, which are its author's to keep."""

    columns = ("age",)

    def describe(self) -> dict[str, Any]:
        return {"what": "nothing"}

    def guarantee(self, spend: cl.PureDP, declaration: cl.PrivateTable) -> cl.PureDP:
        return spend

    def release(self, rows: Any, declaration: Any, guarantee: Any, random: Any) -> dict[str, Any]:
        return {"nothing": 0}


def models() -> dict[str, Any]:
    """Each model, as nobody has fitted it: with the defaults that it had when its digest was written down."""
    import cloister.learn

    then: dict[str, dict[str, Any]] = {"NeuralClassifier": {"clip": 1.0}}
    return {name: getattr(cloister.learn, name)(**then.get(name, {})) for name in METHODS}


def releases() -> dict[str, str]:
    """Releases as they are stored."""
    with opened(BUDGETS["pure"]) as session:
        found = {"counts and sums, pure": session.sql(RELEASED["counts and sums"], spend=10).to_json()}
    for kind in ("approx", "zcdp"):
        with opened(BUDGETS[kind]) as session:
            for name, sql in RELEASED.items():
                if name in FOR_MARGINS:
                    session.spend_for(sql, within=10**9, pilot=10)
                found[f"{name}, {kind}"] = session.sql(sql, spend=10).to_json()
            found[f"combined, {kind}"] = session.sql(RELEASED["leaves"], spend=25).to_json()
            for place, answer in enumerate(session.workload(WORKLOADS["marginals"], spend=7)):
                found[f"marginal {place}, {kind}"] = answer.to_json()
    return found


ANSWERS = {"copied": True, "why": "time", "hard": "fair", "where": ["home"], "hours": 12, "home": (52.0, 4.3), "subject": "law"}


def survey() -> Survey:
    """One question of each kind."""
    return Survey(
        "exams-2026",
        "Exams",
        levels={"careful": 1, "open": "3"},
        questions=[
            YesNo("copied", "Have you ever copied?"),
            Choice("why", "Why?", options=("time", "grade")),
            Scale("hard", "How hard was it?", steps=("easy", "fair", "hard")),
            Several("where", "Where?", options=("home", "hall", "bus"), most=2),
            Number("hours", "How many hours?", low="0", high="60"),
            Place("home", "Where do you live?", south=51.0, west=3.0, north=53.0, east=7.0, rows=2, columns=3),
            Word("subject", "Which subject?", no_answer=False),
        ],
        cap=40,
    )


def protocols() -> dict[str, str]:
    """The key of each protocol, by which reports are counted together."""
    words = ["a", "b", "c", "d"]
    oracles = ("DirectEncoding", "UnaryEncoding", "HistogramEncoding", "LocalHashing", "HadamardResponse", "SubsetSelection")
    found = {name: getattr(local, name)(words, epsilon=1).key for name in oracles}
    found["CountMeanSketch"] = local.CountMeanSketch(words, epsilon=1).key
    found |= {
        name: getattr(local, name)(low=-1, high=1, epsilon=1).key for name in ("LocalLaplace", "Duchi", "Piecewise", "Hybrid")
    }
    found["SquareWave"] = local.SquareWave(epsilon=1).key
    found["RandomizedResponse"] = local.RandomizedResponse(epsilon=1).key
    return found


def names() -> dict[str, Any]:
    """Everything but the releases."""
    asked = survey()
    return {
        "plans": plans(),
        "methods": methods(),
        "models": models_written(),
        "survey": {
            "document": {name: part for name, part in asked.to_dict().items() if name != "promises"},  # texts for people
            "report": json.loads(respond(asked, ANSWERS, "open", random=Random.deterministic(1)).to_json()),
        },
        "protocols": protocols(),
    }


def main() -> None:
    """Write them."""
    from tests.stored.panel import names, releases  # so that what is made here has the module's name, and not that of a program

    (HERE / "names.json").write_text(json.dumps(names(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    lines = [f"{json.dumps(name)}: {json.dumps(text)}" for name, text in releases().items()]
    (HERE / "releases.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
