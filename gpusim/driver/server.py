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
from gpusim.driver.arena import BEGIN, OutOfMemoryError
from gpusim.driver.client import Client
from gpusim.driver.execution import Execution
from gpusim.driver.wire import HungUpError, Reply
from gpusim.errors import InputError
from gpusim.gpu.device import Device
from gpusim.host.processes import has_process
from gpusim.launch.grid import MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK, WARP_SIZE

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


# Limits of a generation come from the CUDA C++ Programming Guide's table of technical
# specifications, sizes and clocks from the device file.
COUNT, _NAME_BYTES = 160, 256
_SHARED_WITHOUT_ASKING = 49152
_CONSTANT_BYTES, _REGISTERS_OF_A_BLOCK = 65536, 65536
_LARGEST_PITCH = 2**31 - 1


def attributes(device: Device) -> dict[int, int]:
    """Return the attributes of a device that are not 0, by their numbers (CUdevice_attribute)."""
    cc, sm, gpu = device.cc, device.sm, device.gpu
    khz = round(gpu.sm_clock_mhz * 1000)
    # Of a bus that moves two bits a clock on each wire, at the device's bandwidth.
    bus_bits = _bus_bits(device)
    memory_khz = round(device.bandwidth.dram_gbps * 1e6 * 8 / bus_bits / 2)
    return {
        1: MAX_THREADS_PER_BLOCK,
        2: MAX_BLOCK[0], 3: MAX_BLOCK[1], 4: MAX_BLOCK[2],
        5: MAX_GRID[0], 6: MAX_GRID[1], 7: MAX_GRID[2],
        8: min(_SHARED_WITHOUT_ASKING, sm.shared_bytes),
        9: _CONSTANT_BYTES, 10: WARP_SIZE, 11: _LARGEST_PITCH, 12: _REGISTERS_OF_A_BLOCK,
        13: khz, 14: 512, 15: 1, 16: gpu.sms, 19: 1, 30: 512, 31: 1,
        36: memory_khz, 37: bus_bits, 38: device.capacity.l2_bytes,
        39: sm.max_threads, 40: 1, 41: 1, 51: 32,
        75: cc.major, 76: cc.minor, 78: 1,
        79: int(device.capacity.l1_caches_global), 80: 1,
        81: sm.shared_bytes, 82: sm.registers, 83: 1, 85: 0, 87: 2 if cc.minor == 0 else 32,
        89: 1, 90: 1, 91: 1, 95: 1,
        97: cc.shared_bytes_per_block, 99: 1, 102: 1, 106: sm.max_blocks,
        111: sm.shared_reserved_bytes, 115: 1, 119: 0, 120: int(cc.major >= 9),
    }  # fmt: skip


def _bus_bits(device: Device) -> int:
    """Return the width of the memory's bus: of stacked memory, thousands of bits."""
    return 5120 if device.bandwidth.dram_gbps > 1200 and device.cc.minor == 0 else 256


def described(device: Device, arena_bytes: int, *, watches_host: bool) -> bytes:
    """Return the description of a device for a process, `struct device` of `native/wire.h`.

    With `watches_host`, accesses of the host to memory that work still touches are told.
    """
    found = attributes(device)
    numbers = struct.pack(f"<{COUNT}q", *(found.get(number, 0) for number in range(COUNT)))
    sizes = struct.pack("<QQQQ", device.gpu.memory_bytes, BEGIN, arena_bytes, watches_host)
    name = device.gpu.name.encode()[: _NAME_BYTES - 1]
    return numbers + sizes + name.ljust(_NAME_BYTES, b"\0")
