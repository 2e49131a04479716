"""The devices that there are, and one device's numbers with unit, kind and source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

from rich.text import Text

from gpusim.gpu.device import ABLATIONS, GROUPS, KEYS, KINDS, Device, Value
from gpusim.reports.columns import Column, Columns
from gpusim.reports.layout import DIM, KIND_STYLES, TITLE, heading

STYLES = {**KIND_STYLES, "estimated": "yellow", "unmeasured": "red"}
# Headings of the columns that count a device's numbers by kind, for terminals of 80 columns.
SHORT = {"estimated": "estim.", "unmeasured": "unmeas."}
MEBIBYTE = 2**20
SHOWN = ("gpu", "sm", "bandwidth")  # groups of a short report
# In fewer columns the names of products give way to the counts of kinds; ids stay.
WIDTH_FOR_PRODUCTS = 95


def device_summary(device: Device) -> dict[str, Any]:
    """Return a device in short, ready for JSON."""
    return {
        "id": device.id,
        "name": device.name,
        "compute_capability": device.gpu.compute_capability,
        "sms": device.gpu.sms,
        "sm_clock_mhz": device.gpu.sm_clock_mhz,
        "memory_bytes": device.gpu.memory_bytes,
        "dram_peak_gbps": device.bandwidth.dram_peak_gbps,
        "dram_gbps": device.bandwidth.dram_gbps,
        "l2_bytes": device.capacity.l2_bytes,
        "kinds": _kinds(device),
    }


def device_document(device: Device) -> dict[str, Any]:
    """Return all of a device's numbers, ready for JSON."""
    facts = {
        key: {
            "value": fact.value,
            "unit": fact.unit,
            "kind": fact.kind,
            "source": fact.source,
            "meaning": KEYS[key].doc,
        }
        for key, fact in device.facts.items()
    }
    return {"id": device.id, "name": device.name, "facts": facts}


def device_list(devices: Sequence[Device], width: int) -> Iterator[Text]:
    """Yield the devices, a line each, and the mechanisms that `--without` can switch off."""
    products = width >= WIDTH_FOR_PRODUCTS
    made = Columns(
        Column("name", "left"),
        *([Column("GPU", "left")] if products else []),
        Column("cc"),
        Column("SMs"),
        Column("MHz"),
        Column("DRAM GB/s"),
        Column("reached"),
        Column("L2 MiB"),
        *(Column(SHORT.get(kind, kind)) for kind in KINDS),
        gap=1,
    )
    for device in devices:
        kinds = _kinds(device)
        made.row(
            (device.id, TITLE),
            *([device.name] if products else []),
            device.gpu.compute_capability,
            str(device.gpu.sms),
            f"{device.gpu.sm_clock_mhz:,.0f}",
            f"{device.bandwidth.dram_peak_gbps:,.0f}",
            f"{device.bandwidth.dram_gbps:,.0f}",
            f"{device.capacity.l2_bytes / MEBIBYTE:,.4g}",
            *((str(kinds[kind]), STYLES[kind]) for kind in KINDS),
        )
    yield from made.lines(width)
    if not products:
        yield Text()
        named = "; ".join(f"{device.id} {device.name}" for device in devices)
        for part in wrap(f"GPU: {named}", width):
            yield Text(part, DIM)
    yield heading(
        "Mechanisms", "ablations of predict, rank, sweep, plot and report: --without NAME"
    )
    switches = Columns(Column("", "left"), Column("", "left", "fold"))
    for name, meaning in ABLATIONS.items():
        switches.row((f"  {name}", TITLE), (meaning, DIM))
    yield from switches.lines(width)
    yield Text("\ngpusim devices NAME shows a device's numbers with their sources.", DIM)


def device_report(device: Device, width: int, *, whole: bool = False) -> Iterator[Text]:
    """Yield a device's numbers, group by group: value, unit, kind, meaning and source.

    Unless it is `whole`, the numbers of data sheets alone, and how many others there are.
    """
    title = Text(device.name, TITLE)
    title.append(f"  {device.id}", "not bold dim")
    yield title
    kinds = _kinds(device)
    for kind, meaning in KINDS.items():
        line = Text(f"  {kinds[kind]:>3} ")
        line.append(f"{kind:<11}", STYLES[kind])
        line.append(meaning, DIM)
        yield line
    for group, cls in GROUPS.items():
        if whole or group in SHOWN:
            yield heading(group, (cls.__doc__ or "").splitlines()[0].rstrip("."))
            yield from (_group if whole else _values)(device, group).lines(width)
    if not whole:
        others = Counter(key.partition(".")[0] for key in device.facts)
        rest = ", ".join(f"{group} {others[group]}" for group in GROUPS if group not in SHOWN)
        note = f"Other numbers: {rest}. gpusim devices {device.id} --all has each with its source."
        yield Text()
        yield from (Text(part, DIM) for part in wrap(note, width))


def _values(device: Device, group: str) -> Columns:
    """Return a row for each number of a group: value, unit and kind."""
    made = Columns(Column("", "left"), Column(""), Column("", "left"), Column("", "left"))
    for dotted, fact in device.facts.items():
        mine, _, name = dotted.partition(".")
        if mine == group:
            kind = (fact.kind, STYLES[fact.kind])
            made.row(f"  {name}", (_value(fact.value), TITLE), (fact.unit, DIM), kind)
    return made


def _group(device: Device, group: str) -> Columns:
    """Return two rows for each number: value and meaning, then unit and source."""
    made = Columns(
        Column("", "left"), Column(""), Column("", "left"), Column("", "left", "fold", hang=2)
    )
    for dotted, fact in device.facts.items():
        mine, _, name = dotted.partition(".")
        if mine == group:
            meaning = KEYS[dotted].doc
            made.row(
                f"  {name}", (_value(fact.value), TITLE), (fact.kind, STYLES[fact.kind]), meaning
            )
            made.row((f"    {fact.unit}", DIM), "", "", (fact.source, DIM))
    return made


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return f"{value:,}"


def _kinds(device: Device) -> dict[str, int]:
    counted = Counter(fact.kind for fact in device.facts.values())
    return {kind: counted[kind] for kind in KINDS}
