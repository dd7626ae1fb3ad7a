"""A package: one ZIP archive with all that an author brings, read in memory and never unpacked to a disk.

    guest.json      the declaration: name, title, inputs, ranges, blocks, …
    guest.py        the code; or guest.R
    tests.py        functions test_…(), or test_…(rows), which get made-up rows
    LICENCE         also LICENSE; with .txt or .md
    proof.md        of a declared mechanism
    README.md       what it is about

All of it may lie in one folder. An archive comes from anywhere, so everything that it says of itself is doubted: sizes are
counted as they are read, and what is no plain file of a known name is refused, each with a message of its own.
"""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from cloister.errors import InvalidParameter

MOST_BYTES = 4 << 20
_MOST_FILES, _MOST_OF_ONE, _MOST_OF_ALL = 16, 1 << 20, 4 << 20
_DECLARATION = "guest.json"
_PARTS = {"guest.py": "code", "guest.r": "code", "tests.py": "tests", "proof.md": "proof", "readme.md": "about"}
_PARTS |= {f"licen{letter}e{ending}": "licence" for letter in "cs" for ending in ("", ".txt", ".md")}
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HOW = "zip -r package.zip guest.json guest.py tests.py LICENCE"


@dataclass(frozen=True, kw_only=True)
class Package:
    """What an archive holds, as texts."""

    declaration: str
    """JSON."""
    programs: dict[str, str]
    """`code`, and those of `tests`, `proof`, `licence` and `about` that are there."""
    language: str


def unpacked(archive: bytes) -> Package:
    """The texts of a package, or why it is none.

    >>> import io, zipfile
    >>> whole = io.BytesIO()
    >>> with zipfile.ZipFile(whole, "w") as made:
    ...     made.writestr("middle/guest.json", '{"name": "middle"}')
    ...     made.writestr("middle/guest.py", "def f(rows): ...")
    >>> unpacked(whole.getvalue()).programs
    {'code': 'def f(rows): ...'}
    >>> unpacked(b"PK")
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: The package is invalid: it is not a ZIP archive, or a damaged one. ...
    """
    if len(archive) > MOST_BYTES:
        raise _refused(
            f"it has more than {MOST_BYTES >> 20} MiB", "code and texts alone: data sets and packages have no place in it"
        )
    texts: dict[str, str] = {}
    language = "python"
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            for name, text in _texts(opened):
                part = "declaration" if name == _DECLARATION else _PARTS[name]
                if part in texts:
                    raise _refused(f"it has two files for one thing ({part})", "one of them")
                texts[part] = text
                language = "r" if name == "guest.r" else language
    except InvalidParameter:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OverflowError, struct.error):
        raise _refused("it is not a ZIP archive, or a damaged one", _HOW) from None
    for part, file in (("declaration", _DECLARATION), ("code", "guest.py")):
        if part not in texts:
            raise _refused(f"it has no file {file}", _HOW)
    return Package(declaration=texts.pop("declaration"), programs=texts, language=language)


def _texts(opened: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Each file by its name in small letters, without the folder that all of them are in."""
    entries = [each for each in opened.infolist() if not each.is_dir()]
    if len(opened.infolist()) > _MOST_FILES:
        raise _refused(f"it has more than {_MOST_FILES} files", "one file of code, and its helpers in it")
    for each in opened.infolist():
        _check_entry(each)
    folders = {each.filename.rpartition("/")[0] for each in entries}
    if len(folders) > 1:
        raise _refused("its files are in several folders", "all of them side by side")
    left = _MOST_OF_ALL
    for each in entries:
        name = each.filename.rpartition("/")[2].lower()
        if name != _DECLARATION and name not in _PARTS:
            raise _refused(f"no package has a file {name[:60]!r}", ", ".join((_DECLARATION, *_PARTS)))
        with opened.open(each) as file:
            raw = file.read(min(_MOST_OF_ONE, left) + 1)  # whatever the archive says of its size
        left -= len(raw)
        if len(raw) > _MOST_OF_ONE or left < 0:
            raise _refused(
                f"unpacked, {name} has more than {_MOST_OF_ONE >> 20} MiB, or all files together too much", "shorter files"
            )
        try:
            yield name, raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise _refused(f"{name} is not UTF-8 text", "texts in UTF-8") from None


def _check_entry(entry: zipfile.ZipInfo) -> None:
    """Refuses what a careless reader could be led astray by."""
    name, mode = entry.orig_filename, entry.external_attr >> 16
    if name.startswith(("/", "\\")) or name[1:2] == ":":
        raise _refused("a file in it has an absolute path", "paths within the archive")
    if ".." in name.replace("\\", "/").split("/"):
        raise _refused("a path in it leads out of the archive", "paths within the archive")
    if "\\" in name or any(letter < " " for letter in name):
        raise _refused("a name in it has characters that no file name should have", "plain names")
    if stat.S_ISLNK(mode):
        raise _refused("it has a symbolic link", "the file itself")
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _refused("it has a device, a pipe or a socket", "plain files")
    if entry.flag_bits & 0x1:
        raise _refused("a file in it is encrypted", "an archive without a password")
    if entry.compress_type not in _METHODS:
        raise _refused("it is compressed in a way that is not read here", "stored or deflated")
    if entry.file_size > _MOST_OF_ONE:
        raise _refused(f"unpacked, a file has more than {_MOST_OF_ONE >> 20} MiB", "shorter files")


def _refused(why: str, instead: str) -> InvalidParameter:
    return InvalidParameter("The package is invalid", why=why, instead=instead)
