"""The image that guests run in: `app.py` and `guest.wit`, built by componentize-py, every call of the system replaced by a trap.

It is made once for each version of its parts, in a folder that nobody but this user may write to: what is compiled is native code
of ours, so whoever can change it needs no guest. Its digest is checked each time before it is loaded.
"""

import fcntl
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cloister.errors import EngineError, MissingDependency
from cloister.installed import install

_SOURCES = tuple(Path(__file__).with_name(name) for name in ("app.py", "guest.wit"))
_PARTS = ("wasmtime", "componentize-py")


def image() -> Path:
    """The compiled image of this version, made if it is missing (some ten seconds), and checked.

    >>> image().suffix
    '.cwasm'
    """
    folder = own_folder()
    found = folder / f"guest-{_version()}.cwasm"
    if not found.exists():
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # no two builds are the same bytes: of two at once, a digest might be the other's
            if not found.exists():
                _build(found)
    digest = found.with_suffix(".sha256")
    for each in (found, digest):
        check_ours(each, remedy=f"remove {found.name}: it is built again")
    if _digest(found) != digest.read_text():
        raise EngineError(
            "The sandbox was not opened",
            why="its image is not the one that was built here",
            instead=f"remove {found.name}: it is built again",
        )
    return found


def own_folder() -> Path:
    """Where images and environments are: a folder that nobody but this user may write to."""
    named = os.environ.get("CLOISTER_GUESTS")
    folder = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cloister" / "guests"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    check_ours(folder, remedy="chmod 700 on the folder, or CLOISTER_GUESTS=another folder of your own")
    return folder


def check_ours(path: Path, *, remedy: str) -> None:
    """Refuses what others can write to: it runs as native code."""
    about = path.stat()
    if os.name == "posix" and (about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o022):
        raise EngineError(
            "The sandbox was not opened",
            why="others can write to its image, or to its packages, which are native code, or to the folder of them",
            instead=remedy,
        )


def _version() -> str:
    """A name of all that the image is made of."""
    try:
        parts = [f"{name} {version(name)}" for name in _PARTS]
    except PackageNotFoundError as missing:
        raise MissingDependency(
            "The sandbox was not opened", why=f"{missing.name} is not installed", instead=install("guests")
        ) from None
    whole = hashlib.sha256("\n".join([*parts, sys.platform, os.uname().machine]).encode())
    for each in _SOURCES:
        whole.update(each.name.encode() + each.read_bytes())
    return whole.hexdigest()[:16]


def _build(found: Path) -> None:
    """Make it beside, and put it in its place whole."""
    from wasmtime import Engine
    from wasmtime.component import Component

    from cloister.guests.sandbox.worker import config

    with tempfile.TemporaryDirectory(dir=found.parent) as work:
        for each in _SOURCES:
            shutil.copy(each, work)
        program = "from componentize_py import script; raise SystemExit(script())"
        about = ["-d", "guest.wit", "-w", "guest", "-q", "componentize", "--stub-wasi", "app", "-o", "guest.wasm"]
        made = subprocess.run(  # noqa: S603 (our own program and arguments)
            [sys.executable, "-c", program, *about], cwd=work, capture_output=True, text=True, check=False
        )
        if made.returncode:
            raise EngineError(
                "The sandbox was not built",
                why=f"componentize-py said: {made.stderr.strip()[-300:]}",
                instead="cloister guest build",
            )
        compiled = Component.from_file(Engine(config()), str(Path(work) / "guest.wasm")).serialize()
        (Path(work) / "image").write_bytes(compiled)
        (Path(work) / "digest").write_text(_digest(Path(work) / "image"))
        for part in ("image", "digest"):
            (Path(work) / part).chmod(0o600)  # whatever the umask says
        os.replace(Path(work) / "digest", found.with_suffix(".sha256"))  # first: who finds an image finds its digest
        os.replace(Path(work) / "image", found)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
