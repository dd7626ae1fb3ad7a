"""`cloister mine`: itemsets and rules of a file of baskets, sensitive rules hidden in it, and itemsets that may be published."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli import spreadsheets
from cloister.cli.opened import open_ledger, waiting
from cloister.cli.written import CHART, WRITTEN, check_apart, write_whole
from cloister.errors import InvalidParameter
from cloister.parsers import is_parquet, separator_of

if TYPE_CHECKING:
    from cloister.mining.reading import Read

_OWN_EYES = "NOT PRIVATE: exact counts, for the owner's own eyes"
_SUPPORT = "The least share of the baskets, for example 0.01."
_LINES = (".txt", ".basket")
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group()
def mine() -> None:
    """Mine baskets: frequent itemsets and rules, and how to hide or publish them.

    DATA is a CSV or Parquet file with a row for each item of a basket (--basket and --item name its columns), or with a column of
    yes and no for each item; or a text file with a basket on each line, its items between commas (.txt, .basket). "shop" names
    600 made-up baskets, where no such file is.

    \b
    cloister mine items shop --min-support 0.1
    cloister mine rules shop --min-support 0.1 --min-confidence 0.5
    cloister mine hide shop --rule "butter -> bread" --min-support 0.1 --min-confidence 0.5 --out safe.txt
    cloister mine top shop --max-items 10 --count 20 --epsilon 1
    """


@mine.command()
@click.argument("data", type=_FILE)
@click.option("--min-support", required=True, help=_SUPPORT)
@click.option("--max-size", type=click.IntRange(1), help="The most items of a set.")
@click.option("--basket", help="The basket's column.")
@click.option("--item", help="The item's column.")
@click.option("--most", type=click.IntRange(1), default=50, show_default=True, help="The most lines to print; --json has all.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def items(
    data: Path, min_support: str, max_size: int | None, basket: str | None, item: str | None, most: int, as_json: bool
) -> None:
    """Print the frequent itemsets. NOT PRIVATE: exact counts, for the owner alone.

    \b
    cloister mine items shop --min-support 0.1
    """
    from cloister.mining import frequent_itemsets

    with waiting("mining"):
        found = frequent_itemsets(_read(data, basket, item).baskets, min_support=min_support, max_size=max_size)
    if as_json:
        sets = [{"items": [str(each) for each in one.items], "count": one.count, "support": one.support} for one in found]
        click.echo(json.dumps({"baskets": len(found.baskets), "private": False, "itemsets": sets}, ensure_ascii=False))
        return
    click.echo(f"{len(found):,} sets of items in at least {found.thresholds.least:,} of {len(found.baskets):,} baskets")
    for one in found[:most]:
        click.echo(f"  {one.support:7.2%}  {one}")
    _more(len(found), most)


@mine.command()
@click.argument("data", type=_FILE)
@click.option("--min-support", required=True, help=_SUPPORT)
@click.option("--min-confidence", required=True, help="The least confidence, for example 0.5.")
@click.option("--max-size", type=click.IntRange(2), help="The most items of a rule, both sides together.")
@click.option("--basket", help="The basket's column.")
@click.option("--item", help="The item's column.")
@click.option("--most", type=click.IntRange(1), default=50, show_default=True, help="The most lines to print; --json has all.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def rules(
    data: Path,
    min_support: str,
    min_confidence: str,
    max_size: int | None,
    basket: str | None,
    item: str | None,
    most: int,
    as_json: bool,
) -> None:
    """Print the association rules. NOT PRIVATE: exact counts, for the owner alone.

    \b
    cloister mine rules shop --min-support 0.1 --min-confidence 0.5
    """
    from cloister.mining import association_rules

    with waiting("mining"):
        read = _read(data, basket, item)
        found = association_rules(read.baskets, min_support=min_support, min_confidence=min_confidence, max_size=max_size)
    if as_json:
        listed = [
            {
                "antecedent": [str(each) for each in rule.antecedent],
                "consequent": [str(each) for each in rule.consequent],
                "count": rule.count,
                "support": rule.support,
                "confidence": rule.confidence,
                "lift": rule.lift,
            }
            for rule in found
        ]
        click.echo(json.dumps({"baskets": len(found.baskets), "private": False, "rules": listed}, ensure_ascii=False))
        return
    click.echo(f"{len(found):,} rules")
    for rule in found[:most]:
        click.echo(f"  {rule.confidence:6.1%} of {rule.support:7.2%}, lift {rule.lift:5.2f}  {rule}")
    _more(len(found), most)


@mine.command()
@click.argument("data", type=_FILE)
@click.option("--rule", "sensitive", multiple=True, metavar='"A, B -> C"', help="A rule to hide; may be repeated.")
@click.option("--rules", "listed", type=_FILE, help='A JSON file with such rules: [[["A", "B"], ["C"]], …] or ["A, B -> C", …].')
@click.option("--min-support", required=True, help=_SUPPORT)
@click.option("--min-confidence", required=True, help="The least confidence, for example 0.3.")
@click.option("--method", default="auto", show_default=True, help="auto, exact, 1.a, 1.b, 2.a, 2.b, SWA, BBA or max-min.")
@click.option("--insertions", is_flag=True, help="Let the exact method insert items: made-up entries.")
@click.option("--time-limit", default="30", show_default=True, help="Seconds for the exact method.")
@click.option("--compare", "compared", is_flag=True, help="Every method side by side; nothing is written but --chart.")
@click.option("--out", type=WRITTEN, help="Write the changed baskets, in the shape in which they were read.")
@spreadsheets.OPTION
@click.option("--chart", type=CHART, help="Of --compare: .html, .svg, .png or .json.")
@click.option("--basket", help="The basket's column.")
@click.option("--item", help="The item's column.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def hide(**given: Any) -> None:
    """Change baskets until no sensitive rule is found. The result is NOT differentially private, and says so.

    \b
    cloister mine hide shop --rule "butter -> bread" --min-support 0.1 --min-confidence 0.5 --out safe.txt
    cloister mine hide shop --rule "butter -> bread" --min-support 0.1 --min-confidence 0.5 --compare
    """
    from cloister.mining import compare, hide_rules

    wanted, out = _sensitive(given["sensitive"], given["listed"]), given["out"]
    if given["compared"] and (out is not None or given["method"] != "auto" or given["insertions"]):
        raise InvalidParameter(
            "--compare is invalid", why="it tries every method and writes no baskets", instead="cloister mine hide --help"
        )
    chart = given["chart"]
    if chart is not None and not given["compared"]:
        raise InvalidParameter("--chart is invalid", why="it draws what --compare found", instead="--compare --chart all.html")
    thresholds = {name: given[name] for name in ("min_support", "min_confidence", "time_limit")}
    with waiting("reading") as progress:
        read = _read(given["data"], given["basket"], given["item"])
        check_apart(given["data"], out)
        if out is not None:
            _writable(out, read)
        if given["compared"]:
            table = compare(read.baskets, wanted, progress=progress, **thresholds)
        else:
            result = hide_rules(
                read, wanted, method=given["method"], insertions=given["insertions"], progress=progress, **thresholds
            )
    if given["compared"]:
        if chart is not None:
            table.chart().save(str(chart))
        click.echo(table.to_json() if given["as_json"] else str(table))
        return
    if out is not None:
        _write(out, read, result.baskets, for_spreadsheets=given["for_spreadsheets"])
    click.echo(result.to_json() if given["as_json"] else str(result))
    if out is not None and not given["as_json"]:
        click.echo(f"written to {out}")


@mine.command()
@click.argument("data", type=_FILE)
@click.option("--items", "universe", type=_FILE, help="All items that count, one per line: public, never read from the data.")
@click.option("--max-items", type=click.IntRange(1), required=True, help="The most items of a basket that count.")
@click.option("--count", "k", type=click.IntRange(1), default=10, show_default=True, help="Number of itemsets.")
@click.option("--max-size", type=click.IntRange(1), default=2, show_default=True, help="The most items of a set.")
@click.option("--epsilon", default="1", show_default=True, help="The ε to spend.")
@click.option("--ledger", help="Charge a ledger (a file or a postgresql:// address); otherwise the charge is not recorded.")
@click.option("--basket", help="The basket's column.")
@click.option("--item", help="The item's column.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def top(
    data: Path,
    universe: Path | None,
    max_items: int,
    k: int,
    max_size: int,
    epsilon: str,
    ledger: str | None,
    basket: str | None,
    item: str | None,
    as_json: bool,
) -> None:
    """Print the most frequent itemsets under differential privacy: these may be published. A basket is one person's.

    \b
    cloister mine top shop --max-items 10 --count 20 --epsilon 1
    """
    from cloister.mining import top_itemsets
    from cloister.privacy import PureDP
    from cloister.session import Door
    from cloister.tables import Category, PrivateTable, Text

    listed, source = _declared(data, universe, basket, item)
    basket, item = basket or "basket", item or "item"
    promise = PureDP(epsilon)
    table = PrivateTable(source, {basket: Text(), item: Category(listed)}, unit=basket, max_rows=max_items)
    name = "".join(each if each.isalnum() else "_" for each in data.stem) or "baskets"
    with waiting("choosing"), open_ledger(ledger) as book:
        budget = None if name in book.populations() else promise
        with Door({name: table}, budget=budget, ledger=book, who="command line") as door:
            found = top_itemsets(
                door, name, k=k, spend=promise, item=item, basket=basket, max_size=max_size, purpose="cloister mine top"
            )
    if not as_json:
        click.echo(str(found))
        return
    document = {
        "guarantee": str(found.guarantee),
        "margin": found.margin(),
        "choice_margin": found.choice_margin(),
        "itemsets": [{"items": [str(part) for part in each.items], "count": each.count} for each in found],
    }
    click.echo(json.dumps(document, ensure_ascii=False))


def _read(path: Path, basket: str | None, item: str | None) -> Read:
    """Baskets of a file. Texts stay texts: "007" is an item, not a number."""
    from cloister.mining.reading import read_with_shape

    if _is_sample(path):
        from cloister.mining.examples import shop

        return read_with_shape(shop())
    if not path.is_file():
        raise _unreadable(path)
    if is_parquet(path):
        import duckdb

        from cloister.tables.engines.connection import connected

        try:
            with connected() as connection:
                table = connection.read_parquet(str(path)).fetchnumpy()
        except duckdb.Error:
            raise _unreadable(path) from None
        return read_with_shape({name: values.tolist() for name, values in table.items()}, basket=basket, item=item)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() in _LINES:
                text = file.read()
                text = text if "," in text else re.sub("[，、]", ",", text)
                lines = csv.reader(StringIO(text, newline=""), delimiter="," if "," in text else ";")
                lists = [[part.strip() for part in line if part.strip()] for line in lines]
                return read_with_shape(lists)
            lines = csv.reader(file, strict=True, delimiter=separator_of(path))
            return read_with_shape(_columns(path, lines), basket=basket, item=item)
    except (OSError, UnicodeDecodeError, csv.Error):
        raise _unreadable(path) from None


def _declared(data: Path, universe: Path | None, basket: str | None, item: str | None) -> tuple[list[str], Any]:
    """The items that count, and where the rows are: a table with a row for each item stays a file, anything else is read."""
    from cloister.mining.examples import WORDS
    from cloister.tables.sourcing.source_factory import recognise

    if universe is None and not _is_sample(data):
        raise InvalidParameter("Nothing was counted", why="the items that count are not declared", instead="--items items.txt")
    try:
        written = "\n".join(WORDS) if universe is None else universe.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise _unreadable(universe or data) from None
    listed, names = [line.strip() for line in written.splitlines() if line.strip()], (basket or "basket", item or "item")
    table = data.is_file() and data.suffix.lower() not in _LINES
    if table and (basket or item or recognise(str(data)).schema.keys() >= set(names)):
        return listed, str(data)
    held = _read(data, None, None).baskets
    columns = [str(each) for each in held.basket.tolist()], [held.items[place] for place in held.item.tolist()]
    return listed, dict(zip(names, columns, strict=True))


def _is_sample(path: Path) -> bool:
    return str(path) == "shop" and not path.exists()


def _columns(path: Path, lines: Any) -> dict[str, list[Any]]:
    names = next(lines, None)
    if not names or len(set(names)) < len(names):
        raise InvalidParameter(
            f"The file {path.name!r} is invalid", why="its first line does not name its columns once each", instead="basket,item"
        )
    rows = [line for line in lines if line]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise InvalidParameter(
                f"The file {path.name!r} is invalid",
                why=f"row {number} has {len(row)} cells and the first line {len(names)}",
                instead="a .txt file, where each line is a basket",
            )
    columns: dict[str, list[Any]] = {name: [row[place] or None for row in rows] for place, name in enumerate(names)}
    yes = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if all(value is not None and value.lower() in yes for values in columns.values() for value in values):
        return {name: [yes[value.lower()] for value in values] for name, values in columns.items()}
    return columns


def _writable(out: Path, read: Read) -> None:
    if out.suffix not in (".csv", ".txt", ".basket") or (read.shape == "lists") != (out.suffix != ".csv"):
        raise InvalidParameter(
            f"--out {out.name} is invalid",
            why="baskets are written in the shape in which they were read",
            instead="--out safe.txt" if read.shape == "lists" else "--out safe.csv",
        )


def _write(out: Path, read: Read, baskets: Any, *, for_spreadsheets: bool) -> None:
    written = read.written(baskets)
    rows = written if read.shape == "lists" else [list(written), *zip(*written.values(), strict=True)]
    if read.shape == "wide":
        rows = [rows[0], *([int(value) for value in row] for row in rows[1:])]
    if for_spreadsheets:
        rows = [[spreadsheets.guarded_cell(cell) for cell in row] for row in rows]
    elif any(spreadsheets.computed(cell) for row in rows for cell in row):
        spreadsheets.warn(["the baskets"])
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_whole(out, text.getvalue())


def _sensitive(given: tuple[str, ...], listed: Path | None) -> list[Any]:
    found: list[Any] = list(given)
    if listed is not None:
        try:
            more = json.loads(listed.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError):
            raise _unreadable(listed) from None
        if not isinstance(more, list):
            raise InvalidParameter("--rules is invalid", why="it is no list of rules", instead='[[["A", "B"], ["C"]], "D -> E"]')
        found += [tuple(rule) if isinstance(rule, list) else rule for rule in more]
    if not found:
        raise InvalidParameter("Nothing was hidden", why="no rule was named", instead='--rule "butter -> whole milk"')
    return found


def _more(found: int, most: int) -> None:
    if found > most:
        click.echo(f"  … and {found - most:,} more: --most {found}, or --json")
    click.echo(_OWN_EYES)


def _unreadable(path: Path) -> InvalidParameter:
    return InvalidParameter(
        f"The file {str(path)!r} is invalid", why="no such file can be read", instead="a CSV, Parquet or text file of baskets"
    )
