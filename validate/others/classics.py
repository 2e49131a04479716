"""Launches of `classics.cu`."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy import float32, float64, int8, int32, uint8, uint32

from .data import Array, Numbers, afresh, deciding, mixed, of, uniform, words, zeros
from .plans import LAST, Expected, Plan, measured

EXACT = 0.0


def _signed(length: int, seed: int, most: float = 1.0) -> Numbers:
    """Return floats around 0."""

    def made() -> Array:
        return float32(most) * (2 * uniform(length, seed).make() - float32(1))

    return of(made, length, float32)


def _above(least: float, length: int, seed: int) -> Numbers:
    """Return floats from a number to the next."""
    return of(lambda: float32(least) + uniform(length, seed).make(), length, float32)


def _begins(sizes: Array) -> Array:
    """Return where each of some groups begins, and where the last one ends."""
    return np.r_[0, np.cumsum(sizes)].astype(int32)


@measured(LAST, 256, 1024, 4096, small=64)
def hotspot(n: int) -> Plan:
    step, rx, ry, rz, ambient = map(float32, (0.1, 0.3, 0.4, 0.05, 80))

    def expected(power: Array, before: Array, *_: object) -> Expected:
        now = before.reshape(n, n).astype(float64)
        for _step in range(2):
            padded = np.pad(now, 1, "edge")
            down = padded[2:, 1:-1] + padded[:-2, 1:-1] - 2 * now
            across = padded[1:-1, 2:] + padded[1:-1, :-2] - 2 * now
            change = power.reshape(n, n) + down * ry + across * rx + (ambient - now) * rz
            now = now + step * change
        return {2: now.ravel()}

    given = uniform(n * n, 1), _above(50, n * n, 2), zeros(n * n)
    blocks = -(-n // 12)
    arguments = *given, int32(n), int32(n), step, rx, ry, rz, ambient
    return Plan((blocks, blocks), (16, 16), arguments, expected)


@measured(LAST, 32, 1024, 8192, small=8)
def lu_panel(n: int) -> Plan:
    rows, columns = 128, 16

    def panels() -> Array:
        made = 2 * uniform(n * rows * columns, 3).make().astype(float64) - 1
        diagonal = np.arange(columns)
        made.reshape(n, columns, rows)[:, diagonal, diagonal] += 16
        return made

    def expected(panels: Array) -> Expected:
        made = panels.reshape(n, columns, rows).copy()
        for k in range(columns):
            made[:, k, k + 1 :] /= made[:, k, k, None]
            made[:, k + 1 :, k + 1 :] -= made[:, k + 1 :, k, None] * made[:, k, None, k + 1 :]
        return {0: made.ravel()}

    arguments = (afresh(deciding(of(panels, n * rows * columns, float64))),)
    return Plan(n, 128, arguments, expected, tolerance=1e-10)


@measured(LAST, 256, 1024, 4096, small=64)
def needle(n: int) -> Plan:
    pitch, penalty, side = n + 1, 10, 32

    def small_numbers(seed: int, limit: int) -> Numbers:
        def made() -> Array:
            return (words(pitch**2, seed) % uint32(2 * limit)).astype(int32) - int32(limit)

        return of(made, pitch**2, int32)

    def expected(reference: Array, scores: Array, *_: object) -> Expected:
        similar = reference.reshape(pitch, pitch)
        made = scores.reshape(pitch, pitch).copy()
        across = side * np.arange(n // side)
        down = across[::-1]
        for y in range(1, side + 1):
            for x in range(1, side + 1):
                r, c = down + y, across + x
                best = made[r - 1, c - 1] + similar[r, c]
                best = np.maximum(best, made[r, c - 1] - penalty)
                made[r, c] = np.maximum(best, made[r - 1, c] - penalty)
        return {1: made.ravel()}

    arguments = small_numbers(4, 10), small_numbers(5, 100), int32(pitch), int32(penalty)
    return Plan(n // side, side, arguments, expected, EXACT)


def _fine(length: int, seed: int) -> Array:
    """Return doubles from 0 to 1, all different."""
    return (words(length, seed) + words(length, seed + 1) / 2.0**32) / 2.0**32


KINDS, PER_KIND = 64, 1024
MEMBERS = np.asarray([34, 5, 4, 4, 27, 21, 21, 21, 21, 21, 9, 9], int32)


@cache
def _nuclides() -> Array:
    made = _fine(KINDS * PER_KIND * 6, 6).reshape(KINDS, PER_KIND, 6)
    made[:, :, 0].sort(1)
    return made


@cache
def _grid() -> tuple[Array, Array]:
    """Return all nuclides' energies in order, and where among its own each nuclide has them."""
    own = _nuclides()[:, :, 0]
    energies = np.sort(own.ravel())
    places = [np.searchsorted(one, energies, "right") - 1 for one in own]
    return energies, np.clip(np.stack(places, 1), 0, PER_KIND - 2).astype(int32).ravel()


@measured(LAST, 2**12, 2**16, 2**20, small=2**9)
def cross_sections(n: int) -> Plan:
    points, total = KINDS * PER_KIND, int(MEMBERS.sum())
    begins = _begins(MEMBERS)

    def members() -> Array:
        return (words(total, 8) % uint32(KINDS)).astype(int32)

    def expected(
        energies: Array, places: Array, nuclides: Array, begins: Array, members: Array,
        densities: Array, *_: object,
    ) -> Expected:  # fmt: skip
        numbers = mixed(np.arange(2 * n, dtype=uint32)).reshape(n, 2)
        energy, material = (numbers[:, 0] + 0.5) / 2.0**32, numbers[:, 1] % uint32(12)
        at = np.searchsorted(energies[1:], energy, "right")
        made = np.zeros((n, 5))
        data = nuclides.reshape(KINDS, PER_KIND, 6)
        for which in range(12):
            of_it = np.flatnonzero(material == which)
            for j in range(begins[which], begins[which + 1]):
                place = places.reshape(points, KINDS)[at[of_it], members[j]]
                below, above = data[members[j], place], data[members[j], place + 1]
                f = (above[:, 0] - energy[of_it]) / (above[:, 0] - below[:, 0])
                parts = above[:, 1:] - f[:, None] * (above[:, 1:] - below[:, 1:])
                made[of_it] += densities[j] * parts
        return {6: made.ravel()}

    grid = (
        deciding(of(lambda: _grid()[0], points, float64)),
        deciding(of(lambda: _grid()[1], points * KINDS, int32)),
        deciding(of(lambda: _nuclides().ravel(), points * 6, float64)),
    )
    lists = deciding(of(lambda: begins, 13, int32)), deciding(of(members, total, int32))
    densities = of(lambda: _fine(total, 10), total, float64)
    sizes = int32(points), int32(KINDS), int32(PER_KIND), int32(n)
    arguments = *grid, *lists, densities, zeros(5 * n, float64), *sizes
    return Plan(n // 256, 256, arguments, expected, tolerance=1e-9)


@measured(LAST, 256, 1024, 3000, small=64)
def srad_step(n: int) -> Plan:
    rows, columns = n, n - 44
    q0 = float32(0.05)

    def neighbours(count: int, step: int) -> Numbers:
        def made() -> Array:
            return np.clip(np.arange(count) + step, 0, count - 1).astype(int32)

        return deciding(of(made, count, int32))

    def expected(image: Array, *_: object) -> Expected:
        center = image.reshape(columns, rows).astype(float64)
        padded = np.pad(center, 1, "edge")
        north, south = padded[1:-1, :-2] - center, padded[1:-1, 2:] - center
        west, east = padded[:-2, 1:-1] - center, padded[2:, 1:-1] - center
        g2 = (north**2 + south**2 + west**2 + east**2) / center**2
        laplacian = (north + south + west + east) / center
        q = (g2 / 2 - laplacian**2 / 16) / (1 + laplacian / 4) ** 2
        spread = np.clip(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0, 1)
        made = north, south, west, east, spread
        return {5 + k: one.ravel() for k, one in enumerate(made)}

    pixels = rows * columns
    tables = (
        neighbours(rows, -1), neighbours(rows, 1), neighbours(columns, -1), neighbours(columns, 1),
    )  # fmt: skip
    made = (zeros(pixels) for _ in range(5))
    arguments = deciding(_above(1, pixels, 11)), *tables, *made, q0, int32(rows), int32(pixels)
    return Plan(-(-pixels // 512), 512, arguments, expected, tolerance=1e-4)


@measured(LAST, 2**12, 2**16, 2**19, small=2**10)
def layer_forward(n: int) -> Plan:
    hidden = 16

    def expected(inputs: Array, weights: Array, *_: object) -> Expected:
        made = weights.reshape(n + 1, hidden + 1).astype(float64)
        products = (made[1:, 1:] * inputs[1:, None]).reshape(n // 16, 16, hidden)
        for distance in (1, 2, 4, 8):
            products[:, :: 2 * distance] += products[:, distance :: 2 * distance]
        made[1:, 1:] = products.reshape(n, hidden)
        return {1: made.ravel(), 2: products[:, 0].ravel()}

    weights = afresh(_signed((n + 1) * (hidden + 1), 12))
    arguments = uniform(n + 1, 13), weights, zeros(n), int32(hidden)
    return Plan((1, n // 16), (16, 16), arguments, expected)


@measured(LAST, 12_288, 98_304, 983_040, small=1_536)
def cfd_flux(n: int) -> Plan:
    far_density, far_energy, gamma = float32(1.4), float32(4), 1.4

    def neighbours() -> Array:
        chance = words(4 * n, 14).reshape(4, n)
        steps = np.asarray([-1, 1, -97, 97])[:, None] + (chance >> uint32(28)).astype(int32) - 8
        made = (np.arange(n) + steps) % n
        made[chance % uint32(50) == 0] = -1
        made[chance % uint32(50) == 1] = -2
        return made.astype(int32).ravel()

    def variables() -> Array:
        made = 2 * uniform(5 * n, 15).make().reshape(5, n) - float32(1)
        return (made * 0.5 + np.asarray([1.4, 0, 0, 0, 4])[:, None]).astype(float32).ravel()

    def expected(_n: int, neighbours: Array, normals: Array, given: Array, *_: object) -> Expected:
        u = given.reshape(5, n).astype(float64)
        v = u[1:4] / u[0]
        pressure = (gamma - 1) * (u[4] - 0.5 * u[0] * (v**2).sum(0))
        sound, speed = np.sqrt(gamma * pressure / u[0]), np.sqrt((v**2).sum(0))
        made = np.zeros((5, n))
        for j, other in enumerate(neighbours.reshape(4, n)):
            normal = normals.reshape(3, 4, n)[:, j].astype(float64)
            own = 0.5 * (normal * v).sum(0)
            its = 0.5 * (normal * v[:, other]).sum(0)
            length = np.sqrt((normal**2).sum(0))
            factor = -length * 0.1 * (speed + speed[other] + sound + sound[other])
            flow = factor * (u - u[:, other]) + own * u + its * u[:, other]
            flow[1:4] += 0.5 * (pressure + pressure[other]) * normal
            flow[4] += own * pressure + its * pressure[other]
            wall, far = np.zeros((5, n)), own * u
            wall[1:4] = normal * pressure
            far[0] += own * far_density
            far[4] += own * far_energy
            made += np.where(other >= 0, flow, np.where(other == -1, wall, far))
        return {4: made.ravel()}

    given = deciding(of(neighbours, 4 * n, int32)), deciding(_signed(12 * n, 16))
    state = deciding(of(variables, 5 * n, float32)), zeros(5 * n)
    arguments = int32(n), *given, *state, far_density, far_energy
    return Plan(n // 192, 192, arguments, expected)


@measured(LAST, 2**10, 2**13, 2**17, small=2**8)
def k_nearest(n: int) -> Plan:
    count = 2048

    def expected(points: Array, queries: Array, *_: object) -> Expected:
        made = np.empty((8, n))
        for begin in range(0, n, 256):
            part = queries.reshape(n, 4)[begin : begin + 256, None].astype(float64)
            squared = ((part - points.reshape(count, 4)) ** 2).sum(2)
            made[:, begin : begin + 256] = np.sort(np.partition(squared, 8, 1)[:, :8], 1).T
        return {2: made.ravel()}

    given = deciding(uniform(4 * count, 17)), deciding(uniform(4 * n, 18))
    arguments = *given, zeros(8 * n), zeros(8 * n, int32), int32(count), int32(n)
    return Plan(n // 256, 256, arguments, expected)


LETTERS = 2**20


@cache
def _genome() -> Array:
    """Return letters of a genome, and zeros behind it."""
    made = np.zeros(LETTERS + 32, uint8)
    made[:LETTERS] = np.frombuffer(b"ACGT", uint8)[words(LETTERS, 19) >> uint32(30)]
    return made


def _windows(letters: Array, places: Array) -> Array:
    """Return the 24 letters from each of some places on."""
    return letters[places[:, None] + np.arange(24)]


@cache
def _suffixes() -> Array:
    """Return where suffixes begin, in the order of their first 24 letters."""
    eight = np.zeros(LETTERS + 24, np.uint64)
    for k in range(8):
        eight[: LETTERS + 24] |= _genome()[k : k + LETTERS + 24].astype(np.uint64) << np.uint64(
            56 - 8 * k
        )
    return np.lexsort((eight[16:-8], eight[8:-16], eight[:-24])).astype(int32)


@measured(LAST, 2**12, 2**16, 2**20, small=2**9)
def find_in_suffixes(n: int) -> Plan:
    def reads() -> Array:
        places = (words(n, 20) % uint32(LETTERS - 24)).astype(int32)
        made = _windows(_genome(), places)
        changed = words(n, 21)
        made[np.arange(n), 8 + changed % uint32(32) % uint32(16)] = np.frombuffer(b"ACGT", uint8)[
            changed >> uint32(30)
        ]
        return made.ravel().view(int8)

    def expected(text: Array, suffixes: Array, reads: Array, *_: object) -> Expected:
        given = reads.view(uint8).reshape(n, 24)
        held = np.ascontiguousarray(_windows(text.view(uint8), suffixes)).view("S24").ravel()
        places = np.searchsorted(held, given.copy().view("S24").ravel())
        agree = np.zeros(n, int32)
        for place in (places - 1, places):
            beside = _windows(text.view(uint8), suffixes[np.clip(place, 0, LETTERS - 1)])
            agree = np.maximum(agree, np.cumprod(beside == given, 1).sum(1))
        return {3: places, 4: agree}

    given = (
        deciding(of(lambda: _genome().view(int8), LETTERS + 32, int8)),
        deciding(of(_suffixes, LETTERS, int32)),
        deciding(of(reads, 24 * n, int8)),
    )
    arguments = *given, zeros(n, int32), zeros(n, int32), int32(LETTERS), int32(n)
    return Plan(n // 256, 256, arguments, expected, EXACT)


@measured(LAST, 2**12, 2**15, 2**18, small=2**9)
def mri_q(n: int) -> Plan:
    samples = 1024
    trajectory = _signed(4 * samples, 22, 2.0)

    def expected(x: Array, y: Array, z: Array, real: Array, imaginary: Array, _n: int) -> Expected:
        at = trajectory.make().reshape(samples, 4).astype(float64)
        angles = 2 * np.pi * (np.stack([x, y, z], 1).astype(float64) @ at[:, :3].T)
        return {3: real + np.cos(angles) @ at[:, 3], 4: imaginary + np.sin(angles) @ at[:, 3]}

    places = (deciding(_signed(n, seed)) for seed in (23, 24, 25))
    arguments = *places, afresh(uniform(n, 26)), afresh(uniform(n, 27)), int32(samples)
    constants = (("trajectory", trajectory),)
    return Plan(n // 256, 256, arguments, expected, tolerance=1e-4, constants=constants)


@measured(LAST, 2**15, 2**19, 2**23, small=2**12)
def radix8_pass(n: int) -> Plan:
    done, eighth = 64, n // 8

    def expected(before: Array, *_: object) -> Expected:
        k, j = np.arange(eighth) % done, np.arange(8)[:, None]
        parts = before.view(np.complex64).reshape(8, eighth).astype(np.complex128)
        made = np.fft.fft(parts * np.exp(-2j * np.pi * k * j / (8 * done)), axis=0)
        whole = made.reshape(8, -1, done).transpose(1, 0, 2).ravel()
        return {1: whole.view(float64)}

    arguments = _signed(2 * n, 28), zeros(2 * n), int32(done), int32(eighth)
    return Plan(n // 1024, 128, arguments, expected)


@measured(LAST, 2**10, 2**14, 2**18, small=2**8)
def kalman_tracks(n: int) -> Plan:
    steps = 32
    dt, noise, blur = float32(0.5), float32(0.01), float32(0.25)

    def measurements() -> Array:
        moved = np.arange(steps)[:, None] * _signed(2 * n, 29).make().reshape(n, 1, 2)
        made = moved + _signed(n * steps * 2, 30).make().reshape(n, steps, 2)
        made[words(n * steps, 31).reshape(n, steps) % uint32(10) == 0] = -1e9
        return made.astype(float32).ravel()

    def tracks() -> Array:
        made = np.zeros((n, 20), float32)
        made[:, :4] = _signed(4 * n, 32).make().reshape(n, 4)
        made[:, 4::5] = 10
        return made.ravel()

    def expected(measured: Array, tracks: Array, *_: object) -> Expected:
        given = tracks.reshape(n, 20).astype(float64)
        x, p = given[:, :4, None], given[:, 4:].reshape(n, 4, 4)
        moves = np.eye(4) + float(dt) * np.eye(4, k=2)
        for z in measured.reshape(n, steps, 2).transpose(1, 0, 2).astype(float64):
            x, p = moves @ x, moves @ p @ moves.T + float(noise) * np.eye(4)
            gain = p[:, :, :2] @ np.linalg.inv(p[:, :2, :2] + float(blur) * np.eye(2))
            seen = (z[:, 0] > -1e6)[:, None, None]
            x = np.where(seen, x + gain @ (z[:, :, None] - x[:, :2]), x)
            p = np.where(seen, p - gain @ p[:, :2], p)
        return {1: np.concatenate([x[:, :, 0], p.reshape(n, 16)], 1).ravel()}

    given = deciding(of(measurements, n * steps * 2, float32))
    arguments = given, afresh(deciding(of(tracks, 20 * n, float32))), dt, noise, blur, int32(n)
    return Plan(n // 64, 64, arguments, expected, tolerance=1e-4)
