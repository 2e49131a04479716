"""The clock driven by SimPy: a process for each warp scheduler, a timeout for each event."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, cast

import simpy

from gpusim.prediction.clock.event_queue import NEVER
from gpusim.prediction.clock.multiprocessor import StreamingMultiprocessor
from gpusim.prediction.clock.scheduler import Scheduler
from gpusim.prediction.clock.warp import Block


def play(sm: StreamingMultiprocessor) -> None:
    """Play an SM from the start of its first block to the end of its last."""
    env = simpy.Environment()
    sm.event_queue = _Processes(env, sm)
    sm.start_blocks(0)
    env.run()


class _Processes:
    """The processes of an SM's schedulers, and its other events."""

    def __init__(self, env: simpy.Environment, sm: StreamingMultiprocessor) -> None:
        self._env = env
        self._sm = sm
        self._schedulers = [_Process(env, scheduler) for scheduler in sm.schedulers]
        self.next = cast(Callable[[], int], env.peek)  # infinity for an empty queue

    def wake(self, at: int, schedulers: list[int]) -> None:
        """Let schedulers, given by number, check their warps at a time, in this order."""
        self._env.timeout(at - self._env.now).callbacks.append(partial(self._wake, at, schedulers))

    def _wake(self, at: int, schedulers: list[int], _: simpy.Event) -> None:
        for number in schedulers:
            self._schedulers[number].wake(at)

    def end_block(self, at: int, block: Block) -> None:
        """End a block on the SM at a time."""
        self._env.timeout(at - self._env.now).callbacks.append(partial(self._end_block, block))

    def _end_block(self, block: Block, _: simpy.Event) -> None:
        self._sm.end_block(block, int(self._env.now))


class _Process:
    """The process of a scheduler: it issues, and sleeps until its alarm."""

    def __init__(self, env: simpy.Environment, scheduler: Scheduler) -> None:
        self._env = env
        self._scheduler = scheduler
        self._alarm: simpy.Event | None = None
        self._alarm_at = 0
        env.process(self._run())

    def _run(self) -> Generator[simpy.Event, Any, Any]:
        env, run = self._env, self._scheduler.run
        while True:
            now = int(env.now)
            yield self._sleep(run(now), now)

    def wake(self, at: int) -> None:
        """Wake the process at a time that has come, before its alarm."""
        alarm = self._alarm
        if alarm is None or alarm.callbacks is None or self._alarm_at <= at:
            return
        self._alarm = None
        earlier = simpy.Event(self._env)
        earlier.callbacks, alarm.callbacks = alarm.callbacks, []
        earlier.succeed()

    def _sleep(self, until: int, now: int) -> simpy.Event:
        env, alarm = self._env, self._alarm
        self._alarm_at = until
        if until == NEVER:
            self._alarm = simpy.Event(env)
            return self._alarm
        if alarm is None or alarm.callbacks is not None:
            self._alarm = alarm = env.timeout(until - now)
        else:  # an expired timeout is reused: new ones are most of SimPy's cost
            alarm.callbacks = []
            env.schedule(alarm, delay=until - now)
        return alarm
