"""The 22 questions of TPC-H, as differential privacy lets them be asked.

Each has the specification's parameters of validation. Three kinds:

- "as written": the specification's question;
- "rewritten": the specification's text returns rows of single customers or orders, or compares a customer's rows with a total
  over all customers; the statement here asks for the same fact about groups, or in two steps;
- "public": no private table is in it. There is nothing to protect: any engine answers it exactly.

What plain DuckDB says to the same text is the exact answer. Where a statement writes `[low..high]`, an analyst who knows the
trade may say how much one customer is to add to one group at most, and with `groups` in how many groups a customer may count:
far less than the declarations allow, so the noise is far smaller, at the price that what is more is cut off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["as written", "rewritten", "public"]

REVENUE = "l_extendedprice * (1 - l_discount)"
_BOUND = re.compile(r"\[(\S+)\.\.(\S+)\]")


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question: its statements, in which `{0}` is what the first of them answered, and what was changed, and why."""

    number: int
    title: str
    kind: Kind
    why: str = ""
    steps: tuple[str, ...] = ()
    keys: int = 0
    """How many of the answer's columns, from the left, say which group a row is about."""
    groups: int | None = None
    """In how many groups of the answer a customer may count, where the bounds are used."""
    refused: str = ""
    """The specification's own text, where it must be refused."""

    @property
    def plain(self) -> tuple[str, ...]:
        """The statements with the declared bounds alone, for us and for any other engine."""
        return tuple(_BOUND.sub("", step) for step in self.steps)

    @property
    def bounded(self) -> tuple[str, ...]:
        """The statements with the bounds of a customer's part in a group."""
        options = f"WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = {self.groups}) "
        return tuple(
            step if step == plain else ("SELECT " + (options if self.groups else "") + _named(step).removeprefix("SELECT "))
            for step, plain in zip(self.steps, self.plain, strict=True)
        )


def _named(step: str) -> str:
    return _BOUND.sub(r", contribution_bounds_per_group => (\1, \2)", step)


QUESTIONS = (
    Question(
        number=1,
        title="pricing summary",
        kind="as written",
        keys=2,
        steps=(
            "SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price,"
            f" SUM({REVENUE}) AS sum_disc_price, SUM({REVENUE} * (1 + l_tax)) AS sum_charge, AVG(l_quantity) AS avg_qty,"
            " AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS count_order"
            " FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY"
            " GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus",
        ),
    ),
    Question(number=2, title="minimum cost supplier", kind="public", why="parts, suppliers and what they supply are public"),
    Question(
        number=3,
        title="shipping priority",
        kind="rewritten",
        why="it lists ten single orders; asked by month of order",
        keys=2,
        groups=2,
        steps=(
            f"SELECT DATE_TRUNC('month', o_orderdate) AS month, o_shippriority, SUM({REVENUE}[0..250000]) AS revenue"
            " FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey"
            " AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15' AND o_orderdate >= DATE '1994-11-01'"
            " AND l_shipdate > DATE '1995-03-15' GROUP BY DATE_TRUNC('month', o_orderdate), o_shippriority",
        ),
        refused=f"SELECT l_orderkey, SUM({REVENUE}) AS revenue, o_orderdate, o_shippriority FROM customer, orders, lineitem"
        " WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey"
        " AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'"
        " GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10",
    ),
    Question(
        number=4,
        title="order priority checking",
        kind="as written",
        keys=1,
        groups=2,
        steps=(
            "SELECT o_orderpriority, COUNT(*[0..2]) AS order_count FROM orders WHERE o_orderdate >= DATE '1993-07-01'"
            " AND o_orderdate < DATE '1993-07-01' + INTERVAL '3' MONTH AND EXISTS (SELECT * FROM lineitem"
            " WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority",
        ),
    ),
    Question(
        number=5,
        title="local supplier volume",
        kind="as written",
        keys=1,
        groups=1,
        steps=(
            f"SELECT n_name, SUM({REVENUE}[0..150000]) AS revenue FROM customer, orders, lineitem, supplier, nation, region"
            " WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey"
            " AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'"
            " AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1994-01-01' + INTERVAL '1' YEAR"
            " GROUP BY n_name ORDER BY revenue DESC",
        ),
    ),
    Question(
        number=6,
        title="forecasting revenue change",
        kind="as written",
        steps=(
            "SELECT SUM(l_extendedprice * l_discount[0..10000]) AS revenue FROM lineitem WHERE l_shipdate >= DATE '1994-01-01'"
            " AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01"
            " AND l_quantity < 24",
        ),
    ),
    Question(
        number=7,
        title="volume shipping",
        kind="as written",
        keys=3,
        groups=2,
        steps=(
            f"SELECT supp_nation, cust_nation, l_year, SUM(volume[0..150000]) AS revenue FROM (SELECT n1.n_name AS supp_nation,"
            f" n2.n_name AS cust_nation, EXTRACT(YEAR FROM l_shipdate) AS l_year, {REVENUE} AS volume"
            " FROM supplier, lineitem, orders, customer, nation AS n1, nation AS n2 WHERE s_suppkey = l_suppkey"
            " AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey"
            " AND c_nationkey = n2.n_nationkey AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY')"
            " OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))"
            " AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31') AS shipping"
            " GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year",
        ),
    ),
    Question(
        number=8,
        title="national market share",
        kind="as written",
        keys=1,
        groups=1,
        steps=(
            "SELECT o_year, SUM(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END[0..100000]) / SUM(volume[0..100000])"
            f" AS mkt_share FROM (SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year, {REVENUE} AS volume, n2.n_name AS nation"
            " FROM part, supplier, lineitem, orders, customer, nation AS n1, nation AS n2, region WHERE p_partkey = l_partkey"
            " AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey"
            " AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'"
            " AND s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'"
            " AND p_type = 'ECONOMY ANODIZED STEEL') AS all_nations GROUP BY o_year ORDER BY o_year",
        ),
    ),
    Question(
        number=9,
        title="product type profit",
        kind="as written",
        keys=2,
        groups=4,
        steps=(
            "SELECT nation, o_year, SUM(amount[-50000..100000]) AS sum_profit FROM (SELECT n_name AS nation,"
            f" EXTRACT(YEAR FROM o_orderdate) AS o_year, {REVENUE} - ps_supplycost * l_quantity AS amount"
            " FROM part, supplier, lineitem, partsupp, orders, nation WHERE s_suppkey = l_suppkey"
            " AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey AND o_orderkey = l_orderkey"
            " AND s_nationkey = n_nationkey AND p_name LIKE '%green%') AS profit"
            " GROUP BY nation, o_year ORDER BY nation, o_year DESC",
        ),
    ),
    Question(
        number=10,
        title="returned items",
        kind="rewritten",
        why="it lists twenty single customers; asked by nation",
        keys=1,
        groups=1,
        steps=(
            f"SELECT n_name, SUM({REVENUE}[0..250000]) AS revenue FROM customer, orders, lineitem, nation"
            " WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01'"
            " AND o_orderdate < DATE '1993-10-01' + INTERVAL '3' MONTH AND l_returnflag = 'R'"
            " AND c_nationkey = n_nationkey GROUP BY n_name ORDER BY revenue DESC",
        ),
        refused=f"SELECT c_custkey, SUM({REVENUE}) AS revenue, c_acctbal, n_name FROM customer, orders, lineitem, nation"
        " WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01'"
        " AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R' AND c_nationkey = n_nationkey"
        " GROUP BY c_custkey, c_acctbal, n_name ORDER BY revenue DESC LIMIT 20",
    ),
    Question(number=11, title="important stock", kind="public", why="what suppliers hold is public"),
    Question(
        number=12,
        title="shipping modes and priority",
        kind="as written",
        keys=1,
        groups=2,
        steps=(
            "SELECT l_shipmode, SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0"
            " END[0..2]) AS high_line_count, SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH'"
            " THEN 1 ELSE 0 END[0..2]) AS low_line_count FROM orders, lineitem WHERE o_orderkey = l_orderkey"
            " AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate"
            " AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1994-01-01' + INTERVAL '1' YEAR"
            " GROUP BY l_shipmode ORDER BY l_shipmode",
        ),
    ),
    Question(
        number=13,
        title="customer distribution",
        kind="as written",
        keys=1,
        steps=(
            "SELECT c_count, COUNT(*) AS custdist FROM (SELECT c_custkey, COUNT(o_orderkey) AS c_count"
            " FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'"
            " GROUP BY c_custkey) AS c_orders GROUP BY c_count ORDER BY custdist DESC, c_count DESC",
        ),
    ),
    Question(
        number=14,
        title="promotion effect",
        kind="as written",
        steps=(
            f"SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN {REVENUE} ELSE 0 END[0..150000])"
            f" / SUM({REVENUE}[0..150000]) AS promo_revenue FROM lineitem, part WHERE l_partkey = p_partkey"
            " AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH",
        ),
    ),
    Question(
        number=15,
        title="top supplier",
        kind="rewritten",
        why="the maximum over suppliers becomes an order and a limit, taken from the noisy sums",
        keys=1,
        groups=4,
        steps=(
            f"SELECT l_suppkey, SUM({REVENUE}[0..80000]) AS total_revenue FROM lineitem WHERE l_shipdate >= DATE '1996-01-01'"
            " AND l_shipdate < DATE '1996-01-01' + INTERVAL '3' MONTH GROUP BY l_suppkey ORDER BY total_revenue DESC LIMIT 1",
        ),
    ),
    Question(number=16, title="parts and suppliers", kind="public", why="parts, suppliers and what they supply are public"),
    Question(
        number=17,
        title="small-quantity revenue",
        kind="rewritten",
        why="a line is compared with a mean over all customers; the mean is asked first, over the chosen parts together",
        steps=(
            "SELECT AVG(l_quantity) AS quantity FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand = 'Brand#23'"
            " AND p_container = 'MED BOX'",
            "SELECT SUM(l_extendedprice[0..10000]) / 7.0 AS avg_yearly FROM lineitem, part WHERE p_partkey = l_partkey"
            " AND p_brand = 'Brand#23' AND p_container = 'MED BOX' AND l_quantity < 0.2 * {0}",
        ),
    ),
    Question(
        number=18,
        title="large volume customers",
        kind="rewritten",
        why="it lists a hundred single orders; asked how many there are, and of which volume",
        steps=(
            "SELECT COUNT(*[0..1]) AS large_orders, SUM(quantity[0..350]) AS quantity FROM (SELECT o_custkey, o_orderkey,"
            " SUM(l_quantity) AS quantity FROM orders, lineitem WHERE o_orderkey = l_orderkey"
            " GROUP BY o_custkey, o_orderkey) AS volumes WHERE quantity > 300",
        ),
        refused="SELECT c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) FROM customer, orders, lineitem"
        " WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 300)"
        " AND c_custkey = o_custkey AND o_orderkey = l_orderkey GROUP BY c_custkey, o_orderkey, o_orderdate, o_totalprice"
        " ORDER BY o_totalprice DESC, o_orderdate LIMIT 100",
    ),
    Question(
        number=19,
        title="discounted revenue",
        kind="as written",
        steps=(
            f"SELECT SUM({REVENUE}[0..40000]) AS revenue FROM lineitem, part WHERE p_partkey = l_partkey AND"
            " ((p_brand = 'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')"
            " AND l_quantity >= 1 AND l_quantity <= 1 + 10 AND p_size BETWEEN 1 AND 5)"
            " OR (p_brand = 'Brand#23' AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')"
            " AND l_quantity >= 10 AND l_quantity <= 10 + 10 AND p_size BETWEEN 1 AND 10)"
            " OR (p_brand = 'Brand#34' AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')"
            " AND l_quantity >= 20 AND l_quantity <= 20 + 10 AND p_size BETWEEN 1 AND 15))"
            " AND l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON'",
        ),
    ),
    Question(
        number=20,
        title="potential part promotion",
        kind="rewritten",
        why="the suppliers' public stock is compared with private sales; the sales are asked, the reader compares",
        keys=1,
        groups=1,
        steps=(
            "SELECT l_suppkey, SUM(l_quantity[0..50]) AS sold FROM lineitem, part, supplier, nation"
            " WHERE l_partkey = p_partkey AND l_suppkey = s_suppkey AND s_nationkey = n_nationkey"
            " AND p_name LIKE 'forest%' AND n_name = 'CANADA' AND l_shipdate >= DATE '1994-01-01'"
            " AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR GROUP BY l_suppkey",
        ),
    ),
    Question(
        number=21,
        title="suppliers who kept orders waiting",
        kind="rewritten",
        why="EXISTS and NOT EXISTS become counts of an order's suppliers and of those who were late",
        keys=1,
        groups=1,
        steps=(
            "SELECT waiting, COUNT(*[0..1]) AS numwait FROM (SELECT o_custkey, o_orderkey,"
            " COUNT(DISTINCT l_suppkey) AS suppliers,"
            " COUNT(DISTINCT CASE WHEN l_receiptdate > l_commitdate THEN l_suppkey END) AS late,"
            " MAX(CASE WHEN l_receiptdate > l_commitdate THEN l_suppkey END) AS waiting"
            " FROM orders, lineitem WHERE o_orderkey = l_orderkey AND o_orderstatus = 'F'"
            " GROUP BY o_custkey, o_orderkey) AS held, supplier, nation"
            " WHERE waiting = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA'"
            " AND suppliers > 1 AND late = 1 GROUP BY waiting ORDER BY numwait DESC, waiting LIMIT 100",
        ),
    ),
    Question(
        number=22,
        title="global sales opportunity",
        kind="rewritten",
        why="a balance is compared with a mean over all customers, which is asked first; a code is the nation and 10",
        keys=1,
        steps=(
            "SELECT AVG(c_acctbal) AS balance FROM customer WHERE c_acctbal > 0.00"
            " AND c_nationkey + 10 IN (13, 31, 23, 29, 30, 18, 17)",
            "SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal FROM (SELECT c_nationkey + 10 AS cntrycode,"
            " c_acctbal FROM customer WHERE c_nationkey + 10 IN (13, 31, 23, 29, 30, 18, 17) AND c_acctbal > {0}"
            " AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale"
            " GROUP BY cntrycode ORDER BY cntrycode",
        ),
    ),
)
ANSWERED = tuple(question for question in QUESTIONS if question.steps)
