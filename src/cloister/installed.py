"""How cloister came onto this machine: the name of its distribution, which extras are there, and the line that installs one."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

DISTRIBUTION = "cloister-privacy"
"""What pip calls it. One imports `cloister`, which is another project's name on the public index."""

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "learn": ("sklearn", "scipy"),
    "anonymize": ("polars",),
    "files": ("python_calamine", "pyreadstat"),
    "guests": ("wasmtime", "componentize_py"),
    "together": ("gmpy2", "Crypto"),
    "postgres": ("psycopg",),
    "spark": ("pyspark", "grpc", "grpc_status"),
    "mqtt": ("paho",),
}
"""What must be there of each extra that a hub uses, by the names that Python imports."""


def lacking(extra: str) -> list[str]:
    """What of an extra is not installed; nothing where it is all there.

    >>> lacking("anonymize"), lacking("")
    ([], [])
    """
    return [name for name in EXTRAS.get(extra, ()) if find_spec(name) is None]


def edition() -> str:
    """The version that is installed."""
    from importlib.metadata import version

    return version(DISTRIBUTION)


def install(*extras: str) -> str:
    """The line that installs extras as cloister itself was installed: from the repository, from a wheel, or from an index.
    It names no folder, since others may read it.

    >>> "[hub]" in install("hub"), "[learn,hub]" in install("learn", "hub")
    (True, True)
    """
    wanted, origin = f"[{','.join(extras)}]", _origin()
    if "dir_info" in origin:
        return f'pip install -e ".{wanted}"  # in the repository of cloister'
    if "archive_info" in origin:
        file = str(origin["url"]).rpartition("/")[2]
        return f'pip install "./{file}{wanted}"  # beside the file that cloister was installed from'
    if "vcs_info" in origin:
        known = origin["vcs_info"]
        return f'pip install "{DISTRIBUTION}{wanted} @ {known["vcs"]}+{origin["url"]}@{known["commit_id"]}"'
    return f'pip install "{DISTRIBUTION}{wanted}"'


@cache
def _origin() -> dict[str, Any]:
    """What pip wrote down of where it came from (PEP 610); empty for an index, and where it is not installed at all."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found: dict[str, Any] = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return {}
    return found
