"""What of private rows is on a disk while a data set is open: in the hub's own folder, encrypted, and gone after a kill."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import tempfile
import textwrap
from pathlib import Path

from cloister.hub.platform.catalogue.live import live_of
from cloister.hub.services.asking import QuestionRequest, ask
from tests.hub import forked
from tests.hub.house import Clock, House

CANARY = "CanaryOfARow"
DECLARATION = {"columns": {"name": {"kind": "text"}, "k": {"kind": "integer", "low": 0, "high": 9}}}
KILLED = """
    import os, signal
    from hashlib import shake_256
    from pathlib import Path
    from cloister.hub.services.asking import QuestionRequest, ask
    from cloister.privacy import ApproxDP
    from tests.hub.house import Clock, House

    house = House(Path({folder!r}), Clock(), memory="32MiB")
    ana = house.person("analyst")
    rows = {{"name": [f"{canary} {{shake_256(b'%d' % each).hexdigest(480)}}" for each in range(40_000)], "k": [1] * 40_000}}
    house.sample_data_set("people", rows=rows, declaration={declaration!r}, readers=[ana], budget=ApproxDP(9, "1e-6"))
    ask(house.hub, ana.caller, QuestionRequest(sql="SELECT COUNT(*) AS n FROM people", spend="0.1", purpose="x"))
    print("spilled", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_spilled_rows_are_in_the_hubs_folder_encrypted_and_gone_when_it_starts_again(tmp_path: Path) -> None:
    folder, system = tmp_path / "hub", tmp_path / "system"
    system.mkdir()
    code = textwrap.dedent(KILLED).format(folder=str(folder), canary=CANARY, declaration=DECLARATION)
    said = forked.python("-c", code, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"TMPDIR": str(system)})
    assert said.stdout is not None
    assert said.stderr is not None
    printed, complaints = said.stdout.read(), said.stderr.read()
    assert said.wait() == -signal.SIGKILL, complaints
    assert printed == "spilled\n"
    spilled = [path for path in folder.rglob("*") if path.is_file() and path.name.startswith("duckdb_temp")]
    assert sum(path.stat().st_size for path in spilled) > 2**16, "it was more than fits"
    assert {path.relative_to(folder).parts[0] for path in spilled} == {"scratch"}
    assert stat.S_IMODE((folder / "scratch").stat().st_mode) == 0o700
    assert [path for path in tmp_path.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()] == []
    assert list(system.iterdir()) == [], "the system's temporary folder is nobody's business"
    again = House(folder, Clock())
    assert list((folder / "scratch").iterdir()) == []
    again.close()


def test_the_settings_bound_every_engine_of_a_hub(tmp_path: Path) -> None:
    house = House(tmp_path / "hub", Clock(), memory="96MiB")
    ana = house.person("analyst")
    house.sample_data_set(readers=[ana])
    ask(house.hub, ana.caller, QuestionRequest(sql="SELECT AVG(age) AS n FROM people", spend="0.1", purpose="x"))
    with house.hub.database.reading() as db:
        session = live_of(house.hub).session(db, "ana", tables=["people"])
    [prepared] = session.registry.snapshot._prepared.values()
    shown = prepared._connection.execute("SELECT current_setting('memory_limit')").fetchone()  # type: ignore[attr-defined]
    assert shown == ("96.0 MiB",)
    assert prepared.workspace.memory == 96 * 2**20
    assert {each.parents[1] for each in (tmp_path / "hub").rglob("in-use")} == {tmp_path / "hub" / "scratch"}
    house.close()
    assert list((tmp_path / "hub" / "scratch").iterdir()) == []
    assert not list(Path(tempfile.gettempdir()).glob(f"cloister-rows-*/{tmp_path.name}"))
