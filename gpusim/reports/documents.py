"""The types of JSON documents: `docs/schema.json` is generated from them by docs/schema.py.

Every document has `schema_version` and `document`, its name, on top. Numbers that JSON does not
have (infinities, NaN) are strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NotRequired, TypedDict

Counters = dict[str, int]
Times = dict[str, float]
Size = tuple[int, int, int]
Interval = tuple[float, float]
SweepRow = dict[str, float | str | None]  # by the columns of a sweep's table
Severity = Literal["error", "warning", "note"]


class Head(TypedDict):
    """The head of every document."""

    schema_version: int


# -- launches ------------------------------------------------------------------------------


class Member(TypedDict):
    """A member of a launch as an option has it, its origin, and a line of the file."""

    value: str
    origin: Literal[
        "option",
        "pyproject.toml",
        "comment in the file",
        "the kernel's rule",
        "host code",
        "default",
    ]
    line: NotRequired[int]


class Launch(TypedDict):
    """A launch by its members; `data` are fillings of arrays for which nothing is given."""

    kernel: str
    n: Member | None
    grid: Member | None
    block: Member | None
    shared_bytes: NotRequired[Member]
    cluster: NotRequired[Member]
    device: Member | None
    arguments: dict[str, Member]
    data: dict[str, str]


# -- findings ------------------------------------------------------------------------------


class Thread(TypedDict):
    """A thread: linear block number, linear number in the block, warp and lane."""

    block: int
    thread: int
    warp: int
    lane: int


class Call(TypedDict):
    """A call of a device function, "" where its name is not known, and the line of the call."""

    function: str
    line: int


class Place(TypedDict):
    """An access or a wait at a source line; `since` is the line of the barrier before it.

    `called_from` are the calls of its device function, innermost first.
    """

    line: int
    does: str
    thread: Thread | None
    since: int | None
    called_from: NotRequired[list[Call]]


class Finding(TypedDict):
    """A finding of `gpusim check`; `places` are in order of execution."""

    rule: str
    severity: Severity
    title: str
    message: str
    fix: str
    hazard: str
    missing: str
    array: str
    index: int | None
    count: int
    lines: list[int]
    places: list[Place]
    sequence: list[Place]


class Checked(TypedDict):
    """The accesses that a check compared, and those it did not, by the reason.

    `blocks` are the first and the last one, of some alone, and the number of the grid's.
    """

    accesses: int
    ordered_pairs: int
    not_compared: Counters
    lines_not_run: list[int]
    blocks: NotRequired[list[int]]


class SeverityCounts(TypedDict):
    """Findings by severity."""

    error: int
    warning: int
    note: int


class Findings(TypedDict):
    """The findings of a launch, errors first."""

    kernel: str
    source_file: str
    grid: Size
    block: Size
    launch: NotRequired[Launch]
    compute_capability: str
    generator: str
    lenient: bool
    order: int | None
    checked: Checked
    counts: SeverityCounts
    findings: list[Finding]


class Gain(TypedDict):
    """The launch played again without a mechanism."""

    without: str
    time_us: float
    saves: float
    speedup: float


class Advice(TypedDict):
    """A finding on performance: its costliest line, 0 for the launch as a whole, and all lines."""

    kind: str
    line: int
    message: str
    lines: list[int]
    gain: NotRequired[Gain]


# -- launches ------------------------------------------------------------------------------


class Counter(TypedDict):
    """A counter of a launch; `ncu` is Nsight Compute's name, "" if it has none."""

    value: int
    unit: str
    kind: Literal["exact", "model"]
    ncu: str


class CallPath(TypedDict):
    """The counters of a device function's line by one path of calls, innermost first."""

    calls: list[Call]
    executions: int
    counters: Counters


class Line(TypedDict):
    """A source line; `active_lanes` is a mean. Lines of device functions have paths of calls."""

    line: int
    text: str
    executions: int
    active_lanes: float
    counters: Counters
    called_from: NotRequired[list[CallPath]]


class Warp(TypedDict):
    """A warp of one block."""

    block: int
    warp: int
    counters: Counters


class Footprint(TypedDict):
    """Requested and distinct sectors of a line."""

    line: int
    access: str
    arrays: list[str]
    requested_sectors: int
    distinct_sectors: int


class Access(TypedDict):
    """One instruction of a line, run once by one warp; sequences are by lane."""

    iteration: int | None
    pc: int
    line: int
    op: str
    warp: int
    occurrence: int
    active: list[bool]
    on: list[bool]
    space: str | None
    array: str | None
    element_bytes: int
    width_bytes: int
    addresses: list[int] | None
    banks: list[int] | None
    wavefronts: int
    least_wavefronts: int
    sectors: int
    taken: list[bool] | None
    sources: list[int] | None


class Trace(Head):
    """`gpusim trace`."""

    document: Literal["trace"]
    kernel: str
    grid: Size
    block: Size
    dynamic_shared_bytes: int
    launch: NotRequired[Launch]
    lowering: str
    generator: str
    fallback: str | None
    cc: str
    block_index: int
    counters: dict[str, Counter]
    lines: list[Line]
    footprints: list[Footprint]
    warps: list[Warp]
    findings: list[Advice]
    accesses: NotRequired[list[Access]]
    check: NotRequired[Findings]


class Check(Head, Findings):
    """`gpusim check`."""

    document: Literal["check"]


class SmallestLaunch(Findings):
    """The smallest launch with a finding, as a command line."""

    command: str


class TriedLaunch(TypedDict):
    """A launch of `gpusim check --explore`: its command line, the rules it breaks, or a refusal."""

    command: str
    size: int
    rules: list[str]
    refused: str


class Explore(Head):
    """`gpusim check --explore`."""

    document: Literal["explore"]
    seed: int
    launches: int
    refused: int
    lines_not_run: list[int]
    smallest: list[SmallestLaunch]
    tried: list[TriedLaunch]


class Pass(TypedDict):
    """A launch of a run."""

    n: int
    grid: int
    block: int


class Run(Head):
    """`gpusim run` of a kernel of the catalogue."""

    document: Literal["run"]
    kernel: str
    generator: str
    fallback: str | None
    n: int
    block: int
    grid: int
    operation: str
    dtype: str
    value: float | str | bool | None
    numpy: float | str | bool | None
    right: bool
    wrong_values: int
    values: int
    defect: str | None
    fixed_by: str | None
    passes: list[Pass]
    threads: int
    seconds: float
    threads_per_second: float | str
    check: NotRequired[Findings]


# -- predictions ---------------------------------------------------------------------------


class PredictionInterval(TypedDict):
    """The interval of 90 %, the launches that it comes from, and what widens it."""

    low_us: float
    high_us: float
    coverage: float
    gpu: str
    code: str
    kind: str
    meaning: str
    launches: int
    gpus: int
    unknown: list[str]


class Occupancy(TypedDict):
    """Resident blocks and warps of an SM."""

    blocks: int
    warps: int
    fraction: float
    limit: str


class Fetch(TypedDict):
    """A line's sectors by the place that serves them, as fractions."""

    pc: int
    line: int
    array: str
    sectors: int
    l1: float
    l2: float
    dram: float
    reuse_distance_bytes: float | None


class PredictedCounter(TypedDict):
    """A predicted counter by Nsight Compute's name."""

    value: float
    kind: str


class Traffic(TypedDict):
    """Bytes and sectors between the levels of memory."""

    l1_bytes: float
    l2_bytes: float
    dram_bytes: float
    moved_bytes: float
    written_bytes: float
    written_back_bytes: float
    compulsory_bytes: float
    l2_lookup_sectors: float
    l1_requested_sectors: float
    l1_hit_sectors: float
    own_sectors: float
    own_bytes: float
    fetches: list[Fetch]
    counters: dict[str, PredictedCounter]


class BlockClass(TypedDict):
    """Blocks with the same stream of instructions."""

    name: str
    blocks: int
    instructions: int


class Simulated(TypedDict):
    """The simulated and the extrapolated part of a launch."""

    blocks_on_sm: int
    simulated: int
    extrapolated: int
    iterations: int
    iterations_simulated: int
    spread: float
    blocks_run: int
    sampling_error: float


class WarpLife(TypedDict):
    """The life of a warp in spans: begin and end in cycles, reason, and instruction."""

    block: int
    warp: int
    scheduler: int
    spans: list[tuple[float, float, str, int | None]]


class Timeline(TypedDict):
    """The warps of the SM's first block; `barriers` are the times at which they opened."""

    blocks: int
    simulated: int
    barriers: list[list[float]]
    warps: list[WarpLife]


class PredictedPass(TypedDict):
    """The prediction of one launch; times in microseconds, stalls as fractions of warp cycles."""

    kernel: str
    generator: str
    fallback: str | None
    device: str
    grid: Size
    block: Size
    l2: str
    time_us: float
    interval_us: Interval
    interval: PredictionInterval
    cycles: float
    waves: float
    instructions: int
    occupancy: Occupancy
    limiter: str
    lower_bounds_us: Times
    stalls: Times
    traffic: Traffic
    stalls_by_line: dict[str, Times]
    lines: Times
    classes: list[BlockClass]
    simulated: Simulated
    depends_on_data: NotRequired[bool]
    timeline: NotRequired[Timeline]


class Ablation(TypedDict):
    """A prediction without a mechanism."""

    mechanism: str
    time_us: float
    saves: float


class Whole(TypedDict):
    """The prediction with all mechanisms, beside one without some."""

    time_us: float
    saves: float


class Prediction(TypedDict):
    """The prediction of a kernel on a device."""

    kernel: str
    device: str
    device_id: str
    without: list[str]
    set: dict[str, float | str | bool]
    n: int | None
    operation: str | None
    dtype: str | None
    defect: str | None
    launch: NotRequired[Launch]
    time_us: float
    interval_us: Interval
    gbps: float
    peak_fraction: float
    useful_bytes: float
    useful_bytes_are: str
    passes: list[PredictedPass]


class Predict(Head, Prediction):
    """`gpusim predict`."""

    document: Literal["predict"]
    findings: list[Advice]
    with_all_mechanisms: NotRequired[Whole]
    ablations: NotRequired[list[Ablation]]
    check: NotRequired[Findings]


class Certainty(TypedDict):
    """Two launches compared: of measured pairs predicted as far apart, the part in this order.

    `in_order`, `pairs` and the number of `gpus` that they are of are null for different GPUs.
    """

    ratio: float
    differs: str
    tie: bool
    in_order: float | None
    pairs: int | None
    gpus: int | None


class RankedKernel(Prediction):
    """A kernel of a ranking, with the change from the one before."""

    rank: int
    measured_gbps: float | None
    step: float | None
    tie: bool | None
    comparison: Certainty | None
    reasons: list[str]


class WrongKernel(Prediction):
    """A kernel that does not do the work, with the reason."""

    reason: str


class CannotRun(TypedDict):
    """A kernel or candidate that cannot run as requested."""

    kernel: str
    reason: str


class Rank(Head):
    """`gpusim rank`."""

    document: Literal["rank"]
    kernels: list[RankedKernel]
    wrong: list[WrongKernel]
    cannot_run: list[CannotRun]
    remarks: list[str]


class Side(Prediction):
    """One of two launches that are compared."""

    name: str
    counters: Counters


class Agreement(TypedDict):
    """Equality of an array after both launches; `first` is the first of `differing`."""

    array: str
    verdict: Literal[
        "equal", "equal within rounding", "equal in total: a value for each block", "different"
    ]
    elements: int
    differing: NotRequired[int]
    first: NotRequired[int]
    values: NotRequired[list[str]]


class SavedSide(TypedDict):
    """A launch from a saved document, in place of a side that is run."""

    side: Literal["A", "B"]
    name: str
    time_us: float | None
    interval_us: Interval | None
    counters: Counters


class Compare(Head):
    """`gpusim compare`; without a prediction or a run of both sides, members are null."""

    document: Literal["compare"]
    sides: list[Side]
    saved: list[SavedSide]
    speedup: float | None
    tie: bool | None
    comparison: Certainty | None
    outputs: list[Agreement]
    agree: bool | None


class Sweep(Head):
    """`gpusim sweep`, and its tables in files that end in .json; rows have the table's columns."""

    document: Literal["sweep"]
    launches: NotRequired[list[Launch]]
    rows: list[SweepRow]


class TunedLaunch(TypedDict):
    """The candidates of a launch, the fastest first, as rows of a sweep; `launch` is the first."""

    kernel: str
    launch: NotRequired[Launch]
    device: str
    n: int | None
    best: SweepRow | None
    ties: int
    speedup: float | None
    candidates: list[SweepRow]
    rejected: list[SweepRow]
    cannot_run: list[SweepRow]
    dropped: int


class Tune(Head):
    """`gpusim tune`."""

    document: Literal["tune"]
    launches: list[TunedLaunch]


# -- code, devices, limits, programs -------------------------------------------------------


class LoweredInstruction(TypedDict):
    """A machine instruction; `stall_cycles` by nvcc's control code, None of the lowering's."""

    pc: int
    text: str
    issued: bool
    stall_cycles: float | None
    waits_on_scoreboard: bool
    live_registers: int


class LoweredLine(TypedDict):
    """A source line in SSA form and machine code."""

    line: int | None
    text: str
    ssa: list[str]
    instructions: list[LoweredInstruction]


LoweringPass = TypedDict(
    "LoweringPass",
    {"pass": str, "form": str, "lines": int, "changed": bool, "added": int, "removed": int},
)
LoweringPass.__doc__ = "A pass: the form after it, its lines, and how many it added and removed."


class StageLine(TypedDict):
    """A line of a form, with the line of the source that it comes from."""

    line: int | None
    text: str


LoweringStage = TypedDict("LoweringStage", {"pass": str, "form": str, "lines": list[StageLine]})
LoweringStage.__doc__ = "The whole form after a pass, of --after."
LoweringDiff = TypedDict("LoweringDiff", {"pass": str, "diff": list[str]})
LoweringDiff.__doc__ = "The change by a pass as a unified diff, of --diff."


class Lower(Head):
    """`gpusim lower`; `after` and `diff` by the options of these names."""

    document: Literal["lower"]
    kernel: str
    source_file: str
    compute_capability: str
    lowering: str
    generator: str
    device: str | None
    registers: int
    shared_bytes: int
    local_bytes: int
    convergence_barriers: int
    passes: list[LoweringPass]
    lines: list[LoweredLine]
    after: NotRequired[LoweringStage]
    diff: NotRequired[list[LoweringDiff]]


class CatalogueKernel(TypedDict):
    """A kernel of the catalogue."""

    name: str
    family: str
    origin: str
    author: str
    about: str
    url: str
    teaches: str
    defect: str | None
    fixed_by: str | None
    fixes: str | None
    operations: list[str]
    dtypes: list[str]
    requires: str
    grid_free: bool
    default_n: int | None
    default_block: int | None
    default_coarse: int | None
    default_cluster: int | None


class List(Head):
    """`gpusim list`."""

    document: Literal["list"]
    kernels: list[CatalogueKernel]


class Parameter(TypedDict):
    """A parameter of a kernel."""

    name: str
    type: str


class FileKernel(TypedDict):
    """A kernel of a file: parameters, the launch that the file has, and a command line."""

    name: str
    parameters: NotRequired[list[Parameter]]
    launch: NotRequired[dict[str, str | list[str]] | None]
    source: NotRequired[str | None]
    command: NotRequired[str]
    error: NotRequired[str]


class File(Head):
    """`gpusim list FILE`."""

    document: Literal["file"]
    kernels: list[FileKernel]


class DeviceSummary(TypedDict):
    """A GPU in short; `kinds` counts its numbers by kind."""

    id: str
    name: str
    compute_capability: str
    sms: int
    sm_clock_mhz: float
    memory_bytes: int
    dram_peak_gbps: float
    dram_gbps: float
    l2_bytes: int
    kinds: Counters


class Devices(Head):
    """`gpusim devices`."""

    document: Literal["devices"]
    devices: list[DeviceSummary]


class Fact(TypedDict):
    """A number of a device file."""

    value: float | str | bool
    unit: str
    kind: str
    source: str
    meaning: str


class Device(Head):
    """`gpusim devices NAME`."""

    document: Literal["device"]
    id: str
    name: str
    facts: dict[str, Fact]


class LimitLine(TypedDict):
    """A line's share of a measure."""

    line: int
    text: str


class Limit(TypedDict):
    """A limit of a launch: the value found, the value allowed, and its origin."""

    measure: str
    found: float
    allowed: float
    origin: Literal["launch", "project", "baseline"]
    exceeded: bool
    lines: list[LimitLine]


class JudgedLaunch(TypedDict):
    """A launch of pyproject.toml."""

    name: str
    kernel: str
    device: str
    generator: str
    within_limits: bool
    fault: str | None
    limits: list[Limit]
    check: Findings | None


class CI(Head):
    """`gpusim ci`."""

    document: Literal["ci"]
    within_limits: bool
    launches: list[JudgedLaunch]


class ProgramLaunch(TypedDict):
    """A launch of a program."""

    number: int
    process: int
    kernel: str
    grid: Size
    block: Size
    dynamic_shared_bytes: int
    stream: int
    simulation_s: float
    equal_to: NotRequired[int]
    search: NotRequired[int]
    configuration: NotRequired[str]
    time_us: NotRequired[float]
    kernel_us: NotRequired[float]
    interval_us: NotRequired[Interval]
    bound: NotRequired[str]
    counters: NotRequired[Counters]
    check: NotRequired[Findings]
    findings: NotRequired[list[Advice]]
    error: NotRequired[str]


class ProgramKernel(TypedDict):
    """All launches of a kernel together; `findings` counts those of checks."""

    kernel: str
    launches: int
    kernel_us: NotRequired[float]
    interval_us: NotRequired[Interval]
    counters: NotRequired[Counters]
    findings: NotRequired[int]


class ProgramWork(TypedDict):
    """All work of a kind: pieces and time; bytes and bandwidth of copies and memsets."""

    kind: str
    pieces: int
    time_us: float
    bytes: NotRequired[int]
    gbps: NotRequired[float]


class StreamWork(TypedDict):
    """A piece of work on a stream; of a launch with its number and its overhead at the begin."""

    process: int
    kind: str
    name: str
    stream: int
    begin_us: float
    end_us: float
    bytes: int
    number: int
    overhead_us: float


class Program(Head):
    """`trace`, `predict`, `check` and `report` of a whole program."""

    document: Literal["program"]
    program: list[str]
    device: str
    exit_code: int
    launches: list[ProgramLaunch]
    kernels: list[ProgramKernel]
    findings: list[Finding]
    refused: list[str]
    work: list[ProgramWork]
    timeline: list[StreamWork]
    torch_operations: NotRequired[int]


DOCUMENTS: Mapping[str, type] = {
    "list": List, "file": File, "run": Run, "trace": Trace, "check": Check, "explore": Explore,
    "lower": Lower, "predict": Predict, "rank": Rank, "compare": Compare, "sweep": Sweep,
    "tune": Tune, "ci": CI, "devices": Devices, "device": Device, "program": Program,
}  # fmt: skip
