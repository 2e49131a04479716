"""Work on streams begins where earlier work of its stream, and of the default stream, ends."""

from __future__ import annotations

import pytest

from gpusim.driver.timeline import TO_DEVICE, TO_HOST, WITHIN, Duration, Timeline
from gpusim.gpu.device import load

NON_BLOCKING = 1
TAKEN = Duration(kernel_us=10, overhead_us=3, gap_us=1)


@pytest.fixture
def timeline() -> Timeline:
    made = Timeline(load("h200"))
    for number, flags in ((20, 0), (21, 0), (22, NON_BLOCKING)):
        made.add_stream(number, flags)
    return made


def test_a_launch_alone_takes_its_time_with_the_overhead(timeline: Timeline) -> None:
    timeline.record(1, 0)
    timeline.launch("kernel", 0, TAKEN)
    timeline.record(2, 0)
    assert timeline.elapsed_us(1, 2) == 13


def test_launches_in_a_row_have_one_overhead_and_gaps(timeline: Timeline) -> None:
    for _ in range(3):
        made = timeline.launch("kernel", 0, TAKEN)
    assert made.end_us == 13 + 11 + 11


def test_streams_run_beside_each_other_but_not_beside_the_default_stream(
    timeline: Timeline,
) -> None:
    assert timeline.launch("one", 20, TAKEN).begin_us == 0
    assert timeline.launch("two", 21, TAKEN).begin_us == 0
    assert timeline.launch("default", 0, TAKEN).begin_us == 13
    assert timeline.launch("apart", 22, TAKEN).begin_us == 0
    assert timeline.launch("behind", 20, TAKEN).begin_us == 26


def test_a_stream_waits_for_an_event_of_another(timeline: Timeline) -> None:
    timeline.launch("one", 20, TAKEN)
    timeline.record(1, 20)
    timeline.order(22, 1)
    assert timeline.launch("two", 22, TAKEN).begin_us == 13


def test_copies_of_a_direction_share_the_link(timeline: Timeline) -> None:
    first = timeline.copy(TO_DEVICE, 63_000_000, 20, waits=False)
    assert timeline.copy(TO_DEVICE, 63_000_000, 21, waits=False).begin_us == first.end_us
    assert timeline.copy(TO_HOST, 63_000_000, 22, waits=False).begin_us == 0
    assert timeline.copy(WITHIN, 1000, 22, waits=False).begin_us == pytest.approx(1000)


def test_copies_take_the_links_and_drams_bandwidth(timeline: Timeline) -> None:
    assert timeline.copy_us(TO_DEVICE, 63_000_000) == pytest.approx(1000)
    dram = load("h200").bandwidth.dram_gbps
    assert timeline.copy_us(WITHIN, 1_000_000) == pytest.approx(2000 / dram)
