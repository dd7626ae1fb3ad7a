"""Make the machine ready: a virtual environment in .venv, and the engines that the tests need from Debian.

    python3 scripts/environment.py base     # what `make demo` needs
    python3 scripts/environment.py all      # what `make test` needs: every extra, PostgreSQL, Java

Runs on the standard library alone, on any Python from 3.11 on. What is done already is not done again: a stamp inside .venv holds
a digest of pyproject.toml, constraints.txt and the interpreter, and a machine that has the engines is left alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import engines  # noqa: E402  (the tree is on the path only now)

VENV = ROOT / ".venv"
OLDEST = (3, 11)
WANTS = {"base": ".[hub,anonymize,learn,mining,files,guests,together]", "all": ".[all]"}
"""Of the base: the hub, and whatever its menu and the command line offer without a server of others."""


def main(arguments: list[str]) -> int:
    """Prepare what the one argument names, and say only what a person has to know."""
    if len(arguments) != 1 or arguments[0] not in WANTS:
        print(f"usage: environment.py {' | '.join(WANTS)}", file=sys.stderr)
        return 2
    wanted = arguments[0]
    if not stamped(wanted):
        install(wanted)
    if wanted == "all":
        engines.provide()
    return 0


def stamped(wanted: str) -> bool:
    """Whether .venv holds what is wanted, as pyproject.toml and constraints.txt ask for it today."""
    stamps = {name: stamp_of(name) for name in ({wanted, "all"})}
    return python_of(VENV).exists() and any(path.exists() and path.read_text() == digest() for path in stamps.values())


def install(wanted: str) -> None:
    """Create .venv where it is missing, and install the package with its extras, pinned by constraints.txt."""
    if not python_of(VENV).exists():
        print("making .venv", flush=True)
        create()
    what = "all extras" if wanted == "all" else "library, hub and what its menu offers"
    print(f"installing cloister ({what}) into .venv", flush=True)
    pip = [str(python_of(VENV)), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", "constraints.txt", "-e", WANTS[wanted]], cwd=ROOT, check=True)
    for name in WANTS:
        stamp_of(name).unlink(missing_ok=True)
    stamp_of(wanted).write_text(digest())


def create() -> None:
    """A virtual environment; on a Debian whose Python came without `ensurepip`, its package is fetched first."""
    python = interpreter()
    if Path(python) == Path(sys.executable) and importlib.util.find_spec("ensurepip") is None:
        engines.apt_install(f"python{sys.version_info.major}.{sys.version_info.minor}-venv")
    subprocess.run([python, "-m", "venv", str(VENV)], check=True)


def interpreter() -> str:
    """This Python where it is new enough, else the newest one on the path that is."""
    if sys.version_info >= OLDEST:
        return sys.executable
    for minor in (13, 12, 11):
        found = shutil.which(f"python3.{minor}")
        if found:
            return found
    raise SystemExit(
        f"cloister needs Python {'.'.join(map(str, OLDEST))} or newer; on Debian: apt-get install python3.11 python3.11-venv"
    )


def digest() -> str:
    """What the installation depends on: the two files, and the Python that .venv was made with."""
    parts = [
        (ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt", ".venv/pyvenv.cfg") if (ROOT / name).exists()
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def stamp_of(wanted: str) -> Path:
    """The file that says: these extras were installed."""
    return VENV / f".stamp-{WANTS[wanted].strip('.[]').replace(',', '-')}"


def python_of(venv: Path) -> Path:
    """The interpreter inside a virtual environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except subprocess.CalledProcessError as failure:
        sys.exit(failure.returncode or 1)
