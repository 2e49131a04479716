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

# -- thread block clusters, of an H200 (CUDA 13.0) ------------------------------------------

# The SMs, of 132, that hold clusters of a size, by cudaOccupancyMaxActiveClusters for blocks of 256
# threads: 528, 248, 124 and 58 clusters of 2, 4, 8 and 16 blocks, eight blocks on an SM.
CLUSTER_SMS = {1: 1.0, 2: 1.0, 4: 124 / 132, 8: 124 / 132, 16: 116 / 132}
# From the end of an SM's blocks to the start of the next ones, beyond the time without clusters:
# 128 to 146 waves of blocks of 10,000 cycles. The next cluster waits until all of its SMs are free,
# with several blocks on an SM no longer than without.
CLUSTER_TURN_CYCLES = {1: 0, 2: 67, 4: 367, 8: 367, 16: 437}
# The time from one block's launch to the next, relative to blocks without clusters: 16,896 empty
# blocks.
CLUSTER_LAUNCH_FACTOR = {1: 1.0, 2: 1.48, 4: 1.24, 8: 1.1, 16: 1.06}
# From an arrival at a cluster's barrier to its end, beyond the barrier of a block: 200 relaxed
# barriers, less 200 of __syncthreads, by 32 to 1,024 threads. Clusters of 4 and 8 take 66 to 77, of
# 2 blocks 49 to 60, of 16 blocks 70 to 82.
CLUSTER_BARRIER_CYCLES = 67
# A load of another block's shared memory: one thread or warp follows places there, in clusters of
# 2, 4, 8 and 16 blocks; 196 to 216. Of its own block's by such an address, 41 to 45.
PEER_LOAD_CYCLES = 205

# -- bulk copies and mbarriers, of an H200 (CUDA 13.0) ---------------------------------------

# A bulk copy of 16 bytes out of the L2 and the wait for it take 313 cycles, a load 281: 32 are the
# engine's, the thread's, and from the end of the phase until a warp that waits for it goes on.
BULK_LOAD_CYCLES = 10
PHASE_NOTICED_CYCLES = 10
# Copies of 32 and 64 KB out of the L2 take 632 and 958 cycles: the rate of an SM's engine.
BULK_LOAD_BYTES_PER_CYCLE = 100
# Copies of 1 to 64 KB to global memory have been read after 51 cycles and one for each 32 bytes.
BULK_STORE_BYTES_PER_CYCLE = 32
BULK_STORE_CYCLES = 30
# From one copy to the next: of 8 to 64 copies of 16 bytes to 1 KB, in flight together.
BULK_LOAD_INTERVAL_CYCLES = 55
BULK_STORE_INTERVAL_CYCLES = 16
# Bytes whose lines come out of DRAM together: with pieces of 4 KB, copies of 16 bytes to 64 KB out
# of DRAM, 683 to 1,559 cycles, take within 9 % as long as loads of as many near lines.
BULK_PIECE_BYTES = 4096
# Boxes of tensor maps: of 1 to 64 rows a copy takes 390 to 420 cycles, one of as many bytes in one
# row 322 to 395; 64 rows of 16 bytes 400. Until a box has been read for its store, 55 to 60 more
# than a plain copy takes. An SM's first copy by a map takes 42 more, unless it was prefetched.
BOX_LOAD_CYCLES = 25
BOX_STORE_CYCLES = 55
BOX_LINE_CYCLES = 1
# The network between the SMs of a GPC: stores, st.async and bulk copies of 4 and 16 bytes a lane by
# 128 and 1,024 threads, to one block or by all, in clusters of 2 to 16: 19.8 to 21.3 bytes a cycle.
# A warp's atomics there take 13.9 cycles by all blocks of a cluster at once, for 32 words in a row,
# and 84 for words at random: it is sectors that count.
PEER_SECTOR_CYCLES = 1.54
PEER_ATOMIC_SECTOR_CYCLES = 3.5
# From st.async, or an arrival, to a warp that waits for it, there and back by two: 222 and 182
# cycles each way, in clusters of 2 to 16 alike, of which instructions take 35 to 80. A bulk copy of
# 16 bytes takes as long.
PEER_ARRIVAL_CYCLES = 145
# A bulk copy to several blocks takes so much longer than one to the block itself: of 1 to 16 KB, by
# one block or all, in clusters of 2 to 16.
MULTICAST_CYCLES = 265
# A warp's arrivals at an mbarrier: all threads of 8 to 32 warps arrive and wait, 87 to 217 cycles.
MBARRIER_ARRIVAL_INTERVAL_CYCLES = 5.4

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
