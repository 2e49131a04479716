"""What is true of an operation stands in its row, and nowhere else."""

from __future__ import annotations

import ast
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from source_trees import tree_of

from gpusim import cuda
from gpusim.compiler.build import build
from gpusim.compiler.intrinsics import INTRINSICS
from gpusim.compiler.ir import INT32, Array, Function
from gpusim.compiler.operations import OPERATIONS
from gpusim.errors import KernelSourceError
from gpusim.isa.ops import AFFINE, OPS, VECTOR_TWINS
from gpusim.launch.grid import ComputeCapability
from gpusim.lowering import lower
from gpusim.lowering.choices import CHOICES, SEQUENCES
from gpusim.machine import barrier, matrices, warp, warpgroups
from gpusim.machine.handlers import HANDLERS
from gpusim.prediction.clock.steps import Action

PACKAGE = Path(__file__).parent.parent / "gpusim"
NAMES = {*OPERATIONS, *OPS, *(op.kind for op in OPS.values())}

# Where sets of ops stand that say nothing of the ops themselves, and what they are.
LOCAL = {
    "tracing/iterations.py": "what ends an iteration for who reads line by line",
    "checking/swapped_sums.py": "sums whose product is no operand of the sum",
    "lowering/choices.py": "the instructions that are chosen for each operation",
    "lowering/analysis/evaluate.py": "the instructions of operations that selection writes out",
    "lowering/analysis/index_sums.py": "each operation has its rule for sums of products",
    "lowering/analysis/indices.py": "the sums that an index is taken apart at",
    "lowering/analysis/induction_variables.py": "the comparisons that a loop may end by",
    "lowering/analysis/known_bits.py": "each operation has its rules for known bits and bounds",
    "lowering/passes/iteration_count.py": "each operation has its rule for linear forms",
    "lowering/passes/fold_arithmetic.py": "rules of algebra",
    "lowering/passes/fold_compare.py": "rules of algebra",
    "lowering/passes/rematerialisation.py": "the terms that an addition takes for nothing",
    "lowering/selection/division.py": "the steps that a division and a remainder share",
    "lowering/selection/fuse.py": "the operations that one instruction joins",
    "lowering/selection/memory.py": "the instructions that are chosen for each space",
    "program/polling.py": "how nvcc puts together the word around an atomic of 8 or 16 bits",
    "program/rounded_loads.py": "how nvcc moves an address that it rounds down",
    "machine/storage.py": "atomic operations, which are details of an op",
    "machine/interpreter.py": "the names of waits in messages",
    "machine/compiled/progress.py": "the names of waits in messages",
    "machine/compiled/accesses.py": "the kinds of access that are written out as WebAssembly",
    "machine/compiled/register_types.py": "the kinds with a word among their results",
    "machine/compiled/totals.py": "the kinds of branch that are counted as WebAssembly",
    "machine/compiled/basic_blocks.py": "the kinds with code of their own",
    "machine/compiled/checked_steps.py": "the kinds by which lanes leave",
    "machine/compiled/kinds.py": "the kinds that are written out, called, left or refused",
    "machine/compiled/vectors.py": "the comparisons without a sign in WebAssembly",
    "prediction/removals/mechanisms/accesses.py": "the kinds of access that a mechanism concerns",
    "prediction/removals/mechanisms/warps.py": "the actions that stay without a mechanism",
}


def strings(nodes: list[ast.expr]) -> list[str]:
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def collections(tree: ast.AST) -> Iterator[list[str]]:
    """Yield the strings of every set and call, and of every tuple or list named or searched."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Set):
            yield strings(node.elts)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("set", "frozenset"):
            yield [s for a in node.args for s in strings(getattr(a, "elts", []))]
        elif isinstance(node, ast.Call):
            yield strings(node.args)
        elif isinstance(node, ast.Compare):
            for operator, right in zip(node.ops, node.comparators, strict=True):
                if isinstance(operator, ast.In | ast.NotIn):
                    yield strings(getattr(right, "elts", []))
        elif isinstance(node, ast.Assign):
            yield strings(getattr(node.value, "elts", []))
            if isinstance(node.value, ast.Dict):
                yield strings(node.value.values)


def test_no_module_keeps_a_set_of_ops_of_its_own() -> None:
    keepers = {}
    for package in ("lowering", "program", "machine", "tracing", "checking", "prediction"):
        for path in sorted((PACKAGE / package).rglob("*.py")):
            for members in collections(tree_of(path)):
                ops = [one for one in members if one in NAMES or one.startswith("bits.")]
                if len(ops) > 1:
                    keepers[path.relative_to(PACKAGE).as_posix()] = ops
    assert {name: ops for name, ops in keepers.items() if name not in LOCAL} == {}
    assert set(LOCAL) <= set(keepers), "an exception that nobody needs any more"


def test_an_instruction_that_is_chosen_has_a_row_of_ops() -> None:
    sequences = [steps for table in SEQUENCES.values() for steps in table.values()]
    chosen = " ".join([*(f"{c.before} {c.op}" for c in CHOICES.values()), *sequences])
    assert set(chosen.split()) - set(OPS) == set()


def test_the_traits_of_an_operation_agree_with_each_other() -> None:
    for name, row in OPERATIONS.items():
        assert not (row.pure and (row.access or row.convergent or row.orders_memory)), name
        assert not (row.commutative and row.arity != 2), name
        if row.is_comparison:
            assert OPERATIONS[row.swapped].swapped == name
            assert OPERATIONS[row.inverse].inverse == name


def test_the_machine_and_the_clock_know_every_trait_of_an_op() -> None:
    for name, row in OPS.items():
        assert row.kind in HANDLERS, name
        assert row.affine in AFFINE, name
        assert not row.action or row.action.upper() in Action.__members__, name
        if row.uniform_twin and row.issued:
            twin = OPS[row.uniform_twin]
            assert (twin.kind, VECTOR_TWINS[row.uniform_twin]) == (row.kind, name)
            assert twin.evaluate is row.evaluate, name


def test_what_threads_do_together_is_convergent() -> None:
    """Where the handler stands tells who takes part; the row has to say the same."""
    rooms = {one.__name__ for one in (warp, matrices, warpgroups, barrier)}
    found = {name: HANDLERS[row.kind].__module__ in rooms for name, row in OPS.items()}
    assert found == {name: row.convergent for name, row in OPS.items()}


def test_rows_of_a_compilers_own_code_are_there_before_any_is_read() -> None:
    """Programs made by hand, or by another process, have them: nothing else is imported first."""
    script = (
        "import sys; from gpusim.isa.ops import OPS; "
        "print(OPS['.ADDRESS'].affine, OPS['BRX'].kind, 'gpusim.sass' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["sum", "jump", "False"]


def calls(intrinsic: Any) -> list[cuda.Kernel]:
    """Return kernels that call an intrinsic with four numbers, with three, ... with none."""

    @cuda.jit
    def four(x):
        intrinsic(x[0], x[1], x[2], x[3])

    @cuda.jit
    def three(x):
        intrinsic(x[0], x[1], x[2])

    @cuda.jit
    def two(x):
        intrinsic(x[0], x[1])

    @cuda.jit
    def one(x):
        intrinsic(x[0])

    @cuda.jit
    def none(x):
        intrinsic()

    return [four, three, two, one, none]


def built(intrinsic: Any) -> Function | None:
    """Return a call of an intrinsic in SSA form, None where it takes other things than numbers."""
    for kernel in calls(intrinsic):
        with contextlib.suppress(KernelSourceError):
            return build(kernel.source, {"x": Array("x", "global", INT32)})
    return None


def test_an_operation_and_what_it_becomes_agree_on_who_takes_part() -> None:
    convergent = {}
    for name in INTRINSICS:
        function = built(getattr(cuda, name))
        if function is not None and all(v.operation.is_lowered for v in function.values()):
            convergent[name] = any(v.operation.convergent for v in function.values())
            program = lower(function, ComputeCapability(9, 0), "O3")
            assert any(OPS[i.op].convergent for i in program.instructions) == convergent[name], name
    assert {name for name, is_so in convergent.items() if is_so} == {
        *("syncthreads", "syncthreads_count", "syncthreads_and", "syncthreads_or", "syncwarp"),
        *("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync", "activemask"),
        *("all_sync", "any_sync", "ballot_sync", "match_any_sync", "match_all_sync"),
    }
