"""Forms: texts that differ in numbers alone are read once, and mean what the parser says all the same."""

from __future__ import annotations

import pytest

import cloister as cl
from cloister.errors import CloisterError, UnknownColumn
from cloister.noise import Random
from cloister.query import forms
from cloister.query.forms import Form, Forms, form_of, stand_ins
from cloister.query.parse import parse

PEOPLE = cl.PrivateTable(
    {"age": [30], "pay": [5], "sex": ["F"], "here": [True]},
    columns={
        "age": cl.Integer(17, 90),
        "pay": cl.Integer(0, 1000),
        "sex": cl.Category(["F", "M"]),
        "here": cl.Boolean(),
    },
)
TABLES = {"people": PEOPLE}

TEXTS = [
    "SELECT COUNT(*) AS n FROM people WHERE age > {}",
    "SELECT COUNT(*) AS n FROM people WHERE age > {} AND pay <= {}",
    "select count(*) from people p where p.age>={} or not (p.pay<{} and p.sex = 'F')",
    "SELECT SUM(pay) AS s, AVG(age) FROM people WHERE pay <> {} AND sex IN ('F', 'M') AND age BETWEEN 20 AND {}",
    "SELECT sex, COUNT(*) AS n FROM people WHERE age = {} GROUP BY sex HAVING n > {} ORDER BY n LIMIT 1",
    "SELECT sex, COUNT(*) AS n FROM people WHERE age = {} GROUP BY sex HAVING COUNT(*) > {}",
    "SELECT COUNT(*) FILTER (WHERE age > {}) AS n FROM people WHERE pay < {}",
    "SELECT COUNT(CASE WHEN age > {} THEN pay END) AS n FROM people WHERE age + pay > {}",
    "SELECT MEDIAN(pay) AS m FROM people WHERE here AND FLOOR(age / 10) * 10 = {}",
    "SELECT COUNT(*) FROM people WHERE {} < age AND 'pay > 5' <> sex AND pay = {}",
    "SELECT COUNT(*) FROM (SELECT * FROM people WHERE age > {}) AS t WHERE t.pay < {}",
    "SELECT COUNT(*) FROM people WHERE age > -{} AND pay > {}.5",
    "SELECT COUNT(*) FROM people WHERE age > {} AND nothing = {}",
    "SELECT COUNT(*) FROM people WHERE sex > {}",
    "SELECT COUNT(*) FROM people WHERE age > {} AND age > {}",
    "SELECT COUNT(*) FROM people WHERE age > {} -- AND pay > {}",
    "SELECT COUNT(*) FROM people WHERE age > {} /* AND pay > {} */",
    'SELECT COUNT(*) FROM people WHERE "age" > {}',
    "SELECT COUNT(*) FROM people WHERE age > {}; SELECT {}",
    "SELECT COUNT(*) FROM people, people AS q WHERE people.age > {}",
    "SELECT COUNT(*) FROM people TABLESAMPLE ({}) WHERE age > 3",
]
NUMBERS = ["0", "1", "7", "40", "40", "89", "1000", "999999999999999", "7310000000000009", "007", "1e3", "12345678901234567890"]


def read(reader: object, text: str, dialect: str | None) -> tuple[object, str]:
    """What a text means, or the refusal."""
    try:
        found = reader(text, TABLES, dialect)  # type: ignore[operator]
    except CloisterError as error:
        return type(error), str(error)
    return found, repr(found)


@pytest.mark.parametrize("dialect", [None, "postgres", "bigquery", "tsql", "mysql"])
def test_a_form_means_what_the_parser_says(dialect: str | None) -> None:
    known, random = Forms(), Random.deterministic(7)
    for text in TEXTS:
        for turn in range(8):
            numbers = [NUMBERS[random.bytes(1)[0] % len(NUMBERS)] for _ in range(text.count("{}"))]
            asked = text.format(*numbers)
            assert read(known.parsed, asked, dialect) == read(parse, asked, dialect), (asked, turn)


def test_a_form_is_read_when_it_comes_again_and_not_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    read_, known = [], Forms()

    def counted(sql: str, *how: object) -> object:
        read_.append(sql)
        return parse(sql, *how)  # type: ignore[arg-type]

    monkeypatch.setattr(forms, "parse", counted)
    for age in range(20, 40):
        assert known.parsed(f"SELECT COUNT(*) AS n FROM people WHERE age > {age}", TABLES, None).question.where is not None
    assert len(read_) == 3  # the first, the second, and the second with a number of ours


def test_a_form_never_crosses_to_other_columns_tables_or_dialects() -> None:
    known, text = Forms(), "SELECT COUNT(*) AS n FROM people WHERE pay > {}"
    for pay in (1, 2, 3):
        known.parsed(text.format(pay), TABLES, None)
    narrow = cl.PrivateTable({"age": [30]}, columns={"age": cl.Integer(17, 90)})
    for pay in (1, 2, 3):
        with pytest.raises(UnknownColumn):
            known.parsed(text.format(pay), {"people": narrow}, None)
    assert {key[1] for key in known._known} == {None}  # type: ignore[index]
    known.parsed(text.format(4), TABLES, "postgres")
    assert {key[1] for key in known._known} == {None, "postgres"}  # type: ignore[index]


def test_a_session_in_which_a_column_is_closed_refuses_a_form_that_another_one_knows() -> None:
    table = cl.PrivateTable({"age": [30] * 9, "pay": [5] * 9}, columns={"age": cl.Integer(17, 90), "pay": cl.Integer(0, 9)})
    with cl.Session({"people": table}, budget=cl.PureDP(100)) as session:
        ana, bob = session.on_behalf("ana"), session.on_behalf("bob", columns={"people": ["age"]})
        for pay in range(4):
            ana.sql(f"SELECT COUNT(*) AS n FROM people WHERE pay > {pay}", spend="0.1")
            with pytest.raises(UnknownColumn):
                bob.sql(f"SELECT COUNT(*) AS n FROM people WHERE pay > {pay}", spend="0.1")


def test_a_condition_of_a_view_is_joined_to_what_a_form_means() -> None:
    table = cl.PrivateTable({"age": [30, 40, 50] * 1000}, columns={"age": cl.Integer(17, 90)})
    with cl.Session({"people": table}, budget=cl.PureDP(1000)) as session:
        ana, bob = session.on_behalf("ana"), session.on_behalf("bob", rows={"people": "age < 45"})
        for age in (20, 21, 22, 23):
            text = f"SELECT COUNT(*) AS n FROM people WHERE age > {age}"
            assert abs(ana.sql(text, spend="100").to_pydict()["n"][0] - 3000) < 100
            assert abs(bob.sql(text, spend="100").to_pydict()["n"][0] - 2000) < 100


def test_new_rows_under_the_same_name_are_asked_anew() -> None:
    few, many = ({"age": [30] * rows} for rows in (1000, 9000))
    text = "SELECT COUNT(*) AS n FROM people WHERE age > {}"
    with cl.Session({"people": cl.PrivateTable(few, columns={"age": cl.Integer(17, 90)})}, budget=cl.PureDP(1000)) as session:
        digests = set()
        for rows, source in ((1000, few), (9000, many)):
            session.replace("people", cl.PrivateTable(source, columns={"age": cl.Integer(17, 90)}, population="people"))
            for age in (20, 21, 22):
                answer = session.sql(text.format(age), spend="100")
                assert abs(answer.to_pydict()["n"][0] - rows) < 100
                digests.add(answer.provenance.digest)
    assert len(digests) == 6


def test_the_forms_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "_MOST_FORMS", 10)
    known = Forms()
    for place in range(50):
        known.parsed(f"SELECT COUNT(*) AS n{place} FROM people WHERE age > 5", TABLES, None)
    assert len(known) == 10


def test_what_is_not_plain_has_no_form() -> None:
    plain = "SELECT COUNT(*) FROM people WHERE age > 5"
    assert form_of(plain) == Form("SELECT COUNT(*) FROM people WHERE age > \x01", (5,))
    for text in (f"{plain} -- x", f"{plain} /* x */", f'{plain} AND "x" = 1', f"{plain} AND x = E'\\''", plain + "é", "x" * 5000):
        assert form_of(text) is None
    assert form_of(plain.replace("5", "\x01")) is None
    assert form_of("SELECT 1 WHERE a = 'b > 5' AND c > 1.5 AND d > 5x AND e > 06 AND f > -7").numbers == ()  # type: ignore[union-attr]
    many = form_of(" AND ".join(["SELECT 1 WHERE a > 1"] + ["a > 1"] * 31))
    assert many is not None
    assert len(set(stand_ins(many))) == 32
    assert form_of(" AND ".join(["SELECT 1 WHERE a > 1"] + ["a > 1"] * 32)) is None
