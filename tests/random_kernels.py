"""Random kernels of the dialect, each defined for every launch that it is given, from a seed.

No lane reads what another may be writing, indices stay within their arrays, loops end, and
lanes that meet are all there. Floats are added or multiplied, never both in one kernel: at -O3 a
product and a sum are joined, as by nvcc, which also halves a product before it is rounded
(FMUL.D2): no number that they are multiplied with is 0.5. It takes x * x >= -1 for true, even of a
NaN: none is multiplied by itself. The sign of a NaN decides nothing.
What exponentials, roots and their like give goes to `out_near` alone, for their last bits are
nobody's promise; what depends on the order in which lanes come is in `UNORDERED`, to be compared
as a heap of numbers.
"""

from __future__ import annotations

import linecache
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusim import cuda
from gpusim.cuda import Kernel

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float32", "float64")
PAIRED = ("int32", "uint32", "int64", "uint64", "float32", "float64")
ATOMICS = ("int32", "uint32", "int64", "uint64")
BLOCKS = (32, 32, 64, 96, (32,), (8, 4), (4, 4, 2), (16, 6), (1, 32), (3, 32), (2, 16, 2),
          (5, 7), (33,), (3, 2, 5), 40)  # fmt: skip
GRIDS = (1, 1, 2, (2,), (1, 2), (2, 1, 2), (1, 3))
UNORDERED = ("slots", "chain")
NEAR = "out_near"
FUNCTIONS = ("exp({0})", "exp2({0})", "expm1({0})", "log({0})", "log2({0})", "log10({0})",
             "log1p({0})", "sin({0})", "cos({0})", "tan({0})", "asin({0})", "acos({0})",
             "atan({0})", "atan2({0}, {1})", "sinh({0})", "cosh({0})", "tanh({0})",
             "pow({0}, {1})", "hypot({0}, {1})")  # fmt: skip
EDGES = (0, 1, 2, 3, 5, 7, 31, 32, 33, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**31 - 1,
         2**31, 2**32 - 1, 2**32, 2654435761, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)  # fmt: skip
REALS = ("0.0", "-0.0", "0.7", "1.0", "0.1", "3.0", "-7.25", "1e10", "-3e38", "1e400", "5e-324")
FULL = "0xFFFFFFFF"


PLACES = [
    f"cuda.{of}.{axis}" for of in ("threadIdx", "blockIdx", "blockDim", "gridDim") for axis in "xyz"
] + ["cuda.laneid", "cuda.gridsize(1)", "cuda.grid(1)"]


@dataclass(frozen=True)
class RandomKernel:
    """A kernel and its launch. `arguments` are made anew each time: arrays hold the results."""

    seed: int
    source: str
    kernel: Kernel
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    makes: tuple[Any, ...]

    def arguments(self) -> list[Any]:
        """Return the arguments, each array a copy of its own."""
        return [
            make.copy(order="K") if isinstance(make, np.ndarray) else make for make in self.makes
        ]


def random_kernel(seed: int) -> RandomKernel:
    """Return the kernel of a seed."""
    return _Writer(seed).written()


class _Writer:
    """Writes one kernel, statement by statement."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 1
        self.names = 0
        self.variables: dict[str, str] = {}
        self.float_ops = self.random.choice((("+", "-"), ("*", "/")))
        self.grid: int | tuple[int, ...] = self.random.choice(GRIDS)
        self.block: int | tuple[int, ...] = self.random.choice(BLOCKS)
        self.threads = int(np.prod(self.block))
        self.parameters: dict[str, Any] = {}
        self.functions: list[str] = []
        self.two: list[bool] = []

    def written(self) -> RandomKernel:
        """Write device functions, then the kernel, and compile them."""
        self._arrays(int(np.prod(self.grid)) * self.threads)
        for _ in range(self.random.randrange(4)):
            self._device_function()
        body = self._kernel()
        text = "\n".join((*self.functions, *body)) + "\n"
        file = f"random_kernel_{self.seed}.py"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        scope: dict[str, Any] = {"cuda": cuda, "np": np, "math": __import__("math")}
        exec(compile(text, file, "exec"), scope)
        makes = tuple(self.parameters.values())
        return RandomKernel(self.seed, text, scope["kernel"], self.grid, self.block, makes)

    # -- what there is to compute with -----------------------------------------------------

    def _arrays(self, threads: int) -> None:
        for name, shape in (("a", (threads,)), ("b", (threads,)), ("m", (4, 8)), ("t", (2, 3, 4))):
            self.parameters[name] = self._values(self._dtype(), shape)
        if self.random.random() < 0.3:
            self.parameters["m"] = self._values(self._dtype(), (8, 4)).T
        if self.random.random() < 0.2:
            self.parameters["t"] = self._values(self._dtype(), (4, 3, 4))[::-2, :, ::-1]
        for name in ("x", "y"):
            self.parameters[name] = self._values(self._dtype(), (1,))[0]
        for name, shape in (("acc", (8,)), ("sums", (4,)), ("own", (threads,))):
            self.parameters[name] = self._values(self.random.choice(ATOMICS), shape)
        for name, size in (("slots", threads + 1), ("chain", threads + 1)):
            self.parameters[name] = np.zeros(size, "int32")
        self.parameters["pairs"] = self._values(self.random.choice(PAIRED), (threads * 2,))
        for dtype in ("int64", "uint64", "float64", "int16"):
            self.parameters[f"out_{dtype}"] = np.zeros(threads * 4, dtype)
        self.parameters[NEAR] = np.zeros(threads * 4, "float64")

    def _dtype(self) -> str:
        return self.random.choice((*INTEGERS, *FLOATS, *FLOATS, "bool"))

    def _values(self, dtype: str, shape: tuple[int, ...]) -> Any:
        numbers = np.random.default_rng(self.random.randrange(2**32))
        count = int(np.prod(shape))
        if dtype == "bool":
            made = numbers.integers(0, 2, count).astype(bool)
        elif dtype in FLOATS:
            made = numbers.integers(-40, 40, count).astype(dtype) / 4
            special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e30, -3e9, 1e-30], dtype)
            made = np.where(numbers.random(count) < 0.15, numbers.choice(special, count), made)
        else:
            limits = np.iinfo(dtype)
            small = numbers.integers(max(-9, limits.min), 9, count).astype(dtype)
            large = numbers.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
            edge = numbers.choice(np.array([limits.min, limits.max], dtype), count)
            kind = numbers.random(count)
            made = np.where(kind < 0.6, small, np.where(kind < 0.85, large, edge))
        return made.astype(dtype).reshape(shape)

    def _kind(self, dtype: Any) -> str:
        return {"b": "bool", "f": "float"}.get(np.dtype(dtype).kind, "int")

    def _leaves(self, kind: str) -> list[str]:
        found = [name for name, of in self.variables.items() if of == kind]
        if self.depth and self._in_kernel:
            found += [n for n in ("x", "y") if self._kind(self.parameters[n].dtype) == kind]
            places = {"a": "a[i]", "b": "b[i]", "m": "m[i & 3, i & 7]", "t": "t[i & 1, i % 3, 2]"}
            found += [p for n, p in places.items() if self._kind(self.parameters[n].dtype) == kind]
            if kind == "int":
                found += ["tid", "i", "np.uint32(cuda.threadIdx.x)", "len(a)", "m.shape[1]"]
                found += [self.random.choice(PLACES)]
        return found

    # -- expressions -----------------------------------------------------------------------

    def _literal(self) -> str:
        value = self.random.choice(EDGES)
        text = hex(value) if self.random.random() < 0.3 else str(value)
        return f"(-{text})" if value <= 2**63 and self.random.random() < 0.4 else text

    def _int(self, depth: int) -> str:
        leaves = self._leaves("int")
        if depth <= 0 or (leaves and self.random.random() < 0.15):
            return self.random.choice(leaves) if leaves else "np.int32(5)"
        return self.random.choice(
            (
                self._int_binary, self._int_binary, self._int_binary, self._int_literal,
                self._int_cast, self._int_unary, self._int_choice, self._int_function,
                self._int_power, self._int_shift,
            )
        )(depth - 1)  # fmt: skip

    def _int_binary(self, depth: int) -> str:
        operator = self.random.choice(("+", "-", "*", "//", "%", "&", "|", "^"))
        return f"({self._int(depth)} {operator} {self._int(depth)})"

    def _int_literal(self, depth: int) -> str:
        operator = self.random.choice(("+", "-", "*", "//", "%", "&", "|", "^"))
        sides = [self._int(depth), self._literal()]
        self.random.shuffle(sides)
        return f"({sides[0]} {operator} {sides[1]})"

    def _int_cast(self, depth: int) -> str:
        kind = self.random.choice((self._int, self._float, self._bool))
        return f"np.{self.random.choice(INTEGERS)}({kind(depth)})"

    def _int_unary(self, depth: int) -> str:
        return self.random.choice(("(-{})", "(~{})", "abs({})", "(+{})")).format(self._int(depth))

    def _int_choice(self, depth: int) -> str:
        other = self._literal() if self.random.random() < 0.3 else self._int(depth)
        sides = [self._int(depth), other]
        self.random.shuffle(sides)
        return f"({sides[0]} if {self._bool(depth)} else {sides[1]})"

    def _int_function(self, depth: int) -> str:
        one = self._int(depth)
        other = self._literal() if self.random.random() < 0.4 else self._int(depth)
        form = self.random.choice(
            ("min({}, {})", "max({}, {})", "min({1}, {0}, 7)", "cuda.popc({})", "cuda.clz({})",
             "cuda.ffs({})", "cuda.brev({})", "(np.int64({}) + abs({}))")
        )  # fmt: skip
        return form.format(one, other)

    def _int_power(self, depth: int) -> str:
        exponent = self.random.choice(("0", "1", "2", "3", "(-1)", f"({self._int(depth)} & 7)"))
        return f"({self._int(depth)} ** {exponent})"

    def _int_shift(self, depth: int) -> str:
        count = self.random.choice(("1", "5", "31", "33", "64", f"({self._int(depth)} & 63)"))
        return f"({self._int(depth)} {self.random.choice(('<<', '>>'))} {count})"

    def _float(self, depth: int) -> str:
        leaves = self._leaves("float")
        if depth <= 0 or (leaves and self.random.random() < 0.15):
            if leaves:
                return self.random.choice(leaves)
            return f"np.{self.random.choice(FLOATS)}({self._literal()})"
        return self.random.choice(
            (self._float_binary, self._float_binary, self._float_literal, self._float_cast,
             self._float_choice, self._float_function, self._float_divided)
        )(depth - 1)  # fmt: skip

    def _float_binary(self, depth: int) -> str:
        other = self._int(depth) if self.random.random() < 0.25 else self._float(depth)
        value, operator = self._float(depth), self.random.choice(self.float_ops)
        is_square = operator == "*" and value == other
        return f"({value} {operator} {'3.0' if is_square else other})"

    def _float_literal(self, depth: int) -> str:
        literal = self.random.choice((*REALS, "2", "7"))
        sides = [self._float(depth), literal]
        self.random.shuffle(sides)
        return f"({sides[0]} {self.random.choice(self.float_ops)} {sides[1]})"

    def _float_cast(self, depth: int) -> str:
        kind = self.random.choice((self._int, self._float, self._bool))
        return f"np.{self.random.choice(FLOATS)}({kind(depth)})"

    def _float_choice(self, depth: int) -> str:
        other = self.random.choice((*REALS, self._int(depth), self._float(depth)))
        sides = [self._float(depth), other]
        self.random.shuffle(sides)
        return f"({sides[0]} if {self._bool(depth)} else {sides[1]})"

    def _float_function(self, depth: int) -> str:
        form = self.random.choice(
            ("min({}, {})", "max({}, {})", "abs({})", "(-{})", "math.sqrt({})",
             "cuda.fma({}, {}, {})", "max({}, 0.0, {})", "math.floor({})", "math.ceil({})",
             "math.trunc({})", "math.fabs({})",
             "math.copysign({0}, 0.5 if math.isnan({1}) else {1})", "math.fmod({}, {})")
        )  # fmt: skip
        return form.format(*(self._float(depth) for _ in range(3)))

    def _float_divided(self, depth: int) -> str:
        operator = self.random.choice(("//", "%"))
        return f"({self._float(depth)} {operator} {self._float(depth)})"

    def _bool(self, depth: int) -> str:
        if depth <= 0:
            leaves = self._leaves("bool")
            return self.random.choice(leaves) if leaves else f"({self._int(0)} > 1)"
        form = self.random.randrange(7)
        if form == 6:
            word = self.random.choice(("isnan", "isinf", "isfinite"))
            return f"math.{word}({self._float(depth - 1)})"
        if form == 0:
            word = self.random.choice(("and", "or"))
            return f"({self._bool(depth - 1)} {word} {self._bool(depth - 1)})"
        if form == 1:
            return f"(not {self._bool(depth - 1)})"
        if form == 2:
            return f"({self._bool(depth - 1)} {self.random.choice('&|^')} {self._bool(depth - 1)})"
        return self._comparison(depth - 1)

    def _comparison(self, depth: int) -> str:
        kind = self.random.choice((self._int, self._int, self._float))
        parts = [kind(depth) for _ in range(self.random.choice((2, 2, 2, 3)))]
        if self.random.random() < 0.4:
            parts[self.random.randrange(len(parts))] = self._literal()
        text = parts[0]
        for part in parts[1:]:
            text += f" {self.random.choice(('<', '<=', '>', '>=', '==', '!='))} {part}"
        return f"({text})"

    # -- statements ------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def _name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def _assign(self) -> None:
        kind = self.random.choice(("int", "int", "float", "bool"))
        value = {"int": self._int, "float": self._float, "bool": self._bool}[kind](3)
        dtype = {"int": self.random.choice(INTEGERS), "float": self.random.choice(FLOATS)}
        old = [name for name, of in self.variables.items() if of == kind and name in self._typed]
        if old and self.random.random() < 0.4:
            name = self.random.choice(old)
        else:
            name = self._name()
            self._typed[name] = f"np.{dtype[kind]}" if kind in dtype else "np.bool_"
        self._write(f"{name} = {self._typed[name]}({value})")
        self.variables.setdefault(name, kind)

    def _augmented(self) -> None:
        """Change a variable in place, which has one type in all its assignments."""
        old = [name for name in self._typed if name in self.variables]
        if not old:
            return self._assign()
        name = self.random.choice(old)
        kind, to = self.variables[name], self._typed[name]
        if kind == "bool":
            return self._write(f"{name} {self.random.choice('&|^')}= {to}({self._bool(1)})")
        whole = ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>")
        operator = self.random.choice(whole if kind == "int" else (*self.float_ops, "//", "%"))
        value = f"{to}({(self._int if kind == 'int' else self._float)(1)})"
        self._write(f"{name} {operator}= {value}")
        self._write(f"{name} = {to}({name})")
        return None

    def _swap(self) -> None:
        """Let two variables of one type change places."""
        known = [(name, of) for name, of in self._typed.items() if name in self.variables]
        pairs = [(a, b) for a, of in known for b, other in known if a < b and of == other]
        if not pairs:
            return self._assign()
        one, other = self.random.choice(pairs)
        self._write(f"{one}, {other} = {other}, {one}")
        return None

    def _return(self) -> None:
        """Leave a device function in the midst of a branch or a loop."""
        self._write(f"if {self._bool(1)}:")
        self._write(f"    return {self._returned(1)}")

    def _returned(self, depth: int) -> str:
        value = f"np.int64({self._int(depth)})"
        return f"{value}, np.float32({self._float(depth)})" if self._gives_two else value

    def _own(self) -> None:
        """Change an element that no other thread touches, in place."""
        operator = self.random.choice(("+", "-", "*", "//", "%", "&", "|", "^"))
        self._write(f"own[i] {operator}= {self._int(2)}")

    def _vector(self) -> None:
        """Load two elements at once, or store them."""
        kind = self._kind(self.parameters["pairs"].dtype)
        if self.random.random() < 0.5:
            make = self._int if kind == "int" else self._float
            self._write(f"cuda.store_vector(pairs, i * 2, ({make(1)}, {make(1)}))")
            return
        names = self._name(), self._name()
        self._write(f"{', '.join(names)} = cuda.load_vector(pairs, i * 2, 2)")
        self.variables |= dict.fromkeys(names, kind)

    def _store(self) -> None:
        dtype = self.random.choice(("int64", "uint64", "float64", "int16"))
        value = self.random.choice((self._int, self._float, self._bool))(2)
        place = f"i * 4 + {self.random.randrange(4)}"
        self._write(f"out_{dtype}[{place}] = {value}")

    def _near(self) -> None:
        """Store what only nearly all bits are promised of."""
        form = self.random.choice((*(f"math.{one}" for one in FUNCTIONS), "({0} ** {1})",
                                   "({0} ** 2)", "({0} ** 0.5)", "({0} ** -1)"))  # fmt: skip
        value = form.format(self._float(1), self._float(1))
        self._write(f"{NEAR}[i * 4 + {self.random.randrange(4)}] = {value}")

    def _atomic_of_ones_own(self) -> None:
        """Exchange an element that no other thread touches."""
        name = self._name()
        value = self._int(2)
        form = self.random.choice(
            ("exch(own, i, {0})", "cas(own, i, {1}, {0})", "cas(own, i, own[i], {0})",
             "add(own, i, {0})", "max(own, i, {0})")
        )  # fmt: skip
        self._write(f"{name} = np.int64(cuda.atomic.{form.format(value, self._int(1))})")
        self.variables[name] = "int"

    def _added_by_exchange(self) -> None:
        """Add to an element as is done where hardware cannot: until nobody came between."""
        old, seen, place, more = (self._name() for _ in range(4))
        self._write(f"{place} = {self._int(1)} & 3")
        self._write(f"{more} = np.{self.parameters['sums'].dtype}({self._int(2)})")
        self._write(f"{old} = cuda.atomic.add(sums, {place}, 0)")
        self._write("while True:")
        self._write(f"    {seen} = cuda.atomic.cas(sums, {place}, {old}, {old} + {more})")
        self._write(f"    if {seen} == {old}:")
        self._write("        break")
        self._write(f"    {old} = {seen}")

    def _tickets(self) -> None:
        """Let threads take places, or links of a chain, in whatever order they come."""
        word, name = self.random.choice((("slots", "add"), ("chain", "exch"))), self._name()
        if word[0] in self._heaps:
            return
        self._heaps.add(word[0])
        if self.random.random() < 0.4:
            self._write(f"if {self._bool(2)}:")
            self.depth += 1
        if word[0] == "slots":
            self._write(f"{name} = cuda.atomic.add(slots, 0, 1)")
            self._write(f"slots[{name} + 1] = i + 1")
        else:
            self._write(f"{name} = cuda.atomic.exch(chain, 0, i + 1)")
            self._write(f"chain[i + 1] = {name}")
        self.depth = 1

    def _atomic(self) -> None:
        name = self.random.choice(("add", "sub", "min", "max", "and_", "or_", "xor"))
        if self._atomic_used not in ("", name):
            name = self._atomic_used  # others would see the order in which lanes come
        self._atomic_used = "add" if name == "sub" else name
        self._write(f"cuda.atomic.{name}(acc, {self._int(1)} & 7, {self._int(2)})")

    def _if(self) -> None:
        self._write(f"if {self._bool(2)}:")
        self._block()
        if self.random.random() < 0.3:
            self._write(f"elif {self._bool(2)}:")
            self._block()
        if self.random.random() < 0.5:
            self._write("else:")
            self._block()

    def _block(self) -> None:
        """Write a body; what it assigns for the first time is not known behind it."""
        known = dict(self.variables)
        self.depth += 1
        for _ in range(self.random.randint(1, 3)):
            self._statement()
        self.depth -= 1
        self.variables = known

    def _for(self) -> None:
        name = self._name()
        step = self.random.choice((1, 2, 3))
        falling = (f"range(np.uint32({self.random.randrange(6)}), 0, -{step})",
                   f"range({self._int(0)} & 7, -3, -{step})",
                   f"range(5, np.int64({self._int(0)} & 3), np.int8(-{step}))")  # fmt: skip
        rising = (f"range({self._int(1)} & 7)", f"range(-2, np.uint8({self._int(0)} & 3))",
                  f"range({self._int(0)} & 3, 7, ({self._int(0)} & 1) + {step})",
                  f"range({2**31 - 8}, {2**31 - 1}, {step})")  # fmt: skip
        self._write(f"for {name} in {self.random.choice((*falling, *rising))}:")
        known = dict(self.variables)
        self.variables[name] = "int"
        self._loop_body()
        self.variables = known

    def _while(self) -> None:
        name = self._name()
        self._write(f"{name} = np.int32({self._int(1)} & 7)")
        condition = f"{name} > 0" + (f" and {self._bool(1)}" if self.random.random() < 0.5 else "")
        self._write(f"while {condition}:")
        self.depth += 1
        self._write(f"{name} -= 1")
        self.depth -= 1
        self._loop_body()

    def _loop_body(self) -> None:
        self.loops += 1
        self._block()
        self.loops -= 1
        if self.random.random() < 0.4:
            self.depth += 1
            self._write(f"if {self._bool(1)}:")
            self._write("    " + self.random.choice(("break", "continue")))
            self.depth -= 1

    def _statement(self) -> None:
        if self.depth > 3 or len(self.lines) > 60:
            self._assign()
            return
        forms = [self._assign] * 4 + [self._store, self._if, self._augmented, self._swap]
        if self.loops < 2:
            forms += [self._for, self._while]
        if self._in_kernel:
            forms += [self._atomic, self._near, self._atomic_of_ones_own, self._vector, self._own]
        else:
            forms.remove(self._store)
            forms += [self._return] * (self.depth > 1) + [self._local]
            if self.loops == 0:
                forms.append(self._call)
        self.random.choice(forms)()

    # -- lanes together: only where all lanes of the block come ------------------------------

    def _shared(self) -> None:
        kind = self.random.choice(("int", "float"))
        dtype = self.random.choice(INTEGERS if kind == "int" else FLOATS)
        array, name, place = self._name(), self._name(), self._name()
        wide = self.random.choice([k for k in range(1, 9) if self.threads % k == 0])
        is_flat = self.random.random() < 0.5
        shape = str(self.threads) if is_flat else f"({self.threads // wide}, {wide})"
        self._write(f"{array} = cuda.shared.array({shape}, np.{dtype})")

        def element(of: str) -> str:
            return f"{array}[{of}]" if is_flat else f"{array}[{of} // {wide}, {of} % {wide}]"

        self._write(f"{element('tid')} = {(self._int if kind == 'int' else self._float)(2)}")
        self._write("cuda.syncthreads()")
        self._write(f"{place} = (tid + {self._int(0)} % 7 + 7) % {self.threads}")
        self._write(f"{name} = np.{dtype}({element(place)})")
        self.variables[name] = kind

    def _shared_atomic(self) -> None:
        """Let the block's threads count in shared memory; nobody looks before all are through."""
        array, name = self._name(), self._name()
        operation = self.random.choice(("add", "max", "min", "or_", "and_", "xor"))
        dtype = self.random.choice(ATOMICS)
        self._write(f"{array} = cuda.shared.array((2, 4), np.{dtype})")
        self._write("if tid < 8:")
        self._write(f"    {array}[tid // 4, tid % 4] = {self._int(1)}")
        self._write("cuda.syncthreads()")
        row, column = f"{self._int(1)} & 1", f"{self._int(1)} & 3"
        self._write(f"cuda.atomic.{operation}({array}, ({row}, {column}), {self._int(2)})")
        self._write("cuda.syncthreads()")
        self._write(f"{name} = np.{dtype}({array}[{self._int(0)} & 1, {self._int(0)} & 3])")
        self.variables[name] = "int"

    def _local(self) -> None:
        kind = self.random.choice(("int", "int", "float"))
        dtype = self.random.choice(INTEGERS if kind == "int" else FLOATS)
        make = self._int if kind == "int" else self._float
        array, name, place = self._name(), self._name(), self._name()
        shape, parts = self.random.choice(
            (("4", "{0} & 3"), ("(2, 2)", "{0} & 1, ({0} >> 1) & 1"),
             ("(2, 1, 2)", "{0} & 1, 0, ({0} >> 1) & 1"))
        )  # fmt: skip
        self._write(f"{array} = cuda.local.array({shape}, np.{dtype})")
        self._write(f"for {place} in range(4):")
        self._write(f"    {array}[{parts.format(place)}] = {make(1)}")
        for _ in range(2):
            element = f"{array}[{parts.format(self._int(1))}]"
            operator = self.random.choice(("", "", *(("+", "^") if kind == "int" else ())))
            self._write(f"{element} {operator}= {make(2)}")
        self._write(f"{name} = np.{dtype}({array}[{parts.format(self._int(1))}])")
        self.variables[name] = kind

    def _shuffle(self) -> None:
        kind = self.random.choice(("int", "float"))
        dtype = self.random.choice(INTEGERS if kind == "int" else FLOATS)
        value = (self._int if kind == "int" else self._float)(2)
        mode, lane = self.random.choice(
            (("shfl_sync", f"{self._int(1)} & 31"), ("shfl_up_sync", "3"),
             ("shfl_down_sync", "5"), ("shfl_xor_sync", "9"))
        )  # fmt: skip
        name = self._name()
        self._write(f"{name} = np.{dtype}(cuda.{mode}({FULL}, np.{dtype}({value}), {lane}))")
        self.variables[name] = kind

    def _vote(self) -> None:
        name = self._name()
        form = self.random.choice(
            ("cuda.ballot_sync({}, {})", "cuda.any_sync({}, {})", "cuda.all_sync({}, {})",
             "cuda.syncthreads_count({1})", "cuda.syncthreads_or({1})")
        )  # fmt: skip
        self._write(f"{name} = np.int64({form.format(FULL, self._bool(2))})")
        self.variables[name] = "int"

    def _some_lanes(self) -> None:
        """Lanes chosen by a vote go on together in a branch, with the mask that names them."""
        mine, mask, name = self._name(), self._name(), self._name()
        self._write(f"{mine} = np.bool_({self._bool(2)})")
        self._write(f"{mask} = cuda.ballot_sync({FULL}, {mine})")
        self._write(f"{name} = np.int64(0)")
        form = self.random.choice(
            ("cuda.shfl_sync({0}, np.int64({1}), cuda.ffs({0}) - 1)",
             "cuda.ballot_sync({0}, {2})", "cuda.any_sync({0}, {2})", "cuda.all_sync({0}, {2})")
        )  # fmt: skip
        self._write(f"if {mine}:")
        self._write(f"    {name} = np.int64({form.format(mask, self._int(1), self._bool(1))})")
        self.variables[name] = "int"

    def _together(self) -> None:
        """Write a loop that all lanes go through alike, with barriers in it."""
        self._write(f"for {self._name()} in range({self.random.randint(1, 3)}):")
        self.depth += 1
        known = dict(self.variables)
        for form in self.random.choices((self._shuffle, self._vote, self._assign), k=2):
            form()
        self._write("cuda.syncthreads()")
        self.variables = known
        self.depth -= 1

    # -- functions -------------------------------------------------------------------------

    def _begin(self, *, in_kernel: bool) -> None:
        self.lines, self.depth, self.loops = [], 1, 0
        self.variables = {}
        self._typed: dict[str, str] = {}
        self._in_kernel = in_kernel
        self._gives_two = False
        self._atomic_used = ""
        self._heaps: set[str] = set()

    def _device_function(self) -> None:
        self._begin(in_kernel=False)
        self._gives_two = self.random.random() < 0.3
        self.variables = {"p": "int", "q": "float"}
        for _ in range(self.random.randint(1, 4)):
            self._statement()
        if self.random.random() < 0.4:
            self._write(f"if {self._bool(2)}:")
            self._write(f"    return {self._returned(2)}")
        self._write(f"return {self._returned(3)}")
        number = len(self.functions)
        head = ["@cuda.jit(device=True)", f"def f{number}(p, q):"]
        self.functions.append("\n".join([*head, *self.lines]))
        self.two.append(self._gives_two)

    def _call(self) -> None:
        if not self.functions:
            return self._assign()
        number = self.random.randrange(len(self.functions))
        names = [self._name() for _ in range(1 + self.two[number])]
        self._write(f"{', '.join(names)} = f{number}({self._int(2)}, {self._float(2)})")
        self.variables |= dict(zip(names, ("int", "float"), strict=False))
        return None

    def _kernel(self) -> list[str]:
        self._begin(in_kernel=True)
        forms = [
            *[self._statement] * 3, self._shared, self._shared_atomic, self._local, self._vote,
            self._call, self._added_by_exchange, self._tickets, self._place,
        ]  # fmt: skip
        if self.threads % 32 == 0:  # what a lane that is not there holds is nobody's promise
            forms += [self._shuffle, self._some_lanes, self._together]
        for _ in range(self.random.randint(3, 9)):
            self.random.choice(forms)()
        if self.random.random() < 0.4:
            self._leaving()
        for place, name in enumerate(list(self.variables)[-8:]):
            dtype = "float64" if self.variables[name] == "float" else "int64"
            self._write(f"out_{dtype}[i * 4 + {place % 4}] = {name}")
        return [
            "@cuda.jit",
            f"def kernel({', '.join(self.parameters)}):",
            f"    tid = {_number('threadIdx', 'blockDim')}",
            f"    i = ({_number('blockIdx', 'gridDim')}) * {self.threads} + tid",
            *self.lines,
        ]

    def _leaving(self) -> None:
        """Write a loop from whose midst some threads end; nobody waits for them any more."""
        name = self._name()
        self._write(f"for {name} in range({self._int(1)} & 7):")
        known = dict(self.variables)
        self.variables[name] = "int"
        self.loops += 1
        self.depth += 1
        self._write(f"if {self._bool(2)}:")
        self._write("    return")
        self.depth -= 1
        self._loop_body()
        self.loops -= 1
        self.variables = known

    def _place(self) -> None:
        """Ask where the thread is along several axes at once."""
        axes = self.random.choice((2, 3))
        names = [self._name() for _ in range(axes)]
        self._write(f"{', '.join(names)} = cuda.{self.random.choice(('grid', 'gridsize'))}({axes})")
        self.variables |= dict.fromkeys(names, "int")


def _number(place: str, size: str) -> str:
    """Return how threads or blocks are counted through all axes, x first."""
    x, y, z = (f"cuda.{place}.{axis}" for axis in "xyz")
    return f"{x} + cuda.{size}.x * ({y} + cuda.{size}.y * {z})"
