"""A form with a file, read as it comes: the fields before the file first, then the file's bytes, and never a copy on a disk.

Starlette's own reader keeps files that are not small in plain temporary files. Here the bytes of the file are handed on as they
come, once the fields that stand before it are known; so the token against forgery is checked before the first byte is kept.
"""

from collections.abc import AsyncIterator
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from cloister.hub.storage import RefusedUpload
from cloister.printable import LONGEST_NAME, shown

_FIELDS = 40
_FIELD = 10_000
_HEADER = 4_000
_PARTS = 50


class FileForm:
    """One form as it is read: `await head()` for the fields before the file, then `async for chunk in file()`."""

    def __init__(self, content_type: str, stream: AsyncIterator[bytes]) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if kind != b"multipart/form-data" or not 0 < len(boundary) <= 200:
            raise _refused("it is not a form with a file", "the form of the page, or the API with the file as its body")
        self.fields: dict[str, str] = {}
        self.file_name = ""
        self._stream = stream
        self._chunks: list[bytes] = []
        self._in_file = self._file_over = self._whole = False
        self._name, self._part = "", bytearray()
        self._header_name, self._header_value = bytearray(), bytearray()
        self._disposition = b""
        self._parts = 0
        self._parser = MultipartParser(boundary, self._callbacks())

    async def head(self, *, optional: bool = False) -> dict[str, str]:
        """The fields that stand before the file. Where a file is `optional` and none was chosen, `file_name` stays empty."""
        while not (self._in_file or self._file_over or self._whole):
            if not await self._more():
                raise _broken()
        if self._whole and not (self._in_file or self._file_over or optional):
            raise _refused("no file was chosen", "choose a file, then send the form")
        return dict(self.fields)

    async def file(self) -> AsyncIterator[bytes]:
        """The bytes of the file, to its end; a form that ends before is refused."""
        while True:
            chunks, self._chunks = self._chunks, []
            for chunk in chunks:
                yield chunk
            if self._file_over and not self._chunks:
                break
            if not await self._more():
                raise _broken()
        while await self._more():
            pass  # what stands behind the file is read and forgotten
        if not self._whole:
            raise _broken()

    async def _more(self) -> bool:
        try:
            chunk = await anext(self._stream)
        except StopAsyncIteration:
            return False
        if chunk:
            try:
                self._parser.write(chunk)
            except FormParserError:
                raise _broken() from None
        return True

    def _callbacks(self) -> Any:
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._extend(self._header_name, data[start:end]),
            "on_header_value": lambda data, start, end: self._extend(self._header_value, data[start:end]),
            "on_header_end": self._header,
            "on_headers_finished": self._headers,
            "on_part_data": self._data,
            "on_part_end": self._end,
            "on_end": self._finished,
        }

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > _PARTS:
            raise _refused("the form has too many parts", "the form of the page")
        self._disposition, self._name = b"", ""
        self._part.clear()

    def _extend(self, held: bytearray, data: bytes) -> None:
        held += data
        if len(held) > _HEADER:
            raise _refused("a header of the form is too long", "the form of the page")

    def _header(self) -> None:
        if bytes(self._header_name).lower() == b"content-disposition":
            self._disposition = bytes(self._header_value)
        self._header_name.clear()
        self._header_value.clear()

    def _headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" in options:
            if self._file_over or self._in_file:
                raise _refused("the form holds several files", "one file at a time")
            name = options[b"filename"].decode("utf-8", "replace")
            self._in_file = bool(name)
            self.file_name = shown(name.replace("\\", "/").rpartition("/")[2])[:LONGEST_NAME]

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self._chunks.append(data[start:end])
            return
        self._part += data[start:end]
        if len(self._part) > _FIELD:
            raise _refused("a field of the form is too long", "the form of the page")

    def _end(self) -> None:
        if self._in_file:
            self._in_file, self._file_over = False, True
        elif self._name and not self._file_over:
            if len(self.fields) >= _FIELDS:
                raise _refused("the form has too many fields", "the form of the page")
            self.fields[self._name] = self._part.decode("utf-8", "replace").replace("\0", "")

    def _finished(self) -> None:
        self._whole = True


def _broken() -> RefusedUpload:
    return _refused("it ended early, or is not a form", "the same upload once more")


def _refused(why: str, instead: str) -> RefusedUpload:
    return RefusedUpload("The upload is invalid", why=why, instead=instead)
