"""Twenty kernels in the style of Triton's tutorials and public libraries, each held to PyTorch.

Run under each command of gpusim, by `test_kernels.py`; small, and prints the names of those that
agree.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
from __future__ import annotations

import torch
import triton
import triton.language as tl
import triton.testing

F = torch.nn.functional
ROWS, WIDTH = 6, 200


@triton.jit
def add_kernel(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def add(x, y):
    o = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 256),)](x, y, o, x.numel(), B=256)
    return o, x + y


@triton.jit
def softmax_kernel(x, o, n, B: tl.constexpr):
    i, row = tl.arange(0, B), tl.program_id(0) * n
    v = tl.load(x + row + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + row + i, e / tl.sum(e, 0), mask=i < n)


def softmax(x, y):
    o = torch.empty_like(x)
    softmax_kernel[(ROWS,)](x, o, WIDTH, B=256)
    return o, x.softmax(1)


@triton.jit
def log_softmax_kernel(x, o, n, B: tl.constexpr):
    i, row = tl.arange(0, B), tl.program_id(0) * n
    v = tl.load(x + row + i, mask=i < n, other=-float("inf"))
    v -= tl.max(v, 0)
    tl.store(o + row + i, v - tl.log(tl.sum(tl.exp(v), 0)), mask=i < n)


def log_softmax(x, y):
    o = torch.empty_like(x)
    log_softmax_kernel[(ROWS,)](x, o, WIDTH, B=256)
    return o, x.log_softmax(1)


@triton.jit
def layer_norm_kernel(x, w, b, o, n, eps, B: tl.constexpr):
    i, row = tl.arange(0, B), tl.program_id(0) * n
    v = tl.load(x + row + i, mask=i < n, other=0.0)
    mean = tl.sum(v, 0) / n
    d = tl.where(i < n, v - mean, 0.0)
    y = d * tl.rsqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(o + row + i, y * tl.load(w + i, mask=i < n) + tl.load(b + i, mask=i < n), mask=i < n)


def layer_norm(x, y):
    w, b, o = y[0], y[1], torch.empty_like(x)
    layer_norm_kernel[(ROWS,)](x, w, b, o, WIDTH, 1e-5, B=256)
    return o, F.layer_norm(x, (WIDTH,), w, b)


@triton.jit
def rms_norm_kernel(x, w, o, n, B: tl.constexpr):
    i, row = tl.arange(0, B), tl.program_id(0) * n
    v = tl.load(x + row + i, mask=i < n, other=0.0)
    scale = tl.rsqrt(tl.sum(v * v, 0) / n + 1e-5)
    tl.store(o + row + i, v * scale * tl.load(w + i, mask=i < n), mask=i < n)


def rms_norm(x, y):
    o = torch.empty_like(x)
    rms_norm_kernel[(ROWS,)](x, y[0], o, WIDTH, B=256)
    return o, F.rms_norm(x, (WIDTH,), y[0], 1e-5)


@triton.jit
def cross_entropy_kernel(x, targets, o, n, B: tl.constexpr):
    r, i = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + r * n + i, mask=i < n, other=-float("inf"))
    top = tl.max(v, 0)
    total = tl.log(tl.sum(tl.exp(v - top), 0)) + top
    tl.store(o + r, total - tl.load(x + r * n + tl.load(targets + r)))


def cross_entropy(x, y):
    o, targets = torch.empty(ROWS, device="cuda"), torch.arange(ROWS, device="cuda") * 7
    cross_entropy_kernel[(ROWS,)](x, targets, o, WIDTH, B=256)
    return o, F.cross_entropy(x, targets, reduction="none")


@triton.jit
def gelu_kernel(x, bias, o, n, B: tl.constexpr):
    i, row = tl.arange(0, B), tl.program_id(0) * n
    v = tl.load(x + row + i, mask=i < n) + tl.load(bias + i, mask=i < n)
    tl.store(o + row + i, 0.5 * v * (1 + tl.erf(v * 0.7071067811865476)), mask=i < n)


def bias_gelu(x, y):
    o = torch.empty_like(x)
    gelu_kernel[(ROWS,)](x, y[0], o, WIDTH, B=256)
    return o, F.gelu(x + y[0])


@triton.jit
def swiglu_kernel(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    gate = tl.load(x + i, mask=i < n)
    tl.store(o + i, gate * tl.sigmoid(gate) * tl.load(y + i, mask=i < n), mask=i < n)


def swiglu(x, y):
    o = torch.empty_like(x)
    swiglu_kernel[(triton.cdiv(x.numel(), 128),)](x, y, o, x.numel(), B=128)
    return o, F.silu(x) * y


@triton.jit
def rotary_kernel(x, cos, sin, o, half: tl.constexpr, B: tl.constexpr):
    r, i = tl.program_id(0), tl.arange(0, B)
    on = i < half
    a = tl.load(x + r * 2 * half + i, mask=on)
    b = tl.load(x + r * 2 * half + half + i, mask=on)
    c, s = tl.load(cos + r * half + i, mask=on), tl.load(sin + r * half + i, mask=on)
    tl.store(o + r * 2 * half + i, a * c - b * s, mask=on)
    tl.store(o + r * 2 * half + half + i, b * c + a * s, mask=on)


def rotary(x, y):
    half, o = WIDTH // 2, torch.empty_like(x)
    angles = y[:, :half].contiguous()
    cos, sin = angles.cos(), angles.sin()
    rotary_kernel[(ROWS,)](x, cos, sin, o, half, B=128)
    a, b = x[:, :half], x[:, half:]
    return o, torch.cat([a * cos - b * sin, b * cos + a * sin], 1)


@triton.jit
def quantise_kernel(x, o, scales, n, B: tl.constexpr):
    r, i = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + r * n + i, mask=i < n, other=0.0)
    scale = tl.max(tl.abs(v), 0) / 127
    tl.store(scales + r, scale)
    tl.store(o + r * n + i, (v / scale).to(tl.int8), mask=i < n)


def quantise(x, y):
    o = torch.empty(ROWS, WIDTH, dtype=torch.int8, device="cuda")
    scales = torch.empty(ROWS, device="cuda")
    quantise_kernel[(ROWS,)](x, o, scales, WIDTH, B=256)
    return scales, x.abs().amax(1) / 127


@triton.jit
def scan_kernel(x, o, n, B: tl.constexpr):
    i, row = tl.arange(0, B), tl.program_id(0) * n
    v = tl.load(x + row + i, mask=i < n, other=0.0)
    tl.store(o + row + i, tl.cumsum(v, 0), mask=i < n)


def scan(x, y):
    o = torch.empty_like(x)
    scan_kernel[(ROWS,)](x, o, WIDTH, B=256)
    return o, x.cumsum(1)


@triton.jit
def recurrence(a, b, c, d):
    return a * c, c * b + d


@triton.jit
def recurrence_kernel(x, y, o, n, B: tl.constexpr):
    i, row = tl.arange(0, B), tl.program_id(0) * n
    a = tl.load(x + row + i, mask=i < n, other=0.0)
    b = tl.load(y + row + i, mask=i < n, other=0.0)
    _, h = tl.associative_scan((a, b), 0, recurrence)
    tl.store(o + row + i, h, mask=i < n)


def linear_recurrence(x, y):
    a, o, expected, h = x.sigmoid(), torch.empty_like(x), torch.empty_like(x), 0
    recurrence_kernel[(ROWS,)](a, y, o, WIDTH, B=256)
    for k in range(WIDTH):
        h = a[:, k] * h + y[:, k]
        expected[:, k] = h
    return o, expected


@triton.jit
def sort_kernel(x, o, n, B: tl.constexpr):
    i, row = tl.arange(0, B), tl.program_id(0) * n
    v = tl.load(x + row + i, mask=i < n, other=float("inf"))
    tl.store(o + row + i, tl.sort(v), mask=i < n)


def sort(x, y):
    o = torch.empty_like(x)
    sort_kernel[(2,)](x, o, WIDTH, B=256)
    return o[:2], x[:2].sort(1).values


@triton.jit
def argmax_kernel(x, o, n, B: tl.constexpr):
    r, i = tl.program_id(0), tl.arange(0, B)
    v = tl.load(x + r * n + i, mask=i < n, other=-float("inf"))
    tl.store(o + r, tl.argmax(v, 0).to(tl.int64))


def argmax(x, y):
    o = torch.empty(ROWS, dtype=torch.int64, device="cuda")
    argmax_kernel[(ROWS,)](x, o, WIDTH, B=256)
    return o, x.argmax(1)


@triton.jit
def histogram_kernel(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(o + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


def histogram(x, y):
    o, bins = torch.zeros(8, dtype=torch.int32, device="cuda"), (x.abs() * 2).int().clamp(0, 7)
    histogram_kernel[(triton.cdiv(bins.numel(), 256),)](bins, o, bins.numel(), B=256)
    return o, torch.bincount(bins.flatten(), minlength=8).int()


@triton.jit
def transpose_kernel(x, o, rows, n, R: tl.constexpr, B: tl.constexpr):
    r, i = tl.arange(0, R)[:, None], tl.program_id(0) * B + tl.arange(0, B)[None, :]
    on = (r < rows) & (i < n)
    v = tl.trans(tl.load(x + r * n + i, mask=on))
    tl.store(o + tl.trans(i) * rows + tl.trans(r), v, mask=tl.trans(on))


def transpose(x, y):
    o = torch.empty(WIDTH, ROWS, device="cuda")
    transpose_kernel[(triton.cdiv(WIDTH, 64),)](x, o, ROWS, WIDTH, R=8, B=64)
    return o, x.t().contiguous()


@triton.jit
def adam_kernel(p, g, m, v, n, rate, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    on = i < n
    grad = tl.load(g + i, mask=on)
    first = 0.9 * tl.load(m + i, mask=on) + 0.1 * grad
    second = 0.999 * tl.load(v + i, mask=on) + 0.001 * grad * grad
    tl.store(m + i, first, mask=on)
    tl.store(v + i, second, mask=on)
    step = rate * (first / 0.1) / (tl.sqrt(second / 0.001) + 1e-8)
    tl.store(p + i, tl.load(p + i, mask=on) - step, mask=on)


def adam(x, y):
    p, expected = x.clone(), torch.nn.Parameter(x.clone())
    adam_kernel[(triton.cdiv(p.numel(), 256),)](
        p, y, torch.zeros_like(p), torch.zeros_like(p), p.numel(), 0.01, B=256
    )
    expected.grad = y.clone()
    torch.optim.Adam([expected], 0.01).step()
    return p, expected.detach()


@triton.jit
def dropout_kernel(x, o, n, p, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    keeps = tl.rand(seed, i) > p
    v = tl.load(x + i, mask=i < n)
    tl.store(o + i, tl.where(keeps, v / (1 - p), 0.0), mask=i < n)


def dropout(x, y):
    one, other = torch.empty_like(x), torch.empty_like(x)
    for o in (one, other):
        dropout_kernel[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), 0.5, 7, B=256)
    assert 0.4 < (one == 0).float().mean().item() < 0.6
    return one, torch.where(other != 0, 2 * x, torch.zeros_like(x))


@triton.jit
def split_k_kernel(a, b, c, N, K, part, M: tl.constexpr, B: tl.constexpr):
    m, n = tl.arange(0, M)[:, None], tl.program_id(0) * B + tl.arange(0, B)[None, :]
    total = tl.zeros((M, B), tl.float32)
    for begin in range(tl.program_id(1) * part, (tl.program_id(1) + 1) * part, 32):
        k = begin + tl.arange(0, 32)
        total = tl.dot(tl.load(a + m * K + k[None, :]), tl.load(b + k[:, None] * N + n), total)
    tl.atomic_add(c + m * N + n, total)


def split_k(x, y):
    a, b = torch.randn(16, 128, device="cuda").half(), torch.randn(128, 64, device="cuda").half()
    c = torch.zeros(16, 64, device="cuda")
    split_k_kernel[(2, 2)](a, b, c, 64, 128, 64, M=16, B=32)
    return c, a.float() @ b.float()


@triton.jit
def attention_kernel(q, k, v, o, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    m, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    left = tl.load(q + m[:, None] * D + d[None, :])
    top, total = tl.full((M,), -float("inf"), tl.float32), tl.zeros((M,), tl.float32)
    out = tl.zeros((M, D), tl.float32)
    for begin in range(0, length, N):
        n = begin + tl.arange(0, N)
        s = tl.dot(left, tl.trans(tl.load(k + n[:, None] * D + d[None, :]))) * scale
        both = tl.maximum(top, tl.max(s, 1))
        p, old = tl.exp(s - both[:, None]), tl.exp(top - both)
        total = total * old + tl.sum(p, 1)
        out = out * old[:, None] + tl.dot(
            p.to(tl.float16), tl.load(v + n[:, None] * D + d[None, :])
        )
        top = both
    tl.store(o + m[:, None] * D + d[None, :], out / total[:, None])


def attention(x, y):
    q, k, v = (torch.randn(64, 32, device="cuda").half() for _ in range(3))
    o = torch.empty(64, 32, device="cuda")
    attention_kernel[(4,)](q, k, v, o, 64, 32**-0.5, M=16, N=32, D=32)
    expected = F.scaled_dot_product_attention(*(one.float()[None] for one in (q, k, v)))
    return o, expected[0]


KERNELS = (
    add, softmax, log_softmax, layer_norm, rms_norm, cross_entropy, bias_gelu, swiglu, rotary,
    quantise, scan, linear_recurrence, sort, argmax, histogram, transpose, adam, dropout, split_k,
    attention,
)  # fmt: skip

if __name__ == "__main__":
    for one in KERNELS:
        torch.manual_seed(0)
        found, expected = one(*torch.randn(2, ROWS, WIDTH, device="cuda"))
        torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)
        print(one.__name__)
