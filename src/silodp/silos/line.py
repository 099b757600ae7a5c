"""The line between a silo and the coordinator: one two-way gRPC stream that the silo opens, and bytes on it.

Off one machine only mutual TLS, each side pinned to the other's whole certificate; on one machine `unix:` sockets. The
coordinator greets, the silo says hello, then questions and replies take turns.
"""

import contextlib
import hmac
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from silodp.silos.keys import NAME, fingerprint
from silodp.silos.wire import END, GREETING, HELLO, Hello

_SERVICE, _METHOD = "silodp.Silo", "Serve"
# Beyond a plan's array a message has at most this many bytes.
_MORE = 1024


def _options(size: int) -> list[tuple[str, Any]]:
    """gRPC's settings for messages of at most two points of d = `size`."""
    most = 16 * size + _MORE
    return [("grpc.max_receive_message_length", most), ("grpc.keepalive_time_ms", 30_000), ("grpc.so_reuseport", 0)]


class _Line:
    """One silo's open stream: what to send, what came."""

    def __init__(self) -> None:
        self.out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.came: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()


class Lines:
    """The coordinator's lines.

    `silos` are certificates (names with `unix:`); `greet` gives a silo's greeting, `admit` takes its hello and says
    whether it takes part. `size` is d.
    """

    def __init__(
        self,
        address: str,
        silos: Mapping[int, str],
        key: bytes,
        certificate: bytes,
        size: int,
        greet: Callable[[int], bytes],
        admit: Callable[[int, Hello], bool],
    ):
        self.is_local = address.startswith("unix:")
        self._known = {name.encode() if self.is_local else fingerprint(name): silo for silo, name in silos.items()}
        self._greet, self._admit = greet, admit
        self._lines: dict[int, _Line] = {}
        self._changed = threading.Condition()
        self._server = grpc.server(ThreadPoolExecutor(2 * len(silos) + 2), options=_options(size))
        serve = grpc.stream_stream_rpc_method_handler(self._serve)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: serve}),))
        if self.is_local:
            self._server.add_insecure_port(address)
        else:
            pins = "\n".join(silos.values()).encode()
            secret = grpc.ssl_server_credentials([(key, certificate)], pins, require_client_auth=True)
            self._server.add_secure_port(address, secret)
        self._server.start()

    def _silo_of(self, context: grpc.ServicerContext) -> int | None:
        """The silo whose leaf certificate was presented; of a local socket, whose name was."""
        if self.is_local:
            named = dict(context.invocation_metadata()).get("silo", "")
            return self._known.get(str(named).encode())
        (pem,) = context.auth_context()["x509_pem_cert"]
        return self._known.get(fingerprint(pem.decode()))

    def _serve(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        silo = self._silo_of(context)
        if silo is None:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "not of this federation")
        assert silo is not None
        yield self._greet(silo)
        first = next(messages, b"")
        if len(first) != HELLO.size or not self._admit(silo, Hello(*HELLO.unpack(first))):
            return
        line = _Line()
        with self._changed:
            # The newer line of a certificate takes the place of the older.
            if (older := self._lines.get(silo)) is not None:
                older.out.put(None)
            self._lines[silo] = line
            self._changed.notify_all()
        context.add_callback(lambda: line.out.put(None))
        threading.Thread(target=self._listen, args=(messages, line), daemon=True).start()
        yield from iter(line.out.get, None)
        self._close(silo, line)

    def _listen(self, messages: Iterator[bytes], line: _Line) -> None:
        with contextlib.suppress(Exception):  # gRPC raises a bare one where a peer goes
            for message in messages:
                line.came.put(message)
        line.came.put(None)

    def wait(self, silos: int, seconds: float | None) -> list[int]:
        """The silos that are there once `silos` are, or after `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._lines) >= silos, seconds)
            return sorted(self._lines)

    def ask(self, silo: int, question: bytes, seconds: float) -> bytes | None:
        """The silo's reply; None after `seconds` without one. A silo that comes back in time is asked again."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            with self._changed:
                self._changed.wait_for(lambda: silo in self._lines, left)
                line = self._lines.get(silo)
            if line is None:
                return None
            line.out.put(question)
            with contextlib.suppress(queue.Empty):
                if (reply := line.came.get(timeout=max(deadline - time.monotonic(), 0))) is not None:
                    return reply
            # A late reply must not be taken for the next question's.
            self._close(silo, line)
        return None

    def _close(self, silo: int, line: _Line) -> None:
        line.out.put(None)
        with self._changed:
            if self._lines.get(silo) is line:
                del self._lines[silo]

    def end(self, last: bytes | None) -> None:
        """Tell every silo that the run is over, with the model's SHA-256, and close; without it, close alone."""
        for line in list(self._lines.values()):
            if last is not None:
                line.out.put(END[:24] + last)
            line.out.put(None)
        self._server.stop(2).wait()


def join(
    address: str,
    name: str,
    pins: tuple[bytes, bytes, bytes] | None,
    size: int,
    greeted: Callable[[bytes], bytes],
    reply: Callable[[bytes], bytes],
    seconds: float,
    dial: float,
) -> bytes | None:
    """Dial and answer until the coordinator's end: the model's SHA-256, or None where the line closed before.

    `pins` are the coordinator's certificate, own key and own certificate, None with `unix:`; `greeted` makes the hello
    from a greeting, `reply` a reply from a question. grpc.FutureTimeoutError: no line within `dial` seconds;
    grpc.RpcError: the line broke.
    """
    options = [*_options(size), ("grpc.ssl_target_name_override", NAME)]
    if pins is None:
        if not address.startswith("unix:"):
            raise ValueError(f"{address}: must be a unix: socket without certificates")
        channel = grpc.insecure_channel(address, options)
    else:
        channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(*pins), options)
    out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    waiting: queue.SimpleQueue[bytes | Exception | None] = queue.SimpleQueue()
    with channel:
        grpc.channel_ready_future(channel).result(timeout=dial)
        call = channel.stream_stream(f"/{_SERVICE}/{_METHOD}")(iter(out.get, None), metadata=(("silo", name),))

        def listen() -> None:
            try:
                for message in call:
                    waiting.put(message)
                waiting.put(None)
            except grpc.RpcError as error:
                waiting.put(error)

        threading.Thread(target=listen, daemon=True).start()
        try:
            first = waiting.get(timeout=seconds)
            if not isinstance(first, bytes) or len(first) != GREETING.size:
                return None
            out.put(greeted(first))
            while isinstance(question := waiting.get(timeout=seconds), bytes):
                if len(question) == len(END) and hmac.compare_digest(question[:24], END[:24]):
                    return question[24:]
                answer = reply(question)
                if not waiting.empty():
                    return None  # a second question before the reply: the line closes, and nothing is sent
                out.put(answer)
            return None
        except queue.Empty:
            return None
        finally:
            out.put(None)
            call.cancel()
