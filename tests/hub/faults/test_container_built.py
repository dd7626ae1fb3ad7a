"""The image of docs/deploy/Containerfile, built once and started: by buildah, on a base that debootstrap makes of Debian.

The base stands for `python:3.13-slim`, which lies in a registry of images that a test does not reach: Debian 13 with its Python
3.13. What is built on it is the file's own lines. Isolation is buildah's `chroot`, which needs neither a daemon nor a network of
its own, so the hub listens on a free port of this machine; all else is the entry point and command of the image.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import pytest

from tests.hub.faults.processes import PATIENCE, ROOT, Process, free_port

CONTAINERFILE = ROOT / "docs" / "deploy" / "Containerfile"
BASE = "python:3.13-slim"
DEBIAN, PACKAGES = "trixie", "python3,python3-venv,python-is-python3,ca-certificates"
CERTIFICATES = "/etc/ssl/certs"
SETTINGS = 'title = "In a container"\naddress = "https://hub.example.org"\nproxies = "127.0.0.1"\n'

able = all(shutil.which(name) for name in ("buildah", "debootstrap")) and os.geteuid() == 0


class Images:
    """A store of images and containers in a folder; the containers go with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._words = ["buildah", "--storage-driver", "vfs", "--root", str(folder / "store"), "--runroot", str(folder / "run")]

    def words(self, *words: str | Path) -> list[str]:
        return [*self._words, *map(str, words)]

    def do(self, *words: str | Path) -> str:
        """What buildah said last."""
        said = subprocess.run(self.words(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert said.returncode == 0, f"{' '.join(map(str, words))}\n{said.stdout[-2000:]}\n{said.stderr[-2000:]}"
        return said.stdout.strip().rpartition("\n")[2]


def mirror() -> str:
    """Where this machine gets Debian from."""
    said = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=True)
    return next(line for line in said.stdout.splitlines() if re.search("/debian/?$", line))


def pip_settings(file: Path) -> Path:
    """How pip reaches its index here, but for folders of this machine; certificates are mounted."""
    said = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"^global\.(index-url|trusted-host|proxy)='(.*)'$", said, re.MULTILINE))
    lines = [
        f"{name} = {value}" for name, value in {"cert": f"{CERTIFICATES}/ca-certificates.crt", "timeout": "180", **found}.items()
    ]
    file.write_text("\n".join(["[global]", *lines, ""]))
    return file


@pytest.fixture
def images(tmp_path: Path) -> Iterator[Images]:
    """The image `cloister`, built of this checkout."""
    made = Images(tmp_path / "images")
    root = tmp_path / "debian"
    words = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", DEBIAN, str(root), mirror()]
    try:
        said = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    finally:
        subprocess.run(["umount", "--quiet", str(root / "proc")], check=False)  # left where it is stopped in the middle
    assert said.returncode == 0, said.stdout[-2000:]
    base = made.do("from", "scratch")
    made.do("add", "--quiet", base, root, "/")
    made.do("commit", "--quiet", base, BASE)
    made.do("rm", base)
    shutil.rmtree(root)
    mounts = (f"--volume={CERTIFICATES}:{CERTIFICATES}:ro", f"--volume={pip_settings(tmp_path / 'pip.conf')}:/etc/pip.conf:ro")
    made.do(
        "build",
        "--format=docker",
        "--pull-never",
        "--isolation=chroot",
        *mounts,
        "--tag=cloister",
        f"--file={CONTAINERFILE}",
        ROOT,
    )
    yield made
    made.do("rm", "--all")
    made.do("rmi", "--all", "--force")


def in_container(words: Sequence[str]) -> int:
    """The process on this machine that runs these words."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal():
                ran = (entry / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
                if ran[-len(words) :] == list(words) and "buildah" not in ran[0]:
                    return int(entry.name)
    raise AssertionError(f"nothing runs {' '.join(words)}")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not able, reason="buildah and debootstrap are not here, or this is not root")
def test_the_image_is_built_and_its_hub_starts_answers_and_ends(images: Images, tmp_path: Path) -> None:
    image = json.loads(
        subprocess.run(images.words("inspect", "--type=image", "cloister"), capture_output=True, check=True).stdout
    )
    config = image["Docker"]["config"]
    port = str(free_port())
    command = [port if word == "8765" else word for word in config["Cmd"]]
    settings = tmp_path / "hub.toml"
    settings.write_text(SETTINGS)
    settings.chmod(0o444)
    hub = images.do("from", "--pull-never", "cloister")
    run = ["run", "--isolation=chroot", f"--volume={settings}:/etc/cloister/hub.toml:ro", hub, "--"]

    process = Process("container", images.words(*run, *config["Entrypoint"], *command), tmp_path / "log", ready=" is at ")
    try:
        inside = in_container(command)
        status = Path(f"/proc/{inside}/status").read_text()
        assert re.search(r"^Uid:\s+10001\s+10001\s+10001\s+10001$", status, re.MULTILINE)
        assert httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).status_code == 200
        health = [word.replace("8765", port) for word in config["Healthcheck"]["Test"][1:]]
        images.do(*run, *health)
        offered = images.do(*run, "python", "-c", "import cloister.hub.services as s; print(len(s.all_services()))")
        assert int(offered) > 10
        os.kill(inside, signal.SIGTERM)
        assert process.popen.wait(PATIENCE) == 0, (tmp_path / "log").read_text()[-2000:]
    finally:
        process.end()
    elsewhere = "find / -xdev -user 10001 -not -path '/srv/*' -not -path '/proc/*' 2> /dev/null"
    kept = images.do(*run, "sh", "-c", f"ls /srv/cloister | tr '\\n' ' '; {elsewhere} | tr '\\n' ' '; true").split()
    assert {"hub.db", "ledger.db", "ledger.head", "master.key"} <= set(kept)
    assert not [name for name in kept if name.startswith("/")]
