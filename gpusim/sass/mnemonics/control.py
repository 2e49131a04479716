"""Who runs what next: branches, convergence, barriers, lanes of a warp together."""

from __future__ import annotations

from gpusim.sass.table import add

add("BRA", "cbu", modifiers="U", kind="branch")
add("BRA.DIV BRA.CONV", "cbu", kind="branch_if_apart")
add("CALL.REL", "cbu", modifiers="NOINC", kind="call")
add("RET.REL", "cbu", modifiers="NODEC", kind="return")
add("CALL.ABS", "cbu", modifiers="NOINC", kind="call_driver")
add("BPT.TRAP", "cbu", kind="trap")
add("LEPC", "alu", kind="address_of_code")
add("BRX", "cbu", kind="indexed_branch")
add("EXIT", "cbu", kind="exit")
add("BSSY", "cbu", modifiers="RECONVERGENT RELIABLE", kind="bssy")
add("BSYNC", "cbu", modifiers="RECONVERGENT RELIABLE", kind="bsync")
add("BREAK", "cbu", modifiers="RELIABLE", kind="break")
add("BMOV.32", "cbu", modifiers="CLEAR", kind="move_token")
add("WARPSYNC", "cbu", modifiers="ALL EXCLUSIVE", kind="warpsync")
add("WARPSYNC.COLLECTIVE", "cbu", modifiers="ALL", kind="collective")
add("ENDCOLLECTIVE", "cbu", kind="compute")
add("YIELD NANOSLEEP", "cbu", modifiers="WARP", kind="compute")
add("DEPBAR", "adu", modifiers="LE", kind="await_copies")

add("BAR", "adu", modifiers="SYNC DEFER_BLOCKING", kind="barrier", detail="sync")
add("BAR.ARV", "adu", kind="arrive")
add("BAR.RED", "adu", modifiers="POPC AND OR DEFER_BLOCKING", kind="barrier_reduction")
add("B2R.RESULT", "adu", kind="barrier_result")
add("LDGDEPBAR", "lsu", kind="commit_copies")
add("MATCH", "vote", modifiers="ANY ALL U64", kind="match")
add("REDUX", "vote", modifiers="SUM MIN MAX OR XOR S32", kind="redux")
add("SHFL", "lsu", modifiers="IDX UP DOWN BFLY", kind="exchange")
add("VOTE VOTEU", "vote", modifiers="ALL ANY", kind="poll")

add("S2R S2UR", "registers", kind="special")
add("CS2R", "alu", modifiers="32", kind="special")
