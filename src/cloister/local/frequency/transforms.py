"""Fast transforms that read sketches: Walsh–Hadamard, and for all places at once, how many reports support each.

A report of local hashing names a function a and a value y, and supports every place x with ⟨a, x⟩ = y. One by one, that is
places × functions look-ups. With the characters of the field's sum it is one Fourier transform: 1[z = 0] is the mean of χ(tz)
over t, so that

    S(x) = Σₐ H[a, ⟨a, x⟩] = (1/g)·(Σ H + Σ over b = t·a ≠ 0 of F[b]·χ(⟨b, x⟩)),   F[t·a] = Σ_y H[a, y]·χ(−t·y),

and since a goes over lines and t over factors, b goes over every vector but 0, once. For a prime, χ(z) = exp(2πi·z/g), and it
is a discrete Fourier transform of m axes; for a power of two, χ(z) = (−1)^trace(z), and it is a Walsh–Hadamard transform.
"""

import numpy as np
import numpy.typing as npt

from cloister.local.frequency.fields import Lines

Floats = npt.NDArray[np.float64]

_CHUNK = 1 << 20
_SMALL = 64
_LONG = 256


def walsh_hadamard(values: npt.ArrayLike) -> Floats:
    """Sums over the last axis, with signs (−1)^parity(i & j): for a length that is a power of two.

    >>> walsh_hadamard([1.0, 2.0, 0.0, 0.0]).tolist()
    [3.0, -1.0, 3.0, -1.0]
    """
    given = np.asarray(values, dtype=np.float64)
    size = given.shape[-1]
    step = min(_SMALL, size)
    signs = np.where(np.bitwise_count(np.arange(step)[:, None] & np.arange(step)) & 1, -1.0, 1.0)
    out: Floats = given.reshape(-1, step) @ signs  # the first six halvings as one product
    while step < size:
        pairs = out.reshape(-1, 2, step)
        differences = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] += pairs[:, 1]
        pairs[:, 1] = differences
        step *= 2
    return out.reshape(given.shape)


def supports(table: npt.NDArray[np.generic], lines: Lines, size: int) -> Floats:
    """For the places 0 … size − 1: the sum of `table[a, ⟨a, x⟩]` over all functions a.

    >>> from cloister.local.frequency.fields import field_of
    >>> lines = Lines(field=field_of(3), digits=2)
    >>> table = np.zeros((4, 3))
    >>> table[2, 1] = 5  # function 2 is the number 4: digits 1, 1
    >>> supports(table, lines, 9).round(9).tolist()  # the numbers whose digits sum to 1: 01, 10, 22
    [0.0, 5.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 5.0]
    """
    if lines.digits == 1:
        return np.array(table[0, :size], dtype=np.float64)
    total = float(table.sum())
    if lines.field.polynomial:
        spectrum = np.zeros(lines.field.size**lines.digits)
        by_value = np.empty((len(lines), lines.field.size))
        rows = max(1, _CHUNK // lines.field.size)
        labels = lines.field.traced(np.arange(lines.field.size), 1)
        for first in range(0, len(lines), rows):
            by_value[first : first + rows] = walsh_hadamard(table[first : first + rows])[:, labels]
        _scatter(by_value, spectrum, lines, half=False)
        whole = walsh_hadamard(spectrum)[lines.field.traced(np.arange(size), lines.digits)]
        return np.asarray((total + whole) / lines.field.size, dtype=np.float64)
    g, m = lines.field.size, lines.digits
    kept = g // 2 + 1  # F[−b] is the conjugate of F[b]: half of the last axis says it all
    halves = np.zeros(g ** (m - 1) * kept, dtype=np.complex128)
    _scatter(_characters(table, g), halves, lines, half=True)
    axes = tuple(range(m))
    summed = np.fft.irfftn(halves.reshape((g,) * (m - 1) + (kept,)), s=(g,) * m, axes=axes).ravel()[:size] * float(g**m)
    return np.asarray((total + summed) / g, dtype=np.float64)


def _characters(table: npt.NDArray[np.generic], g: int) -> npt.NDArray[np.complex128]:
    """Fourier transforms of the rows. For the short primes it is a product with a matrix, which is faster."""
    if g > _LONG:
        return np.fft.fft(table, axis=1)
    angles = 2 * np.pi / g * (np.outer(np.arange(g), np.arange(g)) % g)
    real = np.asarray(table, dtype=np.float64)
    out = np.empty(table.shape, dtype=np.complex128)
    out.real = real @ np.cos(angles)
    out.imag = -(real @ np.sin(angles))
    return out


def _scatter(by_value: npt.NDArray[np.inexact], spectrum: npt.NDArray[np.inexact], lines: Lines, *, half: bool) -> None:
    """Write F[t·a] = by_value[a, t] where it belongs. With `half`, only vectors whose last digit is at most g // 2 are kept."""
    g = lines.field.size
    kept = g // 2 + 1
    factors = np.arange(1, g, dtype=np.int64)
    for after, first in enumerate(lines.firsts.tolist()):
        count = g**after
        tails = np.arange(count, dtype=np.int64)
        some = max(1, _CHUNK // count)
        for start in range(0, len(factors), some):
            t = factors[start : start + some, None]
            index = t * count + lines.field.scaled(tails[None, :], t, after)
            values = by_value[first : first + count, start + 1 : start + 1 + len(t)].T
            if half:
                high, low = np.divmod(index, g)
                keep = low < kept
                spectrum[(high * kept + low)[keep]] = values[keep]
            else:
                spectrum[index] = values
