"""A second pair of eyes: a thread that reads every file under a folder again and again, and notes what it finds there."""

from __future__ import annotations

import os
import threading
from pathlib import Path


class Watch:
    """While it is entered, looks for texts in all files under a folder; `found` names the files that held one."""

    def __init__(self, folder: Path, *texts: bytes) -> None:
        self.folder, self.texts = folder, texts
        self.seen: set[str] = set()
        self.found: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def look(self) -> None:
        """Once."""
        # os.walk passes over a folder that vanishes while it is listed; Path.rglob of Python 3.11 would end this thread there
        for path in [Path(folder, name) for folder, _, names in os.walk(self.folder) for name in names]:
            try:
                content = path.read_bytes()
            except OSError:
                continue
            if content:
                self.seen.add(path.name)
            if any(text in content for text in self.texts):
                self.found.add(path.name)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._stop.wait(0.002)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.look()
