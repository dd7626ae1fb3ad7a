"""The engines that the tests need beyond Python packages: found where they are, installed from Debian where they can be.

PostgreSQL is used as programs only (`initdb`, `postgres`): the tests start servers of their own, on a free port in a temporary
folder, never as a system service; so are nginx and Mosquitto. Spark 4.0 runs on Java 17 to 21. Pages are tested in Chromium.
Guests with packages run behind bubblewrap, and some are written in R.
Where an engine can't be had, one loud line says so and its tests skip; with CLOISTER_REQUIRE_ENGINES=1, as in CI, that skip is a
failure.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path

from scripts import postgres

JAVA_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless")
JAVA_RELEASES = range(17, 22)
NODE = Path(__file__).resolve().parent.parent / ".venv" / "node"
NODE_PG = "8.16.0"
DOCKERFILELINT = "1.8.0"
BROWSERS = ("chromium-headless-shell", "chromium")
"""The first that is here is used. The shell is the same engine without windows: a page takes a fifth of the processor's time."""
STARTS = Path("/usr/sbin/policy-rc.d")
"""What Debian asks before a freshly installed service is started."""


def provide() -> None:
    """Install what is missing, where this user may; else say loudly what will be skipped."""
    if postgres_programs() is None:
        with no_system_cluster():
            apt_install("postgresql")
        if postgres_programs() is None:
            warn("PostgreSQL", "postgresql")
    if java_home() is None:
        apt_install(*JAVA_PACKAGES, any_of=True)
        if java_home() is None:
            warn("Java 17 or 21 (for Spark)", JAVA_PACKAGES[0])
    browser = chromium()
    if browser is None or browser.name == BROWSERS[-1]:
        apt_install(*BROWSERS, any_of=True)
        if chromium() is None:
            warn("Chromium (for pages)", "chromium")
    if nginx() is None:
        with no_services():
            apt_install("nginx-light", "nginx", any_of=True)
        if nginx() is None:
            warn("nginx (for several hub processes)", "nginx-light")
    if mosquitto() is None:
        with no_services():
            apt_install("mosquitto")
        if mosquitto() is None:
            warn("Mosquitto (for readings over MQTT)", "mosquitto")
    if program("bwrap", "/usr/bin") is None:
        apt_install("bubblewrap")
        if program("bwrap", "/usr/bin") is None:
            warn("bubblewrap (for guests with packages)", "bubblewrap")
    clients()


def clients() -> None:
    """The drivers of other languages that the PostgreSQL front is tested with."""
    if odbc_driver() is None:
        apt_install("odbc-postgresql", "libodbc2")
        if odbc_driver() is None:
            warn("psqlODBC", "odbc-postgresql")
    if jdbc_driver() is None:
        apt_install("libpostgresql-jdbc-java")
        if jdbc_driver() is None:
            warn("pgjdbc", "libpostgresql-jdbc-java")
    if r_program() is None:
        apt_install("r-base-core", "r-cran-rpostgresql")
        if r_program() is None:
            warn("R (for guests in R), and RPostgreSQL", "r-cran-rpostgresql")
    if (node_modules() is None or container_linter() is None) and shutil.which("npm"):
        print("installing from npm: pg, dockerfilelint", flush=True)
        wanted = [f"pg@{NODE_PG}", f"dockerfilelint@{DOCKERFILELINT}"]
        words = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(NODE), *wanted]
        subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def odbc_driver() -> Path | None:
    """The driver that ODBC reaches PostgreSQL by, or None, as where its manager is missing, which the driver does not bring."""
    if find_library("odbc") is None:
        return None
    return next(iter(sorted(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"))), None)


def r_program() -> Path | None:
    """R where it reaches PostgreSQL, by Debian's RPostgreSQL; or None."""
    found = shutil.which("Rscript")
    if found is None:
        return None
    words = [found, "-e", "quit(status = !requireNamespace('RPostgreSQL', quietly = TRUE))"]
    there = subprocess.run(words, capture_output=True, check=False).returncode == 0
    return Path(found) if there else None


def jdbc_driver() -> Path | None:
    """The driver that Java reaches PostgreSQL by, or None."""
    found = Path("/usr/share/java/postgresql.jar")
    return found if found.exists() else None


def java_compiler() -> Path | None:
    """A Java that runs a source file, or None: a runtime alone does not."""
    home = java_home()
    return home / "bin" / "java" if home is not None and (home / "bin" / "javac").exists() else None


def node_modules() -> Path | None:
    """The folder that holds node-pg, or None."""
    found = NODE / "node_modules"
    return found if (found / "pg").is_dir() else None


def container_linter() -> Path | None:
    """The linter of container files, or None."""
    found = NODE / "node_modules" / ".bin" / "dockerfilelint"
    return found if found.exists() else None


def postgres_programs() -> Path | None:
    """The folder that holds `initdb` and `postgres`, or None."""
    try:
        return postgres.binaries()
    except postgres.CannotStart:
        return None


def chromium() -> Path | None:
    """The browser of the page tests, or None; CLOISTER_CHROMIUM names another one."""
    named = os.environ.get("CLOISTER_CHROMIUM")
    found = (program(name, "/usr/bin") for name in ([named] if named else BROWSERS))
    return next((path for path in found if path is not None), None)


def nginx() -> Path | None:
    """The program that stands before several hub processes in the tests, or None. Debian keeps it off the path of plain users."""
    return program("nginx", "/usr/sbin")


def mosquitto() -> Path | None:
    """The broker that tests of streams start, or None."""
    return program("mosquitto", "/usr/sbin")


def program(name: str, folder: str) -> Path | None:
    """A program by its name: on the path, else in a folder."""
    found = shutil.which(name) or shutil.which(name, path=folder)
    return Path(found) if found else None


def java_home() -> Path | None:
    """The home of a Java that Spark 4.0 runs on: JAVA_HOME, then the one on the path, then Debian's folders."""
    candidates = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    if on_path:
        candidates.append(Path(on_path).resolve().parent.parent)
    candidates += sorted(Path("/usr/lib/jvm").glob("*"))
    return next((home for home in candidates if java_release(home) in JAVA_RELEASES), None)


def java_release(home: Path) -> int | None:
    """The major release of the Java at `home`, or None where there is none that runs."""
    program = home / "bin" / "java"
    if not program.exists():
        return None
    said = subprocess.run([str(program), "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', said.stderr)
    return int(found.group(1)) if found else None


def apt_install(*packages: str, any_of: bool = False) -> bool:
    """Install Debian packages (the first that can be, with `any_of`), as root or through a sudo that asks nothing."""
    prefix = privilege()
    if prefix is None or shutil.which("apt-get") is None:
        return False
    print(f"installing from Debian: {' or '.join(packages) if any_of else ' '.join(packages)}", flush=True)

    def apt(*words: str) -> bool:
        command = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", *words]
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False).returncode == 0

    apt("update")
    wanted = [[package] for package in packages] if any_of else [list(packages)]
    return any(apt("install", "-y", "--no-install-recommends", *some) for some in wanted)


def privilege() -> list[str] | None:
    """What to put before a command that needs root: nothing for root, `sudo -n` where it asks no password, None where neither."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0:
        return [sudo, "-n"]
    return None


@contextlib.contextmanager
def no_system_cluster() -> Iterator[None]:
    """While this holds, Debian's PostgreSQL package makes no `main` cluster, so that no service starts and no port is taken."""
    prefix = privilege()
    if prefix is None:
        yield
        return
    setting = Path("/etc/postgresql-common/createcluster.d/cloister-tests.conf")
    subprocess.run([*prefix, "mkdir", "-p", str(setting.parent)], check=False)
    subprocess.run([*prefix, "tee", str(setting)], input=b"create_main_cluster = false\n", stdout=subprocess.DEVNULL, check=False)
    try:
        yield
    finally:
        subprocess.run([*prefix, "rm", "-f", str(setting)], check=False)


@contextlib.contextmanager
def no_services() -> Iterator[None]:
    """While this holds, installing a Debian package starts no service; a rule that is there already is left alone."""
    prefix = privilege()
    if prefix is None or STARTS.exists():
        yield
        return
    subprocess.run([*prefix, "tee", str(STARTS)], input=b"#!/bin/sh\nexit 101\n", stdout=subprocess.DEVNULL, check=False)
    subprocess.run([*prefix, "chmod", "755", str(STARTS)], check=False)
    try:
        yield
    finally:
        subprocess.run([*prefix, "rm", "-f", str(STARTS)], check=False)


def warn(what: str, package: str) -> None:
    """One loud line."""
    line = f"!!! {what} is not here and could not be installed: its tests will be SKIPPED (as root: apt-get install {package})"
    print(f"\033[1;31m{line}\033[0m" if os.isatty(1) else line, flush=True)
