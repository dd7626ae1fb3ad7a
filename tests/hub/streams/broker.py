"""Mosquitto as docs/deploy/mosquitto.conf sets it up, with TLS: a plain process of the test's; and clients of it."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import time
from pathlib import Path
from queue import Empty, Queue
from threading import Semaphore
from typing import Any

from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from scripts import engines
from tests.hub.faults.processes import ROOT, Process, free_port
from tests.hub.test_serving import Authority

DEPLOY = ROOT / "docs" / "deploy"


class Broker:
    """A running Mosquitto that knows `hub` and `badge`, each by that word."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        folder.mkdir()
        self.authority = Authority(folder, "brokers")
        for file, name in zip(self.authority.issue("broker"), ("broker.pem", "broker.key"), strict=True):
            Path(file).rename(folder / name)
        passwords = program("mosquitto").with_name("mosquitto_passwd")
        passwords = passwords if passwords.exists() else Path(shutil.which("mosquitto_passwd") or "mosquitto_passwd")
        for name in ("hub", "badge"):
            words = [str(passwords), "-b", *([] if (folder / "passwords").exists() else ["-c"])]
            subprocess.run([*words, str(folder / "passwords"), name, name], check=True, capture_output=True)
        shutil.copy(DEPLOY / "mosquitto.acl", folder)
        text = (DEPLOY / "mosquitto.conf").read_text()
        text = text.replace("{{ port }}", str(self.port)).replace("{{ folder }}", str(folder))
        user = "user root\n" if os.geteuid() == 0 else ""  # else it gives up root's rights, and could not read the folder
        (folder / "mosquitto.conf").write_text(user + text)
        self.start()

    def start(self) -> None:
        """Start it, or start it again."""
        words = [str(program("mosquitto")), "-c", str(self.folder / "mosquitto.conf")]
        self.process = Process("mosquitto", words, self.folder / "log")
        until = time.monotonic() + 30
        while True:
            try:
                ssl.create_default_context(cafile=self.authority.file)
                Device(self).close()
                return
            except OSError:
                assert self.process.alive, (self.folder / "log").read_text()
                assert time.monotonic() < until
                time.sleep(0.05)

    @property
    def address(self) -> str:
        """As a hub's settings have it."""
        return f"mqtts://hub:hub@localhost:{self.port}"


def program(name: str) -> Path:
    found = engines.program(name, "/usr/sbin")
    assert found is not None
    return found


class Device:
    """A client as devices and subscribers have one; what it is sent waits in `came`."""

    def __init__(self, broker: Broker, name: str = "badge") -> None:
        self.came: Queue[tuple[str, Any]] = Queue()
        self.kept: list[tuple[str, Any]] = []
        self.topics: set[str] = set()
        self.client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        self.client.tls_set_context(ssl.create_default_context(cafile=broker.authority.file))
        self.client.username_pw_set(name, name)
        self.client.max_inflight_messages_set(5000)
        self.client.on_message = lambda client, data, message: self.came.put(
            (message.topic, json.loads(message.payload) if message.payload else None)
        )
        self.connections = Semaphore(0)
        self.client.on_connect = lambda *_: self.connections.release()
        self.client.connect("localhost", broker.port)
        self.client.loop_start()
        self.connected()

    def connected(self) -> None:
        """Wait until it is, once more: what is published before is an error to the client."""
        assert self.connections.acquire(timeout=60), "no connection to the broker"

    def publish(self, number: str, key: str, body: Any, *, answers: str = "") -> Any:
        """A message of QoS 1 to a stream."""
        told = Properties(PacketTypes.PUBLISH)
        told.UserProperty = ("device-key", key)
        if answers:
            told.ResponseTopic = f"cloister/streams/{number}/answers/{answers}"
        payload = body if isinstance(body, bytes) else json.dumps(body)
        return self.client.publish(f"cloister/streams/{number}/readings", payload, qos=1, properties=told)

    def subscribe(self, topic: str) -> None:
        """To be told of what is published there, and of what is retained."""
        self.client.subscribe(topic, qos=1)

    def next(self, topic: str, within: float = 30) -> Any:
        """The next message of a topic."""
        until = time.monotonic() + within
        while True:
            for place, (found, body) in enumerate(self.kept):
                if found.endswith(topic):
                    del self.kept[place]
                    return body
            try:
                self.kept.append(self.came.get(timeout=max(until - time.monotonic(), 0.001)))
            except Empty:
                raise AssertionError(f"nothing came of {topic}") from None
            self.topics.add(self.kept[-1][0])

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()
