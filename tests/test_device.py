"""Device files: complete, sourced, possible; and every mistake in one is named."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import tomllib
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from gpusim.errors import InputError
from gpusim.gpu import device
from gpusim.gpu.device import ABLATIONS, GROUPS, KEYS, KINDS, DeviceError
from gpusim.launch.grid import SHARED_BYTES_PER_BLOCK

FOLDER = Path(device.__file__).parent / "devices"
DEVICES = sorted(path.stem for path in FOLDER.glob("*.toml"))

# CUDA C++ Programming Guide: threads, blocks, registers, shared memory of an SM, and what the
# system keeps of it for each block.
SM_BY_CC = {
    "1.0": (768, 8, 8192, 16384, 16),
    "3.5": (2048, 16, 65536, 49152, 0),
    "7.0": (2048, 32, 65536, 98304, 0),
    "7.5": (1024, 16, 65536, 65536, 0),
    "8.0": (2048, 32, 65536, 167936, 1024),
    "8.6": (1536, 16, 65536, 102400, 1024),
    "8.9": (1536, 24, 65536, 102400, 1024),
    "9.0": (2048, 32, 65536, 233472, 1024),
    "10.0": (2048, 32, 65536, 233472, 1024),
    "12.0": (1536, 24, 65536, 102400, 1024),
}

H200 = (FOLDER / "h200.toml").read_text(encoding="utf-8")


DEFAULTS = {name: key.default for name, key in KEYS.items() if key.default is not None}


def file_with(tmp_path: Path, old: str, new: str) -> Path:
    """Write the H200's file with every match of a pattern replaced."""
    text, count = re.subn(old, new, H200, flags=re.MULTILINE)
    assert count >= 1, old
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(path: Path | str) -> str:
    """Return what is said about a device that cannot be used."""
    with pytest.raises(DeviceError) as caught:
        device.load(path)
    return str(caught.value)


def test_the_built_in_devices_are_listed_by_name() -> None:
    assert device.names() == DEVICES
    assert {"h200", "k40m", "v100"} < set(DEVICES)


@pytest.mark.parametrize("name", DEVICES)
def test_a_built_in_device_has_every_number_with_unit_kind_and_source(name: str) -> None:
    gpu = device.load(name)
    assert gpu.id == name
    assert list(gpu.facts) == list(KEYS)
    for dotted, fact in gpu.facts.items():
        group, key = dotted.split(".")
        assert getattr(getattr(gpu, group), key) == fact.value
        assert fact.unit == KEYS[dotted].unit
        assert fact.kind in KINDS
        assert len(fact.source) >= 5


def test_a_key_that_a_file_lacks_follows_its_rule_and_says_so() -> None:
    gpu = device.load("h200")
    assert gpu.latency_cycles.barrier_per_warp == 2
    assert gpu.latency_cycles.barrier_per_queued_warp == 1
    fact = gpu.facts["latency_cycles.barrier_per_queued_warp"]
    assert (fact.value, fact.unit, fact.kind) == (1, "cycles per warp", "unmeasured")
    assert fact.source == (
        "no microbenchmark on this GPU; an H200's ratio to latency_cycles.barrier_per_warp, 0.5"
    )


def test_no_number_of_another_gpu_is_given_for_an_estimate() -> None:
    """A value or ratio of an H200 is unmeasured elsewhere, never estimated "as on an H200"."""
    for name in set(device.names()) - {"h200"}:
        facts = device.load(name).facts.values()
        estimates = [fact.source for fact in facts if fact.kind == "estimated"]
        assert not any(source.startswith("as the H") for source in estimates)
        assert all("as on" not in fact.source for fact in facts)
        unmeasured = [fact for fact in facts if fact.kind == "unmeasured"]
        assert unmeasured
        assert all(f.source.startswith("no microbenchmark on this GPU; ") for f in unmeasured)


def test_copies_in_parts_of_the_l2_are_those_of_chips_that_have_parts() -> None:
    """Hopper and the A100 have two; far lines cost more only there."""
    found = {name: device.load(name) for name in ("h200", "a100-40gb", "v100", "rtx3080")}
    assert {name: gpu.capacity.l2_parts for name, gpu in found.items()} == {
        "h200": 2,
        "a100-40gb": 2,
        "v100": 1,
        "rtx3080": 1,
    }
    assert {name: gpu.latency_cycles.l2_far > 0 for name, gpu in found.items()} == {
        "h200": True,
        "a100-40gb": True,
        "v100": False,
        "rtx3080": False,
    }


def test_a_file_that_has_the_key_is_believed(tmp_path: Path) -> None:
    leaf = 'barrier_per_queued_warp = { value = 1.5, kind = "measured", source = "a probe" }'
    mine = device.load(file_with(tmp_path, r"^(branch = )", rf"{leaf}\n\1"))
    assert mine.latency_cycles.barrier_per_queued_warp == 1.5
    assert mine.facts["latency_cycles.barrier_per_queued_warp"].kind == "measured"


def test_a_group_is_asked_for_without_the_keys_that_a_rule_gives(tmp_path: Path) -> None:
    asked = re.search(r"\[queue\] is missing, with its keys (.*)",
                      complaint(file_with(tmp_path, r"^\[queue\]", "[queues]")))  # fmt: skip
    assert asked is not None
    assert asked[1].split(", ") == ["lsu_depth"]


@pytest.mark.parametrize("name", DEVICES)
def test_a_rule_gives_what_a_file_might(name: str) -> None:
    gpu = device.load(name)
    assert DEFAULTS
    for dotted in DEFAULTS:
        assert KEYS[dotted].allows(gpu.facts[dotted].value), dotted


@pytest.mark.parametrize("name", DEVICES)
def test_an_sm_holds_what_the_programming_guide_says(name: str) -> None:
    gpu = device.load(name)
    sm = gpu.sm
    held = sm.max_threads, sm.max_blocks, sm.registers, sm.shared_bytes, sm.shared_reserved_bytes
    assert held == SM_BY_CC[str(gpu.cc)]
    assert str(gpu.cc) in SHARED_BYTES_PER_BLOCK
    if gpu.cc.major >= 8:
        assert sm.shared_bytes - 1024 == gpu.cc.shared_bytes_per_block


@pytest.mark.parametrize("name", DEVICES)
def test_numbers_of_one_device_agree_with_each_other(name: str) -> None:
    gpu = device.load(name)
    latency, interval, band = gpu.latency_cycles, gpu.interval_cycles, gpu.bandwidth
    if gpu.capacity.l2_bytes:
        assert latency.shared_load < latency.l1 < latency.l2 < latency.dram
        assert band.dram_gbps < band.l2_gbps
    else:
        assert latency.l1 == latency.l2 == latency.dram
    assert latency.alu <= latency.shared_load
    assert 0.6 * band.dram_peak_gbps < band.dram_gbps <= band.dram_peak_gbps
    assert gpu.capacity.l1_bytes <= gpu.capacity.l2_bytes
    assert interval.alu * gpu.sm.issue_width >= 1 or gpu.sm.issue_width == 2
    assert interval.xu >= interval.fma
    assert interval.global_atomic_float_same_address >= interval.global_atomic_same_address


@pytest.mark.parametrize(
    ("name", "terascale"),
    [
        ("v100", 15.7),
        ("a100-40gb", 19.5),
        ("h100", 66.9),
        ("rtx4090", 82.6),
        ("k40m", 4.29),
        ("rtx5090", 104.8),
        ("b200", 74.5),
        ("t4", 8.1),
        ("l4", 30.3),
        ("a10", 31.2),
        ("rtx3090", 35.6),
        ("l40s", 91.6),
        ("h100-pcie", 51.2),
    ],
)
def test_fma_rate_times_clock_is_the_data_sheets_peak(name: str, terascale: float) -> None:
    gpu = device.load(name)
    lanes = 32 * gpu.sm.schedulers / gpu.interval_cycles.fma
    peak = 2 * lanes * gpu.gpu.sms * gpu.gpu.sm_clock_mhz * 1e6 / 1e12
    assert peak == pytest.approx(terascale, rel=0.01)


def test_one_chip_has_one_sm() -> None:
    small, large = device.load("a100-40gb"), device.load("a100-80gb")
    assert small.latency_cycles == large.latency_cycles
    assert small.interval_cycles == large.interval_cycles
    assert small.sm == large.sm
    assert device.load("h100").interval_cycles == device.load("h200").interval_cycles
    assert device.load("h100-pcie").interval_cycles == device.load("h200").interval_cycles
    assert device.load("rtx3090").interval_cycles == device.load("a10").interval_cycles
    assert device.load("rtx3080").latency_cycles == device.load("a10").latency_cycles
    assert device.load("rtx4090").latency_cycles == device.load("l40s").latency_cycles
    assert device.load("rtx4090").interval_cycles == device.load("l40s").interval_cycles


def test_a_shuffle_takes_twice_as_long_on_an_sm_of_half_the_load_store_lanes() -> None:
    """32 lanes for compute capabilities 7.0, 8.0 and from 9.0 to 10.0; 16 for 7.5, 8.6 and 8.9."""
    for name in set(DEVICES) - {"8800gtx", "k40m"}:
        interval = device.load(name).interval_cycles
        assert interval.shuffle == interval.lsu_sm, name


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("H200", "h200"),
        (" h-200 ", "h200"),
        ("RTX 3060 Ti", "rtx3060ti"),
        ("GeForce RTX 3060", "rtx3060"),
        ("nvidia_a100_80gb", "a100-80gb"),
        ("Tesla K40m", "k40m"),
        ("GeForce 8800 GTX", "8800gtx"),
        ("Tesla T4", "t4"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
    ],
)
def test_a_name_is_found_however_it_is_written(written: str, name: str) -> None:
    assert device.load(written) is device.load(name)


def test_a_device_is_its_own_name() -> None:
    gpu = device.load("h200").without("barriers")
    assert device.load(gpu) is gpu


def test_an_unknown_name_offers_the_nearest() -> None:
    assert "did you mean h200 or h100 or b200?" in complaint("h20o")
    assert complaint("A100").endswith("'A100' may be a100-40gb or a100-80gb: choose one")
    assert "built in are 8800gtx" in complaint("?!")


def test_a_part_of_one_name_is_enough() -> None:
    assert device.load("4090").id == "rtx4090"
    assert complaint("3060").endswith("may be rtx3060 or rtx3060ti: choose one")


def test_a_users_file_is_a_device_by_its_path(tmp_path: Path) -> None:
    path = file_with(tmp_path, r"^dram_gbps = { value = \d+", "dram_gbps = { value = 4000.5")
    for way in (path, str(path)):
        mine = device.load(way)
        assert mine.bandwidth.dram_gbps == 4000.5
        assert mine.id == str(path)
        assert mine.interval_cycles == device.load("h200").interval_cycles


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    assert complaint(missing) == f"{missing}: there is no such file"
    assert complaint(tmp_path) == f"{tmp_path}: is a directory, not a file"
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert complaint(binary) == f"{binary}: is not a text file in UTF-8"
    torn = tmp_path / "torn.toml"
    torn.write_text('[gpu]\nname = "x\n')
    assert complaint(torn).startswith(f"{torn}: is not TOML: ")
    assert "line 2" in complaint(torn)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (r"^schedulers = ", "scheduler = ", "sm.scheduler is not a key; did you mean schedulers"),
        (
            r"^schedulers = .*\n",
            "",
            "sm.schedulers is missing: warp schedulers of an SM; "
            "expected a whole number from 1 to 16 (schedulers)",
        ),
        (r"^\[queue\]", "[queues]", "[queues] is not a group; did you mean queue?"),
        (r"^\[queue\]", "[queues]", "[queue] is missing, with its keys lsu_depth"),
        (r"^\[queue\]\n.*\n", "", "[queue] is missing, with its keys lsu_depth"),
        (
            r"\A((?:.*\n)*)\[host\]",
            r"host = 3\n\1[other]",
            "host must be a group of keys, begun by [host]",
        ),
        (
            r"^l1_bytes = ",
            "lsu_depth = ",
            "capacity.lsu_depth is not a key; did you mean queue.lsu_depth?",
        ),
        (r"^sms = .*", "sms = 132", "gpu.sms must be written { value = ..., kind = "),
        (r"^sms = { value = 132", 'sms = { value = "132"', "gpu.sms = '132' is impossible: "),
        (r"^sms = { value = 132", "sms = { value = 13.2", "gpu.sms = 13.2 is impossible: "),
        (r"^sms = { value = 132", "sms = { value = true", "gpu.sms = True is impossible: "),
        (
            r"^sms = { value = 132",
            "sms = { value = 0",
            "gpu.sms = 0 is impossible: expected a whole number from 1 to 1,024 (SMs)",
        ),
        (
            r"^max_threads = { value = 2048",
            "max_threads = { value = 2000",
            "sm.max_threads = 2000 is impossible: expected a whole number from 1 to 8,192, "
            "a multiple of 32 (threads)",
        ),
        (
            r"^sm_clock_mhz = { value = 1980",
            "sm_clock_mhz = { value = inf",
            "gpu.sm_clock_mhz = inf is impossible: expected a number from 1 to 100,000 (MHz)",
        ),
        (
            r"^dram_grain_bytes = { value = 64",
            "dram_grain_bytes = { value = 48",
            "bandwidth.dram_grain_bytes = 48 is impossible: expected 32 or 64 (bytes)",
        ),
        (
            r"^l1_caches_global = { value = true",
            "l1_caches_global = { value = 1",
            "capacity.l1_caches_global = 1 is impossible: expected true or false",
        ),
        (r'^name = { value = "H200"', 'name = { value = " "', "gpu.name = ' ' is impossible"),
        (
            r'^sms = { value = 132, kind = "exact"',
            'sms = { value = 132, kind = "exakt"',
            "gpu.sms has kind 'exakt': expected exact, measured, estimated, unmeasured; did you "
            "mean exact?",
        ),
        (r'^sms = .*kind = "exact"', 'sms = { value = 1, kind = ["a"]', "gpu.sms has kind ['a']"),
        (r"^sms = .*", 'sms = { value = 132, kind = "exact" }', "gpu.sms has no source"),
        (
            r"^sms = .*",
            'sms = { value = 132, kind = "exact", source = "" }',
            "gpu.sms has an empty source",
        ),
        (
            r"^sms = { value",
            'sms = { unit = "SMs", value',
            "gpu.sms has 'unit', which is not one of value, kind and source",
        ),
        (
            r'^compute_capability = { value = "9.0"',
            'compute_capability = { value = "9.7"',
            "gpu.compute_capability = '9.7' is impossible: it must be one of 1.0, ",
        ),
        (
            r"^dram_gbps = { value = \d+",
            "dram_gbps = { value = 5000",
            "bandwidth.dram_gbps = 5000 is impossible: "
            "it must not be above bandwidth.dram_peak_gbps",
        ),
        (
            r"^l1 = { value = [\d.]+",
            "l1 = { value = 999",
            "latency_cycles.l1 = 999 is impossible: it must not be above latency_cycles.l2",
        ),
        (
            r"^l2 = { value = \d+",
            "l2 = { value = 7000",
            "latency_cycles.l2 = 7000 is impossible: it must not be above latency_cycles.dram",
        ),
        (
            r"^register_unit = { value = \d+",
            "register_unit = { value = 250",
            "sm.register_unit = 250 is impossible: it must divide sm.registers",
        ),
        (
            r"^shared_reserved_bytes = { value = \d+",
            "shared_reserved_bytes = { value = 233472",
            "sm.shared_reserved_bytes = 233472 is impossible: it must be less than sm.shared_bytes",
        ),
    ],
)
def test_a_mistake_is_named_with_file_key_and_what_was_expected(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = file_with(tmp_path, old, new)
    message = complaint(path)
    assert message.startswith(f"{path}: ")
    assert f"\n  {said}" in message


def test_all_mistakes_are_told_at_once_up_to_a_dozen(tmp_path: Path) -> None:
    two = file_with(tmp_path, r"^(sms|schedulers) = ", r"my_\1 = ")
    assert complaint(two).startswith(f"{two}: 4 mistakes in the device file\n")
    many = file_with(tmp_path, r'kind = "\w+"', 'kind = "guess"')
    given = sum(not fact.is_by_rule for fact in device.load("h200").facts.values())
    assert complaint(many).endswith(f"\n  and {given - 12} more")


def test_a_device_error_is_a_users_error() -> None:
    assert issubclass(DeviceError, InputError)


def test_an_ablation_switches_a_mechanism_off_and_leaves_the_numbers() -> None:
    plain = device.load("h200")
    ablated = plain.without("bank-conflicts", "Launch Overhead").without("barriers")
    assert ablated.ablations == {"bank-conflicts", "launch-overhead", "barriers"}
    assert plain.ablations == frozenset()
    assert ablated != plain
    assert ablated.facts == plain.facts
    assert ablated.interval_cycles == plain.interval_cycles
    assert plain.without() == plain
    assert plain.without(*ABLATIONS).ablations == set(ABLATIONS)


def test_an_unknown_ablation_offers_the_nearest() -> None:
    with pytest.raises(DeviceError, match=r"'conflicts' .*mean bank-confl"):
        device.load("h200").without("conflicts")


def test_other_numbers_change_keys_and_what_follows_from_them() -> None:
    h200, changed = device.load("h200"), {"latency_cycles.l2": 250, "queue.store_depth": 7}
    found = h200.having(changed)
    assert (found.latency_cycles.l2, found.queue.store_depth) == (250, 7)
    assert found.changed == (("latency_cycles.l2", 250), ("queue.store_depth", 7))
    assert found.facts["latency_cycles.l2"].source == "set for this prediction"
    assert found.facts["latency_cycles.l1"] == h200.facts["latency_cycles.l1"]
    assert (h200.changed, h200.having({})) == ((), h200)
    assert found != h200
    both = found.having({"latency_cycles.l2": 260}).without("barriers")
    assert both.changed == (("latency_cycles.l2", 260), ("queue.store_depth", 7))
    assert both.ablations == {"barriers"}


def test_a_rule_follows_another_number() -> None:
    """Half of latency_cycles.barrier_per_warp, where the file has no number of its own."""
    found = device.load("h200").having({"latency_cycles.barrier_per_warp": 8})
    assert found.latency_cycles.barrier_per_queued_warp == 4


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"foo": 3}, "foo is not a key; gpusim devices h200 shows all of them"),
        ({"latency.l2": 3}, "latency.l2 is not a key; did you mean latency_cycles.l2?"),
        ({"bandwidth.dram_gbs": 3}, "did you mean bandwidth.dram_gbps"),
        ({"gpu.sms": 0}, "gpu.sms = 0 is impossible: expected a whole number from 1 to 1,024"),
        ({"gpu.sms": 1.5}, "gpu.sms = 1.5 is impossible"),
        ({"latency_cycles.l2": 99_999}, "latency_cycles.l2 = 99999 is impossible: it must not be"),
        ({"gpu.sms": 0, "a.b": 1}, "expected a whole number from 1 to 1,024 (SMs); a.b is not"),
    ],
)
def test_other_numbers_are_possible_ones(values: dict[str, float], told: str) -> None:
    with pytest.raises(DeviceError) as caught:
        device.load("h200").having(values)
    assert str(caught.value).startswith("H200: ")
    assert told in str(caught.value)


def test_devices_are_frozen_hashable_and_travel_between_processes() -> None:
    gpu = device.load("h200").without("barriers")
    with pytest.raises(FrozenInstanceError):
        gpu.gpu.sms = 1  # type: ignore[misc]
    again = pickle.loads(pickle.dumps(gpu))
    assert again == gpu
    assert hash(again) == hash(gpu)
    assert again.facts == gpu.facts


def test_every_number_has_bounds_that_a_file_may_reach_and_not_pass() -> None:
    numbers = {d: k for d, k in KEYS.items() if k.type in ("int", "float") and not k.choices}
    for dotted, key in numbers.items():
        assert key.least is not None, dotted
        assert key.most is not None, dotted
        most = key.most - key.most % key.multiple_of
        assert key.allows(most), dotted
        assert not key.allows(key.most + 1), dotted
        assert not key.allows(key.least - 0.001), dotted
        for name in DEVICES:
            value = device.load(name).facts[dotted].value
            assert 2 * float(value) <= float(key.most), (dotted, name)


def test_a_number_beyond_all_bounds_is_named_with_them(tmp_path: Path) -> None:
    path = file_with(tmp_path, r"^issue_width = { value = 1", "issue_width = { value = 65536")
    assert complaint(path).endswith(
        "sm.issue_width = 65536 is impossible: "
        "expected a whole number from 1 to 4 (instructions per cycle)"
    )


def test_a_name_is_a_line_that_can_be_shown(tmp_path: Path) -> None:
    path = file_with(tmp_path, r'^name = { value = "H200"', r'name = { value = "a\\u001b[2Jb"')
    assert r"gpu.name = 'a\x1b[2Jb' is impossible: expected a text" in complaint(path)
    path = file_with(tmp_path, r'^name = { value = "H200"', f'name = {{ value = "{"x" * 5000}"')
    assert len(complaint(path)) < 600


def test_every_key_says_what_it_means_once() -> None:
    assert len(KEYS) == sum(len(fields(cls)) for cls in GROUPS.values())
    for dotted, key in KEYS.items():
        assert len(key.doc) > 10, dotted
        assert key.type in {"int", "float", "bool", "str"}
        assert key.expected


def test_importing_loads_no_numpy_and_no_parser() -> None:
    loaded = "[m for m in ('numpy', 'tomllib') if m in sys.modules]"
    code = f"import sys, gpusim.gpu.device; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_file_has_the_numbers_of_the_gpu_that_it_is_like_but_for_its_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    sms = '{ value = 7, kind = "exact", source = "a data sheet" }'
    path.write_text(f'like = "rtx3090"\n[gpu]\nsms = {sms}\n', encoding="utf-8")
    mine, other = device.load(path), device.load("rtx3090")
    assert (mine.gpu.sms, other.gpu.sms) == (7, 82)
    assert {key for key in KEYS if mine.facts[key] != other.facts[key]} == {"gpu.sms"}


@pytest.mark.parametrize("like", ['"rtx309"', "3", '["rtx3090"]'])
def test_a_file_is_like_a_built_in_gpu_alone(like: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"like = {like}\n", encoding="utf-8")
    assert "is impossible: expected a name of gpusim devices" in complaint(path)


def test_gpus_of_another_compute_capability_give_no_measured_numbers() -> None:
    """A number that was measured on one GPU holds on GPUs with the same chip alone."""
    for name in DEVICES:
        own = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
        if "like" not in own or device.load(own["like"]).cc == device.load(name).cc:
            continue
        given = {f"{group}.{key}" for group, keys in own.items() if group != "like" for key in keys}
        taken = {key: fact for key, fact in device.load(name).facts.items() if key not in given}
        assert [key for key, fact in taken.items() if fact.kind == "measured"] == [], name
