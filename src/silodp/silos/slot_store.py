"""Which slots of a run were asked, and their replies, on disk before the first byte leaves.

`asked` has a line of 64 bytes for each slot that was asked: its number, the SHA-256 of the question, and the start of
the SHA-256 of both. `replies` has a place for each reply, or a single place where slots are asked in order, with the
reply's SHA-256 behind it. Both have their whole room from the start. A slot with a line and no whole reply is dead: its
noise may have been drawn, and is never drawn again.
"""

import hashlib
import os
import struct
from pathlib import Path

from silodp.config.errors import ConfigError
from silodp.silos.durable import sync_folder
from silodp.silos.wire import HEAD

_LINE = struct.Struct("<Q32s24s")


class SlotStore:
    """The files of one run in `folder`; replies are of `reply_bytes` each.

    ConfigError: the disk has no room for all replies.
    """

    def __init__(self, folder: Path, slots: int, reply_bytes: int, is_ordered: bool):
        self.slots, self.reply_bytes, self.is_ordered = slots, reply_bytes, is_ordered
        self._asked = os.open(folder / "asked", os.O_RDWR | os.O_CREAT, 0o600)
        self._replies = os.open(folder / "replies", os.O_RDWR | os.O_CREAT, 0o600)
        needed = _LINE.size * slots, (1 if is_ordered else slots) * (reply_bytes + 32)
        try:
            for handle, room in zip((self._asked, self._replies), needed, strict=True):
                os.posix_fallocate(handle, 0, room)
                os.fsync(handle)
        except OSError as error:
            raise ConfigError(f"{folder}: {error.strerror}: {sum(needed) / 1e6:.1f} MB must be free") from None
        sync_folder(folder)
        lines = list(_LINE.iter_unpack(os.pread(self._asked, needed[0], 0)))
        known = [_line(slot, digest)[-24:] == check for slot, digest, check in lines]
        # The last line alone may be torn: it was not synced, so that no noise was drawn for it.
        written = known.index(False) if False in known else len(known)
        if True in known[written:]:
            raise ConfigError(f"{folder / 'asked'}: line {written + 1}: damaged: restore the folder, or `--again`")
        self.digests: dict[int, bytes] = {slot: digest for slot, digest, _ in lines[:written]}

    def is_dead(self, slot: int) -> bool:
        """Whether the slot can no longer be answered anew."""
        return slot in self.digests or (self.is_ordered and slot < max(self.digests, default=-1))

    def is_used_up(self) -> bool:
        return len(self.digests) >= self.slots or (self.is_ordered and self.slots - 1 in self.digests)

    def find(self, slot: int, question: bytes) -> bytes | None:
        """The stored reply to an equal question."""
        if self.digests.get(slot) != hashlib.sha256(question).digest():
            return None
        whole = os.pread(self._replies, self.reply_bytes + 32, self._reply_place(slot))
        reply, digest = whole[:-32], whole[-32:]
        is_whole = hashlib.sha256(reply).digest() == digest and HEAD.unpack_from(reply)[1] == slot
        return reply if is_whole else None

    def open_slot(self, slot: int, question: bytes) -> None:
        """Write the slot's line; when this returns, it lasts."""
        digest = hashlib.sha256(question).digest()
        os.pwrite(self._asked, _line(slot, digest), len(self.digests) * _LINE.size)
        os.fsync(self._asked)
        self.digests[slot] = digest

    def keep_reply(self, slot: int, reply: bytes) -> None:
        os.pwrite(self._replies, reply + hashlib.sha256(reply).digest(), self._reply_place(slot))
        os.fsync(self._replies)

    def close(self) -> None:
        os.close(self._asked)
        os.close(self._replies)

    def _reply_place(self, slot: int) -> int:
        return 0 if self.is_ordered else slot * (self.reply_bytes + 32)


def _line(slot: int, digest: bytes) -> bytes:
    return _LINE.pack(slot, digest, hashlib.sha256(slot.to_bytes(8, "little") + digest).digest()[:24])
