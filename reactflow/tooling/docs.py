"""What a docstring says of a tool: its description, and one for each parameter.

Reads the Google, NumPy and Sphinx styles, also mixed, and the full-width colon and headings of Chinese docstrings.
A docstring in no known style is all description: reading never fails.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

HEADINGS = frozenset(
    {
        "args",
        "arguments",
        "keyword args",
        "keyword arguments",
        "other parameters",
        "parameters",
        "params",
        "入参",
        "参数",
        "参数列表",
        "参数说明",
    }
)
"""What a section of parameters may be called."""

_GOOGLE_HEADING = r"\s*([\w ]+?)\s*[:：]\s*"
_GOOGLE_ENTRY = r"\*{0,2}(\w+)\s*(?:[(（](.*?)[)）])?\s*[:：]\s*(.*)"
_NUMPY_ENTRY = r"((?:\*{0,2}\w+)(?:\s*,\s*\*{0,2}\w+)*)\s*(?:[:：]\s*(.*))?"
_SPHINX_FIELD = r"[:@](\w+)((?:\s+[^\s:：].*?)?)\s*[:：](?:\s+(.*)|(\S.*)?)"
_RULE = r"\s*-{3,}\s*"
_SPHINX_PARAMETERS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword", "kwarg"})
_SPHINX_RETURNS = frozenset({"return", "returns"})
_SPHINX_DROPPED = frozenset({"rtype", "raise", "raises", "except", "exception", "meta", "var", "vartype"})


@dataclass(slots=True)
class ParameterDocs:
    """What a docstring says of one parameter; either part may be empty."""

    text: str = ""
    type: str = ""


@dataclass(slots=True)
class ToolDocs:
    """A docstring taken apart: the text without its parameter section, and the parameters by name."""

    description: str = ""
    parameters: dict[str, ParameterDocs] = field(default_factory=dict)

    def note(self, name: str, text: str = "", type: str = "") -> None:
        """Add to what is known of the parameter *name*."""
        known = self.parameters.setdefault(name, ParameterDocs())
        known.text = _joined(known.text, text)
        known.type = known.type or type


def _joined(*lines: str) -> str:
    """One line of text from several; no blank between two that meet in Chinese."""
    text = ""
    for line in filter(None, lines):
        glue = " " if text and (text[-1].isascii() or line[0].isascii()) else ""
        text += glue + line
    return text


def read_docs(docstring: str | None) -> ToolDocs:
    """Take *docstring* apart."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    docs, kept, at = ToolDocs(), list[str](), 0
    while at < len(lines):
        taken = (
            _numpy_section(lines, at, docs) or _google_section(lines, at, docs) or _sphinx_field(lines, at, docs, kept)
        )
        if not taken:
            kept.append(lines[at])
        at += taken or 1
    docs.description = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return docs


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _block(lines: list[str], at: int, deeper_than: int) -> list[str]:
    """The lines from *at* on that are blank or indented deeper, without blank ones at the end."""
    end = at
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > deeper_than):
        end += 1
    while end > at and not lines[end - 1].strip():
        end -= 1
    return lines[at:end]


def _google_section(lines: list[str], at: int, docs: ToolDocs) -> int:
    """Read ``Args:`` and what is indented below it; how many lines that were, or 0."""
    heading = re.fullmatch(_GOOGLE_HEADING, lines[at])
    if heading is None or heading[1].lower() not in HEADINGS:
        return 0
    block = _block(lines, at + 1, _indent(lines[at]))
    if not block:
        return 0
    column = min(_indent(line) for line in block if line.strip())
    name = ""
    for line in block:
        entry = re.fullmatch(_GOOGLE_ENTRY, line.strip()) if _indent(line) == column else None
        if entry:
            name = entry[1]
            docs.note(name, entry[3].strip(), entry[2] or "")
        elif name and line.strip():
            docs.note(name, line.strip())
    return 1 + len(block)


def _numpy_section(lines: list[str], at: int, docs: ToolDocs) -> int:
    """Read ``Parameters`` over a rule and the entries below it; how many lines that were, or 0."""
    if lines[at].strip().lower() not in HEADINGS or not _has_rule(lines, at):
        return 0
    column, end, names = _indent(lines[at]), at + 2, list[str]()
    while end < len(lines) and not _has_rule(lines, end):
        line = lines[end].strip()
        if line and _indent(lines[end]) > column:
            _note_all(docs, names, text=line)
        elif line:
            entry = re.fullmatch(_NUMPY_ENTRY, line)
            if entry is None:
                break
            names = [name.strip(" *") for name in entry[1].split(",")]
            _note_all(docs, names, type=entry[2] or "")
        end += 1
    return end - at


def _has_rule(lines: list[str], at: int) -> bool:
    return at + 1 < len(lines) and bool(lines[at].strip()) and bool(re.fullmatch(_RULE, lines[at + 1]))


def _note_all(docs: ToolDocs, names: Iterable[str], text: str = "", type: str = "") -> None:
    for name in names:
        docs.note(name, text, type)


def _sphinx_field(lines: list[str], at: int, docs: ToolDocs, kept: list[str]) -> int:
    """Read ``:param city: ...`` with its indented continuation; how many lines that were, or 0."""
    match = re.fullmatch(_SPHINX_FIELD, lines[at].strip())
    if match is None:
        return 0
    kind, about = match[1].lower(), match[2].split()
    block = _block(lines, at + 1, _indent(lines[at]))
    text = _joined(match[3] or match[4] or "", *(line.strip() for line in block))
    if kind in _SPHINX_PARAMETERS and about:
        docs.note(about[-1].lstrip("*"), text, " ".join(about[:-1]))
    elif kind == "type" and about:
        docs.note(about[-1].lstrip("*"), type=text)
    elif kind in _SPHINX_RETURNS and text:
        kept.append(f"Returns: {text}")
    elif kind not in _SPHINX_DROPPED:
        return 0
    return 1 + len(block)
