"""`cloister mine`: files in and out, JSON, refusals, and nothing half written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cloister.cli.main import cli
from cloister.errors import CloisterError, InvalidParameter
from cloister.mining import association_rules

SOLD = [["beer", "crisps"]] * 4 + [["beer", "crisps", "jam"]] * 2 + [["beer"]] * 3 + [["jam", "tea"]] * 5
THRESHOLDS = ["--min-support", "0.2", "--min-confidence", "0.6"]


@pytest.fixture
def long(tmp_path: Path) -> Path:
    path = tmp_path / "sold.csv"
    rows = "".join(f"{number},{item}\n" for number, basket in enumerate(SOLD) for item in basket)
    path.write_text(f"order,product\n{rows}", encoding="utf-8")
    return path


NAMED = ["--basket", "order", "--item", "product"]


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, ["mine", *map(str, words)], catch_exceptions=False)


def refused(*words: object) -> CloisterError:
    with pytest.raises(CloisterError) as found:
        CliRunner().invoke(cli, ["mine", *map(str, words)], catch_exceptions=False, standalone_mode=False)
    assert found.value.instead
    return found.value


def test_items_and_rules(long: Path) -> None:
    told = run("items", long, "--min-support", "0.4", *NAMED).output
    assert "{beer}" in told
    assert "NOT PRIVATE" in told
    found = json.loads(run("items", long, "--min-support", "0.4", "--json", *NAMED).output)
    assert found["baskets"] == 14
    assert found["itemsets"][0] == {"items": ["beer"], "count": 9, "support": 9 / 14}
    rules = json.loads(run("rules", long, *THRESHOLDS, "--json", *NAMED).output)["rules"]
    assert {(tuple(rule["antecedent"]), tuple(rule["consequent"])) for rule in rules} == {
        (tuple(rule.antecedent), tuple(rule.consequent))
        for rule in association_rules(SOLD, min_support="0.2", min_confidence="0.6")
    }
    assert "1 more" in run("rules", long, *THRESHOLDS, "--most", len(rules) - 1, *NAMED).output


@pytest.mark.parametrize("shape", ["long", "wide", "lists"])
def test_hiding_writes_the_shape_that_it_read(shape: str, long: Path, tmp_path: Path) -> None:
    items = ["beer", "crisps", "jam", "tea"]
    names: list[str] = []
    if shape == "long":
        source, out, names = long, tmp_path / "safe.csv", NAMED
    elif shape == "wide":
        source, out = tmp_path / "wide.csv", tmp_path / "safe.csv"
        lines = [",".join(items), *(",".join(str(int(item in basket)) for item in items) for basket in SOLD)]
        source.write_text("\n".join(lines) + "\n")
    else:
        source, out = tmp_path / "sold.txt", tmp_path / "safe.txt"
        source.write_text("\n".join(",".join(basket) for basket in SOLD) + "\n")
    told = run("hide", source, "--rule", "beer -> crisps", *THRESHOLDS, "--out", out, "--json", *names)
    assert json.loads(told.output)["hiding_failure"] == 0
    rules = json.loads(run("rules", out, *THRESHOLDS, "--json", *names).output)
    assert rules["baskets"] == 14
    assert [rule for rule in rules["rules"] if rule["antecedent"] == ["beer"] and rule["consequent"] == ["crisps"]] == []
    assert not list(tmp_path.glob(".*.part"))


def test_parquet_is_read(tmp_path: Path) -> None:
    import polars

    path = tmp_path / "sold.parquet"
    rows = [(number, item) for number, basket in enumerate(SOLD) for item in basket]
    polars.DataFrame({"basket": [row[0] for row in rows], "item": [row[1] for row in rows]}).write_parquet(path)
    assert json.loads(run("items", path, "--min-support", "0.4", "--json").output)["baskets"] == 14


def test_the_comparison_and_its_picture(long: Path, tmp_path: Path) -> None:
    chart, listed = tmp_path / "all.html", tmp_path / "rules.json"
    listed.write_text('[[["beer"], ["crisps"]], "tea -> jam"]')
    told = run("hide", long, "--rules", listed, *THRESHOLDS, "--compare", "--chart", chart, *NAMED).output
    assert "max-min" in told
    assert "proved" in told
    assert "vega" in chart.read_text()


def test_top_charges_a_ledger(long: Path, tmp_path: Path) -> None:
    universe, ledger = tmp_path / "items.txt", tmp_path / "budget.db"
    universe.write_text("\ufeffbeer\ncrisps\njam\ntea\n", encoding="utf-8")  # as a spreadsheet writes it
    words = ["top", long, "--items", universe, "--max-items", 3, "--count", 2, "--epsilon", "0.5", "--ledger", ledger, *NAMED]
    found = json.loads(run(*words, "--json").output)
    assert (len(found["itemsets"]), found["guarantee"]) == (2, "ε = 0.5")
    assert "\ufeff" not in json.dumps(found, ensure_ascii=False)
    assert found["margin"] > 0
    assert "ε = 0.5" in CliRunner().invoke(cli, ["ledger", "show", str(ledger)]).output
    refused(*words)


@pytest.mark.parametrize("name", ["sold.txt", "sold.BASKET", "wide.csv", "wide.PQ", "long.csv"])
def test_top_reads_every_shape_that_the_others_read(name: str, tmp_path: Path) -> None:
    """The first person's basket was read as a line of names, and stood in the error."""
    import polars

    items = ["beer", "crisps", "jam", "tea"]
    universe, source = tmp_path / "items.txt", tmp_path / name
    universe.write_text("\n".join(items))
    wide = polars.DataFrame({item: [int(item in basket) for basket in SOLD * 100] for item in items})
    if name.startswith("wide"):
        wide.write_csv(source) if name.endswith("csv") else wide.write_parquet(source)
    elif name.startswith("long"):
        lines = [f"{number},{item}" for number, basket in enumerate(SOLD * 100) for item in basket]
        source.write_text("\n".join(["basket,item", *lines]))
    else:
        source.write_text("\n".join(",".join(basket) for basket in SOLD * 100))
    told = run("top", source, "--items", universe, "--max-items", 3, "--count", 1, "--epsilon", 100, "--json").output
    [found] = json.loads(told)["itemsets"]
    assert found["items"] == ["beer"]
    assert abs(found["count"] - 900) < 20


@pytest.mark.parametrize(
    "words",
    [
        ["items", "nowhere.csv", "--min-support", "0.1"],
        ["hide", "{long}", "--min-support", "0.2", "--min-confidence", "0.6"],
        ["hide", "{long}", "--rule", "wine -> jam", *THRESHOLDS, *NAMED],
        ["hide", "{long}", "--rule", "beer -> crisps", *THRESHOLDS, "--out", "safe.txt", *NAMED],
        ["hide", "{long}", "--rule", "beer -> crisps", *THRESHOLDS, "--compare", "--out", "safe.csv", *NAMED],
        ["hide", "{long}", "--rule", "beer -> crisps", *THRESHOLDS, "--chart", "all.html", *NAMED],
        ["hide", "{long}", "--rule", "beer -> crisps", *THRESHOLDS, "--compare", "--chart", "all.xyz", *NAMED],
        ["hide", "{long}", "--rule", "beer -> crisps", *THRESHOLDS, "--method", "3.c", *NAMED],
        ["hide", "{long}", "--rules", "nowhere.json", *THRESHOLDS, *NAMED],
        ["items", "{long}", "--min-support", "0", *NAMED],
        ["items", "{long}", "--min-support", "0.1"],
        ["items", "{long}", "--min-support", "0.1", "--basket", "nothing"],
        ["top", "{long}", "--items", "nowhere.txt", "--max-items", "3"],
    ],
)
def test_refusals(words: list[str], long: Path) -> None:
    refused(*(str(long) if word == "{long}" else word for word in words))


@pytest.mark.parametrize("content", [b"", b"a,a\n1,0\n", b"a,b\n1\n", b"\xff\xfe\x00", b'a\n"1\n'])
def test_files_that_are_no_tables(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    assert isinstance(refused("items", path, "--min-support", "0.1"), InvalidParameter)
    assert isinstance(refused("items", path.rename(tmp_path / "bad.parquet"), "--min-support", "0.1"), InvalidParameter)


def test_items_that_a_spreadsheet_computes_stay_for_programs_and_are_guarded_on_demand(tmp_path: Path) -> None:
    source, out = tmp_path / "sold.csv", tmp_path / "safe.csv"
    items = {"beer": "=beer", "crisps": "-7"}
    rows = [f"{number},{items.get(item, item)}" for number, basket in enumerate(SOLD) for item in basket]
    source.write_text("\n".join(["basket,item", *rows]) + "\n", encoding="utf-8")
    asked = ["hide", source, "--rule", "tea -> jam", *THRESHOLDS, "--out", out, "--basket", "basket", "--item", "item"]
    said = run(*asked)
    assert "a spreadsheet would compute texts in the baskets" in said.stderr
    assert ",=beer\n" in out.read_text()
    said = run(*asked, "--for-spreadsheets")
    assert "a spreadsheet" not in said.stderr
    assert ",'=beer\n" in out.read_text()
    assert ",=beer\n" not in out.read_text()
    assert ",-7\n" in out.read_text()


def test_a_file_with_semicolons_is_read(long: Path, tmp_path: Path) -> None:
    (tmp_path / "semicolons.csv").write_text(long.read_text(encoding="utf-8").replace(",", ";"), encoding="utf-8")
    asked = ["items", tmp_path / "semicolons.csv", *NAMED, "--min-support", "0.2"]
    assert run(*asked).output == run("items", long, *NAMED, "--min-support", "0.2").output


def test_rows_are_counted_from_one_in_every_message(tmp_path: Path) -> None:
    for number, text in enumerate(("basket,item\n1,a\n,b\n", "basket,item\n1,a\n2\n")):
        path = tmp_path / f"{number}.csv"
        path.write_text(text)
        assert "row 2 " in str(refused("items", path, "--min-support", "0.1"))


def test_chinese_commas_stand_between_items_where_no_other_does(tmp_path: Path) -> None:
    plain, path, out = tmp_path / "plain.txt", tmp_path / "sold.txt", tmp_path / "safe.txt"
    plain.write_text("牛奶,面包\n牛奶,面包,茶\n牛奶,茶\n", encoding="utf-8")
    path.write_text("牛奶，面包\n牛奶、面包，茶\n牛奶、茶\n", encoding="utf-8")
    assert run("items", path, "--min-support", "0.3").output == run("items", plain, "--min-support", "0.3").output
    rule = ["--rule", "牛奶，面包 -> 茶", *THRESHOLDS[:2], "--min-confidence", "0.3", "--out", out]
    assert "written to" in run("hide", path, *rule).output
    path.write_text("牛奶，面包,茶\n牛奶，面包,茶\n", encoding="utf-8")
    assert "written to" in run("hide", path, "--rule", "牛奶，面包 -> 茶", *THRESHOLDS, "--out", out).output


def test_semicolons_stand_between_items_where_no_comma_does(tmp_path: Path) -> None:
    plain, path = tmp_path / "plain.txt", tmp_path / "sold.txt"
    plain.write_text("Milch,Brot;Butter\nMilch,Brot;Butter,Tee\nMilch,Tee\n", encoding="utf-8")
    path.write_text('Milch;"Brot;Butter"\nMilch;"Brot;Butter";Tee\nMilch;Tee\n', encoding="utf-8")
    assert run("items", path, "--min-support", "0.3").output == run("items", plain, "--min-support", "0.3").output
