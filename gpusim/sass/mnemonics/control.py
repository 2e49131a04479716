"""Control flow, convergence, barriers, and operations among lanes."""

from __future__ import annotations

from gpusim.isa.ops import OPS, Op
from gpusim.sass.table import add

add("BRA", OPS["BRA"], modifiers="U ANY", kind="branch", shape="p?l")
add("BRA.DIV BRA.CONV", OPS["BRA.APART"], kind="branch_if_apart", shape="q?m?l")
add("CALL.REL", OPS["CALL.REL"], modifiers="NOINC", kind="call", shape="o?l")
add("RET.REL", OPS["RET.REL"], modifiers="NODEC", kind="return", shape="ol")
add("CALL.ABS", OPS["CALL.ABS"], modifiers="NOINC", kind="call_driver", shape="o?c?")
add("BPT.TRAP", OPS["BPT.TRAP"], kind="trap", shape="#")
add("LEPC", OPS["bits.LEPC"], kind="address_of_code", shape="ol?")
add("BRX", OPS["BRX"], kind="indexed_branch", shape="t")
add("EXIT", OPS["EXIT"], kind="exit", shape="p?")
add("BSSY", OPS["BSSY"], modifiers="RECONVERGENT RELIABLE", kind="bssy", shape="p?bl")
add("BSYNC", OPS["BSYNC"], modifiers="RECONVERGENT RELIABLE", kind="bsync", shape="p?b")
add("BREAK", OPS["BREAK"], modifiers="RELIABLE", kind="break", shape="p?b")
add("BMOV.32", OPS["BMOV.SET"], kind="move_token", shape="bw")
add("BMOV.32.CLEAR", OPS["BMOV.GET"], kind="move_token", shape="ob")
add("WARPSYNC", OPS["WARPSYNC.MASK"], modifiers="EXCLUSIVE", kind="warpsync", shape="w")
add("WARPSYNC.ALL", OPS["WARPSYNC.MASK"], kind="warpsync")
add(
    "WARPSYNC.COLLECTIVE",
    OPS["WARPSYNC.COLLECTIVE"],
    modifiers="ALL",
    kind="collective",
    shape="w?l",
)
add("ENDCOLLECTIVE", OPS["bits.ENDCOLLECTIVE"])
# A grid begins when the one before is over: there is nothing to wait for, or to let begin.
add("ACQBULK PREEXIT", OPS["ERRBAR"], kind="fence")
add("UCGABAR_ARV", OPS["UCGABAR_ARV"], kind="barrier_of_cluster")
add("UCGABAR_WAIT", OPS["UCGABAR_WAIT"], kind="barrier_of_cluster")
add("YIELD", Op("cbu", yields=True))
add("NANOSLEEP", Op("cbu", yields=True), modifiers="WARP SYNCS", kind="compute", shape="w")
add("USETMAXREG.DEALLOC.CTAPOOL", "cbu", kind="compute", shape="#")
add("DEPBAR", OPS["DEPBAR"], modifiers="LE", kind="await_copies", shape="t?w?k?")

add("BAR", OPS["BAR"], modifiers="SYNC DEFER_BLOCKING", kind="barrier", detail="sync", shape="ww?")
add("BAR.ARV", OPS["BAR.ARV"], kind="arrive", shape="ww")
add(
    "BAR.RED",
    OPS["BAR"],
    modifiers="POPC AND OR DEFER_BLOCKING",
    kind="barrier_reduction",
    shape="#p",
)
add("B2R.RESULT", OPS["bits.B2R.RESULT"], kind="barrier_result", shape="oq?")
add("LDGDEPBAR", OPS["LDGDEPBAR"], kind="commit_copies")
add("MATCH.ALL", OPS["MATCH.LANES"], modifiers="U64", kind="match", shape="qoo")
add("MATCH.ANY", OPS["MATCH.LANES"], modifiers="U64", kind="match", shape="oo")
add("REDUX", OPS["REDUX.LANES"], modifiers="SUM MIN MAX OR XOR S32", kind="redux", shape="oo")
add("CREDUX.MIN CREDUX.MAX", OPS["REDUX.LANES"], modifiers="S32", kind="redux", shape="oo")
add("SHFL", OPS["SHFL.LANES"], modifiers="IDX UP DOWN BFLY", kind="exchange", shape="qooww")
add("MOVM", OPS["MOVM.LANES"], modifiers="16 MT88", kind="transpose", shape="oo")
add("ELECT", OPS["ELECT.LANES"], kind="elect", shape="qop")
add("VOTE VOTEU", OPS["VOTE.LANES"], modifiers="ALL ANY EQ", kind="vote", shape="o?qp")

add("S2R S2UR", OPS["S2R"], kind="special", shape="os")
add("CS2R CS2UR", OPS["CS2R"], modifiers="32", kind="special", shape="os")
