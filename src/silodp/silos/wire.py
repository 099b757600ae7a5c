"""Bytes of the line: fixed lengths, little-endian; no names, no text, no pickle.

question  run's digest 32 · slot u64 · one or two points of d float64
refused   the constant `REFUSED`, after a hello that the coordinator does not take
reply     mark of the ledger · run's digest 32 · slot u64 · d float64, or the constant `FAULT`
mark      lines u64 · HMAC of the newest line 32 · run's digest 32 · slots of it that were opened u64 · HMAC of these 32
greeting  SHA-256 of the federation's file 32 · code's digest 32 · the last mark that this silo sent
hello     nonce 16 · SHA-256 of the federation's file 32 · code's digest 32 · run's digest 32
"""

import struct
from typing import NamedTuple

import numpy as np

HEAD = struct.Struct("<32sQ")
MARK = struct.Struct("<Q32s32sQ32s")
GREETING = struct.Struct(f"<32s32s{MARK.size}s")
HELLO = struct.Struct("<16s32s32s32s")
FAULT = b"\x00" * 24
REFUSED = b"refused" + b"\x00" * 17
END = b"end" + b"\x00" * 21 + b"\x00" * 32
NO_MARK = bytes(MARK.size)


class Refused(ValueError):
    """Bytes that are no question of the plan; its text stays at the silo."""


class RefusedHello(Exception):
    """The coordinator does not take a silo's run."""


class Hello(NamedTuple):
    nonce: bytes
    federation: bytes
    code: bytes
    run: bytes


def pack(run: bytes, slot: int, *points: np.ndarray) -> bytes:
    """TypeError for a slot that is no whole number; ValueError for one out of range, or weights that are not finite."""
    if type(slot) is not int or not 0 <= slot < 2**64:
        raise TypeError(f"slot {slot!r}: must be a whole number from 0 to 2**64 - 1")
    return HEAD.pack(run, slot) + b"".join(np.ascontiguousarray(point, dtype="<f8").tobytes() for point in points)


def unpack(data: bytes, run: bytes, size: int) -> tuple[int, np.ndarray]:
    """(slot, points (p, d)) of bytes of this run; Refused for anything else."""
    if len(data) < HEAD.size or (len(data) - HEAD.size) % (8 * size):
        raise Refused("length")
    found, slot = HEAD.unpack_from(data)
    if found != run:
        raise Refused("run's digest")
    return slot, np.frombuffer(data, "<f8", offset=HEAD.size).reshape(-1, size)
