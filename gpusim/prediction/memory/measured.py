"""Constants of the model that no device file has, each with its source.

All were measured on an NVIDIA H200, or read off machine code for it, and hold for any GPU here
until they are measured there. A number with a microbenchmark of its own belongs into the device
files, as a key with a default rule (`gpusim.gpu.device`). The extent of simulation is no fact of a
GPU: its numbers stand in `sampling`.
"""

from __future__ import annotations

# -- code generation: machine code of 56 reductions, nvcc 13.0, sm_90 ----------------------

# Compute capability from which on nvcc distributes work over ALU and multiplier.
SHARED_WORK_FROM_CC_MAJOR = 7
# One in this number of additions of two numbers is an IMAD (94 of 228; of moves 64 of 80, taken as
# such additions).
ADDITIONS_AN_IMAD = 2

# -- the SM --------------------------------------------------------------------------------

# Accesses served in turn by the data stage, a pass each: 32-way conflicts occupy a warp twice as
# long as the SM. Loads of 1 to 32 wavefronts by 1 to 16 warps.
DATA_STAGE_SLOTS = 2
# Instructions after a barrier that are issued before the warp is held there.
ISSUED_BEHIND_A_BARRIER = 2

# The L1 fractions up to which all lines hit and from which on all miss were measured with 32 warps
# in a cyclic sweep; with half as many warps they are lower by this much. One warp misses from 0.79
# on and always from 1.0 on; 8 warps from 0.92 and 1.1, or 0.9 and 1.2 with a row for each.
L1_MEASURED_WARPS = 32
L1_EARLIER_BY_HALVING = 0.038, 0.06

# -- bulk copies, of an H200 (CUDA 13.0) -----------------------------------------------------

# Bytes whose lines come out of DRAM together: with pieces of 4 KB, copies of 16 bytes to 64 KB out
# of DRAM, 683 to 1,559 cycles, take within 9 % as long as loads of as many near lines.
BULK_PIECE_BYTES = 4096

# -- L2 ------------------------------------------------------------------------------------

# The L2 after a buffer of 256 MB that is set to zero: the part of it with lines to be written
# back, and the part of sectors read from DRAM that one of these makes room for. Sums of 1 to 256 MB
# take 0.1 us longer for each MB than after a read of the buffer, up to 8.4 us; copies half.
L2_DIRTY_FRACTION = 0.58
L2_EVICTED_FRACTION = 0.42

# Contiguous bytes with one of the units that serve atomics: words 4 to 4224 bytes apart, from 1 to
# 65,536 of them.
ATOMIC_UNIT_BYTES = 256

# Time on the link between L2 parts of a load from the far part alone, relative to a store of the
# same size: its SM's part keeps a copy. SMs that load, copy or update in place, with a quarter or
# half of the data far.
FAR_PASSES = 1.125

# Growth of the L2's latency with its utilisation by stores, relative to loads. A warp of each SM
# loads line by line while 1 to 31 others store 4 or 16 bytes a lane: it waits 16 cycles longer than
# on an idle L2 at a third of the maximum store rate, 41 at half, 109 at four fifths, and 215 at
# nine tenths.
L2_LATENCY_GROWTH_BY_STORES = 1.4

# Cycles of the L2 for a store to a line with a copy in another part, if another store to the line
# came just before, within `latency_cycles.flag`. Words at random in 0.25 to 16 MB, 1 to 16 loads
# for each store: within a sixth.
COPY_GIVEN_UP_CYCLES = 0.39

# Write-back of stored lines begins when stores have filled the first fraction of the L2's capacity
# for them and is complete from the second on: 8 to 96 MB stored, updated in place, or stored after
# reading as much. Beside continued reading, write-back goes by touches, at these fractions of the
# L2.
WRITTEN_EDGES = 0.8, 1.2
WRITTEN_BY_TOUCHES = 0.45, 0.8

# Partially stored sectors wait for their rest in this fraction of the L2; then DRAM reads it. A
# word of each 32 bytes, 34 MB of them: all but 7 MB of the sectors are read.
L2_PARTIAL_FRACTION = 1 / 9

# Sectors that a launch reads through the L2 for itself, and the number of times for its code.
# Kernels that read nothing else, of 256 to 2288 bytes of code, on 16 to 16,384 blocks.
LAUNCH_SECTORS = 900
CODE_READ_AGAIN = 8.8

# -- DRAM ----------------------------------------------------------------------------------

# Contiguous bytes from which on DRAM accesses are in order.
IN_ORDER_BYTES = 512

# Bytes that a launch reads for itself with a cold L2, besides its code, read in pieces. The same
# kernels.
LAUNCH_DRAM_BYTES = 2560
CODE_PIECE_BYTES = 256

# Ratio of reads to writes from which on writes have the full turnaround cost, that beside equally
# many reads: 1 row read and 1 to 15 written, in turn.
MIXED_FRACTION = 1 / 16

# Cycles of unused bandwidth credited to an SM: others were idle then.
BANDWIDTH_WINDOW_CYCLES = 2048
# Warps of a block with simultaneous fetches within a KB (`streams.distances.SHARED_LATENCY_LINES`)
# wait almost equally long, except for a fraction of the latency above the minimum that is a warp's
# own,
OWN_LATENCY_FRACTION = 0.15
# and for this fraction of the queueing delay of a busy DRAM.
OWN_QUEUE_FRACTION = 0.4

# A warp of an idle GPU waits for 2, 4 or 8 lines out of DRAM that lie 128 bytes to 64 MB apart. For
# lines that are near the wait grows as if each beyond the first were a quarter of a line with a
# latency of its own, in the middle three fifths, and beyond that four fifths; the same line counts
# nothing. By class of distance (`streams.distances`), in hundredths of a latency.
LATENCY = 100
LATENCY_BY_DISTANCE = (0, 25, 60, 80)
# Additional latencies for both halves of the first line, 64 bytes of DRAM each.
BOTH_HALVES = 20
SECTORS_OF_A_HALF = 2
