"""The benchmarks. Each part runs in a process of its own and prints one JSON object.

`python benchmarks/parts.py PART`; `run.py` calls them all, pinned to one core.
"""

from __future__ import annotations

import io
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from importlib.util import find_spec
from itertools import pairwise, product
from pathlib import Path
from typing import Any

SEVEN = ("reduce1", "reduce2", "reduce3", "reduce4", "reduce5_fixed", "reduce6", "reduce7")
BLOCKS = (128, 256)
ELEMENTS = 2**22
REPEATS = 3

MEMORY_KERNEL = "reduce3"
MEMORY_ELEMENTS = 2**26

# Kernels in numba's dialect too. They take it seconds at this size; its threads are Python's.
COMMON = ("reduce1", "reduce2", "reduce3", "reduce4")
NUMBA_ELEMENTS = 2**10
NUMBA_BLOCK = 128

# Of `validate/others`, at their middle size.
DATA_DEPENDENT = (
    "mandelbrot", "spmv_by_threads", "hash_lookup", "exchange", "histogram_global", "scatter_add",
    "count_above", "keep_by_warps",
)  # fmt: skip

# Of `validate/others`, at the size that tests run: few warps.
OF_FEW_WARPS = {
    "long loops on few blocks": (
        "k_nearest", "bodies", "sph_density", "cholesky_by_warps", "lorenz_rk4",
    ),
    "lanes that diverge": ("collatz", "mandelbrot", "kalman_tracks", "merge", "independent_set"),
    "tiles": ("hit_triangles", "direct_conv", "thin_product", "gravity", "paged_attention"),
}  # fmt: skip

FEW_WARPS = 256  # of a launch that is checked

# Of `validate/others`, at their smallest size: loops that data determine, few or divergent warps.
RECORDED = ("sph_density", "viterbi", "hit_triangles")

CLOCK_BLOCK = 256
# A grid that grows with n, and fixed grids with a growing loop per thread.
HUGE = {
    "reduce3": None,
    "reduce7": 528,
    "kernel0": None,
    "kernel1": None,
    "kernel2": None,
    "kernel4": None,
}

PLANNED_ELEMENTS = 2**16  # one kernel of the catalogue does n² additions
PLANNED_BLOCKS = 32

ADVICE_BLOCK, ADVICE_ELEMENTS = 256, 2**22

COLD_STARTS = 11
COLD_COMMAND = ("trace", "reduce2", "--block", "128")
PAGE_KERNELS = ("reduce1", "reduce2", "reduce3")
PAGE_OPENINGS = 3
COLD_PREDICTION = ("predict", "reduce3", "-n", "2^24", "--block", "512")

# 6,600 cases, sampled with a prime step so that all kinds occur.
SWEEP_KERNELS = (
    *SEVEN, *(f"reduction{n}" for n in range(1, 5)), "reduction5_fixed", "step1", "step2_fixed",
    "step3", "step4", "step5_fixed", "reduce_gpu", "reduce_coarsening_gpu", "kernel0", "kernel1",
    "kernel2",
)  # fmt: skip
SWEEP_BLOCKS = (64, 128, 256, 512, 1024)
SWEEP_SIZES = (2**12, 2**16, 2**20, 2**24, 2**26)
SWEEP_GPUS = (
    *("8800gtx", "a100-40gb", "a100-80gb", "gtx1650", "h100", "h200", "k40m"),
    *("rtx2060", "rtx3060", "rtx3060ti", "rtx3070ti", "rtx3080"),
)
SWEEP_STEP = 101


def speed() -> dict[str, Any]:
    """Run the seven reductions with every counter on and with none, medians of a few runs."""
    from gpusim import catalogue
    from gpusim.tracing.trace import trace

    data = catalogue.sample(ELEMENTS, "int32")
    rows = []
    for block in BLOCKS:
        for name in SEVEN:
            call = catalogue.find(name).call(data, block=block)
            traced, plain, instructions = [], [], 0
            for _ in range(REPEATS):
                started = time.process_time()
                counted = trace(call.configured, *call.arguments)
                traced.append(time.process_time() - started)
                instructions = counted.counters["instructions"]
                started = time.process_time()
                call.run()
                plain.append(time.process_time() - started)
            seconds = statistics.median(traced)
            threads = call.launch.blocks * block
            rows.append(
                {
                    "kernel": name,
                    "block": block,
                    "seconds": seconds,
                    "seconds_without_counters": statistics.median(plain),
                    "warp_instructions": instructions,
                    "warp_instructions_per_s": instructions / seconds,
                    "threads_per_s": threads / seconds,
                    "threads_per_s_without_counters": threads / statistics.median(plain),
                    "right": call.wrong() == 0,
                }
            )
    return {"elements": ELEMENTS, "repeats": REPEATS, "rows": rows}


def others() -> dict[str, Any]:
    """Run kernels of other kinds in nvcc's own code, the smallest launch of each."""
    from gpusim.errors import GpusimError

    smallest = [launch for launch in _launches() if launch.is_smallest]
    try:
        return {"rows": [_counted(launch, "nvcc") for launch in smallest]}
    except GpusimError as error:
        return {"missing": str(error)}


def data_dependent() -> dict[str, Any]:
    """Run kernels with data-dependent branches and addresses, lowered."""
    found: dict[str, list[Any]] = {name: [] for name in DATA_DEPENDENT}
    for launch in _launches():
        if launch.kernel.name in found:
            found[launch.kernel.name].append(launch)
    middle = (sorted(of, key=lambda launch: launch.n)[len(of) // 2] for of in found.values())
    return {"rows": [_counted(launch, "lowering") for launch in middle]}


def evaluators() -> dict[str, Any]:
    """Run the smallest launches of other kernels in NumPy and compiled, with every counter on."""
    from gpusim.errors import GpusimError

    smallest = [launch for launch in _launches() if launch.is_smallest]
    from validate.others.plans import KERNELS

    try:
        rows = [_evaluated(launch, "") for launch in smallest]
        for kind, names in OF_FEW_WARPS.items():
            rows += [_evaluated(KERNELS[name].at(KERNELS[name].small), kind) for name in names]
    except GpusimError as error:
        return {"missing": str(error)}
    return {"rows": rows}


def _evaluated(launch: Any, kind: str) -> dict[str, Any]:
    """Return a launch's seconds in NumPy, in a module that is there, and with making it."""
    from gpusim import machine
    from gpusim.codegen.programs import prepare
    from gpusim.machine.compiled import modules
    from gpusim.tracing.counting import Counters
    from validate.others.compare import configured

    cc, kernel = machine.DEFAULT_CC, configured(launch, "nvcc")
    prepare(kernel, launch.copied(), cc)

    def run(*, is_fast: bool) -> tuple[float, Any, Counters]:
        arguments, counters = launch.copied(), Counters(cc)
        prepared = prepare(kernel, arguments, cc)
        with _environment("GPUSIM_FAST", str(int(is_fast))):
            started = time.process_time()
            machine.run(prepared, observers=(counters,))
            return time.process_time() - started, arguments, counters

    # What is found out about a program once is found before both evaluators begin.
    numpys = min((run(is_fast=False) for _ in range(REPEATS)), key=lambda found: found[0])
    first = min(_made_anew(run) for _ in range(REPEATS - 1))
    with tempfile.TemporaryDirectory() as folder, _environment("XDG_CACHE_HOME", folder):
        modules.forget()
        run(is_fast=True)
        kept = min((run(is_fast=True) for _ in range(REPEATS)), key=lambda found: found[0])
    pairs = zip(numpys[1], kept[1], strict=True)
    return {
        "kernel": launch.kernel.name,
        "kind": kind,
        "n": launch.n,
        "warp_instructions": numpys[2].named(numpys[2].by_pc.sum(axis=0))["instructions"],
        "numpy_seconds": numpys[0],
        "kept_seconds": kept[0],
        "first_seconds": first,
        "equal": all(one.tobytes() == other.tobytes() for one, other in pairs)
        and bool((numpys[2].by_pc == kept[2].by_pc).all()),
    }


def _made_anew(run: Callable[..., tuple[float, Any, Any]]) -> float:
    """Return the seconds of a run that knows no module of its program yet."""
    from gpusim.machine.compiled import modules

    with tempfile.TemporaryDirectory() as folder, _environment("XDG_CACHE_HOME", folder):
        modules.forget()
        return run(is_fast=True)[0]


def checks() -> dict[str, Any]:
    """Check the smallest launches of other kernels with few warps, step by step and compiled."""
    from gpusim.errors import GpusimError

    rows = []
    try:
        for launch in _launches():
            if launch.is_smallest:
                rows.append(_checked(launch))
    except GpusimError as error:
        return {"missing": str(error)}
    return {"rows": [row for row in rows if row is not None]}


def _checked(launch: Any) -> dict[str, Any] | None:
    """Return the seconds of a check step by step, and with a module; None for many warps."""
    from gpusim import machine
    from gpusim.checking.check import LEVEL, check_prepared
    from gpusim.codegen.programs import prepare
    from gpusim.gpu.device import load
    from validate.others.compare import configured

    gpu, kernel = load("h200"), configured(launch, "nvcc")
    sizes = prepare(kernel, launch.copied(), machine.DEFAULT_CC, LEVEL).launch
    if sizes.blocks * sizes.warps_per_block > FEW_WARPS:
        return None

    def run(*, is_fast: bool) -> tuple[float, Any]:
        prepared = prepare(kernel, launch.copied(), gpu.cc, LEVEL, asks=True)
        with _environment("GPUSIM_FAST", str(int(is_fast))):
            started = time.process_time()
            found = check_prepared(prepared, gpu)
            return time.process_time() - started, found.to_dict()

    slow, expected = run(is_fast=False)
    first, _ = run(is_fast=True)
    kept, found = min((run(is_fast=True) for _ in range(REPEATS)), key=lambda made: made[0])
    return {
        "kernel": launch.kernel.name,
        "numpy_seconds": slow,
        "first_seconds": first,
        "kept_seconds": kept,
        "equal": found == expected,
    }


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Set a variable of the environment for a while."""
    held = os.environ.get(name)
    os.environ[name] = value
    yield
    del os.environ[name]
    if held is not None:
        os.environ[name] = held


def _launches() -> Any:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from validate.others import launches

    return launches()


def _counted(launch: Any, code: str) -> dict[str, Any]:
    """Return the rate of a launch with every counter on, and the slowdown by counting."""
    from gpusim import machine
    from gpusim.codegen.programs import prepare
    from gpusim.tracing.counting import Counters
    from validate.others.compare import configured

    cc = machine.DEFAULT_CC

    def seconds(*observers: Counters) -> float:
        prepared = prepare(configured(launch, code), launch.copied(), cc)
        started = time.process_time()
        machine.run(prepared, observers=observers)
        return time.process_time() - started

    traced, plain = [], []
    for _ in range(REPEATS):
        counters = Counters(cc)
        traced.append(seconds(counters))
        plain.append(seconds())
    instructions = counters.named(counters.by_pc.sum(axis=0))["instructions"]
    return {
        "kernel": launch.kernel.name,
        "n": launch.n,
        "warp_instructions": instructions,
        "warp_instructions_per_s": instructions / min(traced),
        "times_as_long": min(traced) / min(plain),
    }


def memory() -> dict[str, Any]:
    """Trace a large launch, and report the process's peak memory."""
    from gpusim import catalogue
    from gpusim.tracing.trace import trace

    call = catalogue.find(MEMORY_KERNEL).call(catalogue.sample(MEMORY_ELEMENTS, "int32"))
    started = time.perf_counter()
    trace(call.configured, *call.arguments)
    seconds = time.perf_counter() - started
    # Kilobytes on Linux, bytes on a Mac.
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "kernel": MEMORY_KERNEL,
        "elements": MEMORY_ELEMENTS,
        "input_bytes": call.data.nbytes,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit,
        "seconds": seconds,
    }


def numba() -> dict[str, Any]:
    """Run the same kernels, from the same source, in Numba's CUDA simulator."""
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    try:
        import numba
    except ImportError:
        return {"missing": "pip install 'gpusim[bench]'"}
    _for_numba("operations")
    kernels = _for_numba("reduce")
    from gpusim.catalogue import sample

    rows = []
    for name in COMMON:
        entry = getattr(kernels, name)
        call = entry.call(sample(NUMBA_ELEMENTS, "int32"), block=NUMBA_BLOCK)
        started = time.perf_counter()
        call.run()
        seconds = time.perf_counter() - started
        threads = call.launch.blocks * NUMBA_BLOCK
        rows.append(
            {
                "kernel": name,
                "block": NUMBA_BLOCK,
                "seconds": seconds,
                "threads_per_s": threads / seconds,
                "right": call.wrong() == 0,
            }
        )
    return {"version": numba.__version__, "elements": NUMBA_ELEMENTS, "rows": rows}


def _for_numba(name: str) -> Any:
    """Return a module of `gpusim/kernels/` in numba's dialect."""
    import gpusim.kernels

    path = Path(gpusim.kernels.__path__[0]) / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    module = types.ModuleType(f"gpusim.kernels.{name}")
    sys.modules[module.__name__] = module
    text = text.replace("from gpusim import cuda", "from numba import cuda")
    exec(compile(text, str(path), "exec"), vars(module))
    return module


def cold() -> dict[str, Any]:
    """Start the command line repeatedly; only byte code is cached from the first time."""
    return _cold_starts(COLD_COMMAND)


def cold_prediction() -> dict[str, Any]:
    """Start a prediction repeatedly; the compiled clock is cached from the first time, too."""
    return _cold_starts(COLD_PREDICTION)


def _cold_starts(command: tuple[str, ...]) -> dict[str, Any]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    seconds = []
    with tempfile.TemporaryDirectory() as kept:
        environment |= {"PYTHONPYCACHEPREFIX": kept, "XDG_CACHE_HOME": kept}
        for _ in range(COLD_STARTS + 1):
            started = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "gpusim", *command],
                check=True,
                stdout=subprocess.DEVNULL,
                env=environment,
            )
            seconds.append(time.perf_counter() - started)
    return {"command": " ".join(command), "seconds": seconds[1:]}


def clock() -> dict[str, Any]:
    """Predict the seven reductions on one device, and some kernels for large and huge n.

    Each SM is played twice, by SimPy and compiled, with equal results.
    """
    from gpusim.catalogue import Request
    from gpusim.prediction.sweeps import jobs

    def predicted(name: str, elements: int, grid: int | None = None) -> float:
        started = time.process_time()
        jobs.catalogue_job(Request(name, elements, block=CLOCK_BLOCK, grid=grid)).on("h200")
        return time.process_time() - started

    predicted(SEVEN[0], 2**20)  # imports and compiles
    seconds = {name: predicted(name, MEMORY_ELEMENTS) for name in SEVEN}
    sizes = []
    for name, grid in HUGE.items():
        large, huge = (
            statistics.median(predicted(name, n, grid) for _ in range(REPEATS))
            for n in (2**24, 2**30)
        )
        sizes.append({"kernel": name, "grid": grid, "large": large, "huge": huge})
    with _plays() as plays:
        rows = []
        for name in SEVEN:
            plays.clear()
            predicted(name, MEMORY_ELEMENTS)
            rows.append({"kernel": name, "seconds": seconds[name], **_rates(plays)})
    return {
        "block": CLOCK_BLOCK,
        "elements": MEMORY_ELEMENTS,
        "is_compiled": find_spec("wasmtime") is not None,
        "rows": rows,
        "sizes": sizes,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


@contextmanager
def _plays() -> Iterator[list[tuple[int, float, float]]]:
    """Yield a list of instructions and seconds, by SimPy and compiled, of each play within."""
    from gpusim.host.fast import SWITCH
    from gpusim.prediction import sampling

    simulate, plays = sampling.simulate, []

    def both(*given: Any, **options: Any) -> Any:
        outcomes, seconds = [], []
        for value in ("0", "1"):
            os.environ[SWITCH] = value
            started = time.process_time()
            outcomes.append(simulate(*given, **options))
            seconds.append(time.process_time() - started)
        if outcomes[0] != outcomes[1]:
            raise SystemExit("the compiled clock differs from SimPy's")
        plays.append((outcomes[0].instructions, *seconds))
        return outcomes[0]

    sampling.simulate = both
    yield plays
    sampling.simulate = simulate


def _rates(plays: list[tuple[int, float, float]]) -> dict[str, float]:
    instructions, by_simpy, compiled = (sum(column) for column in zip(*plays, strict=True))
    return {
        "simpy_per_s": instructions / by_simpy,
        "compiled_per_s": instructions / compiled,
    }


def planning() -> dict[str, Any]:
    """Prepare each kernel of the catalogue for a device, up to the clock's first tick."""
    from gpusim import catalogue
    from gpusim.catalogue import Request
    from gpusim.errors import GpusimError
    from gpusim.gpu import device
    from gpusim.gpu.occupancy import occupancy
    from gpusim.prediction.streams import classify
    from gpusim.prediction.sweeps import jobs
    from gpusim.prediction.workload import Workload

    gpu = device.load("h200")

    def stages(name: str, block: int = CLOCK_BLOCK // 2) -> dict[str, float]:
        job = jobs.catalogue_job(Request(name, PLANNED_ELEMENTS, block=block))
        started = [time.process_time()]
        prepared = job.launches[0].prepared(gpu.cc)
        started.append(time.process_time())
        classes = classify(prepared)
        started.append(time.process_time())
        held = occupancy(prepared, gpu)
        work = Workload(prepared, gpu, classes, "cold", held.blocks)
        work.some(PLANNED_BLOCKS, work.budget.iterations)
        started.append(time.process_time())
        names = ("lowering", "classification", "steps")
        spent = (end - begin for begin, end in pairwise(started))
        return dict(zip(names, spent, strict=True))

    stages(SEVEN[-1])  # imports
    rows = []
    for entry in catalogue.entries():
        with suppress(GpusimError):  # kernels that do not support this block size
            rows.append({"kernel": entry.name, **stages(entry.name, CLOCK_BLOCK)})
    return {"elements": PLANNED_ELEMENTS, "block": CLOCK_BLOCK, "rows": rows}


def advice() -> dict[str, Any]:
    """Trace and predict the seven reductions with findings and without, by turns."""
    from gpusim import catalogue, predict
    from gpusim.advice.launch import advice_on
    from gpusim.tracing.trace import trace

    def seconds(*calls: Callable[[], Any]) -> list[float]:
        found: list[list[float]] = [[] for _ in calls]
        for _ in range(REPEATS):
            for call, times in zip(calls, found, strict=True):
                started = time.process_time()
                call()
                times.append(time.process_time() - started)
        return [statistics.median(times) for times in found]

    def both(name: str, elements: int) -> dict[str, float]:
        data = catalogue.sample(elements, "int32")
        call = catalogue.find(name).call(data, block=ADVICE_BLOCK)
        given = call.configured, *call.arguments
        counted, found, timed, gains = seconds(
            lambda: trace(*given),
            lambda: trace(*given).findings,
            lambda: predict(*given),
            lambda: advice_on(predict(*given)),
        )
        return {"trace": found / counted, "predict": gains / timed - 1}

    both(SEVEN[-1], ADVICE_ELEMENTS)  # imports
    rows = [{"kernel": name, **both(name, ADVICE_ELEMENTS)} for name in SEVEN]
    return {"elements": ADVICE_ELEMENTS, "block": ADVICE_BLOCK, "rows": rows}


def recording() -> dict[str, Any]:
    """Classify blocks of kernels in nvcc's own code, compiled and by NumPy in turns."""
    from gpusim.codegen.programs import prepare
    from gpusim.errors import GpusimError
    from gpusim.gpu import device
    from gpusim.host import fast
    from gpusim.prediction.streams import classify, with_fast_paths

    gpu = device.load("h200")
    found = [one for one in _launches() if one.is_smallest and one.kernel.name in RECORDED]
    from validate.others.compare import configured

    def seconds(launch: Any, switch: str) -> float:
        os.environ[fast.SWITCH] = switch
        given = launch.specified()
        prepared = with_fast_paths(prepare(configured(launch, "nvcc"), given, gpu.cc))
        started = time.process_time()
        classify(prepared)
        return time.process_time() - started

    rows = []
    try:
        for launch in found:
            seconds(launch, fast.ON)  # the module, made once
            compiled, plain = seconds(launch, fast.ON), seconds(launch, fast.OFF)
            row = {"kernel": launch.kernel.name, "n": launch.n, "seconds": compiled}
            rows.append({**row, "times": plain / compiled})
    except GpusimError as error:
        return {"missing": str(error)}
    return {"rows": rows}


def sweep() -> dict[str, Any]:
    """Predict a sample of a large sweep's cases, on one core."""
    from gpusim.catalogue import Request
    from gpusim.errors import GpusimError
    from gpusim.prediction.sweeps import jobs

    cases = list(product(SWEEP_KERNELS, SWEEP_BLOCKS, SWEEP_SIZES, SWEEP_GPUS))
    started, done = time.process_time(), 0
    for name, block, elements, gpu in cases[::SWEEP_STEP]:
        with suppress(GpusimError):  # cases too large for a GPU
            jobs.catalogue_job(Request(name, elements, block=block)).on(gpu)
        done += 1
    return {"cases": len(cases), "done": done, "seconds": time.process_time() - started}


def page() -> dict[str, Any]:
    """Write the page of three kernels, and open it in Chromium where there is one."""
    from gpusim.cli.app import main

    script = (
        '<script>addEventListener("load", () => setTimeout(() => { document.title ='
        ' performance.getEntriesByType("navigation")[0].loadEventEnd; }))</script></head>'
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        started = time.process_time()
        with redirect_stdout(io.StringIO()):
            code = main(["report", *PAGE_KERNELS, "--block", "128", "--out", str(file)])
        made = time.process_time() - started
        text = file.read_text(encoding="utf-8")
        found = {"kernels": len(PAGE_KERNELS), "code": code, "bytes": len(text.encode())}
        browser = shutil.which("chromium") or shutil.which("chromium-browser")
        if browser is None:
            return {**found, "made_s": made, "opened_s": []}
        file.write_text(text.replace("</head>", script, 1), encoding="utf-8")
        words = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        flags = [f"--user-data-dir={folder}/profile", "--virtual-time-budget=100"]
        opened = []
        for _ in range(PAGE_OPENINGS):
            ran = subprocess.run([*words, *flags, file.as_uri()], capture_output=True, text=True)
            opened.append(float(re.findall(r"<title>([\d.]+)</title>", ran.stdout)[0]) / 1000)
    return {**found, "made_s": made, "opened_s": opened}


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    part.__name__: part
    for part in (
        speed,
        others,
        evaluators,
        checks,
        data_dependent,
        clock,
        planning,
        advice,
        recording,
        sweep,
        memory,
        numba,
        page,
        cold,
        cold_prediction,
    )
}

if __name__ == "__main__":
    json.dump(PARTS[sys.argv[1]](), sys.stdout)
