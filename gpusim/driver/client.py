"""One process of a program: its device memory, modules, streams and events."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gpusim.checking.device_memory import DeviceMemory, Work
from gpusim.checking.findings import Finding
from gpusim.checking.touched_memory import TouchedMemory
from gpusim.driver import arena, device_launches, images, launching, status
from gpusim.driver.arena import Arena, OutOfMemoryError, Region
from gpusim.driver.device_launches import DeviceLaunch
from gpusim.driver.execution import Execution, LaunchOf, MemoryWatch, Outcome
from gpusim.driver.module import SCRATCH, ContextHeap, Function, Module
from gpusim.driver.repeats import BYTES_PER_S, Repeats, is_repeatable
from gpusim.driver.status import RefusedError
from gpusim.driver.textures import texture_of
from gpusim.driver.timeline import BY_ADDRESS, TO_DEVICE, TO_HOST, WITHIN, Duration, Timeline
from gpusim.driver.virtual_memory import VirtualMemory
from gpusim.driver.wire import Reply, Request
from gpusim.errors import AssertionFault, GpusimError, InputError, KernelFault, LaunchError
from gpusim.gpu.device import Device
from gpusim.gpu.occupancy import occupancy
from gpusim.launch.grid import Launch, places_of
from gpusim.launch.prepared import Prepared
from gpusim.launch.textures import Texture
from gpusim.program.decisions import undecisive_parameters
from gpusim.reports.layout import plural, size
from gpusim.reports.program_records import Tried
from gpusim.reports.program_timeline import stream_name
from gpusim.sass.decoding import RefusedError as UnitError
from gpusim.sass.symbols import cpp_name, parameter_types

_COOPERATIVE, _PROGRAMMATIC = 1, 2  # bits of how a launch is given
_KEPT = (arena.OWN, arena.MAPPED)  # memory that cuMemFree does not take
_MALLOC_HEAP_SIZE = 2  # CU_LIMIT_MALLOC_HEAP_SIZE
# The first generation with such units, and a measured device before it.
_HOPPERS = ("wgmma", "tensor memory", "clusters")
_HOPPER, _WITHOUT_HOPPERS_UNITS = 9, "a100-40gb"
_MOST_LAUNCHES = 1 << 40
_MOST_ASSERTIONS = 1024
_MOST_SIZES = 8  # of allocations, in a message
_TABLES = (
    "this program cannot run here: its CUDA runtime is linked statically, as in the wheels of "
    "CuPy, PyTorch and Warp, and needs internal tables of NVIDIA's driver (cuGetExportTable), "
    "which are not simulated; link with the shared runtime (nvcc -cudart shared), or give the "
    "sources to gpusim run"
)


class Client:
    """Answers the requests of one process."""

    def __init__(self, process: int, device: Device, execution: Execution) -> None:
        self.process, self.device, self.execution = process, device, execution
        self.arena = Arena(device.gpu.memory_bytes)
        self.timeline = Timeline(device)
        self._modules: dict[int, Module] = {}
        self._functions: dict[int, Function] = {}
        self._tried: Tried | None = None
        self._behind_zeros = False
        self._declared: dict[str, list[tuple[str, str]]] = {}
        self._textures: dict[int, Texture] = {}
        self._heap = ContextHeap(self.arena)
        self._virtual = VirtualMemory(self.arena)
        self._repeats = Repeats(self.arena, BYTES_PER_S)
        self._handles = self._streams = 0
        self._asks_for_tables = False
        self._unasked: str | None = None
        self._has_runtime = False
        self._source_file = ""
        self._memory = DeviceMemory() if execution.checks_memory else None
        self.numbers = iter(range(1, _MOST_LAUNCHES))

    def answer(self, request: Request) -> Reply:
        """Return the answer to a request; errors have their CUresult."""
        serve = _SERVED.get(request.name)
        if serve is None:
            return Reply(status.NOT_SUPPORTED)
        self._repeats.called_from(request.thread)
        try:
            return serve(self, request)
        except RefusedError as refused:
            return Reply(refused.status)
        except (OutOfMemoryError, MemoryError):
            return Reply(status.OUT_OF_MEMORY)

    def close(self) -> None:
        """Take note of the end of the process."""
        if self._asks_for_tables and not self._functions:
            self.execution.refused(_TABLES, wholly=True)
        if self._unasked:
            self._found(
                "unasked-error", f"{self._unasked}, and the program does not check for errors"
            )
        self._say_leaks()
        self.execution.ended(self.process, self.timeline)
        self.arena.close()

    def _say_leaks(self) -> None:
        """Say what CUDA C++ has not freed; packages keep the driver's memory until they end."""
        left = [one for one in self.arena.regions if one.kind in (arena.DEVICE, arena.MANAGED)]
        if left and self._memory is not None and self._has_runtime:
            sizes = ", ".join(f"{one.size:,}" for one in left[:_MOST_SIZES])
            more = ", ..." if len(left) > _MOST_SIZES else ""
            total = sum(one.size for one in left)
            self._found(
                "leak",
                f"process {self.process} ends with {total:,} bytes of device memory that it has "
                f"not freed, in {plural(len(left), 'allocation')} (of {sizes}{more} bytes)",
            )

    def _found(self, rule: str, text: str) -> None:
        self.execution.found(Finding(rule, text, ()))

    def _work(self, text: str, stream: int) -> Work:
        """Return the work that was added to the timeline last, by a text."""
        assert self.timeline.latest is not None
        where = f" on {stream_name(stream)}" if stream else ""
        return Work(f"{text}{where}", self.timeline.latest)

    def _tell(self, findings: Iterable[Finding]) -> None:
        """Pass findings on; their lines are assumed to be those of the last launch's file."""
        for one in findings:
            self.execution.found(one, self._source_file)

    def _handle(self) -> int:
        self._handles += 1
        return self._handles

    # Memory

    def _allocate(self, request: Request) -> Reply:
        size, kind, _ = request.numbers
        region = self.arena.allocate(size, kind)
        self._enter(region)
        return Reply(0, (region.address,))

    def _enter(self, region: Region) -> None:
        """Let the check of memory know of an allocation."""
        if self._memory is not None and not self._memory.knows(region.address):
            self._memory.add(
                region.address,
                region.size,
                has_values=region.kind != arena.DEVICE,
                is_shared=region.kind in (arena.PINNED, arena.MANAGED),
            )

    def _free(self, request: Request) -> Reply:
        address, kind, stream, is_asynchronous = request.numbers
        region = self.arena.at(address)
        if region is None or region.address != address or region.kind in _KEPT:
            self._complain_about_free(address, region)
            raise RefusedError(status.INVALID_VALUE)
        if (region.kind == arena.PINNED) != (kind == arena.PINNED):
            raise RefusedError(status.INVALID_VALUE)
        if self._memory is not None and is_asynchronous:
            self._memory.has_streams |= self.timeline.order_of_work.has_streams
            stamp = self.timeline.order_of_work.submit(stream)
            work = Work(stream_name(stream), stamp, "frees")
            self._tell(self._memory.write([(address, region.size)], work))
        if not is_asynchronous:
            self.timeline.wait_for_all()
        self.arena.free(address)
        if self._memory is not None:
            self._memory.remove(address)
        return Reply()

    def _complain_about_free(self, address: int, region: Region | None) -> None:
        if address in self.arena.freed:
            self._found("free", f"memory at {address:#x} is freed twice")
        elif region is not None:
            behind = address - region.address
            self._found(
                "free", f"{address:#x} is freed, {behind:,} bytes after the start of an allocation"
            )
        else:
            self._found("free", f"{address:#x} is freed, where no allocation begins")

    def _room(self, _: Request) -> Reply:
        return Reply(0, (self.arena.most_bytes - self.arena.used_bytes,))

    def _range(self, request: Request) -> Reply:
        region = self.arena.at(request.numbers[0])
        if region is None:
            raise RefusedError(status.INVALID_VALUE)
        return Reply(0, (region.address, region.size, region.kind))

    def _reserve(self, request: Request) -> Reply:
        return Reply(0, (self._virtual.reserve(*request.numbers),))

    def _create(self, request: Request) -> Reply:
        return Reply(0, (self._virtual.create(request.numbers[0]),))

    def _mapping(self, request: Request) -> Reply:
        return Reply(0, self._virtual.mapping(request.numbers[0]))

    def _change_mapping(self, request: Request) -> Reply:
        """Unreserve, release, retain, map, unmap or set access; no work is in flight then."""
        self.timeline.wait_for_all()
        regions = {one.address: one for one in self.arena.regions}
        try:
            _MAPPINGS[request.name](self._virtual, *request.numbers)
        except RefusedError as error:
            if error.status == status.NOT_SUPPORTED:
                self.execution.refused("the program maps memory at two places at once")
            raise
        memory = self._memory
        for address, before in regions.items():
            is_gone = self.arena.at(address) is not before
            if is_gone and memory is not None and memory.knows(address):
                memory.remove(address)
        return Reply()

    def _register(self, request: Request) -> Reply:
        address, size, begin, length = request.numbers
        around = range(begin, begin + length)
        for one in self.arena.regions:
            if one.kind == arena.REGISTERED and _overlap(one.mapped, around):
                raise RefusedError(status.ALREADY_REGISTERED)
        if self.arena.at(address) is not None:
            raise RefusedError(status.ALREADY_REGISTERED)
        return Reply(0, (self.arena.register(address, size, around), 0))

    def _unregister(self, request: Request) -> Reply:
        region = self.arena.at(request.numbers[0])
        if region is None or region.kind != arena.REGISTERED:
            raise RefusedError(status.NOT_REGISTERED)
        self.arena.free(region.address)
        return Reply(0, (region.mapped.start, len(region.mapped)))

    def _copy(self, request: Request) -> Reply:
        to, source, width, height, depth, *pitches, direction, stream, is_asynchronous = (
            request.numbers
        )
        to_box = Box(to, width, height, depth, pitches[0], pitches[1])
        from_box = Box(source, width, height, depth, pitches[2], pitches[3])
        if direction in (TO_DEVICE, WITHIN):
            self._expect_inside(to, to_box.extent, "to")
        if direction in (TO_HOST, WITHIN):
            self._expect_inside(source, from_box.extent, "from")
        if direction == BY_ADDRESS:
            direction = self._direction(to, to_box.extent, source, from_box.extent)
        if not direction:
            return Reply()
        self._repeats.changed(to)
        # A copy to memory that is not pinned is over when the call returns, asynchronous or not.
        is_pageable = direction == TO_HOST and self.arena.at(to) is None
        waits = is_pageable or not (is_asynchronous or direction == WITHIN)
        made = self.timeline.copy(direction, to_box.bytes, stream, waits=False)
        if self._memory is not None:
            self._check_copy(self._memory, to_box, from_box, direction, f"a copy {made.name}")
        if waits:
            self.timeline.wait(stream)
        return Reply()

    def _check_copy(
        self, memory: DeviceMemory, to: Box, source: Box, direction: int, text: str
    ) -> None:
        memory.has_streams |= self.timeline.order_of_work.has_streams
        assert self.timeline.latest is not None
        work = self._work(text, self.timeline.latest.stream)
        rows, sources = list(to.rows()), list(source.rows())
        self._tell(memory.read(sources, work))
        if direction == TO_HOST:
            self._tell(memory.copy_back(sources, work))
        self._tell(memory.write(rows, work))
        if direction == WITHIN:
            memory.move_values(rows, sources)

    def _direction(self, to: int, to_size: int, source: int, source_size: int) -> int:
        """Return the direction of a copy by addresses; 0 from host to host."""
        targets, sources = self.arena.at(to), self.arena.at(source)
        if targets is not None:
            self._expect_inside(to, to_size, "to")
        if sources is not None:
            self._expect_inside(source, source_size, "from")
        on_device = (targets is not None, sources is not None)
        return {(True, True): WITHIN, (True, False): TO_DEVICE, (False, True): TO_HOST}.get(
            on_device, 0
        )

    def _expect_inside(self, address: int, size: int, word: str) -> None:
        """Refuse a copy or memset that leaves its allocation."""
        if self.arena.is_inside(address, size):
            return
        region = self.arena.at(address)
        if region is not None:
            begin = address - region.address
            what = f"an allocation of {region.size:,} bytes, from its byte {begin:,} on"
        elif self._freed(address) is not None:
            what = f"memory at {address:#x}, which is freed"
        else:
            what = f"{address:#x}, where no device memory is allocated"
        self._found("copy-bounds", f"a copy or memset of {size:,} bytes {word} {what}")
        raise RefusedError(status.INVALID_VALUE)

    def _set(self, request: Request) -> Reply:
        to, width, height, pitch, stream, is_asynchronous = request.numbers
        box = Box(to, width, height, 1, pitch, 0)
        self._expect_inside(to, box.extent, "to")
        self._repeats.changed(to)
        self.timeline.fill(box.bytes, stream)
        if self._memory is not None:
            self._memory.has_streams |= self.timeline.order_of_work.has_streams
            self._tell(self._memory.write(box.rows(), self._work("a memset", stream)))
        # The host does not wait for a memset of device memory (CUDA, "API synchronization").
        region = self.arena.at(to)
        if not is_asynchronous and region is not None and region.kind != arena.DEVICE:
            self.timeline.wait(stream)
        return Reply()

    def _assign(self, request: Request) -> Reply:
        """Give the condition of a graph its value at the begin of a launch."""
        address, value = request.numbers
        region = self.arena.at(address)
        if region is None:
            raise RefusedError(status.INVALID_VALUE)
        begin = address - region.address
        region.bytes[begin : begin + 4] = bytearray(struct.pack("<I", value))
        self._repeats.changed(address)
        return Reply()

    def _touch(self, request: Request) -> Reply:
        """Check accesses of the host to memory that work on streams still touched."""
        if self._memory is not None:
            clock = self.timeline.order_of_work.host
            for address, writes in zip(request.numbers[::2], request.numbers[1::2], strict=True):
                self._tell(self._memory.host_touched(address, writes=bool(writes), clock=clock))
        return Reply()

    def _note(self, request: Request) -> Reply:
        """Take note of memory that the program allocates, writes and frees by itself, in order."""
        for kind, address, extent in _NOTE.iter_unpack(request.held):
            _NOTED[kind](self, address, extent)
        return Reply()

    def _has_values(self, address: int, size: int) -> None:
        self._repeats.changed(address)
        if self._memory is not None:
            self._memory.set_values(address, size)

    def _allocated(self, address: int, size: int) -> None:
        self._enter(self.arena.place(address, size, arena.DEVICE))

    def _freed_by_program(self, address: int, _: int) -> None:
        self.arena.free(address)
        if self._memory is not None:
            self._memory.remove(address)

    def _guarded(self, _: Request) -> Reply:
        """Return the pages that the host must not touch yet."""
        if self._memory is None:
            return Reply()
        pages = list(self._memory.guarded(self.timeline.order_of_work.host))
        return Reply(0, (len(pages),), b"".join(struct.pack("<QQQ", *page) for page in pages))

    # Modules

    def _link(self, request: Request) -> Reply:
        try:
            return Reply(0, (), images.linked(request.held, self.device.cc))
        except images.ImageError as error:
            self.execution.refused(str(error))
            raise RefusedError(error.status) from None

    def _load(self, request: Request) -> Reply:
        try:
            data = images.cubin_of(request.held, self.device.cc)
            module = Module(data, self.device, self.arena, self._heap)
            if module.cubin.arch // 10 != self.device.cc.major:
                raise images.ImageError(
                    f"a cubin is for sm_{module.cubin.arch}, not for compute capability "
                    f"{self.device.cc}; choose another --device",
                    status.NO_BINARY,
                )
        except images.ImageError as error:
            self.execution.refused(str(error))
            raise RefusedError(error.status) from None
        except InputError as error:
            self.execution.refused(str(error))
            raise RefusedError(status.INVALID_IMAGE) from None
        handle = self._handle()
        self._modules[handle] = module
        return Reply(0, (handle,))

    def _module(self, handle: int) -> Module:
        if handle not in self._modules:
            raise RefusedError(status.INVALID_HANDLE)
        return self._modules[handle]

    def _unload(self, request: Request) -> Reply:
        self._module(request.numbers[0]).unload()
        del self._modules[request.numbers[0]]
        return Reply()

    def _function(self, request: Request) -> Reply:
        module = self._module(request.numbers[0])
        function = module.function(request.held.decode(errors="replace"))
        if function is None:
            raise RefusedError(status.NOT_FOUND)
        handle = self._handle()
        self._functions[handle] = function
        declared = self._declared.get(function.symbol, [])
        if declared and 0 <= len(function.places) - len(declared) <= len(SCRATCH):
            function.declared = declared
        places = function.places
        held = b"".join(struct.pack("<QQ", *place) for place in places)
        return Reply(0, (handle, len(places), function.bytes, *function.attributes), held)

    def _declare(self, request: Request) -> Reply:
        """Take note of the parameters of a kernel that is loaded next: names, and types in C."""
        symbol, *words = request.held.decode(errors="replace").split("\0")
        self._declared[symbol] = list(zip(words[::2], words[1::2], strict=False))
        return Reply()

    def _try(self, request: Request) -> Reply:
        """Take note of the configuration of the next launches, "" for none."""
        search, _, configuration = request.held.decode(errors="replace").partition("\0")
        self._tried = Tried(int(search), configuration) if configuration else None
        return Reply()

    def _zeroes(self, request: Request) -> Reply:
        """Take note of whether the next launches find an L2 that a benchmark has zeroed."""
        self._behind_zeros = request.held == b"1"
        return Reply()

    def _compute(self, request: Request) -> Reply:
        self.execution.computed(int(request.held))
        return Reply()

    def _names(self, request: Request) -> Reply:
        names = self._module(request.numbers[0]).names
        return Reply(0, (len(names),), b"".join(name.encode() + b"\0" for name in names))

    def _variable(self, request: Request) -> Reply:
        found = self._module(request.numbers[0]).variable(request.held.decode(errors="replace"))
        if found is None:
            raise RefusedError(status.NOT_FOUND)
        return Reply(0, found)

    def _occupancy(self, request: Request) -> Reply:
        handle, threads, shared = request.numbers
        function = self._functions[handle]
        attributes = function.attributes
        try:
            launch = Launch.of(1, threads, shared)
            blocks = occupancy_of(function, launch, self.device)
        except LaunchError:
            blocks = 0
        except GpusimError as error:  # an instruction that is not simulated
            self.execution.refused(str(error))
            raise RefusedError(status.NOT_SUPPORTED) from None
        return Reply(0, (blocks if threads <= attributes[0] else 0,))

    def _texture(self, request: Request) -> Reply:
        texture = texture_of(request.numbers)
        if not self.arena.is_inside(texture.address, texture.bytes):
            raise RefusedError(status.INVALID_VALUE)
        handle = self._handle()
        self._textures[handle] = texture
        return Reply(0, (handle,))

    def _forget_texture(self, request: Request) -> Reply:
        if self._textures.pop(request.numbers[0], None) is None:
            raise RefusedError(status.INVALID_HANDLE)
        return Reply()

    # Launches

    def _launch(self, request: Request) -> Reply:
        """Run a launch, and after it those that its kernels give, each with its own."""
        handle, *sizes, shared, stream, how = request.numbers[:10]
        x, y, z, *block = sizes
        launch = Launch((x, y, z), (block[0], block[1], block[2]), shared)
        launch = self._in_clusters(self._functions[handle], launch, request.numbers[10:])
        waiting = [DeviceLaunch(self._functions[handle], launch, request.held)]
        printed = b""
        while waiting:
            one = waiting.pop()
            reply = self._run(one, stream, how)
            printed += reply.held
            if reply.status or reply.numbers[0]:
                return reply._replace(held=printed)
            waiting += reversed(self._given_by(one.function))
            how = 0
        return Reply(0, (0, 0), printed)

    @staticmethod
    def _in_clusters(function: Function, launch: Launch, asked: Sequence[int]) -> Launch:
        """Return a launch in clusters of the size that is requested, or that its code has."""
        own = function.cluster
        x, y, z = asked if all(asked) else own
        made = replace(launch, cluster=(x, y, z))
        is_whole = all(n % size == 0 for n, size in zip(made.grid, made.cluster, strict=True))
        if not is_whole or (all(asked) and prod(own) > 1 and own != made.cluster):
            raise RefusedError(status.INVALID_CLUSTER_SIZE)
        return made

    def _given_by(self, function: Function) -> list[DeviceLaunch]:
        """Return the launches that a kernel has given."""
        found, count = device_launches.given_by(function)
        if count is not None:
            self._repeats.changed(count.address)
        return found

    def _run(self, wanted: DeviceLaunch, stream: int, how: int) -> Reply:
        """Run one launch."""
        function, launch, held = wanted
        number = next(self.numbers)
        one = LaunchOf(
            number,
            self.process,
            function.name,
            launch,
            stream,
            tried=self._tried,
            behind_zeros=self._behind_zeros,
        )
        try:
            if how & _COOPERATIVE:
                self._check_cooperative(function, launch)
            ready = launching.prepared(
                function,
                launch,
                held,
                self.arena,
                self._textures,
                cooperative=bool(how & _COOPERATIVE),
            )
            identity = self._identity(function, launch, held, ready)
            one = replace(one, identity=identity, watch=self._watch(ready))
            if is_repeatable(ready):
                exact = self._exact(function, launch, held)
                one = replace(one, exact=exact, repeats=self._repeats)
            outcome = self.execution.execute(one, ready)
        except KernelFault as fault:
            self.execution.failed(one, self._explained(fault))
            told = assertion_lines(fault, function.symbol, launch).encode()
            numbers = (status.of_fault(fault), len(told))
            return Reply(0, numbers, b"".join(one.printed) + told)
        except GpusimError as error:
            self.execution.failed(one, self._with_device(error))
            if self._tried is None:  # a search goes on with its other configurations
                self.execution.refused("")
            # With the runtime a launch tells of no error: later calls fail as well, so that
            # absent results are not assumed.
            context = status.NOT_SUPPORTED if self._has_runtime else status.SUCCESS
            return Reply(status.NOT_SUPPORTED, (context, 0))
        taken = outcome.duration or self._unknown()
        is_programmatic = bool(how & _PROGRAMMATIC)
        self.timeline.launch(function.name, stream, taken, number, is_programmatic=is_programmatic)
        if self._memory is not None:
            self._source_file = ready.source_file
            self._check_launch(self._memory, one, outcome)
        return Reply(0, (0, 0), b"".join(one.printed))

    def _watch(self, ready: Prepared) -> MemoryWatch | None:
        """Return the watch of a launch's memory, if memory is checked."""
        memory = self._memory
        if memory is None:
            return None
        memory.has_streams |= self.timeline.order_of_work.has_streams
        for region in self.arena.regions:
            self._enter(region)
        names = {place.start: name for name, place in ready.places.items()}
        values = {name: memory.values(start) for start, name in names.items()}
        regions = self.arena.regions
        begin = min((one.address for one in regions), default=0)
        end = max((one.end for one in regions), default=0)
        return MemoryWatch(
            {name: held for name, held in values.items() if held is not None},
            TouchedMemory(begin, end),
            self._freed_at,
        )

    def _check_launch(self, memory: DeviceMemory, one: LaunchOf, outcome: Outcome) -> None:
        if not outcome.was_watched or one.watch is None:
            memory.launched_unseen()
            return
        work = self._work(f"launch {one.number} of {one.kernel}", one.stream)
        found = ((r.address, one.watch.touched.of(r.address, r.size)) for r in self.arena.regions)
        touched = [(address, marks) for address, marks in found if marks is not None]
        self._tell(memory.launched(work, touched))

    def _with_device(self, error: GpusimError) -> GpusimError:
        """Return an error with the device for which compilers do without a refused unit."""
        is_hoppers = isinstance(error, UnitError) and any(one in str(error) for one in _HOPPERS)
        if not is_hoppers or self.device.cc.major < _HOPPER:
            return error
        return UnitError(f"{error}; compilers do without for --device {_WITHOUT_HOPPERS_UNITS}")

    def _explained(self, fault: KernelFault) -> KernelFault:
        """Return a fault that names freed memory where the access went there."""
        address = fault.place.index if fault.place is not None else None
        if address is None or self._freed(address) is None:
            return fault
        return type(fault)(f"{fault}; the memory at {address:#x} was freed before", fault.place)

    def _freed(self, address: int) -> Region | None:
        """Return the freed allocation that an address lies in."""
        found = (one for one in self.arena.freed.values() if one.address <= address < one.end)
        return next(found, None)

    def _freed_at(self, address: int) -> str:
        """Return the words for an address in freed memory, "" for another."""
        one = self._freed(address)
        if one is None:
            return ""
        return f"byte {address - one.address:,} of a freed allocation of {one.size:,} bytes"

    def _unknown(self) -> Duration:
        """Return the duration of a launch without a prediction: its overhead alone."""
        host = self.device.host
        return Duration(0.0, host.launch_overhead_us, host.pass_gap_us)

    def _check_cooperative(self, function: Function, launch: Launch) -> None:
        most = occupancy_of(function, launch, self.device) * self.device.gpu.sms
        if launch.blocks > most:
            self._found(
                "too-large",
                f"{function.name}: a cooperative launch of {launch.blocks} blocks; "
                f"{self.device.gpu.name} holds {most} at a time",
            )
            raise RefusedError(status.COOPERATIVE_TOO_LARGE)

    def _identity(self, function: Function, launch: Launch, held: bytes, ready: Prepared) -> str:
        """Return a key of code, size and arguments, with pointers as places in allocations.

        It leaves out numbers that decide neither control flow nor addresses.
        """
        words: list[Any] = [function.module.digest, function.symbol, launch]
        deciding = bytearray(held)
        for offset, length in undecisive_parameters(ready.program):
            begin = offset - function.first
            deciding[begin : begin + length] = bytes(length)
        for offset in range(0, len(held) - 7, 8):
            (word,) = struct.unpack_from("<Q", held, offset)
            region = self.arena.at(word)
            words.append((word - region.address, region.size) if region else ())
        words.append(bytes(deciding))
        return hashlib.sha256(repr(words).encode()).hexdigest()

    def _exact(self, function: Function, launch: Launch, held: bytes) -> bytes:
        """Return a key of code, size and arguments, with all addresses as they are."""
        module = function.module
        memory = [region.address for region in module.arrays(function.code).values()]
        memory += [module.constants.address] * bool(module.cubin.constants)
        words = (module.digest, function.symbol, launch, held, memory)
        return hashlib.sha256(repr(words).encode()).digest()

    # Streams and events

    def _stream(self, request: Request) -> Reply:
        self._streams += 1
        self.timeline.add_stream(self._streams, request.numbers[0])
        return Reply(0, (self._streams,))

    def _event(self, _: Request) -> Reply:
        return Reply(0, (self._handle(),))

    def _record(self, request: Request) -> Reply:
        self.timeline.record(*request.numbers)
        return Reply()

    def _order(self, request: Request) -> Reply:
        self.timeline.order(*request.numbers)
        return Reply()

    def _wait(self, request: Request) -> Reply:
        self.timeline.wait(request.numbers[0])
        return Reply()

    def _await(self, request: Request) -> Reply:
        self.timeline.wait_for_event(request.numbers[0])
        return Reply()

    def _synchronize(self, _: Request) -> Reply:
        self.timeline.wait_for_all()
        return Reply()

    def _elapsed(self, request: Request) -> Reply:
        milliseconds = self.timeline.elapsed_us(*request.numbers) / 1000
        return Reply(0, struct.unpack("<Q", struct.pack("<d", milliseconds)))

    # The rest

    def _limit(self, request: Request) -> Reply:
        limit, value = request.numbers
        if limit == _MALLOC_HEAP_SIZE:
            self._heap.size = value
        return Reply()

    def _begin_runtime(self, _: Request) -> Reply:
        self._has_runtime = True
        return Reply()

    def _reset(self, _: Request) -> Reply:
        self._say_leaks()
        for region in self.arena.regions:
            if self._memory is not None:
                self._memory.remove(region.address)
        self.arena.clear()
        self._heap = ContextHeap(self.arena)
        self._virtual = VirtualMemory(self.arena)
        self._modules.clear()
        self._functions.clear()
        return Reply()

    def _misfit(self, request: Request) -> Reply:
        """Return the reason why no GPU, or not this one, takes a launch of this size."""
        *sizes, shared, threads, most_shared = request.numbers
        x, y, z, *block = sizes
        name = cpp_name(request.held.decode(errors="replace"))
        self.execution.told(
            f"{name} is not launched: grid {size((x, y, z))}, block {size(block)}, {shared:,} "
            f"bytes of dynamic shared memory; at most {threads:,} threads of a block and "
            f"{most_shared:,} bytes are possible"
        )
        return Reply()

    def _unask(self, request: Request) -> Reply:
        """Take note of a launch that failed, with a status that only cudaGetLastError tells."""
        name, _, error = request.held.decode(errors="replace").partition("\0")
        if self._unasked is None:
            self._unasked = f"a launch of {cpp_name(name)} fails ({error})"
        return Reply()

    def _ask(self, _: Request) -> Reply:
        self._unasked = None
        return Reply()

    def _tables(self, _: Request) -> Reply:
        if self._functions:
            self.execution.told(
                "a CUDA runtime in the program needs internal tables of the driver "
                "(cuGetExportTable), which are not imitated: its calls fail"
            )
        self._asks_for_tables = True
        return Reply()

    def _refuse(self, request: Request) -> Reply:
        what = request.held.decode(errors="replace")
        self.execution.refused(f"the program needs {what}, which is not simulated")
        return Reply()


class Box(NamedTuple):
    """Bytes in rows and slices, as a copy reads or writes them."""

    address: int
    width: int
    height: int
    depth: int
    pitch: int
    slice_pitch: int

    @property
    def bytes(self) -> int:
        """All of them."""
        return self.width * self.height * self.depth

    @property
    def extent(self) -> int:
        """The bytes from the first to the last."""
        behind = (self.depth - 1) * self.slice_pitch + (self.height - 1) * self.pitch
        return behind + self.width

    def rows(self) -> Iterator[tuple[int, int]]:
        """Yield contiguous bytes, as addresses with sizes."""
        if self.bytes == self.extent:
            yield self.address, self.bytes
            return
        for z in range(self.depth):
            for y in range(self.height):
                yield self.address + z * self.slice_pitch + y * self.pitch, self.width


def assertion_lines(fault: KernelFault, symbol: str, launch: Launch) -> str:
    """Return what CUDA prints of a failed assertion, a line each thread; "" for other faults.

    The function is the kernel, also where the assertion stands in a function that it calls.
    """
    if not isinstance(fault, AssertionFault) or fault.place is None:
        return ""
    types = ", ".join(re.sub(r"(?=\*)", " ", one, count=1) for one in parameter_types(symbol) or ())
    head = f"{fault.file}:{fault.place.line}: void {cpp_name(symbol)}({types})"
    lines = []
    for block, thread in fault.threads[:_MOST_ASSERTIONS]:
        x, y, z = places_of(block, launch.grid)
        tx, ty, tz = places_of(thread, launch.block)
        lines.append(
            f"{head}: block: [{x},{y},{z}], thread: [{tx},{ty},{tz}] Assertion "
            f"`{fault.expression}` failed.\n"
        )
    return "".join(lines)


def occupancy_of(function: Function, launch: Launch, device: Device) -> int:
    """Return how many blocks of a kernel an SM holds; LaunchError where it holds none."""
    program = launching.program(function, function.code, [])
    arguments: dict[str, np.generic] = {}
    return occupancy(Prepared(program, launch, arguments, device.cc), device).blocks


def _overlap(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


_MAPPINGS: Mapping[str, Callable[..., None]] = {
    "unreserve": VirtualMemory.unreserve,
    "release": VirtualMemory.release,
    "retain": VirtualMemory.retain,
    "map": VirtualMemory.map,
    "unmap": VirtualMemory.unmap,
    "access": VirtualMemory.set_access,
}
_NOTE = struct.Struct("<QQQ")  # kind, address and size, by `native/wire.h`
_NOTED: Sequence[Callable[[Client, int, int], None]] = (
    Client._has_values,
    Client._allocated,
    Client._freed_by_program,
)
_SERVED: Mapping[str, Callable[[Client, Request], Reply]] = {
    "allocate": Client._allocate,
    "free": Client._free,
    "room": Client._room,
    "range": Client._range,
    "reserve": Client._reserve,
    "create": Client._create,
    "mapping": Client._mapping,
    **dict.fromkeys(_MAPPINGS, Client._change_mapping),
    "register": Client._register,
    "unregister": Client._unregister,
    "copy": Client._copy,
    "set": Client._set,
    "assign": Client._assign,
    "touched": Client._touch,
    "notes": Client._note,
    "guarded": Client._guarded,
    "misfit": Client._misfit,
    "runtime": Client._begin_runtime,
    "unasked": Client._unask,
    "asked": Client._ask,
    "link": Client._link,
    "load": Client._load,
    "unload": Client._unload,
    "declare": Client._declare,
    "try": Client._try,
    "zeroes": Client._zeroes,
    "computed": Client._compute,
    "function": Client._function,
    "functions": Client._names,
    "variable": Client._variable,
    "occupancy": Client._occupancy,
    "texture": Client._texture,
    "no_texture": Client._forget_texture,
    "launch": Client._launch,
    "stream": Client._stream,
    "event": Client._event,
    "record": Client._record,
    "order": Client._order,
    "wait": Client._wait,
    "await": Client._await,
    "synchronize": Client._synchronize,
    "elapsed": Client._elapsed,
    "limit": Client._limit,
    "reset": Client._reset,
    "tables": Client._tables,
    "refuse": Client._refuse,
}
