"""`gpusim devices`: the GPUs there are, and where their numbers come from."""

from __future__ import annotations

from argparse import Namespace

from gpusim.cli.options import Command, Option, options, print_document, print_lines


def devices(chosen: Namespace) -> int:
    """List the GPUs, or show one's numbers; with --all each with its source.

    A file of your own is checked and shown as a built-in one is.
    """
    from gpusim.gpu import device
    from gpusim.reports.devices import device_document, device_list, device_report, device_summary

    if chosen.device is not None:
        one = device.load(chosen.device)
        if chosen.json:
            print_document("device", device_document(one))
        else:
            print_lines(lambda width: device_report(one, width, whole=chosen.all))
        return 0
    every = [device.load(name) for name in device.names()]
    if chosen.json:
        print_document("devices", {"devices": [device_summary(one) for one in every]})
    else:
        print_lines(lambda width: device_list(every, width))
    return 0


COMMAND = Command(
    "devices",
    devices,
    options(Option("device", "a name, or a file my-gpu.toml", "GPU", arity="?"), "--all --json"),
    (
        """examples:
  gpusim devices
  gpusim devices h200
  gpusim devices h200 --all
  gpusim devices my-gpu.toml --json""",
    ),
)
