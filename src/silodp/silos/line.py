"""The line between a silo and the coordinator: one two-way gRPC stream that the silo opens, and bytes on it.

Off one machine only mutual TLS; on one machine `unix:` sockets. The coordinator greets, the silo says hello, then
questions and replies take turns: nobody reads a message before its turn, and no queue holds one.

TLS shows that each side has the private key of the certificate that it presents. gRPC accepts one that a silo's key
signed, whatever its CA:FALSE says: who a silo is, the SHA-256 of the presented certificate alone decides.
"""

import asyncio
import contextlib
import hmac
import logging
import queue
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import grpc
from grpc import aio

from silodp.silos.keys import NAME, fingerprint
from silodp.silos.wire import END, GREETING, HELLO, REFUSED, Hello, RefusedHello

log = logging.getLogger("silodp")

_SERVICE, _METHOD = "silodp.Silo", "Serve"
# Beyond a plan's array a message has at most this many bytes.
_MORE = 1024
# Seconds that a silo has for its hello, and a line for its last message.
_HELLO, _LAST = 10.0, 2.0


def _options(size: int) -> list[tuple[str, Any]]:
    """gRPC's settings for messages of at most two points of d = `size`.

    Both ends ping every 30 s, also while nobody has a question, and the server suffers it.
    """
    pings = [("grpc.keepalive_time_ms", 30_000), ("grpc.http2.min_ping_interval_without_data_ms", 20_000)]
    return [("grpc.max_receive_message_length", 16 * size + _MORE), ("grpc.so_reuseport", 0), *pings]


class Lines:
    """The coordinator's lines: a server on a loop in one thread. OSError: `address` is not free on this machine.

    `silos` are certificates (names with `unix:`); `greet` gives a silo's greeting, `admit` takes its hello and says
    whether it takes part. `size` is d. `away` are those of which no hello was admitted since they last let a question
    wait in vain.
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
        self.is_local, self.away = address.startswith("unix:"), set(silos)
        self._known = {name.encode() if self.is_local else fingerprint(name): silo for silo, name in silos.items()}
        self._greet, self._admit = greet, admit
        # Silo → its open stream, and what ends it.
        self._lines: dict[int, tuple[Any, asyncio.Event]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._run(self._start(address, "\n".join(silos.values()).encode(), key, certificate, size))

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self, address: str, pins: bytes, key: bytes, certificate: bytes, size: int) -> None:
        self._changed, self._server = asyncio.Condition(), aio.server(options=_options(size))
        serve = grpc.stream_stream_rpc_method_handler(self._serve)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: serve}),))
        try:
            if self.is_local:
                self._server.add_insecure_port(address)
            else:
                secret = grpc.ssl_server_credentials([(key, certificate)], pins, require_client_auth=True)
                self._server.add_secure_port(address, secret)
        except RuntimeError:
            raise OSError(f"{address}: cannot be listened at") from None
        await self._server.start()

    def _silo_of(self, context: Any) -> int | None:
        """The silo whose leaf certificate was presented; of a local socket, whose name was."""
        if self.is_local:
            return self._known.get(str(dict(context.invocation_metadata()).get("silo", "")).encode())
        (pem,) = context.auth_context()["x509_pem_cert"]
        return self._known.get(fingerprint(pem.decode()))

    async def _serve(self, _: Any, context: Any) -> None:
        if (silo := self._silo_of(context)) is None:
            log.warning("a line is refused: its certificate is of no silo of this federation")
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "not of this federation")
            return
        await context.write(self._greet(silo))
        first = None
        with contextlib.suppress(TimeoutError):
            first = await asyncio.wait_for(context.read(), _HELLO)
        if not isinstance(first, bytes) or len(first) != HELLO.size:
            return
        if not self._admit(silo, Hello(*HELLO.unpack(first))):
            await context.write(REFUSED)
            return
        # The newer line of a certificate takes the place of the older.
        self._close(silo)
        line = context, ended = context, asyncio.Event()
        async with self._changed:
            self._lines[silo] = line
            self.away.discard(silo)
            self._changed.notify_all()
        try:
            await ended.wait()
        finally:
            if self._lines.get(silo) is line:
                self._close(silo)

    def _close(self, silo: int) -> None:
        if silo in self._lines:
            self._lines.pop(silo)[1].set()

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(holds)

    def wait(self, silos: int, seconds: float | None) -> list[int]:
        """The silos that are there once `silos` are, or after `seconds`."""
        with contextlib.suppress(TimeoutError):
            self._run(asyncio.wait_for(self._until(lambda: len(self._lines) >= silos), seconds))
        return sorted(self._lines)

    def ask(self, silo: int, question: bytes, seconds: float) -> bytes | None:
        """The silo's reply; None after `seconds` without one. A silo that comes back in time is asked again."""
        return self._run(self._ask(silo, question, seconds))

    async def _ask(self, silo: int, question: bytes, seconds: float) -> bytes | None:
        try:
            return await asyncio.wait_for(self._reply(silo, question), seconds)
        except TimeoutError:
            self.away.add(silo)
            self._close(silo)  # so that a silo that is there says hello again
            return None

    async def _reply(self, silo: int, question: bytes) -> bytes:
        while True:
            await self._until(lambda: silo in self._lines)
            context, _ = line = self._lines[silo]
            with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError, aio.BaseError):
                await context.write(question)
                if isinstance(reply := await context.read(), bytes):
                    return reply
            if self._lines.get(silo) is line:
                self._close(silo)

    def end(self, last: Mapping[int, bytes] | None) -> None:
        """Tell every silo that the run is over, with the SHA-256 of its model, and close; without it, close alone."""
        self._run(self._end(last))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self, last: Mapping[int, bytes] | None) -> None:
        async def tell(silo: int, context: Any, ended: asyncio.Event) -> None:
            if last is not None:
                with contextlib.suppress(Exception):  # of one that is gone gRPC raises what it likes
                    await asyncio.wait_for(context.write(END[:24] + last[silo]), _LAST)
            ended.set()

        await asyncio.gather(*(tell(silo, *line) for silo, line in self._lines.items()))
        await self._server.stop(_LAST)


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
    from a greeting, `reply` a reply from a question, and each message has `seconds`. grpc.FutureTimeoutError: no line
    within `dial` seconds; grpc.RpcError: the line broke; RefusedHello: the coordinator takes no hello of this run.
    """
    options = [*_options(size), ("grpc.ssl_target_name_override", NAME)]
    if pins is None:
        if not address.startswith("unix:"):
            raise ValueError(f"{address}: must be a unix: socket without certificates")
        channel = grpc.insecure_channel(address, options)
    else:
        channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(*pins), options)
    out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    with channel:
        grpc.channel_ready_future(channel).result(timeout=dial)
        call = channel.stream_stream(f"/{_SERVICE}/{_METHOD}")(iter(out.get, None), metadata=(("silo", name),))
        try:
            first = _next_message(call, seconds)
            if first is None or len(first) != GREETING.size:
                return None
            out.put(greeted(first))
            while (question := _next_message(call, seconds)) is not None:
                if len(question) == len(END) and hmac.compare_digest(question[:24], END[:24]):
                    return question[24:]
                if question == REFUSED:
                    raise RefusedHello
                out.put(reply(question))
            return None
        finally:
            out.put(None)
            call.cancel()


def _next_message(call: Any, seconds: float) -> bytes | None:
    """The next message, which is read when this is called; None at the stream's end, or after `seconds`."""
    patience = threading.Timer(seconds, call.cancel)
    patience.daemon = True
    patience.start()
    try:
        return next(call, None)
    except grpc.RpcError:
        if call.cancelled():
            return None
        raise
    finally:
        patience.cancel()
