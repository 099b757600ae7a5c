"""Draws of one message from SHAKE-256 over 256 bits: places of records, and real Gaussians rounded to whole numbers.

A uniform number is a 32-bit word whose later digits are hashed from its place when a comparison needs them. So the laws
are exact for ideal bits: no float decides a draw, and 512 later digits leave 2⁻⁵¹² undecided.
"""

import hashlib
from collections.abc import Callable
from functools import partial

import numpy as np

_FIRST = 1 << 18  # bytes that are hashed at once


class SecretDraws:
    """Exact draws below one key of 32 bytes; `bits` of a uniform number are drawn first (at most 32)."""

    def __init__(self, key: bytes, bits: int = 32):
        self._key, self._bits, self._place = key, bits, 0
        self._block, self._words = 0, np.zeros(0, dtype=np.int64)

    def integers(self, low: int, below: int, size: int) -> np.ndarray:
        """Uniform whole numbers in [low, below), int64 (size,); the span is at most 2³²."""
        mask, drawn = (1 << (below - low - 1).bit_length()) - 1, np.zeros(0, dtype=np.int64)
        while len(drawn) < size:
            words = low + (self._raw(2 * (size - len(drawn)) + 8) & mask)
            drawn = np.concatenate([drawn, words[words < below]])
        return drawn[:size]

    def choice(self, below: int, size: int, replace: bool) -> np.ndarray:
        """`size` of the numbers 0 … below − 1, every ordered choice as likely."""
        return self.integers(0, below, size) if replace else self.permutation(below)[:size]

    def permutation(self, size: int) -> np.ndarray:
        """All numbers 0 … size − 1 in a uniformly random order; sort keys that are not distinct are drawn again."""
        while True:
            keys = self._raw(size) << 31 ^ self._raw(size)
            if len(np.unique(keys)) == size:
                return np.argsort(keys)

    def rounded_gaussian(self, size: int, deviation: int) -> np.ndarray:
        """Real draws of N(0, deviation²), each rounded to the nearest whole number, int64 (size,).

        Karney 2016 (Sampling exactly from the normal distribution), Algorithm N, for many draws at once. `deviation` is
        a whole number below 2²².
        """
        found = np.zeros(size, dtype=np.int64)
        waiting = np.arange(size)
        while len(waiting):
            whole = self._whole_parts(len(waiting))
            x = self._uniforms(len(waiting))
            good = self._repeat(whole + 1, partial(self._accepts, x, whole))
            found[waiting[good]] = self._scaled(whole[good], x[good], deviation)
            waiting = waiting[~good]
        return np.where(self._raw(size) & 1, found, -found)

    def _raw(self, size: int) -> np.ndarray:
        """Words of 32 random bits, int64 (size,)."""
        while len(self._words) < size:
            stream = hashlib.shake_256(self._key + b"words" + self._block.to_bytes(8)).digest(max(_FIRST, 4 * size))
            self._block += 1
            self._words = np.concatenate([self._words, np.frombuffer(stream, "<u4").astype(np.int64)])
        words, self._words = self._words[:size], self._words[size:]
        return words

    def _uniforms(self, size: int) -> np.ndarray:
        """Uniform numbers in [0, 1), (size, 2): first `bits` digits, and the place that later digits hang on."""
        places = np.arange(self._place, self._place + size)
        self._place += size
        return np.stack([self._raw(size) >> (32 - self._bits), places], axis=1)

    def _later(self, uniform: np.ndarray) -> int:
        """512 more digits of a uniform number; of the constant ½ (place −1) they are 0."""
        if uniform[1] < 0:
            return 0
        return int.from_bytes(hashlib.shake_256(self._key + b"later" + int(uniform[1]).to_bytes(8)).digest(64))

    def _all_digits(self, uniform: np.ndarray) -> int:
        return (int(uniform[0]) << 512) + self._later(uniform)

    def _less(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        less = a[:, 0] < b[:, 0]
        for tie in np.flatnonzero(a[:, 0] == b[:, 0]):
            less[tie] = self._later(a[tie]) < self._later(b[tie])
        return less

    def _below_bound(self, r: np.ndarray, x: np.ndarray, whole: np.ndarray) -> np.ndarray:
        """Whether r < (2k + x)/(2k + 2)."""
        most, one = 2 * whole + 2, 1 << self._bits
        left, right = r[:, 0] * most, 2 * whole * one + x[:, 0]
        below = left + most <= right
        for tie in np.flatnonzero((left < right + 1) & ~below):
            bound = (2 * int(whole[tie]) << (512 + self._bits)) + self._all_digits(x[tie])
            below[tie] = self._all_digits(r[tie]) * int(most[tie]) < bound
        return below

    def _falls_evenly(self, start: np.ndarray, whole: np.ndarray | None = None) -> np.ndarray:
        """Whether runs x > z_1 > z_2 > … are of even length: with probability e^{−x}, or e^{−x(2k+x)/(2k+2)} for k.

        Karney's Algorithms H and B, after von Neumann.
        """
        last, even, active = start.copy(), np.ones(len(start), dtype=bool), np.arange(len(start))
        while len(active):
            z = self._uniforms(len(active))
            goes_on = self._less(z, last[active])
            active, z = active[goes_on], z[goes_on]
            if whole is not None:
                goes_on = self._below_bound(self._uniforms(len(active)), start[active], whole[active])
                active, z = active[goes_on], z[goes_on]
            last[active], even[active] = z, ~even[active]
        return even

    def _accepts(self, x: np.ndarray, whole: np.ndarray, some: np.ndarray) -> np.ndarray:
        return self._falls_evenly(x[some], whole[some])

    def _repeat(self, times: np.ndarray, test: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Whether `test` holds as many times as each place asks for."""
        holds, done = np.ones(len(times), dtype=bool), 0
        while len(some := np.flatnonzero(holds & (times > done))):
            holds[some] = test(some)
            done += 1
        return holds

    def _half(self, size: int) -> np.ndarray:
        return np.tile(np.array([1 << (self._bits - 1), -1]), (size, 1))

    def _whole_parts(self, size: int) -> np.ndarray:
        """k ≥ 0 with probability in proportion to e^{−k²/2} (steps N1 and N2)."""
        found, waiting = np.zeros(size, dtype=np.int64), np.arange(size)
        while len(waiting):
            k, active = np.zeros(len(waiting), dtype=np.int64), np.arange(len(waiting))
            while len(active):
                active = active[self._falls_evenly(self._half(len(active)))]
                k[active] += 1
            good = self._repeat(k * (k - 1), lambda some: self._falls_evenly(self._half(len(some))))
            found[waiting[good]] = k[good]
            waiting = waiting[~good]
        return found

    def _scaled(self, whole: np.ndarray, x: np.ndarray, deviation: int) -> np.ndarray:
        """⌊deviation·(k + x) + ½⌋."""
        bits = self._bits
        low = deviation * ((whole << bits) + x[:, 0]) + (1 << (bits - 1))
        rounded = low >> bits
        for tie in np.flatnonzero((low + deviation - 1) >> bits != rounded):
            exact = deviation * ((int(whole[tie]) << (512 + bits)) + self._all_digits(x[tie]))
            rounded[tie] = (exact + (1 << (511 + bits))) >> (512 + bits)
        return rounded
