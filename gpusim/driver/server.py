"""Serves the processes of a program: each has a GPU of its own, and launches run one by one."""

from __future__ import annotations

import array
import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

from gpusim.driver import status, wire
from gpusim.driver.arena import OutOfMemoryError
from gpusim.driver.attributes import described
from gpusim.driver.client import Client
from gpusim.driver.execution import Execution
from gpusim.driver.wire import HungUpError, Reply
from gpusim.errors import InputError
from gpusim.gpu.device import Device
from gpusim.host.processes import has_process

THREAD = "gpusim launches"
_MOST_WAITING = 64
_PAUSE_S = 0.05


class _Connection:
    """A process of the program, and the thread that serves it."""

    def __init__(self, channel: socket.socket, serve: Callable[[_Connection], None]) -> None:
        self.channel, self.process, self.is_answered = channel, 0, True
        self.thread = threading.Thread(target=serve, args=(self,), daemon=True, name=THREAD)
        self.thread.start()

    @property
    def is_open(self) -> bool:
        """Whether the process is still served."""
        return self.thread.is_alive()

    @property
    def is_orphaned(self) -> bool:
        """Whether the process has gone without waiting for its answer."""
        return not self.is_answered and not has_process(self.process)


class Server:
    """Listens at a socket in a folder; a thread for each process, one request at a time."""

    def __init__(self, folder: Path, device: Device, execution: Execution) -> None:
        self.path = folder / "driver"
        self.device, self.execution = device, execution
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listener.bind(str(self.path))
        except OSError as error:
            self._listener.close()
            raise InputError(
                f"no socket can be made in {folder}: {error}; set TMPDIR to a folder with a short "
                "name"
            ) from None
        self._listener.listen(_MOST_WAITING)
        self._connections: list[_Connection] = []
        self._is_known = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self, patience_s: float) -> None:
        """Stop listening, and wait for the processes that are still there.

        A launch whose process is gone is left to itself.
        """
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        until = time.monotonic() + patience_s
        for one in self._connections:
            while one.is_open and not one.is_orphaned and time.monotonic() < until:
                one.thread.join(_PAUSE_S)

    def hang_up(self) -> None:
        """Fail the requests of all processes, so that these need not wait for an answer."""
        for one in self._connections:
            with contextlib.suppress(OSError):
                one.channel.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                channel, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(_Connection(channel, self._serve))

    def _serve(self, one: _Connection) -> None:
        with one.channel as channel:
            try:
                client = self._greeted(channel)
            except OutOfMemoryError:
                self.execution.refused("device memory cannot be mapped: too few addresses are left")
                return
            except (HungUpError, OSError):
                return
            one.process = client.process
            try:
                while True:
                    request = wire.received(channel)
                    with self._lock:
                        one.is_answered = False
                        reply = self._answer(client, request)
                        one.is_answered = True
                    wire.send(channel, reply)
            except HungUpError:
                pass
            finally:
                with self._lock:
                    client.close()

    def _greeted(self, channel: socket.socket) -> Client:
        """Return the state of a new process, after sending it its device and memory."""
        (process,) = struct.unpack("<i", channel.recv(4) or b"\0\0\0\0")
        client = Client(process, self.device, self.execution)
        if not self._is_known:
            self._is_known = True
            self.execution.told(
                f"a simulated {self.device.gpu.name} in the place of CUDA's driver; no GPU is used"
            )
        text = described(self.device, client.arena.size, watches_host=self.execution.checks_memory)
        memory = array.array("i", [client.arena.number])
        channel.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, memory)])
        return client

    def _answer(self, client: Client, request: wire.Request) -> Reply:
        try:
            return client.answer(request)
        except Exception as error:  # a mistake of ours must not end the program without a word
            self.execution.told(
                f"internal error in {request.name}: {type(error).__name__}: {error}"
            )
            self.execution.refused("")
            return Reply(status.UNKNOWN)
