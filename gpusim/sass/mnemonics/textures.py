"""Fetches from textures, and accesses to surfaces: with a handle in uniform registers."""

from __future__ import annotations

from gpusim.isa.ops import OPS
from gpusim.sass.table import add

add("TEX", OPS["TEX"], modifiers="LL LZ", kind="texture", shape="ooooo?#?t#?")
add("TLD", OPS["TLD"], modifiers="LZ", kind="texture", shape="oooo#?t#?")
SIZES = "U8 S8 U16 S16 64 128"
AXES = "1D 2D 3D 1D_ARRAY 2D_ARRAY"
BOUNDARIES = "TRAP IGN"
add(
    "SULD.D.BA", OPS["SULD"], modifiers=f"{AXES} {SIZES} {BOUNDARIES} STRONG WEAK SM CTA GPU",
    kind="surface_load", shape="oao#?",
)  # fmt: skip
add(
    "SUST.D.BA", OPS["SUST"], modifiers=f"{AXES} {SIZES} {BOUNDARIES} STRONG WEAK SM CTA GPU",
    kind="surface_store", shape="aoo#?",
)  # fmt: skip
