"""Make the machine ready: a virtual environment in .venv, and the engines that the tests need from Debian.

    python3 scripts/environment.py base           # what `make demo` needs
    python3 scripts/environment.py all            # what `make test` needs: every extra, PostgreSQL, Java
    python3 scripts/environment.py all quickest   # with Debian's own Python of this version, where that is quicker

Runs on the standard library alone, on any Python from 3.11 on. What is done already is not done again: a stamp inside .venv holds
a digest of pyproject.toml, constraints.txt and the interpreter, and a machine that has the engines is left alone.
"""

from __future__ import annotations

import hashlib
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
    if not arguments or arguments[0] not in WANTS or arguments[1:] not in ([], ["quickest"]):
        print(f"usage: environment.py {' | '.join(WANTS)} [quickest]", file=sys.stderr)
        return 2
    wanted = arguments[0]
    if not stamped(wanted):
        install(wanted, quickest=len(arguments) > 1)
    if wanted == "all":
        engines.provide()
    return 0


def stamped(wanted: str) -> bool:
    """Whether .venv holds what is wanted, as pyproject.toml and constraints.txt ask for it today."""
    stamps = {name: stamp_of(name) for name in ({wanted, "all"})}
    return python_of(VENV).exists() and any(path.exists() and path.read_text() == digest() for path in stamps.values())


def install(wanted: str, *, quickest: bool = False) -> None:
    """Create .venv where it is missing, and install the package with its extras, pinned by constraints.txt."""
    if not python_of(VENV).exists():
        python = interpreter()
        python = quicker_of(python) if quickest else python
        print(f"making .venv of {python}", flush=True)
        create(python)
    what = "all extras" if wanted == "all" else "library, hub and what its menu offers"
    print(f"installing cloister ({what}) into .venv", flush=True)
    pip = [str(python_of(VENV)), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", "constraints.txt", "-e", WANTS[wanted]], cwd=ROOT, check=True)
    for name in WANTS:
        stamp_of(name).unlink(missing_ok=True)
    stamp_of(wanted).write_text(digest())


def create(python: str) -> None:
    """A virtual environment; on a Debian whose Python came without `ensurepip`, its package is fetched first."""
    if not has_ensurepip(python):
        engines.apt_install(f"python{python.rpartition('python')[2]}-venv")
        if not has_ensurepip(python):
            python = interpreter()
    subprocess.run([python, "-m", "venv", str(VENV)], check=True)


def has_ensurepip(python: str) -> bool:
    """Whether it can put pip into an environment."""
    return subprocess.run([python, "-c", "import ensurepip"], check=False, capture_output=True).returncode == 0


def quicker_of(python: str) -> str:
    """Debian's own Python of the same version where that is quicker: one that was built from source takes a seventh more for a
    loop, and as much for a run of the tests."""
    debians = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    if python != sys.executable or not Path(debians).exists() or Path(debians).samefile(Path(python).resolve()):
        return python
    return debians if pace(debians) < 0.97 * pace(python) else python


def pace(python: str) -> float:
    """Seconds that a Python takes for a loop: the least of a hundred, since of five the rest of the machine decided."""
    timed = "timeit.repeat('for i in range(20000): f(i)', 'f = lambda i: [i, i + 1][i % 2]', repeat=100, number=10)"
    loop = f"import timeit; print(min({timed}))"
    return float(subprocess.run([python, "-I", "-c", loop], check=True, capture_output=True, text=True).stdout)


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
