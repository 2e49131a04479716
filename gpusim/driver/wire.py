"""Requests of a program's process, as `native/wire.c` sends them, and answers to them."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

_REQUEST, _REPLY = struct.Struct("<32sIIQ"), struct.Struct("<iIQ")
MOST_NUMBERS, MOST_BYTES = 64, 1 << 30


class Request(NamedTuple):
    """The name of a request, with its numbers (unsigned, of 64 bits) and its bytes.

    `thread` is the system's number of the thread that asks.
    """

    name: str
    numbers: tuple[int, ...]
    held: bytes
    thread: int = 0


class Reply(NamedTuple):
    """A status (0: no error), numbers and bytes."""

    status: int = 0
    numbers: tuple[int, ...] = ()
    held: bytes = b""


class HungUpError(Exception):
    """The other side is gone, or sends no request."""


def received(channel: socket.socket) -> Request:
    """Return the next request; HungUpError where there is none any more."""
    name, count, thread, size = _REQUEST.unpack(_exactly(channel, _REQUEST.size))
    if count > MOST_NUMBERS or size > MOST_BYTES:
        raise HungUpError
    numbers = struct.unpack(f"<{count}Q", _exactly(channel, 8 * count))
    return Request(name.rstrip(b"\0").decode(), numbers, _exactly(channel, size), thread)


def send(channel: socket.socket, reply: Reply) -> None:
    """Answer a request."""
    numbers = struct.pack(
        f"<{len(reply.numbers)}Q", *(number & 0xFFFFFFFFFFFFFFFF for number in reply.numbers)
    )
    head = _REPLY.pack(reply.status, len(reply.numbers), len(reply.held))
    try:
        channel.sendall(head + numbers + reply.held)
    except OSError:
        raise HungUpError from None


def _exactly(channel: socket.socket, size: int) -> bytes:
    held = bytearray()
    while len(held) < size:
        try:
            part = channel.recv(min(size - len(held), 1 << 20))
        except OSError:
            raise HungUpError from None
        if not part:
            raise HungUpError
        held += part
    return bytes(held)
