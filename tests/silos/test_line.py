"""The line: mutual TLS with pinned certificates, and what a stranger's certificate gets."""

import asyncio
import contextlib
import itertools
import re
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from three_silos import records, run_plan, seeded_key, simulated_weights

from silodp.cli import main
from silodp.config.errors import ConfigError
from silodp.silos.coordinator import RemoteFederation, train
from silodp.silos.keys import check_dates, fingerprint, make_key, spoken
from silodp.silos.silo import Silo
from silodp.silos.wire import GREETING, HELLO, pack

grpc = pytest.importorskip("grpc")
from grpc._cython import cygrpc  # noqa: E402

from silodp.silos.line import Lines, _options, join  # noqa: E402

RUN = b"r" * 32
HELLO_BYTES = HELLO.pack(b"n" * 16, b"f" * 32, b"c" * 32, RUN)


def free_address():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


def parties(folder, names):
    return {name: (make_key(folder / f"{name}.key"), (folder / f"{name}.key").read_bytes()) for name in names}


def opened_lines(address, silos, keys, size, came):
    def admit(silo, hello):
        came.append((silo, hello))
        return True

    certificate, key = keys["coordinator"] if keys else ("", b"")
    return Lines(address, silos, key, certificate.encode(), size, lambda silo: bytes(GREETING.size), admit)


@pytest.mark.parametrize("transport", ["tls", "unix"])
def test_three_silos_over_the_line_give_the_simulations_weights(transport, tmp_path):
    plan, came, ends = run_plan(), [], []
    names, keys = plan.names, parties(tmp_path, [*plan.names, "coordinator"]) if transport == "tls" else {}
    address = free_address() if keys else f"unix:{tmp_path}/line"
    silos = {number: keys[name][0] if keys else name for number, name in enumerate(names)}
    lines = opened_lines(address, silos, keys, plan.size, came)

    def take_part(number):
        folder = tmp_path / names[number]
        folder.mkdir()
        silo = Silo(plan, number, records(number), folder, RUN, b"o" * 32, seeded_key)
        pins = None
        if keys:
            certificate, key = keys[names[number]]
            pins = keys["coordinator"][0].encode(), key, certificate.encode()
        ends.append(join(address, names[number], pins, plan.size, lambda greeting: HELLO_BYTES, silo.reply, 60, 60))

    threads = [threading.Thread(target=take_part, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    assert lines.wait(3, 60) == [0, 1, 2]
    (tmp_path / "kept").mkdir()
    ask = lambda silo, question: lines.ask(silo, question, 60)  # noqa: E731
    found = train(RemoteFederation(plan, dict.fromkeys(range(3), RUN), ask, tmp_path / "kept", 0))[0]
    lines.end(dict.fromkeys(range(3), b"s" * 32))
    for thread in threads:
        thread.join(60)
    assert torch.equal(found, simulated_weights(plan))
    assert sorted(silo for silo, _ in came) == [0, 1, 2]
    assert ends == [b"s" * 32] * 3


def test_strangers_and_wrong_coordinators_get_no_line(tmp_path):
    keys, came = parties(tmp_path, ["north", "stranger", "coordinator"]), []
    address = free_address()
    lines = opened_lines(address, {0: keys["north"][0]}, keys, 4, came)

    def dial(server, client):
        certificate, key = keys[client]
        return join(address, client, (keys[server][0].encode(), key, certificate.encode()), 4, bytes, bytes, 5, 5)

    try:
        for server, client in (("coordinator", "stranger"), ("stranger", "north")):
            with contextlib.suppress(grpc.RpcError, grpc.FutureTimeoutError):
                assert dial(server, client) is None
        assert came == []
    finally:
        lines.end(dict.fromkeys(range(3), bytes(32)))


def test_lines_that_end_leave_no_loop_open(tmp_path, monkeypatch):
    loops, make = [], asyncio.new_event_loop
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: loops.append(make()) or loops[-1])
    opened_lines(f"unix:{tmp_path}/line", {0: "a"}, {}, 4, []).end(None)
    assert [loop.is_closed() for loop in loops] == [True]


def test_a_message_may_have_two_points_and_a_kibibyte():
    for size in (1, 3, 5000):
        most = dict(_options(size))["grpc.max_receive_message_length"]
        assert len(pack(bytes(32), 0, np.zeros(size), np.zeros(size))) <= most <= 16 * size + 1024


def test_a_fingerprint_is_read_aloud_in_groups_of_four_figures():
    groups = spoken(bytes(range(32))).split(" ")
    assert "".join(groups) == bytes(range(32)).hex()
    assert [len(group) for group in groups] == [4] * 16


def test_a_key_is_private_and_never_replaced(tmp_path):
    certificate = make_key(tmp_path / "north.key")
    assert (tmp_path / "north.key").stat().st_mode & 0o777 == 0o600
    assert len(fingerprint(certificate)) == 32
    with pytest.raises(ValueError, match="already exists"):
        make_key(tmp_path / "north.key")


@pytest.mark.parametrize(("name", "indent"), [("north", 4), ("coordinator", 2)])
def test_the_command_of_a_key_prints_what_goes_into_the_agreed_file(name, indent, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["silo", "key", name]) == 0
    first, compared, _, *lines = capsys.readouterr().out.splitlines()
    certificate = (tmp_path / f"{name}.crt").read_text()
    assert first.startswith(f"{name}.key: private; {name}.crt: for all.")
    assert compared == spoken(fingerprint(certificate))
    assert lines[0] == " " * indent + "certificate: |"
    assert yaml.safe_load("\n".join([*lines, ""])) == {"certificate": certificate}
    assert main(["silo", "key", name]) == 2


def test_a_newer_line_takes_the_place_of_the_older_and_only_hello_and_replies_leave(tmp_path):
    plan, address, ends, left = run_plan(), f"unix:{tmp_path}/line", {}, {"old": [], "new": []}
    lines = opened_lines(address, {0: "north"}, {}, plan.size, [])

    def take_part(which):
        (tmp_path / which).mkdir()
        silo = Silo(plan, 0, records(0), tmp_path / which, RUN, b"o" * 32, seeded_key)

        def sent(message):
            left[which].append(message)
            return message

        greeted, reply = (lambda greeting: sent(HELLO_BYTES)), (lambda question: sent(silo.reply(question)))
        ends[which] = join(address, "north", None, plan.size, greeted, reply, 30, 30)

    question = pack(RUN, 0, torch.zeros(plan.size, dtype=torch.float64).numpy())
    threads = []
    for which in ("old", "new"):
        threads.append(threading.Thread(target=take_part, args=(which,)))
        threads[-1].start()
        while len(left[which]) < 1:
            threads[-1].join(0.05)
        threads[0].join(5 if which == "new" else 0.2)
    assert "old" in ends
    assert ends["old"] is None
    answer = lines.ask(0, question, 20)
    lines.end(dict.fromkeys(range(3), b"m" * 32))
    threads[1].join(20)
    assert ends["new"] == b"m" * 32
    assert left["old"] == [HELLO_BYTES]
    assert left["new"] == [HELLO_BYTES, answer]
    assert len(answer) == 40 + 8 * plan.size


def test_a_second_question_waits_for_its_turn(tmp_path):
    address, asked, busy = f"unix:{tmp_path}/line", [], threading.Lock()
    lines = opened_lines(address, {0: "north"}, {}, 4, [])

    def slow(question):
        assert busy.acquire(blocking=False)
        asked.append(question)
        time.sleep(0.2)
        busy.release()
        return question

    words = (address, "north", None, 4, lambda greeting: HELLO_BYTES, slow, 30, 30)
    thread = threading.Thread(target=lambda: join(*words), daemon=True)
    thread.start()
    assert lines.wait(1, 20) == [0]
    context, _ = lines._lines[0]
    both = [b"1" * 72, b"2" * 72]

    async def ask_both():
        for question in both:
            await context.write(question)
        return [await context.read() for _ in both]

    assert lines._run(ask_both()) == both == asked
    lines.end(None)
    thread.join(20)


def test_a_silo_whose_line_breaks_at_a_question_is_asked_again_on_its_next_line(tmp_path):
    address, asked = f"unix:{tmp_path}/line", []
    lines = opened_lines(address, {0: "north"}, {}, 4, [])

    def reply(question):
        asked.append(question)
        if len(asked) == 1:
            raise ConnectionError
        return b"r" * 72

    def dial():
        words = (address, "north", None, 4, lambda greeting: HELLO_BYTES, reply, 30, 30)
        with contextlib.suppress(ConnectionError):
            join(*words)
        join(*words)

    thread = threading.Thread(target=dial, daemon=True)
    thread.start()
    assert lines.wait(1, 20) == [0]
    assert lines.ask(0, b"q" * 72, 20) == b"r" * 72
    assert asked == [b"q" * 72] * 2
    lines.end(None)
    thread.join(20)


def test_a_member_that_leaves_while_a_question_is_written_stops_nobody(tmp_path):
    """gRPC's core raises an error of its own then, which ended the coordinator."""
    lines = opened_lines(f"unix:{tmp_path}/line", {0: "north"}, {}, 4, [])

    async def write(question):
        raise cygrpc.ExecuteBatchError('Failed "execute_batch"')

    lines._lines[0] = SimpleNamespace(write=write), asyncio.Event()
    assert lines.ask(0, b"q" * 72, 0.2) is None
    assert lines.away == {0}
    lines.end(None)


def open_call(address, name, messages):
    """A silo's stream as it may be written by anybody who has its certificate, here its socket."""
    channel = grpc.insecure_channel(address)
    return channel, channel.stream_stream("/silodp.Silo/Serve")(messages, metadata=(("silo", name),))


def endless(sent, message):
    """`message` again and again, counted in `sent`."""
    for _ in range(2000):
        sent.append(1)
        yield message


def test_one_member_stops_nobody_with_half_open_calls_or_a_flood(tmp_path):
    """Half-open calls held a thread each, and what was not asked for was read into memory."""
    address, sent, size = f"unix:{tmp_path}/line", [], 60_000
    lines = opened_lines(address, {0: "north", 1: "east"}, {}, size, [])
    waits, done = threading.Event(), []
    half_open = [open_call(address, "north", iter(waits.wait, True)) for _ in range(40)]
    for _, call in half_open:
        assert len(next(call)) == GREETING.size
    flood = itertools.chain([HELLO_BYTES], endless(sent, bytes(16 * size)))
    flooding = open_call(address, "north", flood)
    words = (address, "east", None, size, lambda greeting: HELLO_BYTES, lambda question: b"r" * 72, 30, 30)
    thread = threading.Thread(target=lambda: done.append(join(*words)), daemon=True)
    thread.start()
    assert lines.wait(2, 8) == [0, 1]
    time.sleep(1)
    assert lines.ask(1, b"q" * 72, 5) == b"r" * 72
    assert 0 < len(sent) < 100, "nobody reads before a question is asked"
    waits.set()
    for channel, _ in [*half_open, flooding]:
        channel.close()
    lines.end(dict.fromkeys(range(3), b"m" * 32))
    thread.join(20)
    assert done == [b"m" * 32]


def test_a_coordinator_cannot_fill_a_silos_memory(tmp_path):
    """Questions came into a queue while the first was worked on."""
    address, sent, size = f"unix:{tmp_path}/line", [], 60_000

    def serve(messages, context):
        yield bytes(GREETING.size)
        next(messages)
        yield from endless(sent, bytes(16 * size))

    server = grpc.server(ThreadPoolExecutor(2))
    handler = grpc.stream_stream_rpc_method_handler(serve)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("silodp.Silo", {"Serve": handler}),))
    server.add_insecure_port(address)
    server.start()
    noted = []

    def reply(question):
        time.sleep(2)
        noted.append(len(sent))
        server.stop(None)
        return b""

    with contextlib.suppress(grpc.RpcError):
        join(address, "north", None, size, lambda greeting: HELLO_BYTES, reply, 30, 30)
    assert 0 < max(noted) < 100


def test_a_silo_that_lets_a_question_wait_in_vain_is_away_until_a_later_hello(tmp_path):
    address, answers = f"unix:{tmp_path}/line", iter([None, b"r" * 72])
    lines = opened_lines(address, {0: "north", 1: "east"}, {}, 4, [])
    assert lines.away == {0, 1}

    def reply(question):
        answer = next(answers)
        return answer or time.sleep(1.5) or b"late"

    def dial():
        while join(address, "north", None, 4, lambda greeting: HELLO_BYTES, reply, 30, 30) is None:
            pass

    thread = threading.Thread(target=dial, daemon=True)
    thread.start()
    assert lines.wait(1, 20) == [0]
    assert lines.away == {1}
    assert lines.ask(0, b"q" * 72, 0.5) is None
    assert lines.away == {0, 1}
    assert lines.wait(1, 20) == [0], "its line was closed, so that it says hello again"
    assert lines.away == {1}
    assert lines.ask(0, b"q" * 72, 5) == b"r" * 72
    lines.end(dict.fromkeys(range(3), b"m" * 32))
    thread.join(20)


def test_a_silo_waits_for_a_message_as_long_as_it_says(tmp_path):
    address = f"unix:{tmp_path}/line"
    lines = opened_lines(address, {0: "north"}, {}, 4, [])
    began = time.monotonic()
    assert join(address, "north", None, 4, lambda greeting: HELLO_BYTES, bytes, 0.5, 5) is None
    assert 0.5 <= time.monotonic() - began < 5
    lines.end(None)


def test_what_does_not_greet_as_a_coordinator_gets_no_hello(tmp_path):
    address, greeted = f"unix:{tmp_path}/line", []
    lines = Lines(address, {0: "north"}, b"", b"", 4, lambda silo: bytes(GREETING.size - 1), lambda *words: True)
    assert join(address, "north", None, 4, greeted.append, bytes, 5, 5) is None
    assert greeted == []
    lines.end(None)


def test_an_address_of_another_machine_is_told(tmp_path):
    with pytest.raises(OSError, match=r"203\.0\.113\.7:8470: cannot be listened at"):
        opened_lines("203.0.113.7:8470", {0: make_key(tmp_path / "n.key")}, parties(tmp_path, ["coordinator"]), 4, [])


def signed(folder, name, authority, *days):
    """(certificate, key) of a key of its own whose certificate `authority`'s key signed, by openssl."""
    request, key, certificate = (folder / f"{name}{end}" for end in (".csr", ".key", ".crt"))
    new = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc"]
    new += ["-subj", "/CN=silodp", "-addext", "subjectAltName=DNS:silodp", "-keyout", str(key), "-out", str(request)]
    subprocess.run(new, check=True, capture_output=True)
    by = (
        ["-CA", f"{authority}.crt", "-CAkey", f"{authority}.key", "-CAcreateserial"] if authority else ["-signkey", key]
    )
    sign = ["openssl", "x509", "-req", "-in", request, "-copy_extensions", "copy", *by, *days, "-out", certificate]
    subprocess.run(sign, check=True, capture_output=True)
    return certificate.read_text(), key.read_bytes()


def test_an_expired_certificate_and_another_that_a_silos_key_signed_get_no_line(tmp_path):
    keys, came = parties(tmp_path, ["north", "coordinator"]), []
    forged, old = signed(tmp_path, "forged", tmp_path / "north"), signed(tmp_path, "old", None, "-days", "0")
    forged = (forged[0] + keys["north"][0], forged[1])  # with its chain
    time.sleep(1.5)
    address = free_address()
    lines = opened_lines(address, {0: keys["north"][0], 1: old[0]}, keys, 4, came)
    try:
        for certificate, key in (forged, old):
            pins = keys["coordinator"][0].encode(), key, certificate.encode()
            with contextlib.suppress(grpc.RpcError, grpc.FutureTimeoutError):
                assert join(address, "north", pins, 4, bytes, bytes, 5, 5) is None
        assert came == []
        certificate, key = keys["north"]
        pins = keys["coordinator"][0].encode(), key, certificate.encode()
        words = (address, "north", pins, 4, lambda greeting: HELLO_BYTES, bytes, 5, 5)
        thread = threading.Thread(target=lambda: join(*words))
        thread.start()
        assert lines.wait(1, 10) == [0]
    finally:
        lines.end(dict.fromkeys(range(3), bytes(32)))
    thread.join(10)


def test_a_certificate_out_of_its_dates_is_told_before_anybody_dials(tmp_path, monkeypatch):
    """It was "who listens there does not take this silo's", whatever the reason."""
    certificate, now = make_key(tmp_path / "north.key"), time.time()
    check_dates(certificate, "north.crt")
    for then, said in ((now - 86400, "not yet valid, before"), (now + 11 * 365 * 86400, "expired on")):
        monkeypatch.setattr("silodp.silos.keys.time.time", lambda then=then: then)
        with pytest.raises(ConfigError, match=rf"north\.crt: {said} .* \d\d:\d\d:\d\d \d+ GMT: must be") as told:
            check_dates(certificate, "north.crt")
        date = ssl.cert_time_to_seconds(re.search(rf"{said} (.* GMT)", str(told.value))[1])
        monkeypatch.setattr("silodp.silos.keys.time.time", lambda date=date: date)
        check_dates(certificate, "north.crt")  # at its first and at its last second


def test_a_certificate_that_lost_a_line_is_told_in_one(tmp_path):
    lines = make_key(tmp_path / "north.key").splitlines(keepends=True)
    with pytest.raises(ConfigError, match=r"north\.crt: cannot be read: must be a whole certificate"):
        check_dates("".join(lines[:3] + lines[4:]), "north.crt")
