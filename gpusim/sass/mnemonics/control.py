"""Who runs what next: branches, convergence, barriers, lanes of a warp together."""

from __future__ import annotations

from gpusim.sass.table import add

add("BRA", "cbu", modifiers="U", kind="branch", shape="p?l")
add("BRA.DIV BRA.CONV", "cbu", kind="branch_if_apart", shape="q?m?l")
add("CALL.REL", "cbu", modifiers="NOINC", kind="call", shape="o?l")
add("RET.REL", "cbu", modifiers="NODEC", kind="return", shape="ol")
add("CALL.ABS", "cbu", modifiers="NOINC", kind="call_driver", shape="o")
add("BPT.TRAP", "cbu", kind="trap", shape="#")
add("LEPC", "alu", kind="address_of_code", shape="ol?")
add("BRX", "cbu", kind="indexed_branch", shape="t")
add("EXIT", "cbu", kind="exit", shape="p?")
add("BSSY", "cbu", modifiers="RECONVERGENT RELIABLE", kind="bssy", shape="p?bl")
add("BSYNC", "cbu", modifiers="RECONVERGENT RELIABLE", kind="bsync", shape="p?b")
add("BREAK", "cbu", modifiers="RELIABLE", kind="break", shape="p?b")
add("BMOV.32", "cbu", kind="move_token", shape="bw")
add("BMOV.32.CLEAR", "cbu", kind="move_token", shape="ob")
add("WARPSYNC", "cbu", modifiers="EXCLUSIVE", kind="warpsync", shape="w")
add("WARPSYNC.ALL", "cbu", kind="warpsync")
add("WARPSYNC.COLLECTIVE", "cbu", modifiers="ALL", kind="collective", shape="w?l")
add("ENDCOLLECTIVE", "cbu", kind="compute")
add("YIELD", "cbu", kind="compute")
add("NANOSLEEP", "cbu", modifiers="WARP", kind="compute", shape="w")
add("DEPBAR", "adu", modifiers="LE", kind="await_copies", shape="t?w?k?")

add("BAR", "adu", modifiers="SYNC DEFER_BLOCKING", kind="barrier", detail="sync", shape="ww?")
add("BAR.ARV", "adu", kind="arrive", shape="ww")
add("BAR.RED", "adu", modifiers="POPC AND OR DEFER_BLOCKING", kind="barrier_reduction", shape="#p")
add("B2R.RESULT", "adu", kind="barrier_result", shape="oq?")
add("LDGDEPBAR", "lsu", kind="commit_copies")
add("MATCH.ALL", "vote", modifiers="U64", kind="match", shape="qoo")
add("MATCH.ANY", "vote", modifiers="U64", kind="match", shape="oo")
add("REDUX", "vote", modifiers="SUM MIN MAX OR XOR S32", kind="redux", shape="oo")
add("SHFL", "lsu", modifiers="IDX UP DOWN BFLY", kind="exchange", shape="qooww")
add("ELECT", "vote", kind="elect", shape="qop")
add("VOTE VOTEU", "vote", modifiers="ALL ANY EQ", kind="vote", shape="o?qp")

add("S2R S2UR", "registers", kind="special", shape="os")
add("CS2R", "alu", modifiers="32", kind="special", shape="os")
