"""LocalChatModel: a GGUF file served inside this process by llama.cpp.  Needs the extra ``reactflow[local]``.

llama.cpp brings its own server that speaks the OpenAI chat API, so the model is an
:class:`~reactflow.openai_model.OpenAIChatModel` on a port of this machine that only this process has the key to.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reactflow.errors import ConfigurationError
from reactflow.model import ChatRequest, ChatResponse
from reactflow.openai_model import OpenAIChatModel
from reactflow.threads import run_in_thread
from reactflow.wire.tool_text import ToolMode

QUIET = -1
"""How much llama.cpp writes to standard error."""


class LocalChatModel:
    """A model from a GGUF file, loaded at its first question.  Needs no key and no network.

    Args:
        path: The GGUF file.
        context_tokens: Tokens that one conversation may have, its answer included, >= 1.
        threads: CPU threads, >= 1.  More than the idle cores of the machine make it much slower.
        parallel: Questions answered at the same time, >= 1; the others wait.
        tool_mode: As in :class:`~reactflow.openai_model.OpenAIChatModel`.  Small models do not reliably use native
            calls; with ``"json_schema"`` llama.cpp enforces the form of each.
        timeout: Seconds for one reply, > 0; a small machine needs minutes.
        options: Sent with every request (``temperature``, ``max_tokens``, ``seed``, ...).

    Raises:
        ConfigurationError: There is no such file, it is no GGUF file, or a value is out of its bounds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        context_tokens: int = 8192,
        threads: int = 1,
        parallel: int = 1,
        tool_mode: ToolMode = "json_schema",
        timeout: float = 900.0,
        **options: Any,
    ) -> None:
        self._path = _checked_file(Path(path))
        for name, value in (("context_tokens", context_tokens), ("threads", threads), ("parallel", parallel)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"LocalChatModel({name}={value!r}): give a whole number from 1.")
        self._context_tokens, self._threads, self._parallel = context_tokens, threads, parallel
        # a small machine may think for long before it says the first word, and between two words of a long text
        self._settings = {"tool_mode": tool_mode, "timeout": timeout, "stream_read_timeout": timeout, **options}
        self._begin()
        self._client("http://127.0.0.1", "unused")  # what cannot be sent is refused now

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._served: tuple[Any, OpenAIChatModel] | None = None

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self._path.stem

    def __repr__(self) -> str:
        return f"LocalChatModel({str(self._path)!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_served")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    async def complete(self, request: ChatRequest) -> ChatResponse:
        """Answer; the first call loads the file, which takes seconds.

        Raises:
            ConfigurationError: llama.cpp cannot load the file.
            ProviderError: llama.cpp failed, or the conversation is too long.
        """
        served = self._served
        if served is None:
            served = await run_in_thread(self._serve)
        return await served[1].complete(request)

    def close(self) -> None:
        """Stop the server and free its memory; the next question loads the file again."""
        with self._lock:
            self._served = None

    def _serve(self) -> tuple[Any, OpenAIChatModel]:
        with self._lock:
            if self._served is None:
                key = secrets.token_hex(16)
                server = self._load(key)
                self._served = server, self._client(f"{server.listening_address}/v1", key)
            return self._served

    def _load(self, key: str) -> Any:
        try:
            import xllamacpp
        except ImportError as error:
            raise ConfigurationError("LocalChatModel needs llama.cpp: pip install 'reactflow[local]'.") from error
        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx, params.n_parallel = self._context_tokens * self._parallel, self._parallel
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.api_keys = [key]  # other users of the machine can reach the port too
        params.verbosity = QUIET
        try:
            return xllamacpp.Server(params)
        except Exception as error:
            raise ConfigurationError(f"llama.cpp cannot load {str(self._path)!r}: {error}") from error

    def _client(self, base_url: str, key: str) -> OpenAIChatModel:
        make: Callable[..., OpenAIChatModel] = OpenAIChatModel
        return make(self.name, base_url=base_url, api_key=key, **self._settings)


def _checked_file(path: Path) -> Path:
    if not path.is_file():
        raise ConfigurationError(f"LocalChatModel({str(path)!r}): there is no such file; give a GGUF file.")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ConfigurationError(f"LocalChatModel({str(path)!r}): this is no GGUF file.")
    return path.absolute()
