"""Streamed replies: find the events in the bytes, and put the reply together from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from reactflow.events import Emit, ReasoningDelta, TextDelta, TextWithdrawn
from reactflow.wire.calls import RawCall, is_object_text, read_call, settle_arguments
from reactflow.wire.reply import (
    REASONING,
    BadReply,
    Heard,
    decode,
    first_choice,
    read_content,
    read_finish,
    read_usage,
    vendor_fields,
)
from reactflow.wire.text import PairJoiner, ThinkSplitter

_GROWING: Final = frozenset({"text", "summary", "data", "thinking"})
_WORDS: Final = ("content", "refusal", *REASONING)
DONE: Final = object()
"""What :class:`EventReader` gives for ``data: [DONE]``."""


class EventReader:
    """Finds the server-sent events in a stream of bytes, however these are cut.

    Takes a JSON value per ``data:`` line, as nearly all servers send it, or one that is spread over several lines
    (The WHATWG HTML standard, "Server-sent events").  Comments, event names and ids are skipped.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._open: list[bytes] = []  # data lines that are no JSON yet
        self._joiner = PairJoiner()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Give the events that *data* completes, decoded; :data:`DONE` for the end mark.

        Raises:
            BadReply: An event is no JSON.
        """
        lines = (self._rest + data).splitlines(keepends=True)
        # a line break may be cut in two: "\r" at the very end waits for what follows
        self._rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        for line in lines:
            yield from self._line(line.rstrip(b"\r\n"))

    def close(self) -> Iterator[Any]:
        """The bytes are over: give the event in a last line without a line break.

        Raises:
            BadReply: It is no JSON.
        """
        yield from self._line(self._rest.rstrip(b"\r\n"))
        yield from self._line(b"")

    def rest(self) -> Iterator[Any]:
        """The reply is over: give each half of a character that still waits for the other one, as an event with U+FFFD.

        Of words only: in the arguments of a call nothing can end so and be JSON.
        """
        for place in self._joiner.held:
            match place:
                case ("choices", int(index), "delta" | "message", str(name)) | (
                    "choices",
                    int(index),
                    "delta" | "message",
                    "content" as name,
                    int(),
                    "text",
                ) if name in _WORDS:
                    yield {"choices": [{"index": index, "delta": {name: "\ufffd"}}]}

    def _line(self, line: bytes) -> Iterator[Any]:
        if not line:
            if self._open:
                broken = b"\n".join(self._open)
                raise BadReply(f"The stream has an event that is not JSON: {broken[:80].decode('utf-8', 'replace')!r}")
            return
        if not line.startswith(b"data:"):
            return
        self._open.append(line[5:].strip())
        text = self._open[0] if len(self._open) == 1 else b"\n".join(self._open)
        if text == b"[DONE]":
            self._open.clear()
            yield DONE
        elif text:
            try:
                event = decode(text, self._joiner)
            except ValueError:
                return  # the rest of it may be on the next line
            self._open.clear()
            yield event
        else:
            self._open.clear()


class _Fragments:
    """One call while it arrives."""

    __slots__ = ("call", "index", "pieces")

    def __init__(self, index: int | None) -> None:
        self.call = RawCall(id="", name="")
        self.index = index
        self.pieces: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def add(self, fragment: RawCall, offered: Callable[[str], bool]) -> None:
        call = self.call
        if isinstance(fragment.id, str) and fragment.id and not call.id:
            call.id = fragment.id
        if isinstance(fragment.name, str) and fragment.name and fragment.name != call.name:
            self._name(fragment.name, offered)
        call.extra.update(fragment.extra)
        arguments = fragment.arguments
        if isinstance(arguments, str):
            if arguments:
                self.pieces.append(arguments)
        elif arguments is not None:
            self.pieces.append(settle_arguments(arguments))

    def _name(self, name: str, offered: Callable[[str], bool]) -> None:
        """A name that comes in pieces grows, one that was whole stays."""
        known = str(self.call.name)
        if not known or name.startswith(known):
            self.call.name = name
        elif not offered(known) and not self.pieces:
            self.call.name = known + name

    def whole(self) -> RawCall:
        """The call, where all is there: servers that send the whole so far each time are recognised."""
        text = self.text
        if len(self.pieces) > 1 and not is_object_text(text):
            last = self.pieces[-1]
            if is_object_text(last) and all(last.startswith(piece) for piece in self.pieces):
                text = last
        self.call.arguments = text
        return self.call


class CallMerger:
    """Puts tool calls together from fragments.

    Fragments belong together by index; a new id with a name starts a new call even at the same index.  Where there
    is neither id nor index, a name starts a new call once the last call's arguments are whole.
    """

    def __init__(self, offered: Callable[[str], bool]) -> None:
        self._offered = offered
        self._calls: list[_Fragments] = []

    def add(self, raw: Any) -> None:
        """Take the ``tool_calls`` of one delta.

        Raises:
            ValueError: A fragment is no object.
        """
        entries = raw if isinstance(raw, list) else [raw]
        for entry in entries:
            if entry is None:
                continue
            fragment = read_call(entry)
            index = entry.get("index")
            if not isinstance(index, int):
                index = int(index) if isinstance(index, str) and index.isdigit() else None
            self._home(fragment, index).add(fragment, self._offered)

    def calls(self) -> list[RawCall]:
        """The calls, in the order in which they began."""
        return [fragments.whole() for fragments in self._calls]

    def _home(self, fragment: RawCall, index: int | None) -> _Fragments:
        current = self._current(fragment, index)
        if current is None or self._starts_new(current, fragment):
            current = _Fragments(index)
            self._calls.append(current)
        return current

    def _current(self, fragment: RawCall, index: int | None) -> _Fragments | None:
        """The call that *fragment* continues, if it continues any."""
        if index is not None:
            return next((known for known in reversed(self._calls) if known.index == index), None)
        if isinstance(fragment.id, str) and fragment.id:
            known = next((known for known in self._calls if known.call.id == fragment.id), None)
            if known is not None or fragment.name:
                return known
        return self._calls[-1] if self._calls else None

    def _starts_new(self, current: _Fragments, fragment: RawCall) -> bool:
        if not isinstance(fragment.name, str) or not fragment.name.strip():
            return False  # some servers invent an id for every fragment, but only a beginning has a name
        call_id = fragment.id if isinstance(fragment.id, str) else ""
        if call_id and current.call.id:
            return bool(call_id != current.call.id)
        if call_id or not is_object_text(current.text):
            return False
        repeated = fragment.name == current.call.name and settle_arguments(fragment.arguments) == current.text
        return not repeated and fragment.arguments != ""


class StreamMerger:
    """Puts one reply together from its events and tells *emit* of the text while it arrives.

    Args:
        emit: Gets text and reasoning deltas.
        offered: Whether a tool of this name was offered.

    Attributes:
        ended: Whether the server has said that the reply is complete: by a finish reason or the end mark.
        finished: Whether there was a finish reason.
        spoke: Whether text went to *emit*.
    """

    def __init__(self, emit: Emit, offered: Callable[[str], bool]) -> None:
        self.ended = self.finished = self.spoke = False
        self._emit = emit
        self._heard = Heard()
        self._splitter = ThinkSplitter()
        self._calls = CallMerger(offered)
        self._text: list[str] = []
        self._think: list[str] = []
        self._refusal: list[str] = []
        self._reasoning: dict[str, list[str]] = {}
        self._fields: dict[str, Any] = {}
        self._index: int | None = None  # of the choice that counts

    def add(self, event: Any) -> None:
        """Take one decoded event.

        Raises:
            BadReply: It is an error, or cannot be read.
        """
        if event is None:
            return
        choice = first_choice(event)
        usage = read_usage(event.get("usage")) or read_usage((choice or {}).get("usage"))
        self._heard.usage = usage or self._heard.usage  # a running total: the last one counts
        if choice is None or not self._counts(choice.get("index")):
            return
        delta = choice.get("delta")
        if delta is None and not self._text:
            delta = choice.get("message")  # a server that streams a single, whole message
        if delta is not None and not isinstance(delta, dict):
            raise BadReply(f"The stream has a delta that is {delta!r:.80}")
        if delta:
            try:
                self._delta(delta)
            except ValueError as error:
                raise BadReply(f"The stream cannot be read: {error}") from None
        finish = read_finish(choice)
        if finish is not None:
            self._heard.finish = self._heard.finish or finish
            self.ended = self.finished = True

    def _counts(self, index: int | None) -> bool:
        if self._index is None and isinstance(index, int):
            self._index = index
        return index is None or index == self._index

    def heard(self) -> Heard:
        """The whole reply; call it once, when the events are over."""
        self._tell(self._splitter.close())
        heard = self._heard
        heard.text = "".join(self._text)
        heard.think = "".join(self._think)
        heard.refusal = "".join(self._refusal)
        heard.calls = self._calls.calls()
        heard.extra = {**self._fields, **{name: "".join(pieces) for name, pieces in self._reasoning.items()}}
        return heard

    def _delta(self, delta: Mapping[str, Any]) -> None:
        for name, value in delta.items():
            if value is None or value == "":
                continue
            if name == "content":
                self._content(value)
            elif name == "tool_calls":
                if value:
                    self._calls.add(value)
            elif name == "function_call":
                if not delta.get("tool_calls"):
                    self._calls.add({"index": 0, "function": value})
            elif name == "refusal":
                if isinstance(value, str):
                    self._refusal.append(value)
            elif name != "role":
                self._field(name, value)

    def _content(self, content: Any) -> None:
        if not isinstance(content, str):
            content, thought = read_content(content)
            self._tell([("thought", thought)] if thought else [])
        self._tell(self._splitter.feed(content))

    def _tell(self, pieces: list[tuple[Any, str]]) -> None:
        for kind, words in pieces:
            if kind == "text":
                self._text.append(words)
                self.spoke = True
                self._emit(TextDelta(words))
            elif kind == "thought":
                self._think.append(words)
                self._emit(ReasoningDelta(words))
            else:
                self._think = [*self._text, *self._think]
                self._text.clear()
                if self.spoke:
                    self.spoke = False
                    self._emit(TextWithdrawn())

    def _field(self, name: str, value: Any) -> None:
        if name in REASONING and isinstance(value, str):
            self._reasoning.setdefault(name, []).append(value)
            if name == next(iter(self._reasoning)):  # the same words may come under two names
                self._emit(ReasoningDelta(value))
        elif kept := vendor_fields({name: value}):
            known = self._fields.get(name)
            if isinstance(value, list) and isinstance(known, list):
                for entry in value:
                    _merge_entry(known, entry)
            else:
                self._fields.update(kept)


def _merge_entry(known: list[Any], entry: Any) -> None:
    """Add one entry of a list field; a further piece of the last entry is joined to it."""
    last = known[-1] if known else None
    if not isinstance(last, dict) or not isinstance(entry, dict) or not _same_entry(last, entry):
        known.append(entry)
        return
    joined = dict(last)
    for key, value in entry.items():
        grows = key in _GROWING and isinstance(value, str) and isinstance(last.get(key), str)
        if value is not None:
            joined[key] = last[key] + value if grows else value
    known[-1] = joined


def _same_entry(last: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    return all(last.get(key) == entry[key] for key in ("type", "index", "id") if entry.get(key) is not None)
