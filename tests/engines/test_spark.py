"""What only Spark can show: settings under which a text cannot be quoted, and views that are gone at close."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloister.errors import EngineError
from cloister.tables import Aggregation, Integer, PrivateTable, Text, prepare
from cloister.tables.engines.spark import SparkSource

pytestmark = pytest.mark.spark


def test_views_are_gone_at_close(spark_session: Any) -> None:
    frame, before = spark_session.createDataFrame([(1, "a")], "x int, `${t}` string"), spark_session.catalog.listTables()
    with prepare(PrivateTable(frame, columns={"x": Integer(0, 9), "${t}": Text()})) as prepared:
        assert prepared.rows(["${t}"])["${t}"].tolist() == ["a"]
        assert len(spark_session.catalog.listTables()) == len(before) + 2
    assert spark_session.catalog.listTables() == before


def test_a_session_that_reads_quotes_otherwise_is_refused(spark_session: Any) -> None:
    frame = spark_session.createDataFrame([(1,)], "x int")
    with prepare(PrivateTable(frame, columns={"x": Integer(0, 9)})) as prepared:
        spark_session.conf.set("spark.sql.parser.escapedStringLiterals", "true")
        try:
            with pytest.raises(EngineError, match="escapedStringLiterals"):
                prepared.aggregate(Aggregation(prepared))
        finally:
            spark_session.conf.set("spark.sql.parser.escapedStringLiterals", "false")


def test_frames_of_one_file_are_known_by_it(spark_session: Any, tmp_path: Path) -> None:
    """Read anew, filtered, through a view or by SQL; what Spark wrote goes by its folder."""
    place = str(tmp_path / "people")
    spark_session.range(50).selectExpr("int(id % 5) AS x", "int(id % 3) AS y").write.partitionBy("y").parquet(place)
    spark_session.range(50).selectExpr("int(id % 5) AS x").write.parquet(str(tmp_path / "others"))
    (tmp_path / "one.csv").write_text("x\n3\n")

    def lineage(frame: Any) -> frozenset[str]:
        return SparkSource(frame).lineage()

    first = lineage(spark_session.read.parquet(place))
    assert len(first) == 1
    frame = spark_session.read.parquet(place)
    frame.createOrReplaceTempView("below")
    try:
        again = (
            frame.where("x > 2"),
            frame.where("y = 1"),
            spark_session.table("below"),
            spark_session.sql("SELECT 1 + x AS x FROM below"),
        )
        assert [lineage(each) for each in again] == [first] * len(again)
    finally:
        spark_session.catalog.dropTempView("below")
    spark_session.range(9).selectExpr("int(id) AS x", "1 AS y").write.partitionBy("y").mode("overwrite").parquet(place)
    assert lineage(spark_session.read.parquet(place)) == first
    others, one = (
        lineage(spark_session.read.parquet(str(tmp_path / "others"))),
        lineage(spark_session.read.csv(str(tmp_path / "one.csv"))),
    )
    assert others
    assert one
    assert len(first | others | one) == 3
    assert lineage(spark_session.createDataFrame([(1,)], "x int")) == frozenset()


@pytest.mark.usefixtures("ibis_backends")
def test_an_ibis_table_of_spark(spark_session: Any) -> None:
    import ibis

    backend = ibis.pyspark.connect(spark_session)
    spark_session.createDataFrame([(1,), (7,)], "x int").createOrReplaceTempView("numbers")
    source = backend.table("numbers")
    with prepare(PrivateTable(source.filter(source.x > 3), columns={"x": Integer(0, 9)})) as prepared:
        assert prepared.rows(["x"])["x"].tolist() == [7]
    spark_session.catalog.dropTempView("numbers")
