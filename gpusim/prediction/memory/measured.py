"""What the model knows of one GPU and no device file says: every number of it, with its source.

All were measured on an NVIDIA H200, or read off machine code for it, and hold for any GPU here
until they are measured there. What can be measured on its own belongs into the device files, as a
key with a default rule (`gpusim.gpu.device`). How much is simulated is no fact of a GPU: those
numbers stand in `sampling`.
"""

from __future__ import annotations

# -- code generation: machine code of 56 reductions, nvcc 13.0, sm_90 ----------------------

# Compute capability from which on nvcc spreads work over ALU and multiplier.
SHARED_WORK_FROM_CC_MAJOR = 7
# Of additions of two numbers, every so many-th is an IMAD (94 of 228 are; and 64 of 80 moves are,
# for which all of them stand).
ADDITIONS_AN_IMAD = 2

# -- the SM --------------------------------------------------------------------------------

# Accesses that the data stage serves in turn, a pass each: 32 ways of conflict keep a warp twice
# as long as the SM. Loads of 1 to 32 wavefronts by 1 to 16 warps.
DATA_STAGE_SLOTS = 2
# Instructions behind a barrier that are issued before the warp is held there.
ISSUED_BEHIND_A_BARRIER = 2

# The fractions of the L1 up to which lines are kept and from which on they are lost were measured
# with 32 warps that go over them in turn; with half as many they are so much less. One warp loses
# them from 0.79 on and has none left from 1.0 of it; 8 warps 0.92 and 1.1, or 0.9 and 1.2 where
# each goes over a row of its own.
L1_MEASURED_WARPS = 32
L1_EARLIER_BY_HALVING = 0.038, 0.06

# -- L2 ------------------------------------------------------------------------------------

# Bytes that lie together have one of the units that serve atomics: words 4 to 4224 bytes apart,
# from 1 to 65,536 of them.
ATOMIC_UNIT_BYTES = 256

# A load of what the far part alone has passes for so much longer than a store of as much: its SM's
# part keeps a copy. SMs that load, copy or change in place what a quarter or half is far of.
FAR_PASSES = 1.125

# How much more the latency of the L2 grows with its utilisation by stores than by loads. A warp of
# each SM loads line by line while 1 to 31 others store 4 or 16 bytes a lane: it waits 16 cycles
# longer than on an idle L2 at a third of what stores reach, 41 at half, 109 at four fifths, and 215
# at nine tenths.
L2_LATENCY_GROWTH_BY_STORES = 1.4

# Cycles for which the L2 is busy with a store to a line of which another part has a copy, where
# another store to the line has come just before, within `latency_cycles.flag`. Words at random in
# 0.25 to 16 MB, 1 to 16 loads for each store: within a sixth.
COPY_GIVEN_UP_CYCLES = 0.39

# Of what was stored some is written once stores have filled so much of the part of the L2 that
# keeps it, all from there on: 8 to 96 MB that are stored, updated in place, or stored after as much
# was read. Where reading goes on beside it, it is written as touches fill those parts of the L2.
WRITTEN_EDGES = 0.8, 1.2
WRITTEN_BY_TOUCHES = 0.45, 0.8

# Sectors that are stored in part wait for the rest in so much of the L2; then DRAM reads it. A word
# of each 32 bytes, 34 MB of them: all but 7 MB of the sectors are read.
L2_PARTIAL_FRACTION = 1 / 9

# A launch reads so many sectors through the L2 for itself, and those of its code so many times.
# Kernels that read nothing else, of 256 to 2288 bytes of code, on 16 to 16,384 blocks.
LAUNCH_SECTORS = 900
CODE_READ_AGAIN = 8.8

# -- DRAM ----------------------------------------------------------------------------------

# From so many bytes side by side on they are in order.
IN_ORDER_BYTES = 512

# What a launch reads for itself where the L2 has nothing of it, besides its code, which comes in
# pieces. The same kernels.
LAUNCH_DRAM_BYTES = 2560
CODE_PIECE_BYTES = 256

# Writing takes as much longer beside reads as beside as many of them, where these are no fewer than
# so much of the writes: 1 row read and 1 to 15 written, in turn.
MIXED_FRACTION = 1 / 16

# Cycles in which an SM may make up for bandwidth that it did not use: others rested then.
BANDWIDTH_WINDOW_CYCLES = 2048
# Warps of a block that fetch within a KB (`streams.distances.SHARED_LATENCY_LINES`) wait almost
# equally long, but for a fraction of the latency above the least that is a warp's own,
OWN_LATENCY_FRACTION = 0.15
# and this fraction of what a busy DRAM adds.
OWN_QUEUE_FRACTION = 0.4

# A warp of an idle GPU waits for 2, 4 or 8 lines out of DRAM that lie 128 bytes to 64 MB apart. For
# lines that are near the wait grows as if each beyond the first were a quarter of a line with a
# latency of its own, in the middle three fifths, and beyond that four fifths; the same line counts
# nothing. By class of distance (`streams.distances`), in hundredths of a latency.
LATENCY = 100
LATENCY_BY_DISTANCE = (0, 25, 60, 80)
# Both halves of the first line, 64 bytes of DRAM each, add so much to it.
BOTH_HALVES = 20
SECTORS_OF_A_HALF = 2
