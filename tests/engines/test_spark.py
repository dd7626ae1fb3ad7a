"""What only Spark can show: settings under which a text cannot be quoted, and views that are gone at close."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.errors import EngineError
from cloister.tables import Aggregation, Integer, PrivateTable, Text, prepare

pytestmark = pytest.mark.spark


def test_views_are_gone_at_close(spark_session: Any) -> None:
    frame = spark_session.createDataFrame([(1, "a")], "x int, `${t}` string")
    with prepare(PrivateTable(frame, columns={"x": Integer(0, 9), "${t}": Text()})) as prepared:
        assert prepared.rows(["${t}"])["${t}"].tolist() == ["a"]
        assert len(spark_session.catalog.listTables()) == 2
    assert spark_session.catalog.listTables() == []


def test_a_session_that_reads_quotes_otherwise_is_refused(spark_session: Any) -> None:
    frame = spark_session.createDataFrame([(1,)], "x int")
    with prepare(PrivateTable(frame, columns={"x": Integer(0, 9)})) as prepared:
        spark_session.conf.set("spark.sql.parser.escapedStringLiterals", "true")
        try:
            with pytest.raises(EngineError, match="escapedStringLiterals"):
                prepared.aggregate(Aggregation(prepared))
        finally:
            spark_session.conf.set("spark.sql.parser.escapedStringLiterals", "false")


@pytest.mark.usefixtures("ibis_backends")
def test_an_ibis_table_of_spark(spark_session: Any) -> None:
    import ibis

    backend = ibis.pyspark.connect(spark_session)
    spark_session.createDataFrame([(1,), (7,)], "x int").createOrReplaceTempView("numbers")
    source = backend.table("numbers")
    with prepare(PrivateTable(source.filter(source.x > 3), columns={"x": Integer(0, 9)})) as prepared:
        assert prepared.rows(["x"])["x"].tolist() == [7]
    spark_session.catalog.dropTempView("numbers")
