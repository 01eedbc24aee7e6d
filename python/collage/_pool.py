"""The threads of ``run_async``, and the order of calls that share states."""
from __future__ import annotations

import concurrent.futures
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, Optional, TypeVar

from . import errors
from .trace import How

Result = TypeVar("Result")


class Turns:
    """A queue of calls: each waits for those before it.

    A thread does not wait for itself: a call inside of another one goes on at once, and so does one in the thread that runs queued
    calls. Such calls need a lock of their own.
    """

    def __init__(self) -> None:
        self.after_fork()

    def after_fork(self) -> None:
        """Forgets all calls: those that wait in a child are only in the parent."""
        self._changed = threading.Condition()
        self._places: deque[object] = deque()
        self._here = threading.local()

    def never_wait_here(self) -> None:
        """Lets the other calls of this thread go on at once: it runs the queued calls, which cannot begin while it waits."""
        self._here.is_inside = True

    @contextmanager
    def one(self, how: Optional[How] = None) -> Iterator[None]:
        """A call behind those that are queued now. The limits of `how` hold while it waits, too."""
        if not self._places or getattr(self._here, "is_inside", False):
            yield
            return
        with self.at(self.take(), how):
            yield

    def take(self) -> object:
        """A place at the end of the queue."""
        place = object()
        with self._changed:
            self._places.append(place)
        return place

    def leave(self, place: object) -> None:
        """Gives a place up, unless that was done before."""
        with self._changed:
            if place in self._places:
                self._places.remove(place)
                self._changed.notify_all()

    @contextmanager
    def at(self, place: object, how: Optional[How] = None) -> Iterator[None]:
        """A call at a place: it waits until this is the first one, and gives it up in the end."""
        before = getattr(self._here, "is_inside", False)
        self._here.is_inside = True
        try:
            with self._changed:
                if how is None:
                    self._changed.wait_for(lambda: self._places[0] is place)
                else:
                    how.wait_for(self._changed, lambda: self._places[0] is place)
            yield
        finally:
            self._here.is_inside = before
            self.leave(place)


class Pool:
    """The threads of a session, which begin when they are needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._executor: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._threads: set[int] = set()
        self._closed = False

    def submit(self, call: Callable[..., Result], *arguments: Any, threads: Callable[[], int],
               turns: Optional[Turns] = None) -> concurrent.futures.Future[Result]:
        """Has a thread make a call; with `turns`, behind the calls in that queue. `threads` is how many there may be."""
        with self._lock:
            if self._closed:
                raise errors.MisuseError("the session is closed; make another one")
            try:
                if self._executor is None:
                    self._threads = set()
                    self._executor = concurrent.futures.ThreadPoolExecutor(threads(), "collage", _begin, (self._threads, turns))
                if turns is None:
                    return self._executor.submit(call, *arguments)
                return _submit_in_turn(self._executor, turns, call, arguments)
            except RuntimeError as fault:
                if "shutdown" not in str(fault):  # as where no thread can begin
                    raise
                raise errors.ProgramEndsError("the program ends, so run_async begins no run any more; use run") from fault

    def close(self) -> None:
        """Waits for calls that have begun, and cancels the others."""
        with self._lock:
            executor, self._executor, self._closed = self._executor, None, True
        if executor is not None:
            # A function that a future calls when it is done runs in one of the threads, which cannot wait for itself.
            executor.shutdown(wait=threading.get_ident() not in self._threads, cancel_futures=True)

    def after_fork(self) -> None:
        """Forgets the threads, which are only in the parent."""
        self._lock, self._executor = threading.Lock(), None


def _begin(threads: set[int], turns: Optional[Turns]) -> None:
    """Begins a thread. Its arguments live as long, so the session must not be among them."""
    threads.add(threading.get_ident())
    if turns is not None:
        turns.never_wait_here()


def _submit_in_turn(executor: concurrent.futures.Executor, turns: Turns, call: Callable[..., Result],
                    arguments: tuple[Any, ...]) -> concurrent.futures.Future[Result]:
    place = turns.take()

    def in_turn() -> Result:
        with turns.at(place):
            return call(*arguments)

    try:
        future = executor.submit(in_turn)
    except BaseException:
        turns.leave(place)
        raise
    future.add_done_callback(lambda _: turns.leave(place))  # it may be cancelled before it begins
    return future
