"""The helper of joint surveys: a process of another institution that checks and adds its shares, and puts its noise in once.

It dials out to the hub that leads a survey, with the secret of the link that it was given. What it promises to respondents it
keeps by itself: the terms (questions and ε) are those that its operator agreed to; a report counts once; its share of the sums,
with its noise, is drawn once, is on disk before it leaves, and is given for one list of reports, its own. So the statement of
`servers.py` holds whatever the leader does: ε for each answer, towards the leader and everyone who sees the sums.

*On disk* (SQLite, in the folder): the key, the terms, nonces with what was said about them, the running sums. A page of reports
is one transaction, and so is the share with its noise: after a stop either comes again, and is answered by the same bytes. A copy
of the folder that is put back would count and draw again what was counted and drawn since: keep none.
"""

from __future__ import annotations

import base64
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cloister.crypto import client_context
from cloister.errors import CloisterError, InvalidParameter
from cloister.noise import Random
from cloister.together.messages import RoundRefused, received
from cloister.together.prio3.joint_survey import JointReport, JointSurvey, list_of, new_helper_key, public_of
from cloister.together.prio3.reports import KEY_BYTES
from cloister.together.prio3.servers import noisy_share

_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE report (nonce TEXT PRIMARY KEY, digest TEXT NOT NULL, said TEXT NOT NULL, counted INTEGER NOT NULL);
"""
HELPER_FILE = "helper.db"
_PAUSES = (1.0, 2.0, 5.0, 15.0, 30.0)
_IDLE = 2.0
_MOST, _PATIENCE = 64_000_000, 3600.0
"""Bytes of one answer of a leader, and seconds for them."""


class Helper:
    """A helper's folder for one survey.

    >>> import tempfile
    >>> from cloister.together.prio3.joint_survey import JointQuestion
    >>> smokes = JointQuestion(text="Do you smoke?", kind="yes-no", epsilon="1")
    >>> survey = JointSurvey(id="a1", title="Smoking", questions=(smokes,))
    >>> folder = Path(tempfile.mkdtemp())
    >>> helper = Helper.made(folder, survey, link="https://hub.example.org/joint/a1#s3cret", name="Registry")
    >>> helper.survey == survey, len(helper.public), helper.reports
    (True, 65, 0)
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / HELPER_FILE).is_file():
            raise InvalidParameter(
                f"The folder {str(folder)!r} is no helper's",
                why=f"there is no {HELPER_FILE} in it",
                instead="cloister helper join LINK",
            )
        self._db = sqlite3.connect(folder / HELPER_FILE, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA synchronous = FULL")
        self._lock = threading.Lock()
        from Crypto.PublicKey import ECC

        self.survey = JointSurvey.from_dict(json.loads(self._about("survey")))
        self._key = ECC.import_key(self._about("key"))
        self.public = public_of(self._key)

    @classmethod
    def made(cls, folder: Path, survey: JointSurvey, *, link: str, name: str) -> Helper:
        """A new folder, with a key for this survey alone; its operator has agreed to the terms."""
        folder.mkdir(parents=True, exist_ok=True)
        path, new = folder / HELPER_FILE, folder / f"{HELPER_FILE}.new"
        if path.exists():
            raise InvalidParameter(
                "The survey was not joined",
                why=f"{str(folder)!r} is the folder of a helper, with its key",
                instead=f"cloister helper run --folder {folder}, which goes on; for another link, --folder, a new one",
            )
        words = {"survey": survey.text, "link": link, "name": name, "key": new_helper_key().export_key(format="PEM")}
        new.unlink(missing_ok=True)
        with closing(sqlite3.connect(new)) as db, db:
            new.chmod(0o600)
            db.executescript(_TABLES)
            db.executemany("INSERT INTO about VALUES (?, ?)", words.items())
            db.execute("INSERT INTO about VALUES ('sums', ?)", (json.dumps([[0] * _width(each) for each in survey.sums]),))
        new.rename(path)  # whole, or not there
        return cls(folder)

    def close(self) -> None:
        """Closes its files."""
        self._db.close()

    @property
    def link(self) -> str:
        """The link that it was given; after # a secret."""
        return self._about("link")

    @property
    def name(self) -> str:
        """What respondents are told who it is."""
        return self._about("name")

    @property
    def reports(self) -> int:
        """How many reports it counted."""
        (found,) = self._db.execute("SELECT COUNT(*) FROM report WHERE counted").fetchone()
        return int(found)

    @property
    def ended(self) -> bool:
        """Whether it has given its share of the sums, and takes no report any more."""
        return bool(self._about("share"))

    def said(self, key: bytes, reports: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
        """What it says about each report of a page, by nonce, in the questions' order; nothing about one that is none of its own.
        `key` is what both servers check with, and `said` of a report what the leader says about it.
        """
        if len(key) != KEY_BYTES:
            raise RoundRefused("A page was refused", why="its key has another length", instead="the leader's own key")
        with self._whole():
            self._same_key(key)
            return {str(each.get("nonce")): self._one(key, each) for each in reports}

    def share(self, counted: str, *, random: Random | None = None) -> list[bytes]:
        """Its share of each sum, with its noise: the same bytes each time. `counted` is the digest of the leader's list."""
        with self._whole():
            nonces = [bytes.fromhex(each) for (each,) in self._db.execute("SELECT nonce FROM report WHERE counted")]
            if list_of(nonces) != counted:
                raise RoundRefused(
                    "The helper's share was not given", why="the leader counted other reports", instead="the same reports at both"
                )
            if not self.ended:
                sums = json.loads(self._about("sums"))
                parts = zip(self.survey.sums, self.survey.questions, sums, strict=True)
                shares = [noisy_share(prio3, asked.epsilon, total, random) for prio3, asked, total in parts]
                self._put("share", json.dumps([each.hex() for each in shares]))
            return [bytes.fromhex(each) for each in json.loads(self._about("share"))]

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """One transaction, of one thread of one process at a time: on disk at its end, or nothing of it."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _one(self, key: bytes, sent: Mapping[str, Any]) -> list[str]:
        try:
            report = JointReport.from_dict({**sent, "shares": []}, self.survey, shares=False)
            theirs = [bytes.fromhex(each) for each in sent["said"]]
        except (CloisterError, KeyError, TypeError, ValueError):
            return []
        nonce, digest = report.nonce.hex(), sha256(json.dumps(report.to_dict(), sort_keys=True).encode()).hexdigest()
        known = self._db.execute("SELECT digest, said FROM report WHERE nonce = ?", (nonce,)).fetchone()
        if known is not None:
            return list(json.loads(known[1])) if known[0] == digest else []
        if self.ended:
            raise RoundRefused(
                "The helper stops",
                why="it has given its share of the sums, and the hub has a report that came after it: a backup was put back",
                instead="the survey's author, who closes and discards it: what is answered now can't be counted",
            )
        said, added = list[str](), list[list[int]]()
        try:
            shares, sums = self.survey.helper_shares(report, self._key), self.survey.sums
            checked = [
                prio3.check(key, 1, report.nonce, public, share)
                for prio3, public, share in zip(sums, report.public, shares, strict=True)
            ]
            said = [own.hex() for _, own in checked]
            for prio3, (kept, own), other in zip(sums, checked, theirs, strict=True):
                added.append(prio3.counted(kept, prio3.decided([other, own])))
        except (RoundRefused, ValueError):
            added = []
        if added:
            totals = json.loads(self._about("sums"))
            fields = [each.circuit.field for each in self.survey.sums]
            totals = [field.add(total, each) for field, total, each in zip(fields, totals, added, strict=True)]
            self._put("sums", json.dumps(totals))
        self._db.execute("INSERT INTO report VALUES (?, ?, ?, ?)", (nonce, digest, json.dumps(said), int(bool(added))))
        return said

    def _same_key(self, key: bytes) -> None:
        """Reports are checked under one key: under two, what is said about one report could be compared."""
        known = self._about("check")
        if known and known != key.hex():
            raise RoundRefused("A page was refused", why="its key is another than before", instead="the leader's own key")
        if not known:
            self._put("check", key.hex())

    def _about(self, name: str) -> str:
        found = self._db.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return "" if found is None else str(found[0])

    def _put(self, name: str, value: str) -> None:
        self._db.execute("INSERT INTO about VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value))


class HelperCalls:
    """The calls of a helper to its leader: over TLS, or to this machine. The secret stands after # in the link, as in a browser,
    where no server's log has it.
    """

    def __init__(self, link: str, *, authority: Path | None = None, proxy: str | None = None) -> None:
        import httpx

        try:
            parts = urlsplit(link)
            number, key = parts.path.rpartition("/")[2], parts.fragment
            self._address = httpx.URL(f"{parts.scheme}://{parts.netloc}/api/v1/joint-surveys/{number}/helper")
        except (ValueError, httpx.InvalidURL):
            number = key = ""
        local = number and parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
        safe = not number or local or parts.scheme == "https"
        if not (safe and number and key and key.isascii()):
            why = "it is not what a joint survey's page shows" if safe else "a hub on another machine is called over https alone"
            raise InvalidParameter("The link is invalid", why=why, instead="https://…/joint-surveys/…#…")
        self._over = False
        self._headers = {"Helper-Key": key, "Accept-Encoding": "identity"}
        verify: Any = client_context(authority) if parts.scheme == "https" else False
        try:
            self._client = httpx.Client(verify=verify, timeout=30.0, proxy=proxy or None, trust_env=False)
        except (ValueError, httpx.InvalidURL):
            raise InvalidParameter(
                "The proxy is invalid", why="it is no address of an HTTP proxy", instead="http://proxy.example.org:3128"
            ) from None

    def __enter__(self) -> HelperCalls:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def terms(self) -> JointSurvey:
        """The survey, as the leader has it."""
        return JointSurvey.from_dict(self._sent({}).get("survey", {}))

    def join(self, helper: Helper) -> None:
        """Tell the leader the helper's name and key."""
        self._sent(_joining(helper))

    def run(
        self,
        helper: Helper,
        *,
        stop: threading.Event | None = None,
        told: Callable[[str], None] = print,
        idle: float = _IDLE,
        pauses: Sequence[float] = _PAUSES,
    ) -> None:
        """Answer the leader until the sums are opened, the survey is discarded, or `stop`. A call that fails is made again, with
        the same answer; the first one joins, in case that was cut off."""
        stopped, answer, failures, last = stop or threading.Event(), _joining(helper), 0, ""
        while not stopped.is_set():
            try:
                found = self._sent(answer)
            except CloisterError as error:
                if self._over:
                    raise
                if str(error) != last:
                    told(str(error))
                last = str(error)
                stopped.wait(pauses[min(failures, len(pauses) - 1)])
                failures += 1
                continue
            if failures:
                told("The hub was reached again")
            failures, last, answer = 0, "", {}
            if found.get("survey", {}) != helper.survey.to_dict():
                raise RoundRefused(
                    "The helper stops",
                    why="the leader's survey is not the one that was agreed to",
                    instead="cloister helper join",
                )
            if found.get("state") == "done":
                told(f"the sums of {helper.reports} reports are opened")
                return
            reports, counted = found.get("reports") or [], found.get("list")
            if reports:
                answer = {"said": helper.said(*_page(found.get("check"), reports))}
                told(f"{helper.reports} reports counted")
            elif counted:
                answer = {"shares": [each.hex() for each in helper.share(counted)], "list": counted}
            else:
                stopped.wait(idle)

    def _sent(self, body: Mapping[str, Any]) -> dict[str, Any]:
        import httpx

        try:
            status, found = received(
                self._client, self._address, most=_MOST, seconds=_PATIENCE, json=dict(body), headers=self._headers
            )
            if status >= 500:  # of something in between, which knows nothing of the link
                raise httpx.ReadError(f"it answered {status}")
        except httpx.HTTPError as error:
            raise InvalidParameter(
                "The hub was not reached", why=str(error) or type(error).__name__, instead="the link, later"
            ) from None
        said = _read(found)
        if status != 200:
            self._over = said.get("code") in ("missing", "conflict")  # a hub's own words: discarded, or another one joined
            raise RoundRefused(
                "The hub refused the helper",
                why=str(said.get("detail") or said.get("title") or status)[:500],
                instead="the link as its author sent it",
            )
        return said


def _joining(helper: Helper) -> dict[str, Any]:
    return {"name": helper.name, "key": helper.public.hex()}


def _page(key: object, reports: object) -> tuple[bytes, list[Mapping[str, Any]]]:
    """The key and the reports of a page, whatever a leader sent."""
    try:
        if isinstance(key, str) and isinstance(reports, list) and all(isinstance(each, dict) for each in reports):
            return base64.b64decode(key), reports
    except ValueError:
        pass
    raise RoundRefused("A page was refused", why="its form is another", instead="the leader's own pages")


def _read(sent: bytes) -> dict[str, Any]:
    try:
        found = json.loads(sent)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidParameter("The hub's answer is invalid", why="it is not JSON of a hub", instead="the link, later")
    return found


def _width(prio3: Any) -> int:
    return len(prio3.circuit.decode([0] * prio3.circuit.length))
