"""A steward shares a table by the pages: ten messy columns from the file to the first answer of somebody else, a codebook of
seventy-six columns, and files as people have them. What was filled in, ticked and pressed is counted and printed.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cloister.hub.records.catalogue import DataSet
from tests.hub.house import Clock, House
from tests.hub.storage.test_foreign import xlsx
from tests.hub.stories.town import CHINESE, ENGLISH, Street, Visitor, Way, walked
from tests.hub.web.browser import Guarded, browser, serve, visit

__all__ = ["browser", "serve", "visit"]

REFUSALS = ("status of 409", "status of 422")
MOST_INPUTS = 25
HEAD = ("Patient ID", "Date of Birth", "sex", "ICD-10 chapter", "Systolic BP (mmHg)", "weight_kg", "Smoker?", "Ward")
COLUMNS = (*HEAD, "q1 satisfaction", "notes")
SURVEY = 76


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, empty_hub: Path, serve: Any) -> Iterator[tuple[House, str, set[str]]]:
    """A hub, where it is served, and the kinds of its pages that somebody looked at."""
    folder = tmp_path_factory.mktemp("street") / "hub"
    shutil.copytree(empty_hub, folder)
    house = House(folder, Clock())
    yield house, serve(house.app), set()
    house.close()


@pytest.fixture
def street(shared: tuple[House, str, set[str]], visit: Callable[..., Guarded]) -> Street:
    return Street(house=shared[0], address=shared[1], visit=visit, seen=shared[2])


def messy(way: Way) -> bytes:
    """Semicolons, days as Germans write them, -99 for what is missing, a ward and a scale that no one would guess."""
    first = sum(way[0] + each for each in map(ord, way[1]))
    lines = [
        f"p{first + n % 90};{n % 28 + 1}.01.{n % 60 + 1930};{'FM'[n % 2]};IX;{n % 99 + 90};{-99 if n % 10 == 0 else n % 50 + 50};"
        f"yes;{'ABC'[n % 3]};{n % 5 + 1};fell, and was seen at night"
        for n in range(300)
    ]
    return "\n".join([";".join(COLUMNS), *lines, ""]).encode("latin-1")


def of_way(name: str, way: Way) -> str:
    """A name of its own for each way that a story is walked on one hub."""
    return f"{name}_{way[0]}_{way[1][:2]}"


def uploads(olga: Visitor, name: str, content: bytes, **written: str) -> None:
    """A file, and how its values are written."""
    olga.go("Data sets")
    olga.follow("Register a data set")
    if written:
        olga.unfold("Sheets, lines of names, and how values are written")
    for label, text in written.items():
        olga.fill(label, text)
    olga.choose("Table file", name, content)
    olga.press("Upload")


def says_whose(olga: Visitor, population: str, unit: str, most: str) -> None:
    """Which of the two shapes the table has, and whose budget it is."""
    olga.tick("one of several rows of one person; a column identifies the person")
    olga.fill("Column of the person", unit)
    olga.fill("Most rows of one person", most)
    olga.fill("Name of the new population", population)
    olga.tick("No bound, category or size above was read from the rows.")


@walked(ENGLISH)
def test_ten_messy_columns_are_shared(street: Street, way: Way, record_property: Callable[[str, object], None]) -> None:
    house, name = street.house, of_way("ward_survey", way)
    owner, ana = house.person("owner", "steward"), house.person("analyst", email=f"ana.{name}@example.org")
    olga = street.visitor(owner, way, expected=REFUSALS)
    began, before = time.monotonic(), olga.inputs
    uploads(olga, f"{name}.csv", messy(way), **{"Dates": "dmy", "Missing values": "-99"})
    olga.fill("Title", "Ward survey")
    ward, scale = olga.column("Ward"), olga.column("q1 satisfaction")
    olga.fill("Kind", "category", within=ward, exact=True)
    olga.fill("Categories, one a line; two quotes for a blank", "A\nB", within=ward)
    olga.fill("Public reason for bounds or categories", "the two wards", within=ward)
    olga.fill("Kind", "integer", within=scale, exact=True)
    olga.fill("From", "1", within=scale, exact=True)
    olga.fill("To", "5", within=scale, exact=True)
    olga.fill("Public reason for bounds or categories", "the questionnaire", within=scale)
    says_whose(olga, f"patients of {name}", "0", "10")
    olga.press("Review")
    olga.press("Make a trial reading")  # what does not fit, with its values, before anything opens
    olga.reads("Only you see this", "Values that do not fit")
    assert "× 100" in olga.main.inner_text()
    assert "-99" not in olga.main.inner_text(), "they were declared missing"
    olga.follow("Mend", exact=False)
    olga.fill("Categories, one a line; two quotes for a blank", "A\nB\nC", within=olga.column("Ward"))
    olga.press("Review")
    olga.press("Make a trial reading")
    olga.reads("Every line is a row, and every value fits.")
    olga.follow("Back to the review")
    olga.press("Open it")
    assert olga.page.url.endswith(f"/datasets/{name}/manage")
    declared, seconds = olga.inputs - before, time.monotonic() - began
    assert declared <= MOST_INPUTS

    olga.follow("Permissions")
    grant = olga.card("Grant to people")
    olga.fill("E-mail addresses", f"{ana.caller.email}, nobody.{name}@example.org", within=grant)
    olga.tick("Run queries and train models", "research", within=grant)
    olga.fill("Until", "2026-04-01", within=grant)
    olga.press("Grant", within=grant)
    waits = "No account has the address %(address)s. The grant waits until one does."
    olga.reads(olga.told(waits)[0] % {"address": f"nobody.{name}@example.org"})
    record_property(
        "counted",
        f"a steward's path, {way}: {declared} inputs and {seconds:.0f} s to open a table of {len(COLUMNS)} columns;"
        f" {olga.inputs - before} inputs and {time.monotonic() - began:.0f} s to the grant",
    )

    asker = street.visitor(ana, way, path=f"/ask?about={name}", expected=REFUSALS)
    purpose = asker.main.get_by_label(asker.named("Purpose", exact=False)).first
    assert purpose.locator("option[value=research]").count() == 1, "the purposes of the grant are offered"
    asker.fill("Query", f'SELECT "Ward", COUNT(*) AS n FROM {name} GROUP BY "Ward"')
    asker.fill("Spend", "0.2")
    asker.fill("Purpose", "research")
    asker.press("Run")
    asker.page.wait_for_url("**/releases/*")
    asker.reads("A", "B", "C", "±")


@walked(CHINESE)
def test_a_declaration_is_opened_again(street: Street, way: Way) -> None:
    """In place while nothing was charged, then as a new version; and a table of events is not declared as one of persons."""
    house, name = street.house, of_way("stays", way)
    owner = house.person("owner")
    rows = {"patient": [f"{name}{each % 90}" for each in range(300)], "nights": [each % 9 for each in range(300)]}
    nights = {"nights": {"kind": "integer", "low": 0, "high": 5}}
    row = house.sample_data_set(name, owner=owner, rows=rows, declaration={"columns": nights, "unit": "patient", "max_rows": 4})
    olga = street.visitor(owner, way, path=f"/datasets/{name}/manage", expected=REFUSALS)
    olga.follow("Declaration")
    olga.reads("Nothing has been charged yet")
    olga.tick("the only row of one person (or household, or group)")
    olga.press("Declare it so")
    assert olga.main.locator("#f-row_is_person, #f-rows_are .error, .callout.bad").count() > 0, "patient says whose row it is"
    olga.tick("one of several rows of one person; a column identifies the person")
    olga.fill("Column of the person", "0")
    olga.fill("Most rows of one person", "3")
    olga.fill("To", "9", within=olga.column("nights"), exact=True)
    olga.fill("Public reason for bounds or categories", "the ward's rule", within=olga.column("nights"))
    olga.press("Declare it so")
    street.asks(owner, f"SELECT COUNT(*) AS n FROM {name}", "0.1", purpose="research")
    olga.follow("Declaration")
    olga.reads("This will be a new version")
    olga.fill("To", "8", within=olga.column("nights"), exact=True)
    olga.press("Declare it so")
    with house.hub.database.reading() as db:
        found = db.get(DataSet, row.id)
        assert found is not None
        assert (found.version, found.population, found.declaration["max_rows"]) == (2, name, 3)
        assert found.declaration["columns"]["nights"]["high"] in (8, "8")


@walked(ENGLISH)
def test_a_survey_of_seventy_six_columns(street: Street, way: Way, record_property: Callable[[str, object], None]) -> None:
    """From the codebook that the study has; three columns that it forgot are set at once; saved, and loaded for the next file."""
    name, olga = of_way("survey", way), street.visitor(street.house.person("owner"), way, expected=REFUSALS)
    questions = [f"q{place}" for place in range(1, SURVEY)]
    lines = [f"{name}{row}," + ",".join(str((row + place) % 5 + 1) for place in range(SURVEY - 1)) for row in range(200)]
    content = "\n".join(["person," + ",".join(questions), *lines, ""]).encode()
    book = "name\tkind\tfrom\tto\n" + "".join(f"{each}\tint\t1\t5\n" for each in questions[:-3])
    began, before = time.monotonic(), olga.inputs
    uploads(olga, f"{name}.csv", content)
    olga.unfold("Fill in from a codebook, or from another data set")
    olga.fill("Lines of a codebook", book)
    olga.press("Fill in from these lines")
    assert olga.column("q72").get_by_label(olga.named("To")).input_value() == "5"
    for each in questions[-3:]:
        olga.column(each).get_by_role("checkbox").first.check()
        olga.inputs += 1
    olga.unfold("Set several columns at once")
    several = olga.main.locator("details", has=olga.page.locator("#f-all_kind"))
    olga.fill("Kind", "integer", within=several, exact=True)
    olga.fill("From", "1", within=several, exact=True)
    olga.fill("To", "5", within=several, exact=True)
    olga.fill("Public reason for bounds or categories", "the questionnaire", within=several)
    olga.press("Set them")
    assert olga.column("q75").get_by_label(olga.named("To")).input_value() == "5"
    saved = olga.saves("Save the declaration as a file")
    olga.fill("Title", "A survey")
    says_whose(olga, f"pupils of {name}", "0", "1")
    olga.press("Review")
    olga.press("Open it")
    assert olga.page.url.endswith(f"/datasets/{name}/manage")
    inputs, seconds = olga.inputs - before, time.monotonic() - began
    record_property("counted", f"{SURVEY} columns from a codebook, {way}: {inputs} inputs and {seconds:.0f} s")
    assert inputs <= MOST_INPUTS

    uploads(olga, f"{name}_next.csv", content.replace(name.encode(), b"next" + name.encode()))
    olga.unfold("A codebook as a file")
    olga.choose("Codebook", "declaration.toml", saved)
    olga.press("Fill in from this file")
    assert [olga.column(each).get_by_label(olga.named("To")).input_value() for each in ("q1", "q75")] == ["5", "5"]


@walked(CHINESE)
def test_files_that_people_have(street: Street, way: Way) -> None:
    """A workbook of two sheets: they are named, and one is chosen. A letter is no table."""
    pytest.importorskip("python_calamine")
    olga = street.visitor(street.house.person("owner"), way, expected=REFUSALS)
    name = of_way("workbook", way)
    book = xlsx(
        {"Notes": [["about", "this"]], "People": [["age", "sex"], *([30 + each % 40, "FM"[each % 2]] for each in range(50))]}
    )
    uploads(olga, f"{name}.xlsx", book)
    olga.reads("Notes, People")
    olga.fill("Sheet", "People", exact=False)
    olga.choose("Table file", f"{name}.xlsx", book)
    olga.press("Upload")
    assert olga.column("age").count() == 1
    assert olga.column("sex").count() == 1
    uploads(olga, "letter.txt", b"This is the letter that I promised you. It goes on for a while.\nYours, Ada.\n")
    assert olga.page.url.endswith("/uploads")
    olga.reads("line 1, column A: it is prose, and not the name of a column")
