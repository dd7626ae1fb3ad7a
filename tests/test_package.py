"""What holds for the package as a whole: it is light to import, works on its base alone, and names what it promises."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

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
    "torch",
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
    "torch",
    "uvicorn",
    "vl_convert",
)


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_importing_it_loads_no_engine_and_no_chart() -> None:
    loaded = python(f"import sys, cloister; print(*[name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded.split() == []


def test_every_module_of_the_base_can_be_imported_without_any_extra() -> None:
    walked = [info.name for info in pkgutil.walk_packages(cloister.__path__, "cloister.")]
    wholly = (  # extras as a whole
        *("cloister.hub.", "cloister.learn.", "cloister.mining.coarsened", "cloister.mining.leak"),
        "cloister.tables.spark_calls",
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
