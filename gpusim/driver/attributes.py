"""The attributes of a simulated GPU in the driver's API, by their numbers.

Limits of a generation come from the CUDA C++ Programming Guide's table of technical
specifications, sizes and clocks from the device file.
"""

from __future__ import annotations

import struct

from gpusim.driver.arena import BEGIN
from gpusim.gpu.device import Device
from gpusim.launch.grid import MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK, WARP_SIZE

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
