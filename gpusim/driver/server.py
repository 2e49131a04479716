"""Serves the processes of a program: each has a GPU of its own, and launches run one by one."""

from __future__ import annotations

import array
import socket
import struct
import threading
from pathlib import Path

from gpusim.driver import status, wire
from gpusim.driver.arena import OutOfMemoryError
from gpusim.driver.attributes import described
from gpusim.driver.client import Client
from gpusim.driver.execution import Execution
from gpusim.driver.wire import HungUpError, Reply
from gpusim.errors import InputError
from gpusim.gpu.device import Device

_MOST_WAITING = 64


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
        self._threads: list[threading.Thread] = []
        self._is_known = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self, patience_s: float = 10.0) -> None:
        """Stop listening, and wait for the processes that are still there."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(patience_s)

    def _accept(self) -> None:
        while True:
            try:
                channel, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(channel,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, channel: socket.socket) -> None:
        with channel:
            try:
                client = self._greeted(channel)
            except (HungUpError, OutOfMemoryError, OSError):
                return
            try:
                while True:
                    request = wire.received(channel)
                    with self._lock:
                        reply = self._answer(client, request)
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
