"""Codes that change every half minute (RFC 6238, on HOTP of RFC 4226): SHA-1, six digits, steps of 30 seconds, as every
authenticator understands them."""

import base64
import hmac
import io
import re
from urllib.parse import quote, urlencode

from cloister.hub.ids import same
from cloister.noise import default_random

_PERIOD = 30
_DIGITS = 6
_SIZE = 20
_DRIFT = 1


def new_key() -> bytes:
    """A fresh key of 160 bits, the size that RFC 4226 recommends.

    >>> len(new_key())
    20
    """
    return default_random().bytes(_SIZE)


def step_at(moment: float) -> int:
    """The number of the half minute that a moment (in seconds since 1970) is in.

    >>> step_at(59), step_at(60)
    (1, 2)
    """
    return int(moment // _PERIOD)


def code_of(key: bytes, step: int, digits: int = _DIGITS) -> str:
    """The code of a step.

    >>> code_of(b"12345678901234567890", step_at(59), 8)
    '94287082'
    """
    mac = hmac.digest(key, step.to_bytes(8, "big"), "sha1")
    at = mac[-1] & 0x0F
    number = int.from_bytes(mac[at : at + 4], "big") & 0x7FFFFFFF
    return str(number % 10**digits).zfill(digits)


def matching_step(key: bytes, typed: str, moment: float, after: int) -> int | None:
    """The step whose code was typed: now, or one step to either side for clocks that differ; only steps later than `after`, the
    last that was used, so that a code counts once.

    >>> key = b"12345678901234567890"
    >>> matching_step(key, code_of(key, 7), 7 * 30, 0), matching_step(key, code_of(key, 7), 7 * 30, 7)
    (7, None)
    """
    digits = re.sub(r"\s", "", typed)
    if not re.fullmatch(rf"[0-9]{{{_DIGITS}}}", digits):
        return None
    middle = step_at(moment)
    matching = [step for step in range(middle - _DRIFT, middle + _DRIFT + 1) if same(code_of(key, step), digits)]
    return next((step for step in matching if step > after), None)


def shown_key(key: bytes) -> str:
    """The key as one types it: base32 in groups of four.

    >>> shown_key(b"12345678901234567890")
    'GEZD GNBV GY3T QOJQ GEZD GNBV GY3T QOJQ'
    """
    text = base64.b32encode(key).decode().rstrip("=")
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


def key_address(key: bytes, account: str, issuer: str) -> str:
    """The key as an authenticator reads it.

    >>> key_address(b"12345678901234567890", "ada@example.org", "The hub")
    'otpauth://totp/The%20hub:ada%40example.org?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=The%20hub'
    """
    named = issuer.replace(":", " ").strip() or "cloister"
    values = {"secret": shown_key(key).replace(" ", ""), "issuer": named}
    return f"otpauth://totp/{quote(named, safe='')}:{quote(account, safe='')}?{urlencode(values, quote_via=quote)}"


def picture(address: str) -> bytes:
    """An address as a QR code, an SVG image that a camera reads on dark pages too.

    >>> picture("otpauth://totp/a")[:4]
    b'<svg'
    """
    import segno

    out = io.BytesIO()
    segno.make(address, error="m", micro=False).save(
        out, kind="svg", xmldecl=False, scale=5, border=4, light="#ffffff", dark="#000000", omitsize=False
    )
    return out.getvalue()
