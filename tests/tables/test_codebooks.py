"""Codebooks in every form become drafts of a declaration; what is wrong is said by line and column; nothing outside is read."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

import cloister as cl
from cloister.errors import CloisterError, InvalidDeclaration
from cloister.tables.declaring.codebooks import read_codebook
from cloister.tables.declaring.draft import Codebook, ColumnDraft, declaration_text
from cloister.tables.declaring.labels import read_labels
from cloister.tables.declaring.vocabulary import reasons, suggest

TODAY = datetime.date(2026, 11, 23)
CSV = """\ufeffVariable;Type;From;To;Codes;Missing;Label
age;int;0;120;;-99;Age
sex;code;;;1=male|2=female|9=refused;9;Sex

web;text;;;;;
"""
SCHEMA = {
    "primaryKey": "id",
    "missingValues": ["", "NA"],
    "fields": [
        {"name": "id", "type": "integer"},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M", "NA"]}, "title": "Sex"},
        {"name": "grade", "type": "string", "categories": [{"value": 1, "label": "one"}, {"value": 2, "label": "two"}]},
        {"name": "born", "type": "date", "constraints": {"minimum": "1900-01-01", "maximum": "2026-12-31"}},
        {"name": "ok", "type": "boolean"},
    ],
}
DDI = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5"><dataDscr>
<var name="V1" intrvl="discrete"><labl>Age in
 years</labl><valrng><range min="16" max="99"/></valrng><invalrng><item VALUE="-9"/></invalrng>
 <sumStat type="min">17</sumStat><sumStat type="max">87</sumStat><varFormat type="numeric"/></var>
<var name="V2"><labl>Sex</labl><catgry><catValu>1</catValu><labl>male</labl><catStat type="freq">411</catStat></catgry>
 <catgry><catValu>2</catValu><labl>female</labl></catgry><catgry missing="Y"><catValu>9</catValu></catgry>
 <varFormat type="numeric"/></var>
<var name="V3" intrvl="contin"><valrng><range min="0" max="10"/></valrng><catgry><catValu>0</catValu></catgry>
 <catgry><catValu>10</catValu></catgry><varFormat type="numeric"/></var>
<var name="V4"><varFormat type="character"/></var><var name="V5"><varFormat type="numeric" category="date"/></var>
</dataDscr></codeBook>"""
SQL = """
-- people
CREATE TABLE clinic.people (
  id BIGINT PRIMARY KEY, age SMALLINT NOT NULL CHECK (age BETWEEN 0 AND 120), sex CHAR(1) CHECK (sex IN ('F', 'M')),
  pay NUMERIC(10, 2), temp REAL, ok BOOLEAN, seen DATE, note TEXT,
  CHECK (pay >= 0 AND pay <= 500000), CONSTRAINT warm CHECK (temp > -10 AND temp < pay));
"""


def said(book: Codebook, *parts: str) -> dict[str, list[object]]:
    return {name: [getattr(draft, part) for part in parts] for name, draft in book.columns.items()}


def test_lines_and_what_is_pasted_from_a_sheet() -> None:
    for text in (CSV, CSV.replace(";", "\t")):
        book = read_codebook(text)
        assert said(book, "kind", "high", "values", "missing") == {
            "age": ["integer", "120", (), ("-99",)],
            "sex": ["category", "", ("1", "2"), ("9",)],
            "web": ["text", "", (), ()],
        }


def test_chinese_marks_divide_and_span_as_others_do() -> None:
    lines = ["性别，分类，1=男；2＝女", "婚姻，分类，未婚、已婚、离异", "年龄，整数（岁），0～120", "身高，数值，0.5 至 2.5"]
    found = read_codebook("\n".join(["变量，类型，取值", *lines, "级，分类，甲：好｜乙：差"]))
    assert said(found, "kind", "low", "high", "values") == {
        "性别": ["category", "", "", ("1", "2")],
        "婚姻": ["category", "", "", ("未婚", "已婚", "离异")],
        "年龄": ["integer", "0", "120", ()],
        "身高": ["real", "0.5", "2.5", ()],
        "级": ["category", "", "", ("甲", "乙")],
    }


def test_a_number_whose_range_cannot_be_read_stays_a_number_without_bounds() -> None:
    """It was a category of one value, of which every row is NULL."""
    lines = ["a;integer;0~120", "b;integer;0-120 years", "c;date;since 1900", "d;integer;1=yes, 2=no", "e;category;1-5"]
    found = read_codebook("\n".join(["name;type;values", *lines]))
    assert said(found, "kind", "high", "values") == {
        "a": ["integer", "120", ()],
        "b": ["integer", "", ()],
        "c": ["date", "", ()],
        "d": ["category", "", ("1", "2")],
        "e": ["category", "", ()],
    }
    for name in "be":
        with pytest.raises(CloisterError):
            found.columns[name].domain(name)


def test_a_table_schema_and_a_data_package() -> None:
    package = {"resources": [{"name": "towns", "schema": {"fields": []}}, {"name": "people", "schema": SCHEMA}]}
    for text in (json.dumps(SCHEMA), json.dumps(package)):
        book = read_codebook(text, table="people")
        assert said(book, "kind", "low", "values")["sex"] == ["category", "", ("F", "M")]
        assert [each.kind for each in book.columns.values()] == [
            "identifier",
            "integer",
            "category",
            "category",
            "date",
            "boolean",
        ]
        assert book.columns["age"].missing == ("NA",)
    with pytest.raises(InvalidDeclaration, match="several tables"):
        read_codebook(json.dumps(package), table="cars")


def test_ddi_takes_ranges_and_codes_and_nothing_that_was_counted() -> None:
    book = read_codebook(DDI)
    assert said(book, "kind", "low", "high", "values") == {
        "V1": ["integer", "16", "99", ()],
        "V2": ["category", "", "", ("1", "2")],
        "V3": ["real", "0", "10", ()],
        "V4": ["text", "", "", ()],
        "V5": ["date", "", "", ()],
    }
    assert book.columns["V1"].about == "Age in years"
    assert "87" not in repr(book)
    assert "411" not in repr(book)


def test_entities_are_refused_where_a_document_type_begins(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("kestrel")
    for inside in (
        f'<!ENTITY x SYSTEM "file://{secret}">',
        '<!ENTITY x "a"><!ENTITY y "&x;&x;&x;">',
        f'<!ENTITY % x SYSTEM "{secret}"> %x;',
    ):
        text = f'<!DOCTYPE codeBook [{inside}]><codeBook><var name="&x;"/></codeBook>'
        with pytest.raises(InvalidDeclaration, match="entities are not read"):
            read_codebook(text)
    with pytest.raises(InvalidDeclaration, match="line 1: it is not XML"):
        read_codebook("<codeBook>&x;</codeBook>")
    with pytest.raises(InvalidDeclaration, match="nested too deep"):
        read_codebook("<a>" * 100)


def test_create_table_in_two_dialects() -> None:
    book = read_codebook(SQL)
    assert said(book, "kind", "low", "high", "step") == {
        "id": ["identifier", "", "", ""],
        "age": ["integer", "0", "120", ""],
        "sex": ["category", "", "", ""],
        "pay": ["real", "0", "500000", "0.01"],
        "temp": ["real", "-10", "", ""],
        "ok": ["boolean", "", "", ""],
        "seen": ["date", "", "", ""],
        "note": ["text", "", "", ""],
    }
    assert book.notes == ("a CHECK says more than bounds and lists, and was not taken whole",)
    mysql = read_codebook(
        "CREATE TABLE `p` (`sex` ENUM('F','M') COMMENT 'Sex', `n` INT UNSIGNED, PRIMARY KEY (`n`)) ENGINE=InnoDB"
    )
    assert said(mysql, "kind", "values", "about") == {"sex": ["category", ("F", "M"), "Sex"], "n": ["identifier", (), ""]}


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("INTERVAL", ""), ("INT4RANGE", ""), ("DATERANGE", ""), ("NUMRANGE", ""), ("POINT", ""), ("TIME", ""),
        ("SMALLINT", "integer"), ("BIGSERIAL", "integer"), ("INT UNSIGNED", "integer"),
        ("REAL", "real"), ("NUMERIC(5, 1)", "real"), ("MONEY", "real"), ("DOUBLE PRECISION", "real"),
        ("DATE", "date"), ("TIMESTAMPTZ", "date"), ("DATETIME", "date"), ("TINYINT(1)", "boolean"), ("BOOLEAN", "boolean"),
    ],
)  # fmt: skip
def test_a_type_is_that_and_not_one_whose_name_it_holds(written: str, kind: str) -> None:
    assert read_codebook(f"CREATE TABLE t (a {written})").columns["a"].kind == kind


def test_a_column_that_is_said_to_be_null_may_be() -> None:
    book = read_codebook("CREATE TABLE t (a INT NULL, b INT NOT NULL, c INT)")
    assert said(book, "nullable") == {"a": [True], "b": [False], "c": [False]}


def test_what_a_statistics_package_says(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"sex": [1.0, 2.0], "liking": [0.0, 10.0], "town": ["kestrel", "x"], "age": [31.0, 64.0]})
    labels = {"sex": {1: "m", 2: "f", 9: "refused"}, "liking": {0: "not", 10: "very"}}
    path = tmp_path / "survey.sav"
    more = {"missing_ranges": {"sex": [9], "age": [{"lo": -99, "hi": -99}]}, "variable_format": {"age": "F3.0"}}
    pyreadstat.write_sav(frame, path, column_labels={"sex": "Sex"}, variable_value_labels=labels, **more)
    book = read_labels(path)
    assert said(book, "kind", "values", "missing", "high") == {
        "sex": ["category", ("1", "2"), ("9",), ""],
        "liking": ["integer", (), (), "10"],
        "town": ["text", (), (), ""],
        "age": ["integer", (), ("-99",), ""],
    }
    assert "kestrel" not in repr(book)
    path.write_bytes(b"$FL2" + b"\0" * 40)
    with pytest.raises(InvalidDeclaration, match="damaged"):
        read_labels(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name,type\nage,geometry\n", "line 2, column B: the kind is not one of"),
        ("name,type\nage,int\nage,int\n", "line 3, column A: 'age' stands twice"),
        ("label;name;type\nx;;int\n", "line 2, column B: the name is missing"),
        ("this is prose, and no codebook\n", "called name, column or variable"),
        ("{", "JSON"),
        ('{"fields": [{"type": "integer"}]}', "the field 1 has no name"),
        ("CREATE TABLE a (x INT); CREATE TABLE b (x INT)", "several tables"),
        ("CREATE TABLE ((", "no CREATE TABLE that can be read"),
        ("[tables.people\n", "declarations file"),
        ("name\n", "it describes no column"),
        ("<x/>", "no variables"),
        ("name" * 3_000_000, "longer than"),
        ("a" + "\n" * 1_000_000 + "a", "called name, column or variable"),  # bombs: each would take minutes or hours to try
        ("create " * 14_000, "called name, column or variable"),
        ("CREATE TABLE a (x INT);" + " " * 10**6 + "x", "longer than"),
        (f"name,values\na,1{'.' * 100_000}x\na,1", "stands twice"),
        (f"name,values\na,x{' ' * 100_000}x\na,1", "stands twice"),
        ('{"fields": [{"name": "a", "constraints": {"enum": 5}}, {}]}', "the field 2 has no name"),
        ('{"declaration": 5}', "declares no column"),
    ],
)
def test_what_is_wrong_is_said_as_sheets_do(text: str, why: str) -> None:
    with pytest.raises(InvalidDeclaration, match=why) as found:
        read_codebook(text)
    assert found.value.__context__ is None


def test_suggestions_are_of_the_name_alone_and_can_be_declared() -> None:
    names = [
        "ID",
        "Geschlecht",
        "Age at entry",
        "year_of_birth",
        "ICD-10 chapter",
        "land",
        "Income (EUR)",
        "smoker",
        "email",
        "年龄",
        "x17",
    ]
    found = suggest(names, today=TODAY)
    kinds = ["identifier", "category", "integer", "integer", "category", "category", "real", "boolean", "", "integer"]
    assert [found[name].kind for name in names[:-1]] == kinds
    assert "x17" not in found
    assert len(found["land"].values) == 249
    assert len(found["ICD-10 chapter"].values) == 22
    for name in ("age_group", "hospital_name", "image", "Asexuality", "wages paid by whom", "page"):
        assert suggest([name]) == {}, name
    for name, draft in found.items():
        if draft.kind:
            draft.domain(name)
            assert draft.reason or draft.kind in ("identifier", "boolean", "text")
    assert all(text.isascii() or "°" in text for text in reasons())


def test_names_of_registers_and_surveys_are_known() -> None:
    texts = ("education", "occupation", "region", "state", "language", "diagnosis", "Native language")
    assert {name: draft.kind for name, draft in suggest(texts).items()} == dict.fromkeys(texts, "text")
    for name in ("marital_status", "ethnicity", "Race", "EMPLOYMENT_STATUS", "country_of_birth"):
        [draft] = suggest([name]).values()
        assert draft.kind == "category", name
        assert draft.reason, name
        draft.domain(name)
    found = suggest(["AGE_AT_DIAGNOSIS", "HbA1c %", "date_of_diagnosis", "number_of_children", "weight [kg]"])
    assert [(draft.kind, draft.high) for draft in found.values()] == [
        ("integer", "120"), ("real", "20"), ("date", ""), ("integer", "15"), ("real", "300"),
    ]  # fmt: skip
    assert suggest(["number of diagnosis", "n_state"]) == {}


def test_codes_in_a_name_are_not_read_as_words() -> None:
    found = suggest(["Sex (1=male)", "Sex (1=male, 2=female)", "smoker [0: no, 1: yes]"])
    assert [(draft.kind, draft.values) for draft in found.values()] == [
        ("category", ()), ("category", ("1", "2")), ("category", ("0", "1")),
    ]  # fmt: skip


def test_a_scale_of_years_is_not_one_of_months() -> None:
    yearly = suggest(["income"])["income"]
    for name in ("income_monthly", "monthly_net_income", "Income per month", "pay/month"):
        assert suggest([name])[name].high == "50000", name
    assert suggest(["hourly_wage", "weekly pay", "income per day"]) == {}
    assert suggest(["annual income"])["annual income"] == yearly


def test_a_declaration_is_written_and_read_again() -> None:
    drafts = {
        "age": ColumnDraft(kind="integer", low="0", high="120", reason='the "register"'),
        "pay (€)": ColumnDraft(kind="real", low="0", high="5000", step="0.5", nullable=True, reason="scale"),
        "sex": ColumnDraft(kind="category", values=("F", "M\\"), reason="codes"),
        "born": ColumnDraft(kind="date", low="1900-01-01", high="2026-12-31", reason="since 1900"),
        "id": ColumnDraft(kind="identifier"),
    }
    book = Codebook(columns=drafts, unit="id", max_rows=3)
    text = declaration_text("people", "people.csv", dict.fromkeys(drafts, "text"), book)
    assert read_codebook(text) == book
    domains = {name: draft.domain(name) for name, draft in drafts.items()}
    assert domains["pay (€)"] == cl.Real(0, 5000, step="0.5", nullable=True)
    with pytest.raises(CloisterError, match="a bound is missing"):
        ColumnDraft(kind="integer", low="1").domain("n")


def test_the_data_dictionary_of_redcap() -> None:
    head = (
        'Variable / Field Name,Form Name,Field Type,Field Label,"Choices, Calculations, OR Slider Labels",'
        "Text Validation Type OR Show Slider Number,Text Validation Min,Text Validation Max"
    )
    lines = [
        "age,demo,text,Age,,integer,18,99",
        'sex,demo,radio,Sex,"1, Male | 2, Female | 9, Unknown",,,',
        "consent,demo,yesno,Consent,,,,",
        "about,demo,descriptive,Please read this,,,,",
        'ills,demo,checkbox,Ills,"1, Cough | 2, Fever",,,',
        "born,demo,text,Born,,date_dmy,1920-01-01,2010-12-31",
        'bmi,demo,calc,BMI,"[weight] / ([height] ^ 2)",,,',
        "email,demo,text,E-mail,,email,,",
    ]
    found = read_codebook("\n".join([head, *lines])).columns
    assert {name: each.kind for name, each in found.items()} == {
        "age": "integer",
        "sex": "category",
        "consent": "boolean",
        "born": "date",
        "bmi": "real",
        "email": "text",
    }
    assert found["sex"].values == ("1", "2", "9")
    assert (found["age"].low, found["born"].high, found["bmi"].values) == ("18", "2010-12-31", ())
