"""Text as it comes from models: lone surrogates, and thinking mixed into the answer."""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from reactflow.messages import readable

Kind: TypeAlias = Literal["text", "thought", "withdrawn"]
Piece: TypeAlias = tuple[Kind, str]
"""What a splitter found: answer text, thinking, or (``"withdrawn"``) that all text so far was thinking after all."""


def clean_value(value: Any) -> Any:
    """Make every text in a JSON value readable."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict):
        return {readable(str(key)): clean_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_value(item) for item in value]
    return value


class PairJoiner:
    """Joins surrogate pairs that are cut in two between the values of a series: the same place, the next value.

    Other halves become U+FFFD; those that still wait when the series is over are in :attr:`held`.
    """

    def __init__(self) -> None:
        self.held: dict[tuple[Any, ...], str] = {}  # halves that wait for the others, by place

    def join(self, value: Any, place: tuple[Any, ...] = ()) -> Any:
        """The next JSON value with readable text.  Elements of a list are told apart by their ``index``."""
        if isinstance(value, str):
            text = self.held.pop(place, "") + value
            if "\ud800" <= text[-1:] <= "\udbff":
                self.held[place], text = text[-1], text[:-1]
            return readable(text)
        if isinstance(value, dict):
            return {readable(str(key)): self.join(item, (*place, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.join(item, (*place, _index(item, at))) for at, item in enumerate(value)]
        return value


def _index(item: Any, at: int) -> Any:
    index = item.get("index") if isinstance(item, dict) else None
    return index if isinstance(index, int) else at


_TAG = re.compile(r"<(/?)((?:\w{1,20}:)?(?:think|thinking|thoughts?|reasoning))>")
_PARTIAL = re.compile(r"</?(?:\w{1,20}:?)?(?:t(?:h[a-z]{0,6})?|r(?:e[a-z]{0,7})?)?\Z")
_ANYWHERE = ("think", "thinking", "thought")
"""Tags that open thinking wherever they stand; the others, which an answer may well hold, do so at its beginning."""

_QUOTES = frozenset("`'\"“‘「")
_SENTENCE_ENDS = frozenset(".!?…)”。！？）")
_GOING_ON = frozenset(".,;:!?)，。、；：！？）")


class ThinkSplitter:
    """Takes ``<think>...</think>`` out of a text that arrives in pieces, however the tags are cut.

    A tag behind a quote or a backtick is a tag that the answer talks about and stays.  A closing tag that was never
    opened ends thinking whose opening the server's template has swallowed, where it begins or ends a line, or stands
    close behind a sentence or a word; between spaces it is a word of the answer, and so it is where the sentence goes
    on behind it.  A tag in mid-line that is never closed is text too.  Blank text is no text, and so is what is blank
    between thinking and the first word.
    """

    def __init__(self) -> None:
        self._held = ""  # not told yet: it may be the beginning of a tag
        self._blank = ""  # blank text before the first word
        self._inside = ""  # the closing tag that ends the current thinking
        self._thinking: list[str] = []
        self._line = ""  # the first word's first and the last character of the current line, as far as told
        self._started = False
        self._trim = False  # thinking came before the text
        self._midline = False  # the current thinking was opened behind words on its line
        self._spoken: set[str] = set()  # tags that are a part of the answer
        self._over = False  # no more text will come

    def feed(self, piece: str) -> list[Piece]:
        """Take one more piece of the reply; return what is certain by now."""
        if not self._inside and not self._held and self._started and "<" not in piece:
            self._note(piece)
            return [("text", piece)]
        self._held += piece
        found: list[Piece] = []
        while self._step(found):
            pass
        return found

    def close(self) -> list[Piece]:
        """The reply is over; return what was held back."""
        found: list[Piece] = []
        self._over = True
        while not self._inside and self._step(found):
            pass
        if not self._inside:
            self._say(self._held, found)
        elif self._midline:  # never closed: the answer speaks of the tag
            self._say(self._inside.replace("/", "") + "".join(self._thinking) + self._held, found)
        elif self._held:
            found.append(("thought", self._held))
        self._held = ""
        return found

    def _step(self, found: list[Piece]) -> bool:
        """Deal with the next tag, if there is one; False where more text is needed first."""
        if self._inside:
            return self._think(found)
        tag = next(filter(self._counts, _TAG.finditer(self._held)), None)
        if tag is None:
            partial = _PARTIAL.search(self._held)
            keep = partial.start() if partial else len(self._held)
            self._say(self._held[:keep], found)
            self._held = self._held[keep:]
            return False
        before, self._held = self._held[: tag.start()], self._held[tag.end() :]
        line = (self._line + before).rpartition("\n")[2]
        midline = bool(line.strip())
        if tag[1] and midline and self._held in ("", " ") and not self._over:
            self._say(before, found)
            self._held = tag[0] + self._held  # what follows decides
            return False
        if not tag[1]:
            self._say(before, found)
            self._inside, self._thinking, self._midline = f"</{tag[2]}>", [], midline
        elif midline and not _ends_thinking(line[-1], self._held[:2]):
            self._say(before + tag[0], found)
        else:
            self._say(before, found)
            found.append(("withdrawn", ""))
            self._started, self._blank, self._line, self._trim = False, "", "", True
        return True

    def _think(self, found: list[Piece]) -> bool:
        before, closing, after = self._held.partition(self._inside)
        if not closing:
            tail = self._held.rfind("<")
            if tail < 0 or not self._inside.startswith(self._held[tail:]):
                tail = len(self._held)
            before, after = self._held[:tail], self._held[tail:]
        self._thinking.append(before)
        self._held = after
        if not self._midline or closing:  # in mid-line the tag may yet turn out to be text
            thought = "".join(self._thinking)
            self._thinking.clear()
            if thought:
                found.append(("thought", thought))
        if closing:
            self._inside, self._trim = "", True
        return bool(closing)

    def _say(self, text: str, found: list[Piece]) -> None:
        if not self._started:
            text = self._blank + text
            words = text.lstrip()
            self._blank, self._started = text, bool(words)
            if self._trim:
                text = words
            if not words:
                return
        if text:
            self._note(text)
            self._spoken |= {tag[0] for tag in _TAG.finditer(text)} if "<" in text else set()
            found.append(("text", text))

    def _note(self, text: str) -> None:
        line = text.rpartition("\n")[2] if "\n" in text else self._line + text
        self._line = line.strip()[:1] + line[-1:]

    def _counts(self, tag: re.Match[str]) -> bool:
        """Whether *tag* is one, and not a word of the answer."""
        at = tag.start()
        before = self._held[at - 1 : at] if at else self._line[-1:]
        if before and before in _QUOTES:
            return False
        if tag[2] in _ANYWHERE:
            return True
        opening = f"<{tag[2]}>"
        if tag[1]:
            return opening not in self._spoken and opening not in self._held[:at]
        return not (self._started or self._held[:at].strip())


def _ends_thinking(before: str, after: str) -> bool:
    """Whether a closing tag in mid-line that nothing opened ends thinking, by the character before and two behind."""
    if before in _SENTENCE_ENDS or after.startswith(("\r", "\n")):
        return True
    if before.isascii() and before.isalnum():
        return after[:1] not in _GOING_ON and not (after.startswith(" ") and after[1:].islower())
    return before.isspace() and after[:1].isascii() and after[:1].isalnum()
