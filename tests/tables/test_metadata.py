"""SmartNoise's metadata files become declarations, or are refused by the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.tables.declaring.metadata import read_metadata

PUMS = """
# people in California, several rows each
"":
  PUMS:
    PUMS_pid:          # the table
      max_ids: 3
      rows: 1000
      clamp_counts: True
      'pid':
        type: int
        private_id: True
      age:
        type: int
        lower: 0
        upper: 1e2
        nullable: yes
      pay: { }
      married:
        type: boolean
      state:
        type: string
        cardinality: 50
      born:
        type: datetime
        lower: 1900-01-01
        upper: "2026-12-31"
      weight:
        type: float
        lower: -1.5
        upper: 2
        sensitivity: 3
      height:
        type: float
"""
TEXT = PUMS.replace("      pay: { }\n", "")


def test_a_file_declares_columns_unit_cap_and_size(tmp_path: Path) -> None:
    path = tmp_path / "people.yaml"
    path.write_text(TEXT, encoding="utf-8")
    for given in (TEXT, path, str(path)):
        found = read_metadata(given)
        assert (found.name, found.unit, found.max_rows, found.size) == ("PUMS.PUMS_pid", "pid", 3, 1000)
        assert dict(found.columns) == {
            "age": cl.Integer(0, 100, nullable=True),
            "married": cl.Boolean(),
            "state": cl.Text(),
            "born": cl.Date("1900-01-01", "2026-12-31"),
            "weight": cl.Real("-1.5", 2),
        }
        assert found.notes == (
            "clamp_counts is not used: it belongs to SmartNoise's mechanisms",
            "sensitivity of 'weight' is not used: it follows from the bounds",
            "the column 'height' is left out: its bounds are not declared",
        )


def test_the_arguments_make_a_table() -> None:
    found = read_metadata({"people": {"row_privacy": True, "age": {"type": "int", "lower": 0, "upper": 9}}})
    table = cl.PrivateTable({"age": [3]}, **found.arguments())
    assert (table.unit, table.max_rows, table.columns["age"]) == (None, None, cl.Integer(0, 9))


def test_a_person_has_one_row_where_no_cap_is_given_and_a_note_says_so() -> None:
    columns = {"pid": {"type": "int", "private_id": True}, "sex": {"type": "string"}}
    found = read_metadata({"people": columns})
    assert (found.unit, found.max_rows) == ("pid", 1)
    assert "max_ids" in found.notes[0]
    rows = read_metadata({"people": {"row_privacy": True, **columns}})
    assert (rows.unit, rows.max_rows) == (None, None)
    assert "'pid' is not the unit" in rows.notes[0]


def test_a_table_among_several_is_named() -> None:
    entries: dict[str, Any] = {"row_privacy": True, "sex": {"type": "string"}}
    tree = {"": {"a": {"people": entries}, "b": {"people": entries, "pets": entries}}}
    assert read_metadata(tree, "pets").name == "b.pets"
    assert read_metadata(tree, "a.people").name == "a.people"
    for wanted in (None, "people", "nobody"):
        with pytest.raises(cl.InvalidDeclaration, match=r"a\.people"):
            read_metadata(tree, wanted)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (PUMS, "Line 17"),
        (TEXT + "\tx: 1\n", "Line"),
        (TEXT + "- a\n- b\n", "Line"),
        (TEXT.replace("type: boolean", "type: !!python/object:os.system x"), "Line"),
        (TEXT.replace("type: boolean", "type: &anchor boolean"), "Line"),
        (TEXT.replace("type: boolean", "type: blob"), "'blob'"),
        (TEXT.replace("type: boolean", "kind: boolean"), "'married'"),
        (TEXT.replace("lower: 0", "lower: 200"), "'age'"),
        (TEXT.replace("lower: 0", "lower: many"), "'age'"),
        (TEXT.replace("max_ids: 3", "max_ids: 0"), "max_ids"),
        (TEXT.replace("        private_id: True\n", ""), "private_id"),
        (TEXT.replace("      married:", "      age:"), "twice"),
        ("a:\n" + "".join(" " * k + "b:\n" for k in range(1, 40)), "Line"),
        ("nothing\n", "Line"),
        ("x: 1\n", "no table"),
        ("nowhere.yaml", "no file"),
        ("a: b\n" * 300_000, "longer"),
    ],
)
def test_everything_else_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(cl.InvalidDeclaration) as refusal:
        read_metadata(text)
    assert named in str(refusal.value)
    assert refusal.value.instead
