"""Tables over Spark Connect: read on a real server, whose sessions end by themselves; and on one of ours that means no good."""

from __future__ import annotations

import gc
import re
import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.errors import EngineError, InvalidDeclaration, MissingDependency
from cloister.installed import install
from cloister.session.state.lineage import SharedRows
from cloister.tables import Aggregation, Category, Integer, PrivateTable, PublicTable, prepare
from cloister.tables.engines.spark_connect import SparkConnectSource, read_address
from cloister.tables.engines.spark_connection import SparkConnection, SparkPlace
from scripts import spark
from tests.certificates import certificate
from tests.spark_proxy import behind_nginx

grpc = pytest.importorskip("grpc")
import pyspark.sql.connect.proto as messages  # noqa: E402
from pyspark.errors import AnalysisException  # noqa: E402
from pyspark.sql.connect.proto import base_pb2_grpc as service  # noqa: E402

pytestmark = pytest.mark.spark
COLUMNS = {"age": Integer(17, 90), "sex": Category(["F", "M"])}


def rows_in(prepared: Any) -> int:
    return int(prepared.aggregate(Aggregation(prepared)).values["rows"][0])


def views_of(source: SparkConnectSource) -> list[str]:
    return [each.name for each in source.session.catalog.listTables() if each.isTemporary]


def test_a_table_is_known_by_its_whole_name(spark_connect: spark.Server) -> None:
    for written in ("people", "default.People", "spark_catalog.`default`.people"):
        source = SparkConnectSource.from_url(f"{spark_connect.url}::{written}")
        assert source.schema == {"age": "integer", "sex": "text"}
        assert source.identity() == f"sc://127.0.0.1:{spark_connect.port}::spark_catalog.default.people"
        assert spark_connect.token not in repr(source.place) + source.shown + source.describe()


def test_a_view_is_of_the_population_of_the_table_below_it(spark_connect: spark.Server) -> None:
    people = SparkConnectSource.from_url(f"{spark_connect.url}::people")
    session = people.session
    try:
        session.sql("CREATE VIEW default.seen AS SELECT age, sex FROM default.people WHERE age > 30").collect()
        session.sql("CREATE VIEW default.seen_again AS SELECT age + 1 AS age, sex FROM default.seen").collect()
        session.sql("CREATE TABLE default.apart AS SELECT 30 AS age, 'F' AS sex").collect()
        for name, shared in (("seen", True), ("seen_again", True), ("apart", False)):
            other = SparkConnectSource.from_url(f"{spark_connect.url}::{name}")
            assert bool(other.lineage() & people.lineage()) is shared, name
        seen = cl.PrivateTable(f"{spark_connect.url}::seen", columns=COLUMNS, population="fresh")
        tables = {"people": cl.PrivateTable(people, columns=COLUMNS)}
        with cl.Session(tables, budget=cl.PureDP(1)) as asked, pytest.raises(SharedRows, match="'people'"):
            asked.add("seen", seen)
    finally:
        for kind, name in (("VIEW", "seen_again"), ("VIEW", "seen"), ("TABLE", "apart")):
            session.sql(f"DROP {kind} IF EXISTS default.{name}").collect()


def test_it_is_prepared_and_asked_and_nothing_stays(spark_connect: spark.Server) -> None:
    table = PrivateTable(f"{spark_connect.url}::people", columns=COLUMNS)
    with prepare(table) as prepared:
        assert rows_in(prepared) == 400
        assert prepared.owner_report().columns["age"].given == 400
        assert views_of(table.source) != []
    assert views_of(table.source) == []


def test_where_the_server_forgot_the_session_a_question_is_answered_in_a_new_one(spark_connect: spark.Server) -> None:
    """As after an hour in which nobody asked. What is joined, private or public, stands in the new one too."""
    url = f"{spark_connect.url}::people"
    declared = {"columns": COLUMNS, "unit": "age", "max_rows": 7, "population": "people"}
    tables = {"one": PrivateTable(url, **declared), "other": PrivateTable(url, **declared)}
    towns = PublicTable({"sex": ["F", "M"], "word": ["woman", "man"]})
    sql = "SELECT COUNT(*) AS n FROM one JOIN other ON one.age = other.age JOIN towns ON one.sex = towns.sex"
    with cl.Session({**tables, "towns": towns}, budget=cl.PureDP(100_000)) as session:
        first = session.sql(sql, spend="10000").to_pandas()["n"][0]
        before = tables["one"].source.session
        assert before is tables["other"].source.session
        before.client.release_session()
        again = session.sql(f"{sql} WHERE one.age < 85", spend="10000").to_pandas()["n"][0]
        assert tables["one"].source.session is not before
        assert abs(first - again) <= 5  # 49 rows of a person at most: noise of scale 49 / 10,000
        assert first > 2000


@pytest.mark.slow
def test_where_the_server_began_anew_a_question_is_answered_once_its_table_is_there(tmp_path: Path) -> None:
    server = spark.start()
    try:
        spark.fill(server)
        with prepare(PrivateTable(f"{server.url}::people", columns=COLUMNS)) as prepared:
            assert rows_in(prepared) == 400
            spark.kill(server)
            with pytest.raises(EngineError, match="could not be reached"):
                rows_in(prepared)
            server = spark.start(server.folder, server.port, server.token)
            with pytest.raises(EngineError):
                rows_in(prepared)
            spark.fill(server)
            assert rows_in(prepared) == 400
    finally:
        spark.stop(server)


def test_a_question_that_runs_is_cancelled(spark_connect: spark.Server) -> None:
    ended: list[BaseException] = []
    with prepare(PrivateTable(f"{spark_connect.url}::people", columns=COLUMNS)) as prepared:

        def ask() -> None:
            try:
                prepared._collect("SELECT COUNT(*) FROM range(1000000) a, range(1000000) b WHERE a.id * b.id % 7 = 3")
            except Exception as error:
                ended.append(error)

        waiting = threading.Thread(target=ask)
        waiting.start()
        while not prepared._running:
            assert waiting.is_alive()
        prepared.cancel(waiting.ident)
        waiting.join(60)
        assert len(ended) == 1
        assert rows_in(prepared) == 400, "and the next is answered"


def test_columns_that_changed_are_refused(spark_connect: spark.Server) -> None:
    source = SparkConnectSource.from_url(f"{spark_connect.url}::people")
    source.schema = {"age": "integer", "name": "text"}
    with pytest.raises(EngineError, match="columns are others"):
        prepare(PrivateTable(source, columns={"age": Integer(17, 90)}))


def test_no_name_reads_a_file_of_the_server(spark_connect: spark.Server, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a\n")
    source = SparkConnectSource.from_url(f"{spark_connect.url}::people")
    with pytest.raises(AnalysisException):
        source.session.table(f"csv.`{tmp_path / 'secret'}`").collect()
    for name in ("csv.`/etc/passwd`", "csv.`file:///etc/passwd`", "people WHERE 1=1", "`a``b`", "people;x", "a..b", ".a", "a."):
        with pytest.raises(InvalidDeclaration, match="table is not a name"):
            SparkConnectSource.from_url(f"{spark_connect.url}::{name}")


def test_what_a_person_may_have_meant(spark_connect: spark.Server) -> None:
    port = spark_connect.port
    with pytest.raises(EngineError, match="does not take this token"):
        PrivateTable(f"sc://127.0.0.1:{port}/;token=another::people", columns=COLUMNS)
    with pytest.raises(EngineError, match="does not take this token"):
        PrivateTable(f"sc://127.0.0.1:{port}::people", columns=COLUMNS)
    with pytest.raises(EngineError, match="none of this name"):
        PrivateTable(f"{spark_connect.url}::nothing_here", columns=COLUMNS)
    with pytest.raises(EngineError, match="could not be reached"):
        PrivateTable("sc://127.0.0.1:1/;token=a::people", columns=COLUMNS)
    source = SparkConnectSource.from_url(f"{spark_connect.url}::people")
    source.session.sql("SELECT 1 AS x").createOrReplaceTempView("mine")
    with pytest.raises(EngineError, match="temporary view"):
        SparkConnectSource.from_url(f"{spark_connect.url}::mine")
    source.session.catalog.dropTempView("mine")


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("sc://spark.example.org", "not an sc:// address"),
        ("sc://::t", "not an sc:// address"),
        ("sc://a,b::t", "not an sc:// address"),
        ("sc://u@a::t", "not an sc:// address"),
        ("sc://a:0::t", "not an sc:// address"),
        ("sc://a:99999::t", "not an sc:// address"),
        ("sc://a/path;token=x::t", "not an sc:// address"),
        ("sc://a/;token=x y::t", "not an sc:// address"),
        ("sc://a/;token=x;token=y::t", "twice"),
        ("sc://a/;session_id=x::t", "session_id= is not taken"),
        ("sc://a/;user_agent=x::t", "user_agent= is not taken"),
        ("sc://a/;x-forwarded-user=x::t", "x-forwarded-user= is not taken"),
        ("sc://a::", "table is not a name"),
        ("sc://a::t.", "table is not a name"),
    ],
)
def test_what_an_address_may_not_say(address: str, why: str) -> None:
    with pytest.raises(InvalidDeclaration, match="address is invalid") as caught:
        SparkConnectSource.from_url(address)
    assert why in caught.value.why


def test_an_address_is_taken_apart() -> None:
    found = read_address("sc://[2001:db8::5]:7000/;use_ssl=true;token=a%3Bb==;user_id=ann::cat.`my schema`.t")
    assert (found.host, found.port, found.table) == ("2001:db8::5", 7000, ("cat", "my schema", "t"))
    assert found.parameters == {"use_ssl": "true", "token": "a;b==", "user_id": "ann"}
    assert "a;b" not in repr(found)


def test_what_is_not_installed_is_said_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloister.tables.engines.spark_calls", None)
    with pytest.raises(MissingDependency, match=re.escape(install("spark"))):
        PrivateTable("sc://127.0.0.1:1/;token=a::people", columns=COLUMNS)


class Server(service.SparkConnectServiceServicer):
    """One of ours: it takes any token, unless it is told one, and answers plans as it is told."""

    def __init__(self, token: str = "") -> None:
        self.token = token
        self.asked = threading.Event()
        self.over = threading.Event()
        self.hangs = False

    def _admitted(self, context: Any) -> None:
        if self.token and dict(context.invocation_metadata()).get("authorization") != f"Bearer {self.token}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")

    def AnalyzePlan(self, request: Any, context: Any) -> Any:
        self._admitted(context)
        answer = messages.AnalyzePlanResponse(session_id=request.session_id, server_side_session_id="s")
        answer.spark_version.version = "4.0.5"
        return answer

    def Config(self, request: Any, context: Any) -> Any:
        answer = messages.ConfigResponse(session_id=request.session_id, server_side_session_id="s")
        for pair in request.operation.get_with_default.pairs:
            answer.pairs.add(key=pair.key, value="false")
        for key in request.operation.get.keys:
            answer.pairs.add(key=key, value="false")
        return answer

    def ExecutePlan(self, request: Any, context: Any) -> Iterator[Any]:
        self.asked.set()
        if self.hangs:
            self.over.wait(60)
            return
        same = {"session_id": request.session_id, "server_side_session_id": "s", "operation_id": request.operation_id}
        told = messages.ExecutePlanResponse(response_id="1", **same)
        metrics = told.observed_metrics.add(name="__python_accumulator__")
        metrics.values.add(binary=b"cos\nsystem\n(S'false'\ntR.")
        yield told
        done = messages.ExecutePlanResponse(response_id="2", **same)
        done.result_complete.SetInParent()
        yield done

    def ReleaseExecute(self, request: Any, context: Any) -> Any:
        return messages.ReleaseExecuteResponse(session_id=request.session_id, operation_id=request.operation_id)

    def ReleaseSession(self, request: Any, context: Any) -> Any:
        return messages.ReleaseSessionResponse(session_id=request.session_id)


@contextmanager
def serving(server: Server, credentials: Any = None) -> Iterator[int]:
    """The port that it listens on."""
    running = grpc.server(futures.ThreadPoolExecutor(8))
    service.add_SparkConnectServiceServicer_to_server(server, running)
    port = running.add_secure_port("127.0.0.1:0", credentials) if credentials else running.add_insecure_port("127.0.0.1:0")
    running.start()
    try:
        yield port
    finally:
        server.over.set()
        running.stop(0).wait()


def test_a_server_does_not_choose_what_is_loaded_here(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.connect.client import core

    loaded: list[bytes] = []
    monkeypatch.setattr(core.specialAccumulatorSer, "loads", lambda text: loaded.append(text) or (0, None))
    with serving(Server()) as port:
        connection = SparkConnection.to(SparkPlace(host="127.0.0.1", port=port, tls=False))
        with suppress(Exception):
            connection.session.sql("SELECT 1").collect()
        assert loaded == []
        with suppress(Exception):
            core_session(port).sql("SELECT 1").collect()
        assert loaded != [], "and pyspark alone does load it"


def core_session(port: int) -> Any:
    """pyspark's own would end the threads of all when it is collected."""
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    from cloister.tables.engines.spark_calls import ConnectSession

    return ConnectSession(DefaultChannelBuilder(f"sc://127.0.0.1:{port}"))


def test_a_session_that_is_collected_ends_no_thread_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator as Answers

    ended, closed = [], threading.Event()
    monkeypatch.setattr(Answers, "shutdown", lambda: ended.append(True))
    with serving(Server()) as port:
        session = core_session(port)
        channel = session.client._channel
        monkeypatch.setattr(channel, "close", closed.set, raising=False)
        del session
        gc.collect()
        assert closed.wait(60)
    assert ended == []


def test_a_channel_is_closed_when_no_call_begins_and_none_begins_afterwards() -> None:
    """gRPC brings down the process where a call begins on a closed channel."""
    with serving(Server()) as port:
        session = core_session(port)
        closing, stub = session.closing, session.client._stub
        begins, goes_on = threading.Event(), threading.Event()

        def slow(details: Any, request: Any) -> str:
            begins.set()
            assert goes_on.wait(30)
            return "begun"

        calling = threading.Thread(target=lambda: closing.intercept_unary_unary(slow, None, None))
        calling.start()
        assert begins.wait(30)
        closer = threading.Thread(target=closing.close)
        closer.start()
        while closing._open:
            time.sleep(0.001)
        with pytest.raises(EngineError, match="closed"):
            stub.ReleaseExecute(messages.ReleaseExecuteRequest())
        assert closer.is_alive(), "it waits for the call that begins"
        goes_on.set()
        closer.join(30)
        calling.join(30)
        assert not closer.is_alive()
        with pytest.raises(EngineError, match="closed"):
            stub.ReleaseExecute(messages.ReleaseExecuteRequest())


def test_who_waits_for_a_silent_server_can_be_stopped() -> None:
    server = Server()
    with serving(server) as port:
        connection = SparkConnection.to(SparkPlace(host="127.0.0.1", port=port, tls=False))
        server.hangs = True
        held: list[Any] = []
        ended: list[BaseException] = []

        def ask() -> None:
            with connection.calls.asking() as asking:
                held.append(asking)
                try:
                    connection.session.sql("SELECT 1").collect()
                except Exception as error:
                    ended.append(error)

        waiting = threading.Thread(target=ask)
        waiting.start()
        assert server.asked.wait(30)
        assert not ended
        held[0].stop()
        waiting.join(30)
        assert len(ended) == 1


def test_a_server_that_takes_any_token_is_refused_where_it_must_ask() -> None:
    for server, refused in ((Server(), "takes any token"), (Server("right"), None), (Server("other"), "not take this token")):
        with serving(server) as port:
            place = SparkPlace(host="127.0.0.1", port=port, tls=False, token="right", must_ask=True)
            if refused is None:
                SparkConnection.to(place)
                continue
            with pytest.raises(EngineError, match=refused):
                SparkConnection.to(place)


def test_the_certificate_is_that_of_the_name_though_the_address_is_pinned(tmp_path: Path) -> None:
    key, right = certificate(tmp_path / "right", "spark.test")
    _, wrong = certificate(tmp_path / "wrong", "spark.test")
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), right.read_bytes())])
    with serving(Server(), credentials) as port:

        def opened(host: str, authorities: Path, *, tls: bool = True) -> SparkConnection:
            pem = authorities.read_bytes()
            return SparkConnection.to(SparkPlace(host=host, port=port, address="127.0.0.1", tls=tls, authorities=pem, token="t"))

        assert opened("spark.test", right)
        for host, authorities, tls in (
            ("other.test", right, True),
            ("spark.test", wrong, True),
            ("spark.test", right, False),
        ):
            with pytest.raises(EngineError, match="could not be reached"):
                opened(host, authorities, tls=tls)


def test_behind_nginx_as_the_documentation_has_it(spark_connect: spark.Server, tmp_path: Path) -> None:
    """A real server, by TLS, from a table to an answer."""
    with behind_nginx(spark_connect, tmp_path, "spark.test") as (port, authority):
        token, pem = spark_connect.token, authority.read_bytes()
        place = SparkPlace(host="spark.test", port=port, address="127.0.0.1", authorities=pem, token=token, must_ask=True)
        with prepare(PrivateTable(SparkConnectSource(place, ("people",)), columns=COLUMNS)) as prepared:
            assert rows_in(prepared) == 400
        with pytest.raises(EngineError, match="not take this token"):
            SparkConnectSource(replace(place, token="another"), ("people",))


def test_a_connection_ends_with_its_last_table() -> None:
    with serving(Server()) as port:
        place = SparkPlace(host="127.0.0.1", port=port, tls=False)
        first = SparkConnection.to(place)
        client = first.session.client
        assert SparkConnection.to(place) is first
        del first
        gc.collect()
        assert SparkConnection.to(place).session.client is not client
