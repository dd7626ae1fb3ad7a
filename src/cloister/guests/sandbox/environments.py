"""Named environments of native guests: packages that an administrator installed in advance, each by its hash.

They are built offline, of wheels in a folder and a file of requirements with hashes; nothing is downloaded, neither then nor at
a run. The digest is that of every file, so an admission that names it is for these bytes; what is compiled is in it, since it
runs in place of its source, and wheels bring none. The folder is the user's own, as that of the image is: whoever can write there
runs code of theirs in every guest.
"""

import compileall
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from cloister.errors import EngineError, InvalidParameter, MissingDependency
from cloister.guests.sandbox.image import check_ours, own_folder

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_HASH = re.compile(r"\s--hash=sha256:([0-9a-f]{64})(?=\s|$)")
_PYTHON = f"{sys.implementation.cache_tag} {sys.platform} {platform.machine()}"


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Packages under a name."""

    name: str
    digest: str
    python: str
    distributions: tuple[str, ...]
    """`numpy 2.2.1`, by name."""

    def describe(self) -> dict[str, Any]:
        """As plain data; so it is kept beside the packages."""
        about = {"name": self.name, "digest": self.digest, "python": self.python}
        return {**about, "distributions": list(self.distributions)}

    @property
    def packages(self) -> Path:
        """Where they are."""
        return _root() / self.name / "packages"


def build_environment(name: str, requirements: Path, wheels: Path) -> Environment:
    """Install what a file of requirements names, each with hashes, from the wheels of a folder. A name is for one content: what
    was admitted with it is never run with another one."""
    if not _NAME.fullmatch(name):
        raise InvalidParameter(
            f"The environment {name!r} was not built",
            why="a name is 1 to 63 small letters, digits, '-' and '_', a letter first",
            instead='"statistics"',
        )
    if (_root() / name).exists():
        raise InvalidParameter(
            f"The environment {name!r} was not built",
            why="there is one of that name, and algorithms may be admitted with it",
            instead=f"another name, such as {name}-2",
        )
    asked = _asked(requirements)
    _check_wheels(asked, wheels)
    if find_spec("pip") is None:
        raise MissingDependency(
            f"The environment {name!r} was not built", why="pip is not installed", instead="python -m ensurepip"
        )
    with tempfile.TemporaryDirectory(dir=_root()) as work:
        packages = Path(work) / "made" / "packages"
        words = [
            "install",
            "--isolated",
            "--no-index",
            "--find-links",
            str(wheels.resolve()),
            "--require-hashes",
            "--no-cache-dir",
        ]
        words += ["--only-binary=:all:", "--no-compile", "--disable-pip-version-check", "--target", str(packages)]
        listed = Path(work) / "requirements.txt"
        listed.write_text("".join(f"{each} {hashes}\n" for each, hashes in asked.items()), encoding="utf-8")
        made = subprocess.run(  # noqa: S603 (our own program and arguments)
            [sys.executable, "-I", "-m", "pip", *words, "-r", str(listed)],
            capture_output=True,
            text=True,
            check=False,
            env={"HOME": work, "TMPDIR": work, "PATH": ""},
        )
        if made.returncode:
            told = " ".join(made.stderr.partition("ERROR:")[2].replace("ERROR:", "").split()) or "nothing"
            raise InvalidParameter(
                f"The environment {name!r} was not built",
                why=f"pip said: {told[:300]}",
                instead="every package that these need, with its hashes, and their wheels in the folder",
            )
        shutil.rmtree(packages / "bin", ignore_errors=True)
        for shipped in packages.rglob("*.pyc"):
            shipped.unlink()  # what a wheel brought compiled need not be what its source says
        checked = PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(packages, quiet=2, invalidation_mode=checked, stripdir=str(packages), prependdir="packages")
        for path in (packages.parent, packages, *packages.rglob("*")):
            path.chmod(path.stat().st_mode & 0o755)  # whatever the umask says
        found = [folder.name.removesuffix(".dist-info").replace("-", " ", 1) for folder in packages.glob("*.dist-info")]
        made_of = Environment(name=name, digest=_digest(packages), python=_PYTHON, distributions=tuple(sorted(found)))
        record = Path(work) / "made" / "environment.json"
        record.write_text(json.dumps(made_of.describe(), indent=1), encoding="utf-8")
        record.chmod(0o600)
        (Path(work) / "made").rename(_root() / name)
    return made_of


def environment(name: str) -> Environment:
    """A built environment, whose files are those that were built: looked at once in each process."""
    record = _root() / name / "environment.json"
    if not _NAME.fullmatch(name) or not record.exists():
        known = ", ".join(each.name for each in environments())
        raise InvalidParameter(
            f"environment={name!r} is invalid",
            why="no environment of that name was built on this machine",
            instead=known or f"cloister guest environment build {name if _NAME.fullmatch(name) else 'NAME'} FILE --wheels FOLDER",
        )
    return _checked(record, record.stat().st_mtime_ns)


def environments() -> list[Environment]:
    """All that were built here, by name; their files are not looked at."""
    return [_read(each) for each in sorted(_root().glob("*/environment.json"))]


@lru_cache(maxsize=64)
def _checked(record: Path, _: int) -> Environment:
    found = _read(record)
    remedy = f"remove {record.parent}, and build it again"
    for each in (record.parent, record, found.packages):
        check_ours(each, remedy=remedy)
    if found.python != _PYTHON:
        raise EngineError(
            f"The environment {found.name!r} was not opened",
            why=f"it was built for {found.python}, and this is {_PYTHON}",
            instead=remedy,
        )
    if _digest(found.packages) != found.digest:
        raise EngineError(
            f"The environment {found.name!r} was not opened", why="its files are not those that were built", instead=remedy
        )
    return found


def _read(record: Path) -> Environment:
    told = json.loads(record.read_text(encoding="utf-8"))
    about = {name: str(told[name]) for name in ("name", "digest", "python")}
    return Environment(**about, distributions=tuple(told["distributions"]))


def _root() -> Path:
    folder = own_folder() / "environments"
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder


def _asked(requirements: Path) -> dict[str, str]:
    """What is required, and the hashes of each as pip writes them. An option in such a file could name an index, and an address a
    place to download from."""
    text = re.sub(r"\\\n", " ", requirements.read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for line in text.splitlines():
        stated = line.split(" #")[0].strip()
        if not stated or stated.startswith("#"):
            continue
        hashes = _HASH.findall(stated)
        try:
            each = Requirement(_HASH.sub("", stated).strip())
        except InvalidRequirement:
            each = None
        if each is None or each.url or not hashes:
            raise InvalidParameter(
                f"{stated[:60]!r} is invalid",
                why="each line names a package with its hashes, and nothing else",
                instead="numpy==2.2.1 --hash=sha256:…",
            )
        found[str(each)] = " ".join(f"--hash=sha256:{hashed}" for hashed in hashes)
    if not found:
        raise InvalidParameter("The requirements are invalid", why="they name no package", instead="numpy==2.2.1 --hash=sha256:…")
    return found


def _check_wheels(asked: dict[str, str], wheels: Path) -> None:
    """Of each package a wheel has to be there with one of its hashes: pip would speak of an index."""
    there: dict[str, list[Path]] = {}
    for wheel in sorted(wheels.glob("*.whl")):
        try:
            there.setdefault(parse_wheel_filename(wheel.name)[0], []).append(wheel)
        except InvalidWheelFilename:
            continue
    for each, hashes in asked.items():
        own = there.get(canonicalize_name(Requirement(each).name), [])
        if not any(hashlib.sha256(wheel.read_bytes()).hexdigest() in hashes for wheel in own):
            raise InvalidParameter(
                f"{each} was not installed",
                why="no wheel of it in the folder has a hash that is listed" if own else "the folder has no wheel of it",
                instead="pip download --require-hashes --only-binary=:all: -r FILE -d FOLDER, where there is a network",
            )


def _digest(packages: Path) -> str:
    """Of every file with its place; of what was compiled too, since it runs in place of its source."""
    whole = hashlib.sha256()
    for path in sorted(packages.rglob("*")):
        if path.is_symlink():
            whole.update(f"{path.relative_to(packages)}\0→{os.readlink(path)}\0".encode())
        elif path.is_file():
            with path.open("rb") as file:
                whole.update(f"{path.relative_to(packages)}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\0".encode())
    return whole.hexdigest()
