"""SVG is written without what nobody sees."""

from __future__ import annotations

from gpusim.reports.plots.canvas import lean

MARKER = '<path id="m1" d="M 0 0 \nL 0 3.5 \n" style="stroke: #000000; stroke-width: 0.8"/>'


def test_coordinates_have_two_decimals_and_texts_all_of_theirs() -> None:
    before = '<path d="M 1.234567 2.5 L 100 0.005"/><text x="3.141593">3.141593</text>'
    after = '<path d="M 1.23 2.5 L 100 0.00"/><text x="3.14">3.141593</text>'
    assert lean(before) == after


def test_a_point_with_its_markers_style_does_not_repeat_it() -> None:
    use = '<use xlink:href="#m1" x="1" y="2" style="stroke: #000000; stroke-width: 0.8"/>'
    assert lean(MARKER + use) == MARKER + '<use xlink:href="#m1" x="1" y="2"/>'


def test_a_point_keeps_what_its_marker_and_other_points_do_not_have() -> None:
    own = '<use xlink:href="#m1" x="1" y="2" style="fill: #0072b2"/>'
    more = own.replace("0072b2", "d55e00")
    assert lean(MARKER + own + more) == MARKER + own + more


def test_what_all_points_of_a_marker_have_is_the_markers() -> None:
    use = '<use xlink:href="#m1" x="1" y="2" style="fill-opacity: 0"/>'
    more = use.replace("opacity: 0", "opacity: 0; stroke-width: 0.8")
    marker = MARKER.replace("0.8", "0.8; fill-opacity: 0")
    point = '<use xlink:href="#m1" x="1" y="2"/>'
    assert lean(MARKER + use + more) == marker + 2 * point
