"""`cloister helper`: the second server of a joint survey, at another institution than the hub that leads it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cloister.cli.party import CERTIFICATE, PROXY, alone, own_files
from cloister.cli.written import FOLDER
from cloister.errors import CloisterError, InvalidParameter
from cloister.printable import is_text, shown

if TYPE_CHECKING:
    from cloister.together.prio3.helper import Helper

_WHERE = "The helper's folder, one for each survey (default: ./helper)."
_FOLDER = click.option("--folder", type=FOLDER, default=Path("helper"), help=_WHERE)


@click.group()
def helper() -> None:
    """Be the second server of a joint survey: it checks and adds its shares of answers, and reads none.

    \b
    cloister helper join "https://hub.example.org/joint-surveys/4f1c…#s3cr3t" --name "Cancer Registry"
    cloister helper run
    """


@helper.command()
@click.argument("link")
@_FOLDER
@click.option("--name", required=True, help="Your institution's name, as respondents are told.")
@CERTIFICATE
@PROXY
@click.option("--yes", is_flag=True, help="Agree to the terms without being asked.")
def join(link: str, folder: Path, name: str, certificate: Path | None, proxy: str | None, yes: bool) -> None:
    """Look at the terms of a survey, agree to them, and make a key for it. LINK is what the survey's author sent.

    \b
    cloister helper join "https://hub.example.org/joint-surveys/4f1c…#s3cr3t" --name "Cancer Registry"
    """
    from cloister.crypto import fingerprint
    from cloister.together.messages import RoundRefused
    from cloister.together.prio3.helper import HELPER_FILE, Helper, HelperCalls

    if not is_text(name, 200):
        raise InvalidParameter("--name is invalid", why="it has 1 to 200 characters", instead='--name "Cancer Registry"')
    own_files()
    with HelperCalls(link, authority=certificate, proxy=proxy) as calls:
        survey = calls.terms()
        click.echo(shown(f"{survey.title}: at most ε = {survey.epsilon} about each respondent"))
        for each in survey.questions:
            answers = f"{each.low} to {each.high}" if each.kind == "number" else ", ".join(each.labels)
            click.echo(shown(f"  {each.text} ({answers}): ε = {each.epsilon}"))
        if not yes:
            click.confirm("Add up answers to this?", abort=True, err=True)
        made = Helper.made(folder, survey, link=link, name=name.strip())
        try:
            calls.join(made)
        except RoundRefused:
            made.close()
            (folder / HELPER_FILE).unlink()  # its key helps nobody: the folder is free for another link
            raise
        except CloisterError as error:
            raise InvalidParameter(
                "The survey was not joined yet",
                why=shown(str(error), lines=True),
                instead=f"cloister helper run --folder {folder}, which tries again",
            ) from None
        click.echo(f"joined; read this to the survey's author by phone: {fingerprint(made.public)}")
        click.echo(f"cloister helper run --folder {folder}")


@helper.command()
@_FOLDER
@CERTIFICATE
@PROXY
def run(folder: Path, certificate: Path | None, proxy: str | None) -> None:
    """Check and add what comes in, until the survey's sums are opened. Ends with SIGTERM or Ctrl-C, and goes on where it was.

    \b
    cloister helper run --folder helper
    """
    from cloister.together.agent import no_core_dumps
    from cloister.together.prio3.helper import HelperCalls

    no_core_dumps()
    own_files()
    with (
        _opened(folder) as here,
        alone(folder / "helper.lock", "helper"),
        HelperCalls(here.link, authority=certificate, proxy=proxy) as calls,
    ):
        click.echo(shown(f"the helper {here.name!r} adds up {here.survey.title!r}"))
        calls.run(here, told=lambda text: click.echo(shown(text), err=True))


@helper.command()
@_FOLDER
def show(folder: Path) -> None:
    """Show which survey it is, the key's fingerprint, and how many reports were counted.

    \b
    cloister helper show --folder helper
    """
    from cloister.crypto import fingerprint

    with _opened(folder) as here:
        ended = "; its share of the sums was given" if here.ended else ""
        click.echo(shown(f"{here.name}: {here.survey.title}, at most ε = {here.survey.epsilon} about each respondent"))
        click.echo(f"fingerprint {fingerprint(here.public)}\n{here.reports} reports counted{ended}")


@contextmanager
def _opened(folder: Path) -> Iterator[Helper]:
    from cloister.together.prio3.helper import Helper

    try:
        with closing(Helper(folder)) as found:
            yield found
    except sqlite3.Error as error:
        raise InvalidParameter(
            f"The folder {str(folder)!r} can't be used",
            why=f"its file is damaged or locked, or the disk is full ({type(error).__name__})",
            instead="the same folder, once that is mended",
        ) from None
