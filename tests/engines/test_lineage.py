"""One relation, one population: however its address is written, whatever stands between it and the question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import cloister as cl
from cloister.errors import InvalidDeclaration
from cloister.ledger import Ledger
from cloister.session.state.lineage import SharedRows, identity_digest
from cloister.tables.engines.postgres import PostgresSource

pytestmark = pytest.mark.postgres
COLUMNS = {"a": cl.Integer(0, 9)}
MADE = """
CREATE SCHEMA lineage; SET search_path = lineage;
CREATE TABLE people (a int); INSERT INTO people SELECT n % 10 FROM generate_series(1, 50) AS n;
CREATE VIEW seen AS SELECT a FROM people WHERE a > 2;
CREATE VIEW seen_again AS SELECT seen.a FROM seen, (SELECT 1 AS one) AS other;
CREATE MATERIALIZED VIEW kept AS SELECT a FROM seen_again;
CREATE VIEW counted AS SELECT upper(a::text)::int AS a, now() AS at FROM people;
CREATE TABLE visits (a int, month int) PARTITION BY LIST (month);
CREATE TABLE visits_1 PARTITION OF visits FOR VALUES IN (1);
CREATE TABLE visits_2 PARTITION OF visits FOR VALUES IN (2) PARTITION BY LIST (a);
CREATE TABLE visits_2_a PARTITION OF visits_2 FOR VALUES IN (1);
CREATE TABLE visits_3 (a int, month int);
CREATE TABLE staff (a int); CREATE TABLE doctors (wing int) INHERITS (staff);
CREATE TABLE both_of (a int); CREATE VIEW both_seen AS SELECT a FROM people UNION ALL SELECT a FROM both_of;
CREATE FUNCTION rows_of() RETURNS SETOF int LANGUAGE sql STABLE AS 'SELECT a FROM lineage.people';
CREATE FUNCTION one_of(x int) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN (SELECT max(a) FROM lineage.people); END';
CREATE FUNCTION ten(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x % 10';
CREATE VIEW by_rows AS SELECT rows_of() AS a; CREATE VIEW by_one AS SELECT one_of(a) AS a FROM both_of;
CREATE VIEW by_xml AS SELECT length(query_to_xml('SELECT a FROM lineage.people', true, true, '')::text) AS a;
CREATE VIEW by_ten AS SELECT ten(a) AS a FROM people;
CREATE FUNCTION beside(x int, y int) RETURNS int LANGUAGE plpgsql STABLE
    AS 'BEGIN RETURN (SELECT max(a) FROM lineage.people); END';
CREATE OPERATOR ### (leftarg = int, rightarg = int, function = beside);
CREATE VIEW by_operator AS SELECT a ### 1 AS a FROM both_of;
CREATE AGGREGATE all_of (int) (sfunc = beside, stype = int); CREATE VIEW by_aggregate AS SELECT all_of(a) AS a FROM both_of;
CREATE TYPE held AS (v int);
CREATE FUNCTION holding(x int) RETURNS held LANGUAGE plpgsql STABLE
    AS 'BEGIN RETURN ROW((SELECT max(a) FROM lineage.people)); END';
CREATE CAST (int AS held) WITH FUNCTION holding(int); CREATE VIEW by_cast AS SELECT (a::held).v AS a FROM both_of;
CREATE FUNCTION "odd name"(x int) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN (SELECT max(a) FROM lineage.people); END';
CREATE VIEW by_statistics AS SELECT unnest(most_common_vals::text::int[]) AS a FROM pg_stats WHERE tablename = 'people';
CREATE VIEW by_count AS SELECT reltuples::int AS a FROM pg_class WHERE relname = 'people';
CREATE VIEW by_object AS SELECT length(data) AS a FROM pg_largeobject;
CREATE VIEW by_rewriting AS
    SELECT length(ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, ''b''::tsquery FROM lineage.people')::text) AS a;
CREATE VIEW by_log AS SELECT length(data) AS a FROM pg_logical_slot_peek_changes('none', NULL, NULL);
CREATE VIEW honest AS SELECT length(made.x) AS a FROM people,
    LATERAL (SELECT gen_random_uuid()::text AS x, pg_column_size(a)) AS made;
CREATE EXTENSION IF NOT EXISTS file_fdw; CREATE SERVER IF NOT EXISTS far_off FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE far (a int) SERVER far_off OPTIONS (filename '/dev/null'); CREATE VIEW far_seen AS SELECT a FROM far;
"""


@pytest.fixture
def database(postgres_server: str) -> Iterator[Any]:
    """A connection; the tables are made anew for each test."""
    import psycopg

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS lineage CASCADE")
        connection.execute(MADE)
        yield connection
        connection.execute("DROP SCHEMA lineage CASCADE")


@pytest.fixture
def at(database: Any, postgres_server: str) -> Any:
    return lambda name: f"{postgres_server}::{name}"


def table(address: Any, population: str | None = None) -> cl.PrivateTable:
    return cl.PrivateTable(address, columns=COLUMNS, population=population)


def refused_together(one: Any, other: Any) -> None:
    """In one session, and in one ledger over time: one budget, or none for the second."""
    with pytest.raises(SharedRows):
        cl.Session({"one": table(one, "p"), "other": table(other, "q")}, budget=cl.PureDP(1))
    ledger = Ledger()
    with cl.Session({"one": table(one, "p")}, budget=cl.PureDP(1), ledger=ledger):
        pass
    with pytest.raises(SharedRows, match=r"keeps what it has spent|budgets are apart"):
        cl.Session({"other": table(other, "q")}, budget=cl.PureDP(1), ledger=ledger)
    with cl.Session({"other": table(other)}, ledger=ledger) as session:  # one that names none shares it
        assert session.ledger.populations() == ["p"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("lineage.people", 'lineage."people"'),
        ("lineage.people", "lineage.seen"),
        ("lineage.seen", "lineage.seen_again"),
        ("lineage.kept", "lineage.people"),
        ("lineage.counted", "lineage.kept"),
        ("lineage.by_ten", "lineage.people"),
        ("lineage.honest", "lineage.people"),
        ("lineage.both_seen", "lineage.both_of"),
        ("lineage.visits", "lineage.visits_1"),
        ("lineage.visits_2_a", "lineage.visits_1"),
        ("lineage.staff", "lineage.doctors"),
    ],
)
def test_two_names_of_the_same_rows_are_one_population(at: Any, one: str, other: str) -> None:
    refused_together(at(one), at(other))


def test_two_addresses_of_one_server_are_one_population(at: Any, database: Any, postgres_server: str) -> None:
    database.execute("DROP ROLE IF EXISTS lineage_reader")
    database.execute("CREATE ROLE lineage_reader LOGIN PASSWORD 'reader'")
    database.execute("GRANT USAGE ON SCHEMA lineage TO lineage_reader")
    database.execute("GRANT SELECT ON lineage.people TO lineage_reader")
    info = database.info
    for place in (
        f"postgresql://localhost:{info.port}/{info.dbname}?user={info.user}&password={info.password}",
        f"postgresql://lineage_reader:reader@127.0.0.1:{info.port}/{info.dbname}",
        f"postgres://{info.user}:{info.password}@127.0.0.1:{info.port}/{info.dbname}?options=-csearch_path%3Dlineage",
    ):
        name = "people" if "search_path" in place else "lineage.people"
        refused_together(at("lineage.people"), f"{place}::{name}")
    database.execute("DROP OWNED BY lineage_reader")
    database.execute("DROP ROLE lineage_reader")


def test_an_ibis_query_names_the_tables_below_it(at: Any, postgres_server: str) -> None:
    import ibis

    backend = ibis.connect(postgres_server)
    seen = backend.table("seen", database="lineage")
    refused_together(at("lineage.people"), seen.filter(seen.a > 3))


UNTOLD = ["far", "far_seen", "by_rows", "by_one", "by_xml", "by_operator", "by_aggregate", "by_cast", "by_statistics", "by_count"]
UNTOLD += ["by_object", "by_rewriting", "by_log"]


@pytest.mark.parametrize("name", UNTOLD)
def test_rows_that_nobody_can_follow_are_refused(at: Any, name: str) -> None:
    with pytest.raises(InvalidDeclaration, match=r"foreign table|may read tables|server's own tables"):
        cl.Session({"t": table(at(f"lineage.{name}"))}, budget=cl.PureDP(1))


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    "query",
    [
        'SELECT lineage."odd name"(g) AS a FROM generate_series(1, 9) AS g',
        "SELECT g OPERATOR(lineage.###) 1 AS a FROM generate_series(1, 9) AS g",
        "SELECT ((CAST(g AS lineage.held)).v) AS a FROM generate_series(1, 9) AS g",
    ],
)
def test_a_query_that_nobody_can_follow_is_refused(postgres_server: str, database: Any, query: str, read_only: bool) -> None:
    """What a query calls is told by the server, in whatever way it is called; one that may only read is asked by the text."""
    setting = "?options=-cdefault_transaction_read_only%3Don" if read_only else ""
    source = PostgresSource(f"{postgres_server}{setting}", f"({query}) AS cloister_source")
    with pytest.raises(InvalidDeclaration, match="may read tables"):
        source.lineage()


def test_other_tables_are_other_populations(at: Any) -> None:
    tables = {"people": table(at("lineage.people")), "staff": table(at("lineage.staff")), "visits": table(at("lineage.visits"))}
    with cl.Session(tables, budget=cl.PureDP(1)) as session:
        assert session.ledger.populations() == ["people", "staff", "visits"]
        assert session.ledger.verify() is True


def test_a_table_that_is_renamed_or_made_anew_has_no_fresh_budget(at: Any, database: Any) -> None:
    ledger = Ledger()
    with cl.Session({"t": table(at("lineage.people"), "p")}, budget=cl.PureDP(1), ledger=ledger):
        pass
    database.execute("ALTER TABLE lineage.people RENAME TO humans")
    with pytest.raises(SharedRows):
        cl.Session({"t": table(at("lineage.humans"), "q")}, budget=cl.PureDP(1), ledger=ledger)
    database.execute("DROP TABLE lineage.humans CASCADE")
    database.execute("CREATE TABLE lineage.people (a int)")
    with pytest.raises(SharedRows):
        cl.Session({"t": table(at('lineage."people"'), "q")}, budget=cl.PureDP(1), ledger=ledger)


def test_a_view_over_two_populations_is_refused(at: Any) -> None:
    tables = {"one": table(at("lineage.people"), "p"), "other": table(at("lineage.both_of"), "q")}
    with cl.Session(tables, budget=cl.PureDP(1)) as session:
        with pytest.raises(SharedRows, match="'p', 'q'"):
            session.add("all", table(at("lineage.both_seen")))
        assert list(session.tables) == ["one", "other"]


def test_what_becomes_part_of_a_table_later_is_compared_before_the_charge(at: Any, database: Any) -> None:
    """A table with a budget of its own is made a part of another one, between opening and the first question; and, where every
    question reads the rows anew, between two questions."""
    apart = "ALTER TABLE lineage.visits DETACH PARTITION lineage.visits_3"
    database.execute("ALTER TABLE lineage.visits_3 ADD CONSTRAINT third CHECK (month = 3)")
    tables = {"visits": table(at("lineage.visits")), "third": table(at("lineage.visits_3"))}
    with cl.Session(tables, budget=cl.PureDP(1)) as session:
        database.execute("ALTER TABLE lineage.visits ATTACH PARTITION lineage.visits_3 FOR VALUES IN (3)")
        for name in tables:
            with pytest.raises(SharedRows, match="another population's budget"):
                session.sql(f"SELECT COUNT(*) AS n FROM {name}", spend="0.1")
        assert session.spent_by == {"visits": cl.PureDP(0), "third": cl.PureDP(0)}
        database.execute(apart)


def test_rows_that_are_read_anew_are_compared_before_every_charge(at: Any, database: Any, monkeypatch: Any) -> None:
    from cloister.tables.engines.postgres import PostgresPrepared

    monkeypatch.setattr(PostgresPrepared, "_store", lambda self: False)  # as in a database that may only be read
    tables = {"seen": table(at("lineage.seen")), "staff": table(at("lineage.staff"))}
    with cl.Session(tables, budget=cl.PureDP(1)) as session:
        session.sql("SELECT COUNT(*) AS n FROM seen", spend="0.1")
        database.execute("CREATE OR REPLACE VIEW lineage.seen AS SELECT a FROM lineage.staff")
        with pytest.raises(SharedRows):
            session.sql("SELECT SUM(a) AS n FROM seen", spend="0.1")
        assert session.spent_by["seen"] == cl.PureDP("0.1")


def test_a_new_part_of_a_table_is_bound_when_it_is_read(at: Any, database: Any) -> None:
    ledger = Ledger()
    with cl.Session({"visits": table(at("lineage.visits"))}, budget=cl.PureDP(1), ledger=ledger) as session:
        database.execute("CREATE TABLE lineage.visits_9 PARTITION OF lineage.visits FOR VALUES IN (9)")
        session.sql("SELECT COUNT(*) AS n FROM visits", spend="0.1")
    database.execute("ALTER TABLE lineage.visits DETACH PARTITION lineage.visits_9")
    with pytest.raises(SharedRows):
        cl.Session({"t": table(at("lineage.visits_9"), "q")}, budget=cl.PureDP(1), ledger=ledger)


def test_two_addresses_that_an_older_version_bound_apart_are_found(at: Any, postgres_server: str) -> None:
    """It knew addresses alone, so two of one table may stand in its ledger with a budget each: the second is refused."""
    ledger = Ledger()
    addresses = {"p": at("lineage.people"), "q": at("lineage.people").replace("127.0.0.1", "localhost")}
    for population, address in addresses.items():
        ledger.open(population, cl.PureDP(1), who="owner")
        ledger.bind(identity_digest(PostgresSource.from_url(address).identity()), population, who="owner")
    with cl.Session({"t": table(addresses["p"])}, ledger=ledger) as session:
        assert list(session.spent_by) == ["p"]
    with pytest.raises(SharedRows) as refused:
        cl.Session({"t": table(addresses["q"])}, ledger=ledger)
    assert refused.value.populations == {"p", "q"}


def test_a_role_that_may_not_ask_the_server_is_refused(at: Any, database: Any) -> None:
    info = database.info
    database.execute("DROP ROLE IF EXISTS lineage_stranger")
    database.execute("CREATE ROLE lineage_stranger LOGIN PASSWORD 'stranger'")
    database.execute("GRANT USAGE ON SCHEMA lineage TO lineage_stranger; GRANT SELECT ON lineage.people TO lineage_stranger")
    database.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    try:
        place = f"postgresql://lineage_stranger:stranger@{info.host}:{info.port}/{info.dbname}::lineage.people"
        with pytest.raises(InvalidDeclaration, match="pg_control_system"):
            cl.Session({"t": table(place)}, budget=cl.PureDP(1))
    finally:
        database.execute("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
        database.execute("DROP OWNED BY lineage_stranger")
        database.execute("DROP ROLE lineage_stranger")
