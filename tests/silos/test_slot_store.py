"""Slots and replies on disk: what is asked stays asked, and a reply is found again whole or not at all."""

import os

import pytest

from silodp.config.errors import ConfigError
from silodp.silos.slot_store import SlotStore
from silodp.silos.wire import pack

RUN = b"r" * 32


def reply_of(slot):
    return pack(RUN, slot) + bytes([slot]) * 8


def opened(folder, ordered=False, slots=3):
    return SlotStore(folder, slots, len(reply_of(0)), ordered)


def answer(store, slot):
    store.open_slot(slot, b"question %d" % slot)
    store.keep_reply(slot, reply_of(slot))


@pytest.mark.parametrize("ordered", [False, True])
def test_slots_and_replies_outlive_a_stop(ordered, tmp_path):
    store = opened(tmp_path, ordered)
    answer(store, 0)
    answer(store, 1)
    store.close()
    store = opened(tmp_path, ordered)
    assert store.find(1, b"question 1") == reply_of(1)
    assert store.find(1, b"another") is None
    # In order there is room for the last reply alone.
    assert store.find(0, b"question 0") == (None if ordered else reply_of(0))
    assert [store.is_dead(slot) for slot in range(3)] == [True, True, False]
    assert os.stat(tmp_path / "replies").st_size == (1 if ordered else 3) * (len(reply_of(0)) + 32)
    assert [os.stat(tmp_path / name).st_mode & 0o777 for name in ("asked", "replies")] == [0o600, 0o600]


def test_a_slot_before_one_that_was_asked_is_dead_where_slots_are_in_order(tmp_path):
    for ordered in (False, True):
        (tmp_path / str(ordered)).mkdir()
        store = opened(tmp_path / str(ordered), ordered)
        assert not any(store.is_dead(slot) for slot in range(3))
        answer(store, 1)
        assert [store.is_dead(slot) for slot in range(3)] == [ordered, True, False]


def test_a_run_is_used_up_by_its_last_slot_in_order_and_by_all_otherwise(tmp_path):
    for ordered, used in ((False, [False, False, True]), (True, [True, True, True])):
        (tmp_path / str(ordered)).mkdir()
        store, found = opened(tmp_path / str(ordered), ordered), []
        assert not store.is_used_up()
        for slot in (2, 0, 1):
            store.open_slot(slot, b"")
            found.append(store.is_used_up())
        assert found == used


def test_a_torn_line_was_never_asked_and_a_torn_reply_is_none(tmp_path):
    store = opened(tmp_path)
    answer(store, 0)
    store.open_slot(2, b"question 2")
    store.close()
    with (tmp_path / "asked").open("r+b") as lines:
        lines.seek(2 * 64)
        lines.write(b"half a line")
    store = opened(tmp_path)
    assert set(store.digests) == {0, 2}
    assert store.find(2, b"question 2") is None, "its reply was not kept"
    answer(store, 1)
    store.close()
    assert set(opened(tmp_path).digests) == {0, 1, 2}, "the next line stands in the torn one's place"
    with (tmp_path / "replies").open("r+b") as replies:
        replies.seek(3)
        replies.write(b"?")
    assert opened(tmp_path).find(0, b"question 0") is None
    assert opened(tmp_path).find(1, b"question 1") == reply_of(1)


def test_a_damaged_line_before_a_whole_one_opens_no_slot_again(tmp_path):
    """All slots behind it were answered anew with another noise."""
    store = opened(tmp_path)
    answer(store, 0)
    answer(store, 1)
    store.close()
    whole = (tmp_path / "asked").read_bytes()
    for bit in (0, 10 * 8, 63 * 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1
        (tmp_path / "asked").write_bytes(damaged)
        with pytest.raises(ConfigError, match="asked: line 1: damaged: restore the folder, or `--again`"):
            opened(tmp_path)


@pytest.mark.parametrize("free", [0, 64 * 20])
def test_a_disk_without_room_for_lines_and_replies_is_told_before_the_first_slot(free, tmp_path, monkeypatch):
    """Lines had none, and a disk that filled up ended a run that was charged."""

    def allocate(handle, start, size, left=[free]):  # noqa: B006
        left[0] -= size
        if left[0] < 0:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("silodp.silos.slot_store.os.posix_fallocate", allocate)
    with pytest.raises(ConfigError, match=r"No space left on device: 2\.0 MB must be free"):
        SlotStore(tmp_path, 20, 100_000 - 32, False)


def test_a_line_of_a_slot_takes_no_more_of_the_disk(tmp_path):
    store = opened(tmp_path)
    before = os.stat(tmp_path / "asked")
    answer(store, 2)
    after = os.stat(tmp_path / "asked")
    assert (before.st_size, before.st_blocks) == (after.st_size, after.st_blocks) == (3 * 64, before.st_blocks)
