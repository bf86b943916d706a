"""What the command line keeps between runs, in the user's own state folder."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, cast

from platformdirs import user_state_path

from reactflow.errors import ConfigurationError
from reactflow.store import ConversationStore
from reactflow.stores import open_store


def state_folder() -> Path:
    """The folder, made where it is not there yet and readable by its owner only.

    ``REACTFLOW_STATE_DIR`` names another one.

    Raises:
        ConfigurationError: It cannot be made.
    """
    folder = Path(os.environ.get("REACTFLOW_STATE_DIR") or user_state_path("reactflow", appauthor=False))
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigurationError(
            f"The state folder {folder} cannot be made: {error.strerror}. Set REACTFLOW_STATE_DIR to one that can."
        ) from error
    return folder


@asynccontextmanager
async def kept_conversations() -> AsyncIterator[tuple[ConversationStore, Path]]:
    """The store of all chats, and its file; closed at the end."""
    file = state_folder() / "conversations.sqlite3"
    store = open_store(f"sqlite:///{file}")
    async with aclosing(cast(Any, store)):  # a file is open, and not every store has one
        yield store, file
