"""The fenced blocks of a markdown text."""

from __future__ import annotations

import re
from collections.abc import Collection
from textwrap import dedent
from typing import NamedTuple

_BLOCK = (
    r"(?ms)^[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*(?P<label>[^\s`{,]*)[^\n`]*\n"
    r"(?P<code>.*?)(?:^[ \t]*(?P=mark)[`~]*[ \t]*$|\Z)"
)
_ONE_LINE = r"(?P<mark>`{3,}|~{3,})(?:[\w+#.-]*[ \t])?(?P<code>[^\n]*?)(?P=mark)"
_ALIASES = {
    "python": ("py", "python3"),
    "javascript": ("js", "node"),
    "typescript": ("ts",),
    "bash": ("sh", "shell", "zsh"),
    "yaml": ("yml",),
}


class Block(NamedTuple):
    """One fenced block: the word behind the opening fence in lower case, maybe empty, and what is inside."""

    language: str
    code: str


def fenced_blocks(text: str) -> tuple[Block, ...]:
    """The blocks of *text* in order; one that is never closed reaches to the end."""
    lines = text.replace("\r\n", "\n")
    return tuple(Block(match["label"].lower(), dedent(match["code"])) for match in re.finditer(_BLOCK, lines))


def unfenced(text: str) -> str:
    """What is inside, where all of *text* is one fence on a single line; else *text*."""
    match = re.fullmatch(_ONE_LINE, text.strip())
    return match["code"].strip() if match else text


def code_of(text: str, language: str) -> str:
    """The code of one language in *text*: its blocks joined, else the unlabelled blocks, else all of the text.

    Args:
        text: An answer in markdown, or bare code.
        language: As in the label of a fence, such as ``python``; its usual short forms count too.
    """
    name = language.lower()
    blocks = fenced_blocks(text)
    return _joined(blocks, (name, *_ALIASES.get(name, ()))) or _joined(blocks, ("",)) or text


def _joined(blocks: Collection[Block], languages: Collection[str]) -> str:
    return "\n".join(block.code for block in blocks if block.language in languages)
