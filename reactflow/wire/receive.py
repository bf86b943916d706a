"""Receive one reply, whole or streamed, within time and size limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from reactflow.events import TextWithdrawn, discard
from reactflow.model import ChatRequest
from reactflow.wire.reply import BadReply, Heard, read_reply
from reactflow.wire.stream import DONE, EventReader, StreamMerger

MAX_REPLY_BYTES: Final = 64 << 20
"""A longer reply is an error: nobody reads it, and it would fill the memory."""

AFTER_END_S: Final = 5.0
"""How long to wait, once a stream has said that it is complete, for the usage that may follow."""

DRAIN_S: Final = 0.5
"""How long to wait, after the end mark, for the end of the body, so that the connection can be used again."""

EXCERPT_BYTES: Final = 800
"""How much of a reply is kept for an error about it; 200 characters have at most so many bytes."""

_EVENT_STARTS: Final = (b"data:", b"event:", b"retry:", b"id:", b":")


class Reception:
    """The receiving of one reply.

    What came is told by its first bytes and not by what was asked for: some servers answer a request for a stream
    with a whole reply, and the other way round.

    Args:
        request: What is being answered; gets the deltas where it wants a stream.
        timeout: Seconds for a whole reply, however it comes, and for any event of a stream that was asked for.
        pause: Seconds of silence that a stream may have once it has begun.
        until: When a whole reply and the first event must be there, in the loop's time.
    """

    def __init__(self, request: ChatRequest, *, timeout: float, pause: float, until: float) -> None:
        self._request = request
        self._timeout, self._pause, self._until = timeout, pause, until
        names = {tool.name for tool in request.tools}
        self._merger = StreamMerger(request.emit if request.stream else discard, names.__contains__)
        self._reader = EventReader()
        self._head = b""  # the first bytes
        self._whole: list[bytes] = []
        self._streams: bool | None = None  # None: not known yet
        self._done = False
        self._size = 0
        self._slack = pause / 8

    async def read(self, chunks: AsyncIterator[bytes]) -> Heard:
        """Read *chunks* to the end.

        Raises:
            BadReply: What came is an error, or cannot be read, or has no end; ``body`` is its beginning.
            TimeoutError: Nothing more came in time.
        """
        try:
            await self._read(chunks)
            return self._heard()
        except BaseException as error:
            if isinstance(error, BadReply):
                error.body = self._head.decode("utf-8", "replace")[:200]
            if self._merger.spoke:
                self._request.emit(TextWithdrawn())
            raise

    async def _read(self, chunks: AsyncIterator[bytes]) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(self._until) as clock:
                async for data in chunks:
                    self._take(data, loop.time())
                    when = self._deadline(loop.time())
                    if abs(when - (clock.when() or 0.0)) > self._slack:  # setting it anew has its price
                        clock.reschedule(when)
        except BadReply:
            raise
        except Exception as error:
            if self._merger.ended:
                return  # a complete reply stays one, however its connection ends
            if isinstance(error, TimeoutError):
                raise TimeoutError(f"nothing more came; {self._size} bytes had come by then") from error
            raise

    def _take(self, data: bytes, now: float) -> None:
        self._size += len(data)
        if self._size > MAX_REPLY_BYTES:
            raise BadReply(f"The reply is longer than {MAX_REPLY_BYTES} bytes", retryable=False)
        if len(self._head) < EXCERPT_BYTES:
            self._head += data[: EXCERPT_BYTES - len(self._head)]
        if self._streams:
            self._events(data, now)
        else:
            self._whole.append(data)
            if self._streams is None:
                self._decide(now)

    def _decide(self, now: float) -> None:
        start = b"".join(self._whole).lstrip(b"\xef\xbb\xbf \t\r\n")
        if start.startswith(_EVENT_STARTS):
            self._streams = True
            self._whole.clear()
            self._events(start, now)
            return
        self._whole = [start]  # white space is dropped as it comes, or a lot of it would be joined again each time
        if start and not any(mark.startswith(start[:6]) for mark in _EVENT_STARTS):
            self._streams = False

    def _events(self, data: bytes, now: float) -> None:
        if self._done:
            return
        for event in self._reader.feed(data):
            if self._request.stream:
                self._until = now + self._timeout
            if event is DONE:
                self._done = self._merger.ended = True
                return
            self._merger.add(event)

    def _deadline(self, now: float) -> float:
        if self._done:
            return now + DRAIN_S
        if self._merger.ended:
            return now + AFTER_END_S
        if not self._streams or self._until >= now + self._timeout:
            return self._until
        return min(self._until, now + self._pause + self._slack)

    def _heard(self) -> Heard:
        if not self._streams:
            return read_reply(b"".join(self._whole))
        if not self._done:
            for event in self._reader.close():
                if event is DONE:
                    self._merger.ended = True
                else:
                    self._merger.add(event)
        for event in self._reader.rest():
            self._merger.add(event)
        heard = self._merger.heard()
        if not self._merger.ended:
            raise BadReply("The stream ended in the middle of the reply")
        if not self._merger.finished:
            self._request.run.warn("A streamed reply came without a finish reason; it may not be complete.")
        return heard
