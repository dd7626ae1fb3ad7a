"""The container file and the compose file, checked without the programs that build and start them: the rules that linters of
container files hold, the shape that the Compose Specification gives to what is used of it, and names that lead somewhere.

No image is built here. Each check is shown a file that it must refuse.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

import pytest
import yaml

from cloister.hub.settings import load
from tests.hub.faults.processes import ROOT

DEPLOY = ROOT / "docs" / "deploy"
CONTAINERFILE, COMPOSE = DEPLOY / "Containerfile", DEPLOY / "compose.yaml"
WORDS = "ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL RUN SHELL STOPSIGNAL USER VOLUME WORKDIR".split()  # noqa: SIM905
ONCE = ("CMD", "ENTRYPOINT", "HEALTHCHECK", "USER")

TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
TEXT: dict[str, Any] = {"type": "string"}
SPAN: dict[str, Any] = {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"}


def shape(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """An object of these properties and no other."""
    return {"type": ["object", "null"], "properties": properties, "required": list(required), "additionalProperties": False}


def named(each: dict[str, Any]) -> dict[str, Any]:
    """An object whose every value is one of these."""
    return {"type": "object", "patternProperties": {"^[a-zA-Z0-9._-]+$": each}, "additionalProperties": False}


MOUNT = {"type": "string", "pattern": r"^(\./)?[\w.-]+:/[\w./-]+(:ro)?$"}
SERVICE = shape(
    image=TEXT,
    build=shape(context=TEXT, dockerfile=TEXT),
    restart={"enum": ["no", "always", "on-failure", "unless-stopped"]},
    environment=named({"type": ["string", "number", "null"]}),
    secrets=TEXTS,
    configs={"type": "array", "items": shape(("source", "target"), source=TEXT, target={"type": "string", "pattern": "^/"})},
    volumes={"type": "array", "items": MOUNT},
    networks=TEXTS,
    ports={"type": "array", "items": {"type": "string", "pattern": "^[0-9]+:[0-9]+$"}},
    depends_on={
        "anyOf": [
            TEXTS,
            named(shape(("condition",), condition={"enum": ["service_started", "service_healthy"]})),
        ]
    },
    healthcheck=shape(
        ("test",),
        test={"type": "array", "items": TEXT, "prefixItems": [{"enum": ["CMD", "CMD-SHELL"]}]},
        interval=SPAN,
        timeout=SPAN,
        retries={"type": "integer"},
    ),
    read_only={"type": "boolean"},
    tmpfs=TEXTS,
    cap_drop=TEXTS,
    cap_add=TEXTS,
    security_opt=TEXTS,
    stop_grace_period=SPAN,
)
SPECIFICATION = shape(
    ("services",),
    services=named(SERVICE),
    configs=named(shape(content=TEXT, file=TEXT)),
    secrets=named(shape(("file",), file=TEXT)),
    volumes=named(shape()),
    networks=named(
        shape(
            internal={"type": "boolean"},
            ipam=shape(
                config={"type": "array", "items": shape(("subnet",), subnet={"type": "string", "pattern": r"^[\d.]+/\d+$"})}
            ),
        )
    ),
)


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a container file; a line that ends in a backslash goes on."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def faults(text: str) -> Iterator[str]:
    """What a linter of container files would say, in the words of hadolint's rules."""
    found = instructions(text)
    if not found or found[0][0] not in ("FROM", "ARG"):
        yield "it does not begin with FROM"
    stages = list[str]()
    own: list[str] = []
    for word, rest in found:
        if word not in WORDS:
            yield f"{word} is no instruction that is meant here"  # ADD fetches and unpacks; MAINTAINER is gone
        if word == "FROM":
            image, _, stage = re.sub(" +AS +", " AS ", rest, flags=re.IGNORECASE).partition(" AS ")
            stages, own = [*stages, stage], []
            if image not in stages and (":" not in image or image.endswith(":latest")):
                yield "DL3006, DL3007: an image without its version"
        own.append(word)
        if word in ("CMD", "ENTRYPOINT") and not _is_list(rest):
            yield f"DL3025: {word} is no list"
        if word == "RUN" and re.search(r"\bsudo\b|(^|&& *)cd |\bapt(-get)? (upgrade|dist-upgrade)", rest):
            yield "DL3003, DL3004, DL3005"
        if word == "RUN" and re.search(r"\bpip install\b", rest) and "--no-cache-dir" not in rest:
            yield "DL3042: pip keeps its downloads"
        if word == "RUN" and "apt-get install" in rest and "--no-install-recommends" not in rest:
            yield "DL3015: more is installed than is named"
        if word == "RUN" and "|" in rest.replace("||", ""):
            yield "DL4006: a pipe whose first half may fail"
        if word == "WORKDIR" and not rest.startswith("/"):
            yield "DL3000: WORKDIR is relative"
        if word == "COPY":
            chosen = re.match(r"--from=(\S+) ", rest)
            if chosen and chosen[1] not in stages[:-1]:
                yield "DL3022: COPY from a stage that there is not"
            sources = [] if chosen else rest.split()[:-1]
            yield from (f"{source} is not in the context" for source in sources if not (ROOT / source).exists())
        if word == "EXPOSE" and not rest.isdecimal():
            yield "DL3011: EXPOSE is no port"
    yield from (f"DL4003, DL4004: several {word}" for word in ONCE if own.count(word) > 1)
    last_user = next((rest for word, rest in reversed(found) if word == "USER"), "root")
    if last_user.split(":")[0] in ("root", "0"):
        yield "DL3002: the last user is root"


def _is_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def dangling(spec: dict[str, Any]) -> Iterator[str]:
    """Names of a compose file that lead nowhere, and what it leaves unused."""
    used: dict[str, set[str]] = {kind: set() for kind in ("networks", "volumes", "secrets", "configs")}
    for name, service in spec["services"].items():
        if ("image" in service) == ("build" in service):
            yield f"{name} has not one image"
        used["networks"] |= set(service.get("networks", ()))
        used["secrets"] |= set(service.get("secrets", ()))
        used["configs"] |= {each["source"] for each in service.get("configs", ())}
        used["volumes"] |= {each.split(":")[0] for each in service.get("volumes", ()) if not each.startswith(".")}
        needed = service.get("depends_on", {})
        for other in needed:
            if other not in spec["services"]:
                yield f"{name} depends on {other}, which there is not"
            elif _waits(needed, other) and "healthcheck" not in spec["services"][other]:
                yield f"{other} never becomes healthy"
    for kind, names in used.items():
        there = set(spec.get(kind) or ())
        yield from (f"{each} of {kind} is not there" for each in names - there)
        yield from (f"{each} of {kind} is unused" for each in there - names)


def _waits(needed: Any, other: str) -> bool:
    return isinstance(needed, dict) and needed[other].get("condition") == "service_healthy"


def wrong_in(spec: Any) -> list[str]:
    jsonschema = pytest.importorskip("jsonschema")
    return [error.message for error in jsonschema.Draft202012Validator(SPECIFICATION).iter_errors(spec)]


def test_the_container_file_breaks_no_rule() -> None:
    assert list(faults(CONTAINERFILE.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("FROM python:3.13-slim\n", "FROM python\n", "DL3006"),
        ("--no-cache-dir ", "", "DL3042"),
        ("--from=build", "--from=built", "DL3022"),
        ("COPY src", "COPY sources", "not in the context"),
        ("USER 10001:10001", "USER root", "DL3002"),
        ("EXPOSE 8765", "EXPOSE http", "DL3011"),
        ('ENTRYPOINT ["cloister"]', "ENTRYPOINT cloister", "DL3025"),
        ('ENTRYPOINT ["cloister"]', 'ENTRYPOINT ["a"]\nENTRYPOINT ["cloister"]', "several ENTRYPOINT"),
        ("VOLUME /srv", "ADD https://example.org/x /srv\nVOLUME /srv", "ADD is no instruction"),
    ],
)
def test_a_broken_rule_is_found(before: str, after: str, said: str) -> None:
    text = CONTAINERFILE.read_text(encoding="utf-8")
    assert before in text
    assert said in "; ".join(faults(text.replace(before, after)))


def test_the_compose_file_has_the_shape_of_its_specification() -> None:
    spec = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    assert wrong_in(spec) == []
    assert list(dangling(spec)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("restart: unless-stopped", "restart: sometimes"),
        ("read_only: true", "readonly: true"),
        ('ports: ["443:8443"]', "ports: [443:8443:1]"),
        ("interval: 5s", "interval: 5"),
        ("condition: service_healthy", "condition: healthy"),
        ("hub:/srv/cloister", "hub:srv/cloister"),
    ],
)
def test_another_shape_is_found(before: str, after: str) -> None:
    text = COMPOSE.read_text(encoding="utf-8")
    assert before in text
    assert wrong_in(yaml.safe_load(text.replace(before, after)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("networks: [inside, outside]", "networks: [inside, elsewhere]"),
        ("secrets: [pgpass]", "secrets: [database]"),
        ("depends_on: [hub]", "depends_on: [hubs]"),
        ("healthcheck:", "x-healthcheck:"),
        ("  hub:\n\nnetworks", "networks"),
    ],
)
def test_a_name_that_leads_nowhere_is_found(before: str, after: str) -> None:
    text = COMPOSE.read_text(encoding="utf-8")
    assert before in text
    assert list(dangling(yaml.safe_load(text.replace(before, after))))


def test_the_files_agree(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One port, one user, one folder, one host, one version of Python: as each file says it, and as the hub reads it."""
    found = dict(instructions(CONTAINERFILE.read_text(encoding="utf-8")))
    spec = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    hub, proxy, db = (spec["services"][name] for name in ("hub", "proxy", "db"))
    command = json.loads(found["CMD"])
    given = dict(zip(command[1::2], command[2::2], strict=True))
    nginx = (DEPLOY / "container-nginx.conf").read_text(encoding="utf-8")
    assert given["--port"] == found["EXPOSE"]
    assert f"proxy_pass http://hub:{given['--port']};" in nginx
    assert f":{given['--port']}/healthz" in found["HEALTHCHECK"]
    assert f"listen {proxy['ports'][0].split(':')[1]} ssl;" in nginx
    mounts = [mount.split(":") for mount in hub["volumes"]]
    assert {mount[1] for mount in mounts} == {given["--data"], given["--settings"]}
    assert given["--data"] == found["VOLUME"]
    assert any(fnmatch(mount.split(":")[1], "/etc/ssl/*") and mount.split(":")[1] in nginx for mount in proxy["volumes"])
    assert (ROOT / "docs" / "deploy" / hub["build"]["context"]).resolve() == ROOT
    assert ROOT / hub["build"]["dockerfile"] == CONTAINERFILE
    settings = load(tmp_path_factory.mktemp("hub"), file=DEPLOY / "container.toml")
    assert settings.database == f"postgresql://{db['environment']['POSTGRES_USER']}@db/{db['environment']['POSTGRES_DB']}"
    assert spec["configs"]["ledger"]["content"] == f"CREATE DATABASE {settings.ledger.rpartition('/')[2]};"
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    version = re.findall(r"FROM python:(\d+)\.(\d+)-slim", CONTAINERFILE.read_text(encoding="utf-8"))
    assert len(set(version)) == 1
    assert tuple(map(int, version[0])) >= tuple(map(int, needs.removeprefix(">=").split(".")))
