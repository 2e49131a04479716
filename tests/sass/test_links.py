"""Addresses in the initial values of variables, and generic addresses of constants."""

import numpy as np
import pytest

import gpusim
from gpusim.codegen.programs import prepare
from gpusim.machine import DEFAULT_CC
from gpusim.sass import wheels

pytestmark = pytest.mark.skipif(not wheels.are_there(), reason=wheels.INSTALL)

TABLES = """
struct Node { int value; const Node *next; };
__device__ int x = 5, many[4] = {1, 2, 3, 4};
__device__ int *pointers[2] = {&x, many + 3};
__constant__ const char *names[2] = {"ab", "xyz"};
__constant__ int *chosen[2] = {many + 1, &x};
__constant__ int fixed[4] = {9, 8, 7, 6};
__device__ const int *of_constants = fixed + 2;
__device__ Node last = {1, nullptr};
__device__ Node first = {3, &last};
__device__ const Node *head = &first;

__global__ void tables(int *out) {
  int t = threadIdx.x;
  out[t] = *pointers[t & 1] * 1000000 + *chosen[t & 1] * 10000 + names[t & 1][1] * 10
         + of_constants[t & 1];
}
__global__ void list(int *out) {
  int sum = 0;
  for (const Node *node = head; node; node = node->next) sum = sum * 10 + node->value;
  out[threadIdx.x] = sum;
}
__global__ void count() { *pointers[0] += 1; }

__device__ __noinline__ int read(const int *where) { return *where; }
__global__ void either(int *out) {
  int t = threadIdx.x;
  out[t] = read(t & 1 ? &fixed[t & 3] : &out[t]);
}
struct Four { int a[4]; };
__global__ void parameters(int *out, const __grid_constant__ Four four) {
  int t = threadIdx.x;
  out[t] = read(t & 1 ? &four.a[t & 3] : &out[t]);
}
"""


def run(name: str, out: np.ndarray, *more: object) -> list[int]:
    file = gpusim.cuda_source(TABLES)
    file[name][1, len(out)](out, *more)
    return out.tolist()


def test_tables_of_pointers_lead_to_variables_strings_and_constants() -> None:
    found = run("tables", np.zeros(4, np.int32))
    even = 5_000_000 + 2 * 10_000 + ord("b") * 10 + 7
    odd = 4_000_000 + 5 * 10_000 + ord("y") * 10 + 6
    assert found == [even, odd, even, odd]


def test_a_list_of_variables_is_followed_to_its_end() -> None:
    assert run("list", np.zeros(2, np.int32)) == [31, 31]


def test_a_pointer_leads_to_the_array_that_a_variable_is_set_to() -> None:
    file = gpusim.cuda_source(TABLES)
    x = np.array([41], np.int32)
    file.set("x", x)
    file["count"][1, 1]()
    assert x.tolist() == [42]


def test_a_generic_address_may_be_one_of_constant_memory() -> None:
    assert run("either", np.array([50, 50, 50, 50], np.int32)) == [50, 8, 50, 6]


def test_a_generic_address_may_be_one_of_the_parameters() -> None:
    four = np.array([1, 2, 3, 4], np.int32).tobytes()
    assert run("parameters", np.array([50, 50, 50, 50], np.int32), four) == [50, 2, 50, 4]


def test_a_launch_has_the_variables_that_its_kernel_reaches_not_all_of_the_file() -> None:
    prepared = prepare(gpusim.cuda_source(TABLES)["count"][1, 1], (), DEFAULT_CC)
    assert {"pointers", "x", "many"} <= prepared.arguments.keys()
    assert not {"head", "first", "last"} & prepared.arguments.keys()
