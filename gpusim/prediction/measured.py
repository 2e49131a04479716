"""What the model knows of one GPU and no device file says: every number of it, with its source.

All were measured on an NVIDIA H200, or read off machine code for it, and hold for any GPU here
until they are measured there. What can be measured on its own belongs into the device files, as a
key with a default rule (`gpusim.device`). How much is simulated is no fact of a GPU: those numbers
stand in `sampling`.
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
# Constants come to an SM so many bytes at a time: loads 64 and 256 bytes apart, the L2 emptied.
CONSTANT_PIECE_BYTES = 256
# A warp's constants come so long after each other, whatever other warps look up: 1 to 32 of them by
# one LDC, or by one to four LDC that do not wait for each other.
CONSTANT_OF_A_WARP_CYCLES = 11
# Instructions behind a barrier that are issued before the warp is held there.
ISSUED_BEHIND_A_BARRIER = 2

# Of a store right behind another of its warp to the same sectors so much leaves the SM with that,
# of two at a time: halves and quarters of sectors in a row (0.25 where only stores take the time,
# to 0.47; sectors that leave the L1, as Nsight Compute counts them).
STORE_JOINED = 0.4

# Of the memory that shared memory leaves an L1 so much holds no lines: what loads at random places
# of 512 KB find, with 28 combinations of shared memory and block size.
L1_WITHOUT_LINES_BYTES = 8 << 10
# Once blocks have ended and others begun, an L1 has of lines that were touched once or twice before
# all up to the first part of it that came since, nothing from the second on. Rows of 4 to 64 KB
# that blocks read two or three times, eight of them on an SM at a time and 32 in all; the first
# eight find all that fits.
L1_KEPT_AND_LOST_LATER = 0.15, 0.9

# -- L2 ------------------------------------------------------------------------------------

# Bytes that lie together have one of the units that serve atomics, and of few such places two
# have one: words 4 to 4224 bytes apart, from 1 to 65,536 of them.
ATOMIC_UNIT_BYTES, ATOMIC_PLACES_A_UNIT = 256, 2
# The four places of a kilobyte have two units where it is aligned, four where it is not: on the
# mean so many passes go on at a time (8 lines that begin at 16 places).
ATOMICS_IN_A_KILOBYTE = 2.8
# A pass over a sector all of whose words are updated takes so much of one over less (1 to 8 words
# of 1 to 8 sectors).
WHOLE_SECTOR_PASS = 0.8
# Where atomics keep all units busy, a sector that is read takes one as long as so much of a pass,
# one out of DRAM so much more (atomics at random in 65,536 lines with 1 to 4 rows of loads each; in
# 2,048 lines it is less, and of atomics on one word nothing is seen of it).
PASS_OF_A_READ, PASS_OF_A_MISS = 0.2, 0.3
# An atomic leaves its SM as a packet for each sector and so many more: 1 to 32 sectors a request.
ATOMIC_PACKETS = 2
# Of four loads of what another SM brought one finds it in the far part of the L2 alone, and e times
# fewer after each so many loads of it since: gathers of 1 to 8 lines out of 0.25 to 16 MB that each
# SM has brought a part of.
FAR_FRACTION, FAR_TOUCHES = 0.25, 4.4
# Lines of the L2 that lie at random are so much earlier or later than the mean: gathers of 1 to 32
# lines out of 0.25 to 16 MB wait so much longer for the last of them.
L2_PLACES_CYCLES = 27

# Of what was stored some is written once stores have filled so much of the part of the L2 that
# keeps it, all from there on: 8 to 96 MB that are stored, updated in place, or stored after as much
# was read. Where reading goes on beside it, it is written as touches fill those parts of the L2.
WRITTEN_EDGES = 0.8, 1.2
WRITTEN_BY_TOUCHES = 0.45, 0.8

# Sectors that are stored in part wait for the rest in so much of the L2; then DRAM reads it. A word
# of each 32 bytes, 34 MB of them: all but 7 MB of the sectors are read.
L2_PARTIAL_FRACTION = 1 / 9

# -- DRAM ----------------------------------------------------------------------------------

# A grain of 64 bytes of each line in order takes DRAM so much longer than whole lines do: every 128
# bytes of 512 MB.
GRAIN_OF_LINES = 1.15
# From so many bytes side by side on they are in order.
IN_ORDER_BYTES = 512

# Writing takes as much longer beside reads as beside as many of them, where these are no fewer than
# so much of the writes: 1 row read and 1 to 15 written, in turn.
MIXED_FRACTION = 1 / 16

# Cycles in which an SM may make up for bandwidth that it did not use: others rested then.
BANDWIDTH_WINDOW_CYCLES = 2048
# Warps of a block that fetch within so many 128-byte lines (1 KB) at once wait almost equally long:
SHARED_LATENCY_LINES = 8
# but for a fraction of the latency above the least that is a warp's own,
OWN_LATENCY_FRACTION = 0.15
# and this fraction of what a busy DRAM adds.
OWN_QUEUE_FRACTION = 0.4

# A warp of an idle GPU waits for 2, 4 or 8 lines out of DRAM that lie 128 bytes to 64 MB apart. For
# lines within 512 bytes the wait grows as if each beyond the first were a quarter of a line with a
# latency of its own, within 4 KB three fifths, and beyond that four fifths; the same line counts
# nothing. By class of distance (`streams.distances`), in hundredths of a latency.
NEAR_BYTES, MIDDLE_BYTES = 512, 4096
LATENCY = 100
LATENCY_BY_DISTANCE = (0, 25, 60, 80)
# Both halves of the first line, 64 bytes of DRAM each, add so much to it.
BOTH_HALVES = 20
SECTORS_OF_A_HALF = 2
