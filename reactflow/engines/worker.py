"""What a job sends to its workers, and what a worker makes of it: the agent, its journal, its policies.

Workers get specs, never keys: a key is read where the agent is built, from the environment of that process.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from reactflow.batch.calls import Spending
from reactflow.batch.job import Job, JobSettings
from reactflow.batch.journal import Journal
from reactflow.batch.limits import Limits
from reactflow.budget import Price
from reactflow.engines.shared import LogPlace, Purse, SharedSpending, leaving_word
from reactflow.errors import ConfigurationError
from reactflow.frozen import EMPTY, FrozenDict
from reactflow.specs.building import Workshop, connections_of
from reactflow.specs.catalog import VAULT
from reactflow.specs.options import REFERENCE
from reactflow.specs.outcome import Outcome
from reactflow.specs.running import AgentRunner
from reactflow.specs.values import AgentSpec, AnyAgentSpec, ConnectionSpec, HandleException, OnExhausted, ReflectionSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One agent with its policies, as it is pickled and sent to the workers.

    Args:
        agent: A spec; or whatever :class:`~reactflow.specs.running.AgentRunner` takes, where it can be pickled.
            None where only the policies are meant, for agents that are defined elsewhere.
        functions: What tools use, by name; they are pickled too, so their modules must be on the workers.
        concurrency: Rows under way at a time in one worker process, >= 1.  A process makes about a thousand calls a
            second at most, whatever this is; use more processes then.
        timeout_s: Seconds for one row, > 0, on top of the agent's own limits; None for no limit.
        on_exhausted: What becomes of a row that reached a limit; None leaves it to the agent, which returns it.
        handle_exception: Whether a failing row ends the job; None leaves it to the agent, which goes on.
        only_approved: Leave out what no reviewer approved.
        cache: A file for paid answers, on a disk that a worker finds again; None for none.  Processes of one machine
            may share it.
        fingerprint: Tells this agent from others in the cache; that of the spec by default.
        requests_per_minute: Model calls of one worker process, > 0; None for any number.
        tokens_per_minute: Tokens of one worker process, > 0; None for any number.
        prices: By model name; they give each row its cost.
        purse: What all workers may spend together; needs prices.  None for no limit.
        log: Where each step of the agent is logged; needs a spec.  None for nowhere.
        last_words: A folder where a worker also writes what ends the job, since engines can lose it; None for none.
        debug: Whether errors are told with their message and trace, which may quote the row.

    Raises:
        ConfigurationError: A value cannot be, or the spec holds a key of a script that workers cannot see.
    """

    agent: Any = None
    functions: Mapping[str, Any] = field(default=EMPTY)
    concurrency: int = 100
    timeout_s: float | None = None
    on_exhausted: OnExhausted | None = None
    handle_exception: HandleException | None = None
    only_approved: bool = False
    cache: str | None = None
    fingerprint: str | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    prices: Mapping[str, Price] = field(default=EMPTY)
    purse: Purse | None = None
    log: LogPlace | None = None
    last_words: str | None = None
    debug: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "functions", FrozenDict(self.functions))
        object.__setattr__(self, "prices", FrozenDict(self.prices))
        limit = None if self.purse is None else self.purse.limit_usd
        JobSettings(concurrency=self.concurrency, max_cost_usd=limit, spending=Spending(self.prices))
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ConfigurationError(f"timeout_s={self.timeout_s!r}: give seconds above 0, or None for no limit.")
        known = isinstance(self.agent, (AgentSpec, ReflectionSpec))
        if self.log is not None and self.agent is not None and not known:
            raise ConfigurationError(f"{self.agent!r:.80} is no spec, so its steps have no names; leave out log=...")
        if known and kept_keys(self.agent):
            raise ConfigurationError(
                f"Agent {self.agent.name!r} uses a key that is written out in its definition, which no worker may be "
                "sent; write 'api-key' = '${NAME}' and set that variable on the workers."
            )

    def open(self) -> Worker:
        """Build the agent, in the process that is to run it.

        Raises:
            ConfigurationError: An environment variable, a function, an extra or a shared folder is missing here.
            StoreError: The cache cannot be used.
        """
        with leaving_word(self.last_words):
            return Worker(self)


class Worker:
    """Answers rows in one process, so many at a time.

    Args:
        work: What to do.
    """

    def __init__(self, work: Work) -> None:
        workshop = Workshop(functions=work.functions, prices=work.prices)
        self._runner = AgentRunner(work.agent, workshop=workshop, timeout=work.timeout_s, debug=work.debug)
        self._journal = None if work.cache is None else Journal(work.cache)
        self._log = None if work.log is None else work.log.open(work.agent)
        self._purse = None if work.purse is None else SharedSpending(work.purse, FrozenDict(work.prices))
        self._slots = asyncio.Semaphore(work.concurrency)
        self._stopping = asyncio.Lock()
        settings = JobSettings(
            concurrency=work.concurrency,
            on_exhausted=work.on_exhausted,
            handle_exception=work.handle_exception,
            only_approved=work.only_approved,
            limits=Limits(work.requests_per_minute, work.tokens_per_minute),
            spending=self._purse or Spending(work.prices),
            journal=self._journal,
            fingerprint=work.fingerprint,
            listen=None if self._log is None else self._log.rows.listen,
        )
        self._concurrency = work.concurrency
        self._last_words = work.last_words
        self._job = Job(self._runner, settings)

    async def answer(self, prompt: str | None, key: str | None) -> Outcome | None:
        """What becomes of one row; None where it is to be left out.

        Raises:
            JobStopped: The money was used up; the rows under way have been answered.
            StoreError: The cache, the log or the purse failed.
            WorkflowError: The row failed, and a failing row ends the job.
        """
        with leaving_word(self._last_words):
            return await self._in_turn(prompt, key)

    async def _in_turn(self, prompt: str | None, key: str | None) -> Outcome | None:
        async with self._slots:
            if self._purse is None or self._purse.of_all_usd() < self._purse.limit_usd:
                return self.settle(await self._answered(prompt, key), key)
        await self._others()
        raise self._purse.used_up()

    async def _answered(self, prompt: str | None, key: str | None) -> Outcome:
        started = time.monotonic()
        outcome = await self._job.answer(prompt, key)
        if self._log is not None:
            self._log.rows.finished(key, outcome, time.monotonic() - started)
        return outcome

    async def _others(self) -> None:
        """Wait for the rows under way: what ends the job would cancel them, and their calls are paid for."""
        async with self._stopping:
            for _ in range(self._concurrency):
                await self._slots.acquire()
            for _ in range(self._concurrency):
                self._slots.release()

    def settle(self, outcome: Outcome, key: str | None) -> Outcome | None:
        """Apply the policies: what is given on, None for nothing.

        Raises:
            WorkflowError: The row failed, and a failing row ends the job.
        """
        settled = self._job.settle(outcome, key)
        left_out = settled is not None and self._job.settings.only_approved and not settled.approved
        return None if left_out else settled

    def close(self) -> None:
        """Close the cache and the other files, and the sessions with tool servers."""
        self._runner.close()
        for file in (self._journal, self._log, self._purse):
            if file is not None:
                file.close()


def kept_keys(spec: AnyAgentSpec) -> set[str]:
    """The names of the keys in *spec* that only the catalogue knows, because a script wrote them out."""
    texts = [text for each in connections_of(spec) for text in (each.endpoint, each.api_key or "")]
    return {name for text in texts for name in REFERENCE.findall(text) if name.startswith(VAULT)}


def keys_in_environment(spec: AnyAgentSpec, secrets: Mapping[str, str]) -> tuple[AnyAgentSpec, dict[str, str]]:
    """*spec* with each key that a script wrote out replaced by an environment variable, and these variables.

    The variables are called ``REACTFLOW_CONNECTION_<NAME>_API_KEY``, the name in capitals.

    Raises:
        ConfigurationError: Two connections would share a variable.
    """
    names = {name: _variable(name) for name in kept_keys(spec)}
    if len(set(names.values())) < len(names):
        raise ConfigurationError(
            f"Connections that share the variable {sorted(names.values())[0]}: rename one of them."
        )

    def renamed(text: str) -> str:
        return REFERENCE.sub(lambda found: f"${{{names.get(found[1], found[1])}}}", text)

    return _with_names(spec, renamed), {names[name]: secrets[name] for name in names}


def _variable(name: str) -> str:
    return "REACTFLOW_" + re.sub(r"[^A-Z0-9]+", "_", name.removeprefix(VAULT).upper()).strip("_")


def _with_names(spec: Any, renamed: Callable[[str], str]) -> Any:
    """*spec* with *renamed* applied to the texts of its connections, however deep they are."""
    if isinstance(spec, ConnectionSpec):
        key = None if spec.api_key is None else renamed(spec.api_key)
        return replace(spec, endpoint=renamed(spec.endpoint), api_key=key)
    if isinstance(spec, tuple):
        return tuple(_with_names(each, renamed) for each in spec)
    if not is_dataclass(spec):
        return spec
    return replace(spec, **{each.name: _with_names(getattr(spec, each.name), renamed) for each in fields(spec)})  # type: ignore[type-var]
