"""A messy file is set right in one round: the trial reading guesses how cells are written, and the owner sends one form."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from sqlalchemy import select

from cloister.hub.platform.catalogue.cleaning import cleaned, guessed
from cloister.hub.platform.catalogue.sources import table_store_of
from cloister.hub.records.catalogue import Arrival
from cloister.hub.records.owner_views import OwnerView
from cloister.hub.records.trail import AuditLine
from tests.hub.catalogue.world import FORM, Sender, World, text_of

COLUMNS = {
    "height": ("real", "0", "2.5", "0.01", "", ["1,72", "1,60", "1,80", "NA"]),
    "weight": ("integer", "0", "200", "", "", ["72 kg", "60 kg", "80 KG", "-"]),
    "pay": ("real", "0", "5000", "0.01", "", ["1.234,50", "999,5", "2.000", "n/a"]),
    "town": ("integer", "0", "2000000", "", "", ["1 234", "106 000", "1 250 000", "k.A."]),
    "fee": ("real", "0", "100", "0.5", "", ["€ 3,50", "€ 10", "€ 0,50", "  "]),
    "born": ("date", "1930-01-01", "2026-12-31", "", "", ["31.12.1984", "1.2.1990", "03.04.2001", "unbekannt"]),
    "visit": ("date", "2020-01-01", "2026-12-31", "", "", ["12/31/2024", "1/2/2025", "03/04/2025", "missing"]),
    "last": ("moment", "2020-01-01", "2026-12-31", "", "", ["31.12.24 10:30", "01.02.25 9:00", "03.04.25 23:59", "?"]),
    "sex": ("category", "", "", "", "Female\nMale", ["f", "F ", "Female", "Unknown"]),
    "smokes": ("boolean", "", "", "", "", ["ja", "Nein", "true", "n/a"]),
}
ROWS = 40
FILE = (
    ";".join(COLUMNS) + "\n" + "".join(";".join(each[-1][row % 4] for each in COLUMNS.values()) + "\n" for row in range(ROWS))
).encode()
EVIL = "<script>alert(1)</script>"
HOSTILE = [
    EVIL,
    "=1+1",
    "@SUM(A1)",
    "Q" * 10_000,
    "a\u202eb",
    "a\x01b",
    '<b title="',
    "f = <i>",
    "1e9 kg lb",
    "31.31.31",
    "&amp;",
]


class _Fields(HTMLParser):
    """What a browser sends of the form that has a hidden field "cells"."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict[str, str]] = []
        self.labelled: set[str] = set()
        self.ids: list[str] = []
        self._name, self._text = "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        name = told.get("name", "")
        if tag == "form":
            self.forms.append({})
        elif tag == "label":
            self.labelled.add(told.get("for", ""))
        elif tag == "input" and name and self.forms:
            self.forms[-1][name] = told.get("value", "")
        elif tag == "select" and self.forms:
            self._name = name
            self.forms[-1][name] = ""
        elif tag == "option" and "selected" in told:
            self.forms[-1][self._name] = told["value"]
        elif tag == "textarea":
            self._name, self._text = name, ""
        if tag in ("input", "select", "textarea") and told.get("type") != "hidden":
            self.ids.append(told.get("id", ""))

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self.forms:
            self.forms[-1][self._name] = self._text.removeprefix("\n")


def form_in(page: str) -> dict[str, str]:
    found = _Fields()
    found.feed(page)
    [form] = [each for each in found.forms if "cells" in each]
    assert {each for each in found.ids if each.startswith("f-c")} <= found.labelled
    del form["form_token"], form["form_once"]
    return form


def declared(columns: dict[str, tuple[str, str, str, str, str, list[str]]]) -> dict[str, str]:
    form = {name: text for name, text in FORM.items() if not name.startswith("c")}
    for place, (kind, low, high, step, values, _) in enumerate(columns.values()):
        parts = {"kind": kind, "low": low, "high": high, "step": step, "values": values, "reason": "the codebook"}
        form |= {f"c{place}_{part}": text for part, text in parts.items()}
    return form | {"epsilon": "1000000"}


def tried(ada: Sender, number: str, **cells: str) -> str:
    answer = ada.post(f"/register/{number}/trial", f"/register/{number}/review", **cells)
    assert answer.status_code == 303, answer.text
    return str(ada.get(f"/register/{number}/trial").text)


def test_a_messy_file_is_set_right_in_one_form_and_answers(world: World, ada: Sender) -> None:
    number = ada.arrival(FILE, "messy.csv")
    assert ada.declare(number, **declared(COLUMNS)).status_code == 303
    page = tried(ada, number)
    assert "10 columns have values that do not fit." in text_of(page)
    form = form_in(page)
    assert {name: text for name, text in form.items() if text} == {
        "cells": "yes",
        "c0_missing": "NA",
        "c1_units": "kg",
        "c1_missing": "-",
        "c2_numbers": "comma",
        "c2_missing": "n/a",
        "c3_numbers": "point",
        "c3_missing": "k.A.",
        "c4_numbers": "comma",
        "c4_units": "€",
        "c4_missing": '""',
        "c5_missing": "unbekannt",
        "c6_dates": "mdy",
        "c6_missing": "missing",
        "c7_dates": "dmy",
        "c7_pivot": "26",
        "c7_missing": "?",
        "c8_spellings": "F = Female\nf = Female",
        "c8_missing": "Unknown",
        "c9_spellings": "Nein = false\nja = true",
        "c9_missing": "n/a",
    }
    page = tried(ada, number, **form)
    assert "Every line is a row, and every value fits." in text_of(page)
    assert form_in(page) == form  # what was said stays, to be changed until the table opens
    opened = ada.post(f"/register/{number}/open", f"/register/{number}/review")
    assert opened.headers["location"] == "/datasets/people/manage"
    read = ada.api("GET", "/datasets/people/reading").json()
    assert read["columns"] == {name: {"given": 30, "nulled": 0, "clamped": 0} for name in COLUMNS}
    sums = "SUM(height) AS height, SUM(weight) AS weight, SUM(pay) AS pay, SUM(town) AS town, SUM(fee) AS fee"
    dates = "MONTH(born) = 12 AND YEAR(born) = 1984", "MONTH(visit) = 12", "last >= '2025-01-01'", "sex = 'Female'", "smokes"
    counts = ", ".join(f"SUM(CASE WHEN {each} THEN 1 ELSE 0 END) AS n{place}" for place, each in enumerate(dates))
    answer = ada.api("POST", "/questions", json={"sql": f"SELECT {sums}, {counts} FROM people", "spend": "900000"})
    assert answer.status_code == 201, answer.text
    told = {name: values[0] for name, values in answer.json()["columns"].items()}
    wanted = {"height": 51.2, "weight": 2120, "pay": 42340, "town": 13_572_340, "fee": 140}
    assert told == pytest.approx(wanted | {"n0": 10, "n1": 10, "n2": 20, "n3": 30, "n4": 20}, abs=0.4, rel=1e-4)
    page = ada.get("/datasets/people").text
    assert not any(each in page for each in ("unbekannt", "k.A.", "Nein", "72 kg"))


def test_what_is_said_of_the_cells_is_kept_as_the_reading_is(world: World, ada: Sender) -> None:
    number = ada.arrival(FILE, "messy.csv")
    ada.declare(number, **declared(COLUMNS))
    form = form_in(tried(ada, number))
    tried(ada, number, **form)
    said = next(each for each in world.rows(OwnerView) if each.kind == "cells")
    assert b"unbekannt" not in said.wrapped
    assert said.order == {}
    assert "unbekannt" not in str([each.typed for each in world.rows(Arrival)])
    assert not any("unbekannt" in str(each.details) for each in world.rows(AuditLine))
    ada.declare(number, **declared(COLUMNS))  # the declaration is another form
    assert form_in(ada.get(f"/register/{number}/trial").text) == form
    ada.post(f"/register/{number}/trial", f"/register/{number}/review", **{**form, "c0_missing": ""})
    assert "1 column has values that do not fit." in text_of(ada.get(f"/register/{number}/trial").text)
    bob = world.owner("bob@example.org")
    assert bob.post(f"/register/{number}/trial", "/register", **form).status_code == 404
    ada.post(f"/register/{number}/discard", "/register")
    assert world.rows(OwnerView) == []


def test_a_guess_is_made_of_ones_own_file_alone(world: World, ada: Sender) -> None:
    number = ada.arrival(FILE, "messy.csv")
    ada.declare(number, **declared(COLUMNS))
    tried(ada, number, **form_in(tried(ada, number)))
    bob = world.owner("bob@example.org")
    own = bob.arrival(b"height;weight\n1.5;x\n1.6;70\n1.7;70\n", "messy.csv")
    bob.declare(own, **declared({name: COLUMNS[name] for name in ("height", "weight")}))
    form = form_in(tried(bob, own))
    assert form == {"cells": "yes", "c1_numbers": "", "c1_units": "", "c1_missing": ""}


def test_hostile_cells_are_shown_escaped_and_are_no_guess(world: World, ada: Sender) -> None:
    columns = {name: COLUMNS[name] for name in ("height", "born", "sex", "smokes")}
    rows = "".join(";".join([f'"{each.replace(chr(34), chr(34) * 2)}"'] * len(columns)) + "\n" for each in HOSTILE)
    number = ada.arrival((";".join(columns) + "\n" + rows).encode(), "hostile.csv")
    ada.declare(number, **declared(columns))
    page = tried(ada, number)
    told = text_of(page)
    assert EVIL not in page
    assert EVIL in told
    assert "Q" * 81 not in page
    assert "Q" * 80 + "…" in told
    assert "a⟨U+202E⟩b" in told
    form = form_in(page)
    assert set(form.values()) == {"yes", ""}
    assert form_in(tried(ada, number, **form)) == form


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("c8_spellings", "f -> Female", "an equals sign"),
        ("c8_spellings", "= Female", "an equals sign"),
        ("c7_pivot", "x", "0 to 99"),
    ],
)
def test_what_is_wrong_with_the_form_is_said_above_it_and_stays_in_it(ada: Sender, field: str, text: str, said: str) -> None:
    number = ada.arrival(FILE, "messy.csv")
    ada.declare(number, **declared(COLUMNS))
    form = form_in(tried(ada, number)) | {field: text, "c0_missing": "typed by hand"}
    answer = ada.post(f"/register/{number}/trial", f"/register/{number}/review", **form)
    assert answer.status_code == 422
    assert said in text_of(answer.text)
    assert "Instead" in answer.text
    assert form_in(answer.text) == form


def test_cells_are_read_once_however_often_the_table_is_opened(world: World, ada: Sender) -> None:
    number = ada.arrival(b"height\n" + b'"1,725"\n' * 5)
    ada.declare(number, **declared({"height": ("real", "0", "2000", "0.001", "", [])}))
    assert "1 column" in text_of(tried(ada, number))
    tried(ada, number, cells="yes", c0_numbers="comma")
    with world.hub.database.reading() as db:
        arrival = db.scalars(select(Arrival)).one()
    once = cleaned(world.hub, arrival)
    assert cleaned(world.hub, arrival).file == once.file != arrival.file
    assert len(list((table_store_of(world.hub).folder / "tables").iterdir())) == 1
    ada.post(f"/register/{number}/open", f"/register/{number}/review")
    sql = "SELECT SUM(height) AS height FROM people"
    told = ada.api("POST", "/questions", json={"sql": sql, "spend": "900000"}).json()
    assert told["columns"]["height"] == pytest.approx([8.625], abs=0.5)


@pytest.mark.parametrize(
    ("kind", "cells", "guess"),
    [
        ("real", ["1,234"], {}),  # 1.234 or 1234: nothing tells
        ("real", ["1,234", "3,5"], {"numbers": "comma"}),
        ("real", ["70 kg", "150 lb"], {}),  # two units are two measures
        ("real", ["1.5 k", "2 Mio"], {}),
        ("real", ["12 %", "3 %"], {"units": "%"}),
        ("integer", ["999999"], {}),
        ("date", ["01/02/2024"], {}),  # the first of February, or the second of January
        ("date", ["01.02.2024"], {"dates": "dmy"}),
        ("date", ["2024/02/01"], {"dates": "ymd"}),
        ("date", ["31/12/1850"], {}),  # beyond the bounds
        ("category", ["a", "al", "B."], {"spellings": "B. = Beta"}),  # Alpha or Alto
        ("category", ["Beta ", "BETA", "b e t a"], {"spellings": "Beta = Beta\nBETA = Beta\nb e t a = Beta"}),
        ("boolean", ["oui", "perhaps"], {"spellings": "oui = true"}),
    ],
)
def test_nothing_is_guessed_that_could_be_two_things(kind: str, cells: list[str], guess: dict[str, str]) -> None:
    dates, numbers = {"low": "1900-01-01", "high": "2026-12-31"}, {"low": "0", "high": "5000"}
    bounds = {"date": dates, "real": numbers, "integer": numbers}.get(kind, {})
    found = {"nulled_values": [[each, 1] for each in cells], "clamped_values": []}
    assert guessed({"kind": kind, "values": ["Alpha", "Alto", "Beta"], **bounds}, found) == guess


def test_a_code_beyond_the_bounds_is_guessed_to_be_a_missing_value() -> None:
    found = {"nulled_values": [], "clamped_values": [["-99", 3], ["200", 1]]}
    assert guessed({"kind": "integer", "low": 0, "high": 120}, found) == {"missing": "-99"}
