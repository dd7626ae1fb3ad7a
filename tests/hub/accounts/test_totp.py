"""The codes of RFC 6238, by its own test vectors."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from cloister.hub.platform.accounts import totp

KEY = b"12345678901234567890"
VECTORS = [
    (59, "94287082"),
    (1111111109, "07081804"),
    (1111111111, "14050471"),
    (1234567890, "89005924"),
    (2000000000, "69279037"),
    (20000000000, "65353130"),
]
"""RFC 6238, appendix B, for SHA-1."""
COUNTED = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"]
"""RFC 4226, appendix D."""


@pytest.mark.parametrize(("moment", "code"), VECTORS)
def test_the_vectors_of_rfc_6238(moment: int, code: str) -> None:
    assert totp.code_of(KEY, totp.step_at(moment), 8) == code
    assert totp.code_of(KEY, totp.step_at(moment)) == code[2:]


@pytest.mark.parametrize(("counter", "code"), list(enumerate(COUNTED)))
def test_the_vectors_of_rfc_4226(counter: int, code: str) -> None:
    assert totp.code_of(KEY, counter) == code


@pytest.mark.parametrize(("off", "good"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_a_clock_may_be_off_by_one_step(off: int, good: bool) -> None:
    moment = 1111111111.0
    step = totp.step_at(moment) + off
    assert totp.matching_step(KEY, totp.code_of(KEY, step), moment, 0) == (step if good else None)


def test_no_step_counts_twice_nor_one_before_it() -> None:
    moment = 1111111111.0
    step = totp.step_at(moment)
    for used, good in ((step - 1, True), (step, False), (step + 1, False)):
        assert (totp.matching_step(KEY, totp.code_of(KEY, step), moment, used) is not None) == good


@pytest.mark.parametrize("typed", ["", "12345", "1234567", "abcdef", "١٢٣٤٥٦", "12345\x00", "-12345"])
def test_what_is_no_code_is_none(typed: str) -> None:
    assert totp.matching_step(KEY, typed, 59.0, 0) is None


def test_blanks_in_a_code_do_not_matter() -> None:
    code = totp.code_of(KEY, 7)
    assert totp.matching_step(KEY, f" {code[:3]} {code[3:]} ", 7 * 30.0, 0) == 7


def test_the_picture_is_an_image_without_scripts() -> None:
    drawn = totp.picture(totp.key_address(KEY, "ada@example.org", 'A "hub" & more: one'))
    root = ET.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert {each.tag.rpartition("}")[2] for each in root.iter()} <= {"svg", "path", "g"}
