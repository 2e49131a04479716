"""Records of a launch, its warps and their splits, in the linear memory of a module."""

from __future__ import annotations

from gpusim.wasm.memory import Record, fields_of, i32, i64, offset, size, u8, u32

SHARED_LIMIT = 516  # of addresses of shared memory
LAUNCHED, STATE = 528, 672  # where the two records lie that a module has once
# Addresses of lanes: their operands and results, and the places of an access in order.
IN, OPERAND_BYTES, OPERANDS, SORTED = 1024, 256, 20, 14336
OUT = IN + OPERANDS * OPERAND_BYTES
SCRATCH, WORDS = 12288, 16384  # of what is counted: a byte for each bank, and its words
MOST_SPLITS = 32
(
    READY, AT_BARRIER, AT_NAMED_BARRIER, AT_CLUSTER, AT_WORD, AT_CONVERGENCE, AT_WARP,
    AT_COLLECTION, AT_MASK, AT_COLLECT,
) = range(10)  # fmt: skip
BARRIER_BITS = 8  # of `Split.waits_for` and `Token.name`: above them is a path, or a number
ASIDE, MOST_ASIDE = 255, 256  # tokens in registers
ALL_LANES = 0xFFFFFFFF


class Launched(Record):
    """The settings of a batch for its module: places, sizes and limits.

    `shift` maps global memory to linear memory; `copies` are unused entries of the pool of
    asynchronous copies. Where warps run in the order of NumPy's machine, `group` is where their
    turns are kept, and they take at most `most_steps`. A warp keeps the keys of its splits from
    `keys_at` on, and each of the blocks of code has a byte of flags; `awaits`: warps wait for
    others; `most_idle` is the most splits to run without a write. `reductions` is the table of
    barriers with a result (0: there are none), `arrivals` where the first warp of a block counts
    the threads that have arrived at each named barrier and do not wait, `queue_at` where a warp has
    its asynchronous copies. `held` warps have memory of their own; a `cluster` has some blocks, and
    a warp has its part of one at `cluster_at` (0: each block is one of its own). `bulk` is where
    bulk copies are kept, and `groups_at` where a warp has the number of their groups. `order` is
    the kind of order of the warps (`machine/turns.py`).
    """

    shift: i64
    marks: u32
    mark_bytes: u32
    notes: u32
    notes_end: u32
    sum_bytes: u32
    warps_at: u32
    warp_bytes: u32
    warps: u32
    blocks: u32
    entries: u32
    local_bytes: u32
    shared_bytes: u32
    turns: i32
    copies: u32
    copies_end: u32
    group: u32
    most_steps: i32
    keys_at: u32
    flags_at: u32
    code_blocks: u32
    awaits: u32
    most_idle: u32
    reductions: u32
    arrivals: u32
    queue_at: u32
    held: u32
    cluster: u32
    cluster_at: u32
    bulk: u32
    groups_at: u32
    order: u32


class State(Record):
    """A module's state while it runs.

    `next_block` is the lowest block of code of the other splits of the running warp that are ready,
    `paths` the last path that was new. `runs`, `details` and `touched` are where the next record of
    steps goes (`steps`), each with the place from which on all are taken.

    With race detection, cells of global memory begin at the address `cells_first`; `own_cells` are
    those of shared memory, without a value at first from `own_empty` on, and `stamps` those of
    local memory, that many for each lane. Accesses are counted, and the pairs with an earlier one:
    those that are `ordered`, and those `free` of any order. Where a rule might report something,
    the run ends, and `reports` is 1.

    `notes` is where the next step of a watched warp goes, or the next addition to a sum. Of
    asynchronous copies, `copies` is the next entry of the pool that has not been used,
    `free_copies` the first that is free again. `set` is the number of the last set of numbers.

    In order (`turns`), `list` has the splits of a turn's group; `positions` is the next unused one.
    `held` counts all splits, `apart` warps with several splits (`is_diverged`: there were some as
    the turn began), `steps` instructions, each once for its group, and `idle` splits run since
    memory was written. A warp sets `goes_on` if its group continues, `settles` if lanes have
    arrived or left, `arrives` if some came to a named barrier and do not wait, and `jumped` to the
    block after a jump. With `asks`, it only tests for missing lanes. A round of loops that swap
    (`cas_loops`) is of a `half` of each block, counted from 1, or of none; it began after the turn
    `begun`. `passes` counts the groups' runs, `bulk` the used places for bulk copies. In a check,
    `lost` lanes had a fault at their last access, and a product for addresses `overflows`; `taken`
    counts the turns of other orders.
    Code that tells its faults notes each instruction (`told_pc`) with its warp and lanes. Where
    `goes_without` is set, an exchange does not wait for missing lanes: in order, the one at which a
    group of `present` lanes begins.
    """

    next_block: u32
    paths: u32
    runs: u32
    runs_full: u32
    details: u32
    details_full: u32
    touched: u32
    touched_full: u32
    time: u32
    block_warps: u32
    first_block: u32
    cells: u32
    cells_first: i64
    cells_count: i64
    own_cells: u32
    own_count: u32
    own_empty: u32
    stamps: u32
    stamps_count: u32
    accesses: i64
    ordered: i64
    free: i64
    local_accesses: i64
    of_unknown_arrays: i64
    notes: u32
    copies: u32
    free_copies: u32
    set: u32
    keys: u32
    row_bits: u32
    row_bytes: u32
    list: u32
    list_end: u32
    turn: u32
    positions: u32
    held: u32
    apart: u32
    is_diverged: u32
    steps: u32
    idle: u32
    goes_on: u32
    settles: u32
    jumped: u32
    asks: u32
    misses: u32
    half: u32
    begun: u32
    passes: u32
    lost: u32
    overflows: u32
    taken: u32
    reports: u32
    arrives: u32
    present: u32
    bulk: u32
    told_pc: u32
    told_warp: u32
    told_split: u32
    told_on: u32
    goes_without: u32


class Word(Record):
    """A word of memory."""

    value: u32


class Long(Record):
    """Two words of memory."""

    value: i64


class Byte(Record):
    """A byte of memory."""

    value: u8


class Entry(Record):
    """A block of threads: its place on the grid's axes, and whether its steps are watched.

    Once it has run, `x` is the number of the sums that it has in common with others.
    """

    x: u32
    y: u32
    z: u32
    is_watched: u32


class Count(Record):
    """How often a warp ran a block of code, and by how many lanes."""

    executions: i64
    lanes: i64


class Reduction(Record):
    """The result of the barrier that ends a block of code, at one place in each warp.

    It is the count of the true `predicate`s of lanes, or (`how`) whether all or some are true; of
    32 bits a lane, or (`is_mask`) one bit. Without a result, or if it is not read, that is at 0.
    """

    predicate: u32
    result: u32
    how: u32
    is_mask: u32


class Split(Record):
    """Diverged lanes of a warp with a program counter of their own, in blocks of code.

    `waits_for` is the mask of a warp barrier (`AT_WARP`), of an instruction that only collects
    lanes (`AT_COLLECTION`), of an exchange of values (`AT_MASK`) or of another instruction that
    waits for lanes (`AT_COLLECT`), or the number of a named barrier below the threads that it waits
    for (`AT_NAMED_BARRIER`); at `AT_WORD` a poll is parked (`clocks`). Elsewhere it is a
    convergence barrier (`AT_CONVERGENCE`) below a hash of the split's path, where the order of
    atomics shows: splits with equal paths run together.
    """

    block: u32
    lanes: u32
    state: u32
    waits_for: u32


class Token(Record):
    """Lanes that hold a token: its number, above that of its convergence barrier.

    In place of the barrier it is `ASIDE` if lanes have it in a register.
    """

    name: u32
    lanes: u32


class Warp(Record):
    """A warp: its splits and tokens lie after these fields, its registers after those.

    `sums`, `local` and `shared` are places, `turns` backward branches that are left, `row` its
    number in the batch, `lanes` those that it began with. For race detection, `owner` is its number
    among all warps, `met` when its lanes met last, `passed` when its block's barrier opened last.
    """

    splits: u32
    tokens: u32
    live: u32
    sums: u32
    local: u32
    x: u32
    y: u32
    z: u32
    shared: u32
    turns: i32
    is_watched: u32
    row: i32
    lanes: u32
    met: u32
    owner: u32
    passed: u32

    def split(self, number: int) -> Split:
        """Return one of its splits."""
        return Split(self.address + SPLITS + SPLIT_BYTES * number)

    def token(self, number: int) -> Token:
        """Return one of its tokens, the oldest first."""
        return Token(self.address + TOKENS + TOKEN_BYTES * number)

    def count(self, block: int) -> Count:
        """Return its count of a block of code."""
        return Count(self.sums + COUNT_BYTES * block)


SPLIT_BYTES, TOKEN_BYTES, COUNT_BYTES, ENTRY_BYTES, REDUCTION_BYTES = 16, 8, 16, 16, 16
SPLITS = 64  # from a warp on
TOKENS = SPLITS + MOST_SPLITS * SPLIT_BYTES
MOST_TOKENS_BYTES = MOST_SPLITS * TOKEN_BYTES  # of a convergence barrier
LAUNCH = Launched(LAUNCHED)
NOW = State(STATE)

assert size(Warp) == SPLITS
assert [size(one) for one in (Split, Token, Count, Entry, Reduction)] == [16, 8, 16, 16, 16]
assert LAUNCHED + size(Launched) <= STATE
assert STATE + size(State) <= 1020


def place(name: str) -> int:
    """Return the address of a field of `NOW`."""
    return STATE + offset(State, name)


def read(name: str) -> str:
    """Return code that reads a field of `NOW`, or of `LAUNCH`."""
    begin, cls = (STATE, State) if name in fields_of(State) else (LAUNCHED, Launched)
    at, kind, _ = fields_of(cls)[name]
    return f"({kind.wasm}.load (i32.const {begin + at}))"


def written(name: str, value: str) -> str:
    """Return code that sets a field of `NOW`."""
    return f"({fields_of(State)[name][1].wasm}.store (i32.const {place(name)}) {value})"
