"""Puts the docstrings, written for readers of the code, into Markdown."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import griffe

ROLE = re.compile(
    r":(?:attr|class|data|exc|func|meth|mod):`(?:([^`<]+) <)?(~?)([\w.]+)>?`"
)


class Docstrings(griffe.Extension):
    """Turns roles such as ``:class:`Tool``` into links, and ``::`` into ``:``."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            linked = ROLE.sub(
                lambda role: self.link(obj, *role.groups()), obj.docstring.value
            )
            obj.docstring.value = re.sub(r"::$", ":", linked, flags=re.MULTILINE)

    def link(
        self, obj: griffe.Object, title: str | None, short: str, target: str
    ) -> str:
        """A link to *target*, seen from *obj*; plain code where the site lacks it."""
        shown = title or (target.rpartition(".")[2] if short else target)
        path = target
        with suppress(griffe.NameResolutionError):
            path = target if target.startswith("reactflow.") else obj.resolve(target)
        return f'<autoref optional identifier="{path}"><code>{shown}</code></autoref>'
