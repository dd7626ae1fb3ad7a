"""The tables of TPC-H from a seeded generator of ours, at any scale, and their declarations.

Columns, keys and laws of the values follow the specification (TPC-H revision 3, clauses 1.4 and 4.2) as far as its 22 questions
see them. Comments are shorter than there, and carry the two phrases that questions look for. Nothing is read from a file, so the
rows are nobody's.

Customers are the persons: `customer` has one row a person, `orders` says by `o_custkey` whose row a row is, and `lineitem` says
it through its order. Parts, suppliers, what they supply, nations and regions are public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

import cloister as cl

ORDERS_CAP = 32  # orders of one customer that count: about 15 are usual, and more than 32 has about 1 of 20,000 customers
LINES_CAP = 7  # lines of one order: the specification allows no more
PRIVATE = ("customer", "orders", "lineitem")
PUBLIC = ("region", "nation", "supplier", "part", "partsupp")

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0),
    ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2),
    ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
_COLOURS = (
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon "
    "chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro ghost "
    "goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium "
    "metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple "
    "red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise "
    "violet wheat white yellow"
)
COLOURS = _COLOURS.split()
TYPES = [
    f"{size} {finish} {metal}"
    for size in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for finish in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for metal in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
]
CONTAINERS = [
    f"{size} {kind}"
    for size in ("SM", "LG", "MED", "JUMBO", "WRAP")
    for kind in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
]
BRANDS = [f"Brand#{maker}{brand}" for maker in range(1, 6) for brand in range(1, 6)]
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
INSTRUCTIONS = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]
MODES = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
REMARKS = ["quick deposits sleep", "special packages among the requests", "even accounts nag", "bold theodolites wake"]
START, CURRENT, END = (np.datetime64(day) for day in ("1992-01-01", "1995-06-17", "1998-12-31"))

Column = npt.NDArray[Any]
Rows = dict[str, Column]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How many rows the scale asks for; at least enough that every table has some."""

    scale: float

    @property
    def suppliers(self) -> int:
        """10,000 at scale 1."""
        return max(round(10_000 * self.scale), 8)

    @property
    def parts(self) -> int:
        """200,000 at scale 1."""
        return max(round(200_000 * self.scale), 40)

    @property
    def customers(self) -> int:
        """150,000 at scale 1."""
        return max(round(150_000 * self.scale), 30)


def generate(scale: float = 0.01, seed: int = 7) -> dict[str, Rows]:
    """All eight tables, by name: columns of equal length."""
    draw, sizes = np.random.default_rng(seed), Sizes(scale=scale)
    parts = _parts(draw, sizes)
    orders, lines = _orders(draw, sizes, parts)
    return {
        "region": {"r_regionkey": np.arange(5), "r_name": _objects(REGIONS)},
        "nation": {
            "n_nationkey": np.arange(25),
            "n_name": _objects([name for name, _ in NATIONS]),
            "n_regionkey": np.array([region for _, region in NATIONS]),
        },
        "supplier": _suppliers(draw, sizes),
        "part": parts,
        "partsupp": _supplied(draw, sizes),
        "customer": _customers(draw, sizes),
        "orders": orders,
        "lineitem": lines,
    }


def write(tables: Mapping[str, Rows], folder: Path) -> dict[str, Path]:
    """One Parquet file a table, money as DECIMAL(15, 2)."""
    paths = {}
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            connection.register("given", {column: _seconds(values) for column, values in rows.items()})
            shown = ", ".join(_cast(column, values) for column, values in rows.items())
            paths[name] = folder / f"{name}.parquet"
            connection.execute(f"COPY (SELECT {shown} FROM given) TO '{paths[name]}' (FORMAT parquet)")
            connection.unregister("given")
    return paths


def plain(paths: Mapping[str, Path]) -> duckdb.DuckDBPyConnection:
    """DuckDB with the eight tables and no privacy: the exact answers come from here."""
    connection = duckdb.connect()
    for name, path in paths.items():
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM '{path}'")
    return connection


def declare(paths: Mapping[str, Path], scale: float) -> dict[str, cl.PrivateTable | cl.PublicTable]:
    """The tables as their owner would declare them; bounds and lists are those of the specification."""
    sizes = Sizes(scale=scale)
    nations, money = cl.Integer(0, 24), cl.Real("-999.99", "9999.99", step="0.01")
    days = cl.Date("1992-01-01", "1998-12-31")
    customer = cl.PrivateTable(
        paths["customer"],
        columns={"c_nationkey": nations, "c_acctbal": money, "c_mktsegment": cl.Category(SEGMENTS)},
        unit="c_custkey",
        max_rows=1,
        population="customers",
        size=sizes.customers,
        version="1",
    )
    orders = cl.PrivateTable(
        paths["orders"],
        columns={
            "o_orderkey": cl.tables.Identifier(),
            "o_orderstatus": cl.Category(["F", "O", "P"]),
            "o_totalprice": cl.Real(0, 600_000, step="0.01"),
            "o_orderdate": days,
            "o_orderpriority": cl.Category(PRIORITIES),
            "o_shippriority": cl.Integer(0, 0),
            "o_comment": cl.Category(REMARKS),
        },
        unit="o_custkey",
        max_rows=ORDERS_CAP,
        population="customers",
        size=sizes.customers * 10,
        version="1",
    )
    lineitem = cl.PrivateTable(
        paths["lineitem"],
        columns={
            "l_partkey": cl.Integer(1, sizes.parts),
            "l_suppkey": cl.Integer(1, sizes.suppliers),
            "l_linenumber": cl.Integer(1, 7),
            "l_quantity": cl.Integer(1, 50),
            "l_extendedprice": cl.Real(0, 105_000, step="0.01"),
            "l_discount": cl.Real(0, "0.1", step="0.01"),
            "l_tax": cl.Real(0, "0.08", step="0.01"),
            "l_returnflag": cl.Category(["A", "N", "R"]),
            "l_linestatus": cl.Category(["F", "O"]),
            "l_shipdate": days,
            "l_commitdate": days,
            "l_receiptdate": days,
            "l_shipinstruct": cl.Category(INSTRUCTIONS),
            "l_shipmode": cl.Category(MODES),
        },
        unit="l_orderkey",
        through="orders.o_orderkey",
        max_rows=LINES_CAP,
        population="customers",
        size=sizes.customers * 40,
        version="1",
    )
    return {"customer": customer, "orders": orders, "lineitem": lineitem, **_public(paths, sizes)}


def _public(paths: Mapping[str, Path], sizes: Sizes) -> dict[str, cl.PublicTable]:
    """Public tables name the columns that questions use, with what they may hold."""
    nations, parts, suppliers = cl.Integer(0, 24), cl.Integer(1, sizes.parts), cl.Integer(1, sizes.suppliers)
    columns: dict[str, dict[str, Any]] = {
        "region": {"r_regionkey": cl.Integer(0, 4), "r_name": cl.Category(list(REGIONS))},
        "nation": {
            "n_nationkey": nations,
            "n_name": cl.Category([name for name, _ in NATIONS]),
            "n_regionkey": cl.Integer(0, 4),
        },
        "supplier": {"s_suppkey": suppliers, "s_nationkey": nations},
        "part": {
            "p_partkey": parts,
            "p_name": cl.Text(),
            "p_brand": cl.Category(BRANDS),
            "p_type": cl.Category(TYPES),
            "p_size": cl.Integer(1, 50),
            "p_container": cl.Category(CONTAINERS),
        },
        "partsupp": {
            "ps_partkey": parts,
            "ps_suppkey": suppliers,
            "ps_availqty": cl.Integer(1, 9999),
            "ps_supplycost": cl.Real(1, 1000, step="0.01"),
        },
    }
    return {name: cl.PublicTable(paths[name], columns=columns[name]) for name in PUBLIC}


def _suppliers(draw: np.random.Generator, sizes: Sizes) -> Rows:
    key = np.arange(1, sizes.suppliers + 1)
    nation = draw.integers(0, 25, key.size)
    complaints = draw.random(key.size) < 0.0005
    return {
        "s_suppkey": key,
        "s_name": _objects([f"Supplier#{number:09d}" for number in key]),
        "s_nationkey": nation,
        "s_phone": _phones(draw, nation),
        "s_acctbal": draw.integers(-99_999, 1_000_000, key.size) / 100,
        "s_comment": np.where(complaints, "Customer told of Complaints", "quiet ideas doze").astype(object),
    }


def _parts(draw: np.random.Generator, sizes: Sizes) -> Rows:
    key = np.arange(1, sizes.parts + 1)
    brands = draw.integers(0, 25, key.size)
    names = [" ".join(COLOURS[place] for place in draw.choice(len(COLOURS), 5, replace=False)) for _ in key]
    return {
        "p_partkey": key,
        "p_name": _objects(names),
        "p_mfgr": _objects([f"Manufacturer#{brand // 5 + 1}" for brand in brands]),
        "p_brand": _pick(BRANDS, brands),
        "p_type": _pick(TYPES, draw.integers(0, len(TYPES), key.size)),
        "p_size": draw.integers(1, 51, key.size),
        "p_container": _pick(CONTAINERS, draw.integers(0, len(CONTAINERS), key.size)),
        "p_retailprice": (90_000 + key // 10 % 20_001 + 100 * (key % 1000)) / 100,
    }


def _supplied(draw: np.random.Generator, sizes: Sizes) -> Rows:
    part = np.repeat(np.arange(1, sizes.parts + 1), 4)
    return {
        "ps_partkey": part,
        "ps_suppkey": _supplier_of(part, np.tile(np.arange(4), sizes.parts), sizes.suppliers),
        "ps_availqty": draw.integers(1, 10_000, part.size),
        "ps_supplycost": draw.integers(100, 100_001, part.size) / 100,
    }


def _supplier_of(part: Column, place: Column, suppliers: int) -> Column:
    """The specification's rule for which four suppliers a part has, held below the step at which two of them would be one."""
    return (part + place * (suppliers // 4 + (part - 1) // suppliers % max(suppliers // 12, 1))) % suppliers + 1


def _customers(draw: np.random.Generator, sizes: Sizes) -> Rows:
    key = np.arange(1, sizes.customers + 1)
    nation = draw.integers(0, 25, key.size)
    return {
        "c_custkey": key,
        "c_name": _objects([f"Customer#{number:09d}" for number in key]),
        "c_nationkey": nation,
        "c_phone": _phones(draw, nation),
        "c_acctbal": draw.integers(-99_999, 1_000_000, key.size) / 100,
        "c_mktsegment": _pick(SEGMENTS, draw.integers(0, 5, key.size)),
    }


def _orders(draw: np.random.Generator, sizes: Sizes, parts: Rows) -> tuple[Rows, Rows]:
    """Orders and their lines; a customer whose key is a multiple of 3 has none."""
    count = 10 * sizes.customers
    place = np.arange(count)
    key = place // 8 * 32 + place % 8 + 1
    buyers = np.array([number for number in range(1, sizes.customers + 1) if number % 3])
    date = START + draw.integers(0, int((END - START).astype(int)) - 150, count)
    of = np.repeat(place, draw.integers(1, 8, count))
    lines = _lines(draw, sizes, parts, key[of], date[of])
    lines["l_linenumber"] = np.arange(of.size) - np.searchsorted(of, of) + 1
    filled = np.bincount(of, lines["l_linestatus"] == "F", count) / np.bincount(of, minlength=count)
    total = np.bincount(of, lines["l_extendedprice"] * (1 - lines["l_discount"]) * (1 + lines["l_tax"]), count)
    orders = {
        "o_orderkey": key,
        "o_custkey": buyers[draw.integers(0, buyers.size, count)],
        "o_orderstatus": np.select([filled == 0, filled == 1], ["O", "F"], "P").astype(object),
        "o_totalprice": np.round(total, 2),
        "o_orderdate": date,
        "o_orderpriority": _pick(PRIORITIES, draw.integers(0, 5, count)),
        "o_shippriority": np.zeros(count, dtype=np.int64),
        "o_comment": _pick(REMARKS, draw.choice(4, count, p=[0.4, 0.02, 0.38, 0.2])),
    }
    return orders, lines


def _lines(draw: np.random.Generator, sizes: Sizes, parts: Rows, key: Column, ordered: Column) -> Rows:
    part = draw.integers(1, sizes.parts + 1, key.size)
    quantity = draw.integers(1, 51, key.size)
    shipped = ordered + draw.integers(1, 122, key.size)
    received = shipped + draw.integers(1, 31, key.size)
    returned = np.where(draw.random(key.size) < 0.5, "R", "A")
    return {
        "l_orderkey": key,
        "l_partkey": part,
        "l_suppkey": _supplier_of(part, draw.integers(0, 4, key.size), sizes.suppliers),
        "l_quantity": quantity,
        "l_extendedprice": np.round(quantity * parts["p_retailprice"][part - 1], 2),
        "l_discount": draw.integers(0, 11, key.size) / 100,
        "l_tax": draw.integers(0, 9, key.size) / 100,
        "l_returnflag": np.where(received <= CURRENT, returned, "N").astype(object),
        "l_linestatus": np.where(shipped > CURRENT, "O", "F").astype(object),
        "l_shipdate": shipped,
        "l_commitdate": ordered + draw.integers(30, 91, key.size),
        "l_receiptdate": received,
        "l_shipinstruct": _pick(INSTRUCTIONS, draw.integers(0, 4, key.size)),
        "l_shipmode": _pick(MODES, draw.integers(0, 7, key.size)),
    }


def _phones(draw: np.random.Generator, nation: Column) -> Column:
    numbers = draw.integers(0, 10**10, nation.size)
    codes = zip(nation + 10, numbers, strict=True)
    return _objects([f"{code}-{n // 10**7:03d}-{n // 10**4 % 1000:03d}-{n % 10**4:04d}" for code, n in codes])


def _pick(options: Sequence[str], places: Column) -> Column:
    picked: Column = np.array(options, dtype=object)[places]
    return picked


def _objects(values: Sequence[str]) -> Column:
    return np.array(values, dtype=object)


def _seconds(values: Column) -> Column:
    """DuckDB reads times in seconds, and no days."""
    return values.astype("datetime64[s]") if values.dtype.kind == "M" else values


def _cast(column: str, values: Column) -> str:
    if values.dtype.kind == "M":
        return f"{column}::DATE AS {column}"
    money = column.endswith(("price", "acctbal", "cost", "discount", "tax"))
    return f"{column}::DECIMAL(15, 2) AS {column}" if money else column
