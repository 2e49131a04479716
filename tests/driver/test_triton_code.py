"""Machine code as Triton makes it: lines of Python files, parameters without names and types."""

from __future__ import annotations

from pathlib import Path

import pytest
from driver.host import Host, needs_compilers

from gpusim.pytorch.lines import with_true_lines
from gpusim.sass import compiler

pytestmark = needs_compilers

# Lines 1 to 4 of a Python file, as of a kernel that reduces with a helper's values.
PYTHON = "def helper(x, i):\n    return load(x + i)\ndef total(x, o):\n    v = helper(x, tid)\n"
KERNEL = """
extern __shared__ float global_smem[];
extern "C" __global__ void total(float *x, float *o) {{
    float v;
    {{
        struct Here {{
            static __device__ __forceinline__ float helper(float *x, int i) {{
#line 2 "{0}"
                return x[i];
            }}
        }};
#line 4 "{0}"
        v = Here::helper(x, threadIdx.x);
    }}
#line 4 "{0}"
    global_smem[0] = {1};
    o[threadIdx.x] = v;
}}
"""
DECLARES = """
words = b"total\\0x\\0float*\\0o\\0float*"
cuda.gpusim_tell(b"declare", words, C.c_size_t(len(words)))
"""
LAUNCHES = """
x, o = take(256), take(512)
to(x, bytes(256))
launch("total", 1, 128, x, o, shared=4)
"""


@pytest.fixture
def host(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Host:
    return Host(tmp_path, capfd)


def checked(host: Host, text: str, stored: str = "1") -> str:
    """Return what check says of the kernel, compiled as from a Python file."""
    file = host.folder / "kernel.py"
    file.write_text(PYTHON)
    made = compiler.compiled(KERNEL.format(file, stored), "kernel.cu", [], "sm_90").cubin
    return host.run(text, "check", made=made).err


def test_bounds_of_parameters_without_a_type_are_told_in_bytes(host: Host) -> None:
    said = checked(host, LAUNCHES)
    assert "line 2: byte 256 of arg0 is out of bounds: arg0 has 256 bytes" in said


def test_parameters_have_the_names_and_types_that_the_program_tells(host: Host) -> None:
    said = checked(host, DECLARES + LAUNCHES)
    assert "line 2: x[64] is out of bounds: x has 64 elements" in said
    assert "give the tl.load or tl.store a mask that is false there" in said


def test_a_python_function_is_named_with_the_line_of_its_call(host: Host) -> None:
    assert "helper, called from line 4" in checked(host, LAUNCHES)


@pytest.mark.parametrize(
    ("stored", "rule"), [("1", "[same-value]"), ("1 + 1e-7f * threadIdx.x", "[one-instruction]")]
)
def test_stores_of_many_threads_to_one_element_of_tritons_own_shared_memory_are_no_finding(
    stored: str, rule: str, host: Host
) -> None:
    """Lanes that hold one element of a tensor have sums of one order, rounded each by itself."""
    assert rule not in checked(host, LAUNCHES, stored)
    made = compiler.compiled(KERNEL.format("kernel.cu", stored), "kernel.cu", [], "sm_90").cubin
    assert rule in host.run(LAUNCHES, "check", made=made).err


def test_attributes_of_later_drivers_are_invalid_values(host: Host) -> None:
    """Triton sets the mode of shared memory where a driver has one, in place of its size."""
    ran = host.run(
        """
kernel, value = C.c_void_p(), C.c_int()
call("cuModuleGetFunction", C.byref(kernel), module, b"scale")
call("cuFuncSetAttribute", kernel, 17, 3)
call("cuFuncGetAttribute", C.byref(value), 16, kernel)
call("cuFuncSetAttribute", kernel, 8, 100000)
call("cuFuncSetAttribute", kernel, 15, 0)
"""
    )
    assert ran.out == ["cuFuncSetAttribute 1", "cuFuncGetAttribute 1"]


PTX = """\
\t.loc\t1 20 9                          // a.py:20:9
\t// begin inline asm
\t.loc\t1 20 9, function_name $L__info_string0, inlined_at 1 27 9
\tmov.u32 %r1, 0x0;
\t.loc\t1 21 9                          // a.py:21:9
\tld.global.b32 { %r1 }, [ %rd1 + 0 ];

\t// end inline asm
\t.loc\t1 21 9                          // a.py:21:9
\tadd.f32 %r9, %r1, %r1;
\t// begin inline asm
\tst.global.b32 [ %rd3 + 0 ], { %r9 };
\t// end inline asm
"""


def test_a_block_of_assembly_has_the_line_of_its_first_instruction() -> None:
    lines = PTX.splitlines(keepends=True)
    assert with_true_lines(PTX) == "".join(lines[:4] + lines[5:])


def test_a_line_of_the_library_without_its_call_is_the_kernels() -> None:
    """Lines of helpers in the kernel's own file stay."""
    files = '\t.file\t1 "/a/own.py"\n\t.file\t2 "/b/standard.py"\n'
    helper = "\t.loc\t1 6 23                   // own.py:6:23 @[ own.py:10:55 ]\n"
    library = "\t.loc\t2 263 15 // standard.py:263:15 @[ standard.py:293:36 @[ own.py:10:59 ] ]\n"
    made = with_true_lines(helper + library + files)
    assert made == f"{helper}\t.loc\t1 10 59\n{files}"
