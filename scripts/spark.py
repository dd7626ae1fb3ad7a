"""A throw-away Spark Connect server: for tests, never for data that matter.

It lives in a temporary folder of its own, on a free port of 127.0.0.1, asks for a token that is drawn for it, and is not a system
service. Its catalogue is in memory: who starts it again registers its tables anew, from the files that are still there.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from scripts.engines import java_home

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""How Java runs for tests: it compiles once and quickly, since nothing is repeated so often that a second time would pay."""
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.port.maxRetries": "0",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.session.timeZone": "Europe/Amsterdam",
    "spark.driver.extraJavaOptions": JAVA,
}
_SECONDS = 120


class CannotStart(Exception):
    """No Java, no pyspark, or the server did not come up."""


@dataclass(frozen=True)
class Server:
    """A running server: where it is, the token that it asks for, its folder and its process."""

    port: int
    token: str
    folder: Path
    pid: int

    @property
    def url(self) -> str:
        """As pyspark takes it, and cloister with `::table` at its end."""
        return f"sc://127.0.0.1:{self.port}/;token={self.token}"


def start(folder: Path | None = None, port: int = 0, token: str = "") -> Server:
    """Starts one, in a new folder where none is named; some ten seconds."""
    home = java_home()
    if home is None:
        raise CannotStart("there is no Java 17 to 21: apt-get install openjdk-17-jre-headless")
    try:
        import pyspark
    except ImportError:
        raise CannotStart('pyspark is not installed: pip install -e ".[spark]"') from None
    made = Path(tempfile.mkdtemp(prefix="cloister-spark-")) if folder is None else folder
    port, token = port or free_port(), token or secrets.token_hex(16)
    settings = {**_SETTINGS, "spark.connect.grpc.binding.port": str(port), "spark.sql.warehouse.dir": str(made / "warehouse")}
    given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    program = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [str(program), "--master", "local[2]", "--driver-memory", "1g", "--class", server, *given, "spark-internal"]
    # spark-submit becomes the Java process; the token is kept from the list of processes
    environment = {**os.environ, "JAVA_HOME": str(home), "SPARK_CONNECT_AUTHENTICATE_TOKEN": token}
    environment = {name: value for name, value in environment.items() if name not in ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS")}
    with open(made / "log", "ab") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=made, env=environment, start_new_session=True
        )
    found = Server(port, token, made, process.pid)
    for _ in range(_SECONDS * 10):
        if process.poll() is not None:
            break
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return found
        time.sleep(0.1)
    stop(found)
    raise CannotStart("the Spark Connect server did not come up")


def fill(server: Server) -> None:
    """Makes the table `default.people`, or finds it again in its folder: 400 rows, `age` from 20 to 79 and `sex`."""
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession(server.url.replace("127.0.0.1", "localhost"))  # to pyspark only this name is this machine
    place = f"USING parquet LOCATION '{server.folder / 'people'}'"
    rows = "" if (server.folder / "people").exists() else "AS SELECT int(20 + id % 60) AS age, 'F' AS sex FROM range(1, 401)"
    session.sql(f"CREATE TABLE default.people {place} {rows}").collect()
    session.stop()


def kill(server: Server) -> None:
    """Ends the server at once, and keeps its folder."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(server.pid, 0)


def stop(server: Server) -> None:
    """Ends the server and removes its folder."""
    kill(server)
    shutil.rmtree(server.folder, ignore_errors=True)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
