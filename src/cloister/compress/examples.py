"""Faces drawn by a formula, for examples and tests: so many people, each several times, with and without glasses."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cloister.compress.drawing import normal, random_of
from cloister.compress.scatter import Floats

SIZE = 24


class DrawnFaces(NamedTuple):
    """Pixels in [0, 1], one row a picture; whether it has glasses; whose it is."""

    pixels: Floats
    glasses: npt.NDArray[np.bool_]
    person: npt.NDArray[np.int64]


def drawn_faces(people: int = 30, pictures: int = 10, *, random_state: int = 0) -> DrawnFaces:
    """People differ in the shape of head, eyes, mouth and hair; pictures of one in light, place and glasses.

    >>> faces = drawn_faces(4, 2)
    >>> faces.pixels.shape, faces.person.tolist()
    ((8, 576), [0, 0, 1, 1, 2, 2, 3, 3])
    """
    random = random_of(random_state)
    shapes = normal(people * 6, random).reshape(people, 6)
    count = people * pictures
    person = np.repeat(np.arange(people), pictures)
    often = np.where(np.arange(people) % 3 == 0, 0.1, np.where(np.arange(people) % 3 == 1, 0.9, 0.5))
    glasses = random.below(1000, count).astype(np.float64) / 1000 < often[person]
    moved = normal(count * 4, random).reshape(count, 4)
    noise = normal(count * SIZE * SIZE, random).reshape(count, SIZE, SIZE)
    y, x = np.mgrid[-1 : 1 : SIZE * 1j, -1 : 1 : SIZE * 1j]
    drawn = [
        _face(x - 0.03 * move[0], y - 0.03 * move[1], shapes[who], bool(worn), move[2], move[3])
        for who, worn, move in zip(person, glasses, moved, strict=True)
    ]
    return DrawnFaces(np.clip(np.stack(drawn) + 0.03 * noise, 0, 1).reshape(count, -1), glasses, person)


def _face(x: Floats, y: Floats, shape: Floats, glasses: bool, light: float, side: float) -> Floats:
    wide, tall, apart, low, mouth, hair = shape
    head = _soft(1 - (x / (0.62 + 0.06 * wide)) ** 2 - (y / (0.85 + 0.05 * tall)) ** 2, 0.15)
    eye_x, eye_y = 0.28 + 0.04 * apart, -0.15 + 0.05 * low
    distance = np.hypot(np.abs(x) - eye_x, y - eye_y)
    face = 0.15 + 0.6 * head - 0.45 * _soft(0.09 - distance, 0.03)
    face -= 0.4 * _soft(0.05 - np.abs(y - 0.45 - 0.05 * low), 0.03) * _soft(0.25 + 0.08 * mouth - np.abs(x), 0.04)
    face -= (0.3 + 0.1 * hair) * head * _soft(-0.5 + 0.06 * hair - y, 0.06)
    if glasses:
        face -= 0.35 * _soft(0.045 - np.abs(distance - 0.2), 0.03)
        face -= 0.35 * _soft(0.03 - np.abs(y - eye_y), 0.02) * _soft(eye_x - 0.2 - np.abs(x), 0.03)
    return np.asarray(face * (1 + 0.08 * light + 0.12 * side * x))


def _soft(value: Floats, edge: float) -> Floats:
    """From 0 to 1 across an edge."""
    return np.asarray(1 / (1 + np.exp(-np.clip(value / edge * 4, -50, 50))))
