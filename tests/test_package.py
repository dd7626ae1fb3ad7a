"""What holds for the package as a whole: it is light to import, works on its base alone, and names what it promises."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import cloister

HEAVY = (
    "altair",
    "cryptography",
    "duckdb",
    "grpc",
    "httpx",
    "ibis",
    "mpmath",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "scipy",
    "sklearn",
    "sqlglot",
)
EXTRAS = (
    "alembic",
    "argon2",
    "authlib",
    "babel",
    "dp_accounting",
    "fastapi",
    "gmpy2",
    "grpc",
    "hypothesis",
    "onnx",
    "opendp",
    "pandas",
    "polars",
    "prometheus_client",
    "psycopg",
    "pyarrow",
    "pyspark",
    "pytest",
    "scipy",
    "segno",
    "sklearn",
    "sqlalchemy",
    "uvicorn",
    "vl_convert",
)
UNASKED = (
    "cloister.crypto.encrypted_file",
    "cloister.crypto.tls",
    "cloister.ledger.migrations",
    "cloister.ledger.verify",
    "cloister.noise.workloads",
    "cloister.privacy.lattice",
    "cloister.privacy.loss",
    "cloister.query.functions",
    "cloister.query.remedies",
    "cloister.session.planning.bias",
    "cloister.session.releases.drawing",
    "cloister.session.execution.rehearsal",
    "cloister.session.workloads.sheets",
    "cloister.session.planning.within",
    "cloister.session.workloads.workload",
    "cloister.tables.sourcing.encrypted",
    "cloister.tables.expression.scalars",
)
"""What no plain count needs."""


def python(code: str) -> str:
    """What a fresh interpreter prints; of its end neither Python nor an engine has anything to say."""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.strip()


def test_importing_it_loads_no_engine_and_no_chart() -> None:
    loaded = python(f"import sys, cloister; print(*[name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded.split() == []


def test_opening_a_session_loads_no_engine_and_nothing_that_a_question_may_need(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age\n30\n40\n", encoding="utf-8")
    later = (*UNASKED, *(set(HEAVY) - {"sqlglot"}), "arro3", "cloister.tables.engines.duckdb")
    loaded = python(
        "import sys, cloister as cl\n"
        f"people = cl.PrivateTable({str(tmp_path / 'people.csv')!r}, columns={{'age': cl.Integer(17, 90)}})\n"
        "with cl.Session({'people': people}, budget=cl.PureDP(1)):\n"
        f"    print(*[name for name in {later!r} if name in sys.modules])"
    )
    assert loaded.split() == []


@pytest.mark.parametrize("enabled", [True, False])
def test_loading_leaves_the_garbage_collector_as_it_was(enabled: bool) -> None:
    """Also where what is loaded is missing, and where loading begins within loading."""
    said = python(
        f"import gc, cloister as cl\nif not {enabled}: gc.disable()\n"
        "cl.Session; print(gc.isenabled())\n"
        "from cloister.lazily import Lazily, loading\n"
        "names = Lazily('cloister'); names.homes = {'name': 'cloister.no_such_module'}\n"
        "try: names.get('name')\n"
        "except ModuleNotFoundError: print(gc.isenabled())\n"
        "with loading():\n"
        "    with loading(): pass\n"
        "    print(gc.isenabled())\n"
        "print(gc.isenabled())"
    )
    assert said.split() == [str(enabled), str(enabled), "False", str(enabled)]


def test_a_question_on_the_command_line_loads_what_it_needs(tmp_path: Path) -> None:
    """No other command, no attack, no sample, no compiler of another engine: start-up is most of what a small question takes."""
    (tmp_path / "people.csv").write_text("age\n30\n40\n", encoding="utf-8")
    table = 'source = "people.csv"\ncolumns = { age = { kind = "integer", low = 17, high = 90 } }'
    (tmp_path / "tables.toml").write_text(
        f'[tables.people]\n{table}\n[budgets]\npeople = {{ epsilon = "1" }}\n', encoding="utf-8"
    )
    arguments = ["cloister", "query", "SELECT COUNT(*) FROM people", "--spend", "1", "--tables", str(tmp_path / "tables.toml")]
    found = python(
        f"import sys; sys.argv = {arguments!r}\nfrom cloister.cli import main\nmain()\nprint(*sys.modules)",
    ).split()
    loaded = set(found)
    assert {"duckdb", "ibis", "ibis.backends.sql.compilers.duckdb", "cloister.query.session"} <= loaded
    unneeded = (
        "attacks",
        "anonymize",
        "learn",
        "local",
        "mining",
        "client",
        "samples",
        "cli.audit",
        "cli.learn",
        "cli.demo",
    )
    assert sorted(name for name in loaded if name.startswith(tuple(f"cloister.{part}" for part in unneeded))) == []
    assert (
        sorted(loaded & {"mpmath", "scipy", "pandas", "polars", "pyarrow", "sklearn", "altair", "fastapi", "psycopg", "pyspark"})
        == []
    )
    others = [name for name in loaded if name.startswith("ibis.backends.sql.compilers.")]
    assert sorted(name.rpartition(".")[2] for name in others) == ["_compat", "base", "duckdb"]
    assert sorted(loaded & set(UNASKED)) == []


def test_ibis_still_has_all_its_compilers() -> None:
    """Whoever asks the package for a name that only its own body defines gets it, before and after."""
    said = python(
        "import ibis; from cloister.tables.engines.ibis_compilers import sql_of; t = ibis.table({'a': 'int64'}, name='t')\n"
        "print(sql_of(t.a.sum(), 'duckdb') == str(ibis.to_sql(t.a.sum(), dialect='duckdb', pretty=False)))\n"
        "print('\"' in str(ibis.to_sql(t, dialect='trino')), '`' in str(ibis.to_sql(t, dialect='bigquery')))\n"
        "import ibis.backends.sql.compilers as sc; from ibis.backends.sql.compilers import TrinoCompiler\n"
        "print(TrinoCompiler.__name__, sc.DuckDBCompiler.__name__, sc.postgres.__name__, hasattr(sc, 'nonsense'))"
    )
    names = "TrinoCompiler DuckDBCompiler ibis.backends.sql.compilers.postgres False"
    assert said.splitlines() == ["True", "True True", names]


def test_every_module_of_the_base_can_be_imported_without_any_extra() -> None:
    walked = [info.name for info in pkgutil.walk_packages(cloister.__path__, "cloister.")]
    wholly = (  # extras as a whole
        *("cloister.hub.", "cloister.learn.", "cloister.compress.", "cloister.mining.coarsened", "cloister.mining.leak"),
        "cloister.tables.engines.spark_calls",
        *(
            "cloister.crypto.paillier",
            "cloister.together.proxy",
            "cloister.together.sending",
            "cloister.together.distributed_pca",
        ),
        *(
            f"cloister.together.{name}"
            for name in ("circuits.moments", "circuits.protocol", "circuits.transfer", "exact", "service_provider")
        ),
    )
    names = [name for name in walked if not name.startswith(wholly)]
    blocked = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}))"
    assert python(f"{blocked}; import importlib; [importlib.import_module(name) for name in {names!r}]; print('all')") == "all"


def test_every_public_name_is_there_and_listed() -> None:
    assert sorted(cloister.__all__) == sorted(set(cloister.__all__))
    for name in cloister.__all__:
        assert getattr(cloister, name) is not None
    assert set(cloister.__all__) <= set(dir(cloister))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        cloister.no_such_name  # noqa: B018


def test_its_types_are_published() -> None:
    from importlib.resources import files

    assert files("cloister").joinpath("py.typed").is_file()
