"""Integers of 8 to 128 bits: operators, the API's intrinsics, SIMD words, and PTX's arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

from .operation import Operation, expressions, functions

KINDS = ("char", "uchar", "short", "ushort", "int", "uint", "ll", "ull")
BITS = {"char": 8, "uchar": 8, "short": 16, "ushort": 16, "int": 32, "uint": 32, "ll": 64, "ull": 64,
        "int128": 128, "uint128": 128}  # fmt: skip
PER_TWO_AND_FOUR = (
    "vadd vaddss vaddus vavgs vavgu vhaddu vcmpeq vcmpges vcmpgeu vcmpgts vcmpgtu vcmples vcmpleu "
    "vcmplts vcmpltu vcmpne vabsdiffu vabsdiffs vmaxs vmaxu vmins vminu vseteq vsetges vsetgeu "
    "vsetgts vsetgtu vsetles vsetleu vsetlts vsetltu vsetne vsadu vsads vsub vsubss vsubus"
)


def operations() -> Iterator[Operation]:
    """Yield the room's operations."""
    for kind in KINDS:
        yield from _operators(kind)
    yield from _wide()
    yield from _intrinsics()
    yield from _words()
    yield from _ptx()


def _operators(kind: str) -> Iterator[Operation]:
    bits = BITS[kind]
    unsigned = {"char": "uchar", "short": "ushort", "int": "uint", "ll": "ull"}.get(kind, kind)
    rows = [
        ("add", f"({unsigned})a + ({unsigned})b"), ("sub", f"({unsigned})a - ({unsigned})b"),
        ("mul", f"({unsigned})a * ({unsigned})b" if bits > 16 else "(uint)a * (uint)b"),
        ("div", "b ? (b == -1 ? 0 : a / b) : 1"),
        ("mod", "b ? (b == -1 ? 0 : a % b) : 1"),
        ("and", "a & b"), ("or_not", "a | ~b"), ("xor", "a ^ b"),
        ("shl", f"({unsigned})a << (b & {bits - 1})"), ("shr", f"a >> (b & {bits - 1})"),
        ("least", "a < b ? a : b"), ("most", "a > b ? a : b"),
        ("abs_difference", f"a > b ? ({unsigned})a - ({unsigned})b : ({unsigned})b - ({unsigned})a"),
        ("rotate", f"(({unsigned})a << (b & {bits - 1})) | (({unsigned})a >> (-b & {bits - 1}))"),
    ]  # fmt: skip
    yield from expressions(f"{kind}({kind},{kind})", rows, exact=True)
    yield from expressions(
        f"int({kind},{kind})",
        [
            ("compare", "(a < b) | (a <= b) << 1 | (a > b) << 2 | (a >= b) << 3 | (a == b) << 4"),
            ("compare_sum", "a + b > a"),
            ("logic", "(a && b) | (a || b) << 1 | !a << 2"),
        ],
        exact=True,
    )
    constants = [3, 7, 10, 16, 25, 60, 100, 125] + ([1000, 1 << 20, 65537] if bits > 16 else [])
    rows = [(f"div_{n}", f"a / {n}") for n in constants] + [
        (f"mod_{n}", f"a % {n}") for n in constants
    ]
    rows += [(f"mul_{'m' if n < 0 else ''}{abs(n)}", f"({unsigned})a * ({unsigned}){n}")
             for n in (-2, -1, 3, 5, 9, 10, 24, 255, -7)]  # fmt: skip
    rows += [("negate", f"-({unsigned})a"), ("increment", f"({unsigned})a + 1"), ("not", "~a")]
    yield from expressions(f"{kind}({kind})", rows, exact=True)
    if bits >= 32:
        yield from expressions(
            f"{kind}({kind},{kind},{kind})",
            [
                ("mad", f"({unsigned})a * ({unsigned})b + ({unsigned})c"),
                ("sum3", f"({unsigned})a + ({unsigned})b - ({unsigned})c"),
                ("shift_add", f"(({unsigned})a << 3) + ({unsigned})b - (({unsigned})c << 2)"),
                ("logic3", "(a & b) | (~a & c)"), ("majority", "(a & b) ^ (b & c) ^ (a & c)"),
                ("select", "a ? b : c"), ("clamp", "a < b ? b : a > c ? c : a"),
                ("max3", "max(max(a, b), c)"), ("min_max", "min(max(a, b), c)"),
                ("add_max", f"max(({kind})(({unsigned})a + ({unsigned})b), c)"),
            ],
            exact=True,
        )  # fmt: skip


def _wide() -> Iterator[Operation]:
    for kind in ("int128", "uint128"):
        rows = [
            ("add", "(uint128)a + (uint128)b"), ("sub", "(uint128)a - (uint128)b"),
            ("mul", "(uint128)a * (uint128)b"), ("shl", "(uint128)a << ((int)b & 127)"),
            ("shr", "a >> ((int)b & 127)"), ("xor", "a ^ b"), ("min", "a < b ? a : b"),
            ("div", "b ? (b == -1 ? 0 : a / b) : 1"), ("mod", "b ? (b == -1 ? 0 : a % b) : 1"),
        ]  # fmt: skip
        yield from expressions(f"{kind}({kind},{kind})", rows, exact=True)
    yield from expressions("uint128(ull,ull)", [("wide_product", "(uint128)a * b")], exact=True)
    yield from expressions("int128(ll,ll)", [("wide_product", "(int128)a * b")], exact=True)


def _intrinsics() -> Iterator[Operation]:
    yield from functions("int(int)", "__clz __ffs abs", exact=True)
    yield from functions("int(uint)", "__popc", exact=True)
    yield from functions("uint(uint)", "__brev", exact=True)
    yield from functions("int(ll)", "__clzll __ffsll", exact=True)
    yield from functions("int(ull)", "__popcll", exact=True)
    yield from functions("ull(ull)", "__brevll", exact=True)
    yield from functions("ll(ll)", "llabs", exact=True)
    yield from functions("int(int,int)", "__mulhi __mul24 __hadd __rhadd min max", exact=True)
    yield from functions(
        "uint(uint,uint)", "__umulhi __umul24 __uhadd __urhadd umin umax", exact=True
    )
    yield from functions("ll(ll,ll)", "__mul64hi llmin llmax", exact=True)
    yield from functions("ull(ull,ull)", "__umul64hi ullmin ullmax", exact=True)
    yield from functions("uint(int,int,uint)", "__sad", exact=True)
    yield from functions(
        "uint(uint,uint,uint)",
        "__usad __byte_perm __funnelshift_l __funnelshift_r __funnelshift_lc __funnelshift_rc "
        "__dp4a __dp2a_lo __dp2a_hi",
        exact=True,
    )
    yield from functions("int(int,int,int)", "__dp4a __dp2a_lo __dp2a_hi", exact=True)
    yield from functions("uint(uint,uint,int)", "__fns", exact=True)


def _words() -> Iterator[Operation]:
    for width in ("2", "4"):
        names = " ".join(f"__{name}{width}" for name in PER_TWO_AND_FOUR.split())
        yield from functions("uint(uint,uint)", names, exact=True)
        unary = " ".join(f"__{name}{width}" for name in ("vabs", "vabsss", "vneg", "vnegss"))
        yield from functions("uint(uint)", unary, exact=True)
    three, relu2, relu3, add3 = [], [], [], []
    for kind in ("s32", "u32", "s16x2", "u16x2"):
        three += [f"__vimax3_{kind}", f"__vimin3_{kind}"]
        add3 += [f"__viaddmax_{kind}", f"__viaddmin_{kind}"]
        if kind[0] == "s":
            relu2 += [f"__vimax_{kind}_relu", f"__vimin_{kind}_relu"]
            relu3 += [f"__vimax3_{kind}_relu", f"__vimin3_{kind}_relu",
                      f"__viaddmax_{kind}_relu", f"__viaddmin_{kind}_relu"]  # fmt: skip
    for name in three + add3 + relu3:
        kind = "int" if "_s32" in name else "uint"
        yield from functions(f"{kind}({kind},{kind},{kind})", name, exact=True)
    for name in relu2:
        kind = "int" if "_s32" in name else "uint"
        yield from functions(f"{kind}({kind},{kind})", name, exact=True)
    for kind, of in (("s32", "int"), ("u32", "uint")):
        for op in ("max", "min"):
            body = f"bool p; r = __vib{op}_{kind}(a, b, &p); r ^= p ? 0x55 : 0;"
            yield Operation(f"vib{op}_{kind}", of, (of, of), body, exact=True)
    for kind in ("s16x2", "u16x2"):
        for op in ("max", "min"):
            body = (
                f"bool p, q; r = __vib{op}_{kind}(a, b, &p, &q); r ^= (p ? 5 : 0) ^ (q ? 80 : 0);"
            )
            yield Operation(f"vib{op}_{kind}", "uint", ("uint", "uint"), body, exact=True)


def _ptx() -> Iterator[Operation]:
    for text in ("bfe.u32", "bfe.s32"):
        yield _three(text, "r")
    yield Operation(
        "ptx_bfi_b32", "uint", ("uint", "uint", "uint"),
        'asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(b), "r"(c & 63), "r"(c >> 6 & 63));',
        exact=True,
    )  # fmt: skip
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        yield _three(f"prmt.b32.{mode}", "r")
    for text in ("bfind.u32", "bfind.s32", "bfind.shiftamt.u32", "bfind.shiftamt.s32"):
        body = f'asm("{text} %0, %1;" : "=r"(r) : "r"(a));'
        yield Operation("ptx_" + text.replace(".", "_"), "uint", ("uint",), body, exact=True)
    for text in ("bfind.u64", "bfind.s64", "bfind.shiftamt.u64"):
        body = f'asm("{text} %0, %1;" : "=r"(r) : "l"(a));'
        yield Operation("ptx_" + text.replace(".", "_"), "uint", ("ull",), body, exact=True)
    for text in ("mad.hi.s32", "mad.hi.u32", "mad.lo.u32", "mad24.lo.s32", "mad24.hi.u32", "sad.s32",
                 "sad.u32", "shf.l.wrap.b32", "shf.r.wrap.b32", "shf.l.clamp.b32",
                 "shf.r.clamp.b32", "dp4a.s32.u32", "dp4a.u32.s32", "dp2a.lo.s32.u32",
                 "dp2a.hi.u32.s32", "mad.hi.sat.s32", "lop3.b32"):  # fmt: skip
        yield _three(text, "r", ", 0x6a" if text.startswith("lop3") else "")
    for text in ("add.sat.s32", "sub.sat.s32", "mul24.lo.s32", "mul24.hi.u32", "shl.b32", "shr.u32",
                 "shr.s32", "szext.wrap.s32", "szext.clamp.u32", "bmsk.wrap.b32",
                 "bmsk.clamp.b32", "add.s16x2", "max.s16x2", "min.u16x2", "max.relu.s32"):  # fmt: skip
        body = f'asm("{text} %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));'
        yield Operation("ptx_" + text.replace(".", "_"), "uint", ("uint", "uint"), body, exact=True)
    for text in ("shl.b64", "shr.u64", "shr.s64"):
        body = f'asm("{text} %0, %1, %2;" : "=l"(r) : "l"(a), "r"((uint)b));'
        yield Operation("ptx_" + text.replace(".", "_"), "ull", ("ull", "ull"), body, exact=True)
    yield Operation(
        "ptx_carry_chain", "uint2", ("uint", "uint", "uint"),
        'asm("add.cc.u32 %0, %2, %3; addc.u32 %1, %4, %2;" : "=r"(r.x), "=r"(r.y)'
        ' : "r"(a), "r"(b), "r"(c));',
        exact=True,
    )  # fmt: skip
    yield Operation(
        "ptx_borrow_chain", "uint2", ("uint", "uint", "uint"),
        'asm("sub.cc.u32 %0, %2, %3; subc.u32 %1, %4, %2;" : "=r"(r.x), "=r"(r.y)'
        ' : "r"(a), "r"(b), "r"(c));',
        exact=True,
    )  # fmt: skip
    yield Operation(
        "ptx_mad_chain", "uint2", ("uint", "uint", "uint"),
        'asm("mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, %4;" : "=r"(r.x), "=r"(r.y)'
        ' : "r"(a), "r"(b), "r"(c));',
        exact=True,
    )  # fmt: skip
    video = ("vadd.s32.s32.s32", "vsub.s32.u32.s32.sat", "vmin.s32.s32.s32", "vabsdiff.u32.s32.s32",
             "vshl.u32.u32.u32.clamp", "vset.s32.s32.lt")  # fmt: skip
    for text in video:
        body = f'asm("{text} %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));'
        yield Operation("ptx_" + text.replace(".", "_"), "uint", ("uint", "uint"), body, exact=True)


def _three(text: str, letter: str, more: str = "") -> Operation:
    body = f'asm("{text} %0, %1, %2, %3{more};" : "={letter}"(r) : "{letter}"(a), "{letter}"(b), "{letter}"(c));'
    return Operation("ptx_" + text.replace(".", "_"), "uint", ("uint",) * 3, body, exact=True)
