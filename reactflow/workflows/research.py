"""ResearchReflexion: draft, criticise, look up what is uncertain, and revise by what was found.

Source: Vahe Sahakyan, "Reflexion", on Towards AI.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from reactflow.budget import Budget
from reactflow.errors import BudgetExceeded, ConfigurationError, WorkflowError, of_a_model
from reactflow.progress import stalled
from reactflow.result import Judgement, StopReason
from reactflow.workflows.attempt import Attempt, Trail, WorkflowResult
from reactflow.workflows.citations import Cited, check_citations, unknown_addresses
from reactflow.workflows.reply import Reply
from reactflow.workflows.research_output import DRAFT, FINAL, DraftOutput, FinalOutput
from reactflow.workflows.research_wording import research_wording
from reactflow.workflows.role import as_role
from reactflow.workflows.searching import Found, as_searcher
from reactflow.workflows.sources import Catalogue, Source, source_list
from reactflow.workflows.structured import ask_for
from reactflow.workflows.wording import fenced, new_mark, wording
from reactflow.workflows.workflow import OnRevisionError, Workflow, checked_iterations

__all__ = ["DraftOutput", "FinalOutput", "ResearchReflexion", "ResearchResult", "Source"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchResult(WorkflowResult):
    """What one run gives back: a workflow's result, and what the answer rests on.

    ``text`` is the answer with the list of its sources behind it; ``output`` is the answer alone, as a
    :class:`FinalOutput`, or a :class:`DraftOutput` where nothing was looked up.  ``approved`` says that every reference
    was checked: there is one at least, and all that the model gave are sources that were retrieved.  It does not say
    that the sources are right.  A warning names what may be a marker too, such as ``(2)``, and was left with its old
    number.  ``iterations`` counts the rounds of research, and is 1 where there was none.

    Args:
        researched: Whether the answer was revised by what was found.
        references: The sources that the answer cites; the first one is ``[1]`` in its text.
        removed_references: What the model gave for a reference and is no retrieved source; taken out of the answer.
        sources: All sources that were found, in order.
        queries: All queries that were run, in order.
    """

    researched: bool = False
    references: tuple[Source, ...] = ()
    removed_references: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    queries: tuple[str, ...] = ()


class ResearchReflexion(Workflow[ResearchResult]):
    """Answers a question, looks up what the answer is unsure of, and revises it by the evidence, with references.

    The model only proposes queries; the program runs them, all of a round at the same time.  A draft without queries
    is the answer.  A revision may ask for more, up to *max_iterations* rounds of research.  A reference that is none of
    the retrieved sources is taken out and named in a warning; a revision without any valid one goes back once, and is
    then returned as not approved.

    Args:
        model: Who drafts and revises: a ChatModel, or an agent, workflow or function that replies in JSON.
        search: What looks things up: a function of the query, plain or async, or a tool.  Gives :class:`Source`
            objects, or dicts with ``url``, ``title`` and ``text``, as a list or under ``results``.
        max_iterations: Rounds of research at most, >= 1.
        revisor: Who revises, where that is not *model*.
        system_prompt: The system prompt of *model*, where that is a ChatModel.
        max_queries: Queries of one round at most, 1 to 10; of more the first ones are run.
        max_results: Sources taken of each query, the first ones, > 0.
        max_source_chars: A longer source loses its middle in the prompt, > 0.
        max_evidence_chars: All sources together are cut to about this length, > 0.
        search_timeout_s: Seconds a query may take, > 0, unless the tool has a limit of its own; None for no limit.
        today: The day the models are told; the real one where it is None.
        on_revision_error: What a model's or provider's error does once there is a draft: ``"return"`` the best so far
            as ``revision_error``, or ``"raise"``.
        stop_when_stalled: Whether revisions that stopped changing, or go back and forth, end the run.
        budget: The limits of each run; None for none.
        name: What events and logs call it.

    Raises:
        ConfigurationError: A setting is wrong; says which value and what to give instead.
    """

    extra_drafts = 1

    def __init__(
        self,
        model: Any,
        search: Any,
        max_iterations: int = 4,
        *,
        revisor: Any = None,
        system_prompt: str | None = None,
        max_queries: int = 3,
        max_results: int = 5,
        max_source_chars: int = 2000,
        max_evidence_chars: int = 20_000,
        search_timeout_s: float | None = 30.0,
        today: date | None = None,
        on_revision_error: OnRevisionError = "return",
        stop_when_stalled: bool = True,
        budget: Budget | None = None,
        name: str = "research",
    ) -> None:
        super().__init__(
            name=name,
            max_iterations=max_iterations,
            budget=budget,
            on_revision_error=on_revision_error,
            stop_when_stalled=stop_when_stalled,
        )
        self.responder = as_role(model, "responder", system_prompt)
        self.revisor = as_role(self.responder if revisor is None else revisor, "revisor")
        self.max_queries = checked_iterations(max_queries, "max_queries")
        if max_queries > 10:
            raise ConfigurationError(f"max_queries={max_queries!r}: give a whole number from 1 to 10.")
        self.max_source_chars = checked_iterations(max_source_chars, "max_source_chars")
        self.max_evidence_chars = checked_iterations(max_evidence_chars, "max_evidence_chars")
        self.searcher = as_searcher(
            search, max_results=checked_iterations(max_results, "max_results"), timeout_s=search_timeout_s
        )
        if today is not None and not isinstance(today, date):
            raise ConfigurationError(f"today={today!r}: give a date, or None.")
        self.today = today

    def _result_type(self) -> type[ResearchResult]:
        return ResearchResult

    def _extras(self, trail: Trail, chosen: Attempt) -> dict[str, Any]:
        work = _work(trail)
        cited = work.cited.get(_place(trail, chosen))
        return {
            "reflections": tuple(each for each in trail.run.reflections if each.judgement.status == "judged"),
            "researched": cited is not None,
            "references": cited.sources if cited else (),
            "removed_references": cited.removed if cited else (),
            "sources": tuple(work.catalogue.sources),
            "queries": tuple(each.query for each in work.found),
        }

    async def _draft(self, trail: Trail) -> Reply | StopReason:
        work, said = _work(trail), research_wording(trail.task)
        if work.rounds and not work.searched:
            return StopReason.REVISION_ERROR
        if work.rounds:
            return await self._revised(trail)
        reply = await ask_for(
            DRAFT, self.responder, self._first_prompt(trail), trail, repair=said.repair, drafting=True
        )
        if reply.flaw is not None:
            return reply
        work.output = reply.value
        return replace(reply, text=work.output.answer)

    async def _revised(self, trail: Trail) -> Reply:
        """The answer revised by the evidence; one that rests on no source is asked for once more."""
        work, said = _work(trail), research_wording(trail.task)
        prompt = self._revision_prompt(trail)
        reply = await ask_for(FINAL, self.revisor, prompt, trail, repair=said.repair, drafting=True)
        if reply.flaw is not None:
            return reply
        cited = _checked(reply, work.catalogue)
        if not cited.sources and len(work.catalogue):
            reply, cited = await self._once_more(trail, f"{prompt}\n\n{said.uncited}", reply, cited)
        output: FinalOutput = reply.value
        work.output = replace(output, answer=cited.as_shown)
        work.cited[len(trail.attempts)] = cited
        urls = tuple(source.url for source in cited.sources)
        listed = f"{cited.answer}\n\n{said.sources}\n{source_list(cited.sources)}" if urls else cited.answer
        return replace(reply, text=listed, value=replace(output, answer=cited.answer, references=urls))

    async def _once_more(self, trail: Trail, prompt: str, first: Reply, checked: Cited) -> tuple[Reply, Cited]:
        """A second revision in the place of *first*, or *first* where there is none to be had."""
        said, mark = research_wording(trail.task), new_mark()
        asked = f"{prompt}\n\n{fenced(mark, said.draft, first.value.answer, trail.task)}"
        try:
            second = await ask_for(FINAL, self.revisor, asked, trail, repair=said.repair, drafting=True)
        except (BudgetExceeded, WorkflowError) as error:
            if isinstance(error, BudgetExceeded):
                _work(trail).limit = error.reason
            elif self.on_revision_error == "raise" or not of_a_model(error):
                raise
            trail.run.warn(f"A revision without a reference could not be revised: {error}")
            return first, checked
        return (first, checked) if second.flaw is not None else (second, _checked(second, _work(trail).catalogue))

    async def _judge(self, trail: Trail) -> Judgement:
        """What the program can check of a revision: its references.  A first draft has only its own criticism."""
        work = _work(trail)
        cited = work.cited.get(len(trail.attempts) - 1)
        if cited is None:
            return Judgement(not work.output.search_queries, work.output.reflection or None, status="unjudged")
        problems = self._problems(trail, cited)
        for problem in problems:
            trail.run.warn(f"Revision {len(work.cited)}: {problem}")
        if cited.unclear:
            trail.run.warn(
                f"Revision {len(work.cited)}: Its sources were numbered anew, and what may point at one was left as it "
                f"is: {', '.join(cited.unclear):.300}."
            )
        share = len(cited.sources) / max(1, len(cited.sources) + len(cited.removed))
        return Judgement(not problems, "\n".join(problems) or None, share, flags=problems)

    def _problems(self, trail: Trail, cited: Cited) -> tuple[str, ...]:
        catalogue = _work(trail).catalogue
        known = "\n".join((trail.task, *(source.text for source in catalogue.sources)))
        strange = unknown_addresses(cited.answer, known, catalogue)
        checks = (
            (not cited.sources, "It cites no source that was retrieved."),
            (cited.removed, f"Taken out, because no such source was retrieved: {', '.join(cited.removed):.500}."),
            (strange, f"It names addresses that stand in no source: {', '.join(strange):.500}."),
        )
        return tuple(problem for failed, problem in checks if failed)

    def _ending(self, trail: Trail) -> StopReason | None:
        work = _work(trail)
        if work.limit is not None:
            return work.limit
        if not work.output.search_queries:
            return StopReason.ANSWERED
        if trail.number > self.max_iterations:
            return None
        work.queries = _new_queries(work.output.search_queries, [each.query for each in work.found])
        if not work.queries:
            return StopReason.NO_PROGRESS
        drafts = [each.draft for each in trail.attempts]
        return stalled(drafts, [""] * len(drafts)) if self.stop_when_stalled else None

    async def _learn(self, trail: Trail) -> None:
        """Run the queries, where there is a round left."""
        if trail.number > self.max_iterations:
            return
        work, queries = _work(trail), _work(trail).queries
        if len(queries) > self.max_queries:
            trail.run.warn(f"{len(queries)} queries were wanted in one round, and {self.max_queries} were run.")
        trail.enter(trail.number, self.max_iterations)
        found = await self.searcher.search(queries[: self.max_queries], trail, len(work.found) + 1)
        work.rounds += 1
        work.searched = any(each.problem is None for each in found)
        for each in found:
            work.found.append(each)
            work.numbers.append(work.catalogue.add(each.sources))
            if each.problem is not None:
                trail.run.warn(f"The search for {each.query!r} failed: {each.problem:.300}")

    def _first_prompt(self, trail: Trail) -> str:
        said, mark = research_wording(trail.task), new_mark()
        return "\n\n".join(
            (
                said.respond,
                self._today(trail),
                fenced(mark, wording(trail.task).task, trail.task, trail.task),
                said.draft_format,
            )
        )

    def _revision_prompt(self, trail: Trail) -> str:
        """The question, the answer so far with its criticism, and the evidence, which is fenced as somebody else's."""
        work, said, own, foreign = _work(trail), research_wording(trail.task), new_mark(), new_mark()
        evidence = work.catalogue.evidence(
            trail.task, max_source_chars=self.max_source_chars, max_chars=self.max_evidence_chars
        )
        left = self.max_iterations - work.rounds
        return "\n\n".join(
            (
                said.revise,
                self._today(trail),
                fenced(own, wording(trail.task).task, trail.task, trail.task),
                fenced(own, said.draft, work.output.answer, trail.task),
                fenced(own, said.critique, work.output.reflection, trail.task),
                said.data.format(mark=foreign),
                fenced(foreign, said.searches, _told(work, trail.task), trail.task),
                fenced(foreign, said.evidence, evidence or said.no_evidence, trail.task),
                said.rounds_left.format(count=left) if left else said.no_round_left,
                said.final_format,
            )
        )

    def _today(self, trail: Trail) -> str:
        return research_wording(trail.task).today.format(date=(self.today or date.today()).isoformat())


@dataclass(slots=True)
class _Work:
    """What a run knows beside its attempts."""

    output: DraftOutput = field(default_factory=lambda: DraftOutput(""))  # the latest, its markers as in the catalogue
    catalogue: Catalogue = field(default_factory=Catalogue)
    queries: list[str] = field(default_factory=list)  # to be run next
    found: list[Found] = field(default_factory=list)
    numbers: list[list[int]] = field(default_factory=list)  # of the sources in the catalogue, for each of *found*
    cited: dict[int, Cited] = field(default_factory=dict)  # by attempt, from 0; none for the first draft
    rounds: int = 0
    searched: bool = False  # whether any query of the last round worked
    limit: StopReason | None = None  # came when a revision was there, but not yet as good as it should be


def _work(trail: Trail) -> _Work:
    work: _Work = trail.notes.setdefault("research", _Work())
    return work


def _place(trail: Trail, chosen: Attempt) -> int:
    return next(at for at, attempt in enumerate(trail.attempts) if attempt is chosen)


def _checked(reply: Reply, catalogue: Catalogue) -> Cited:
    output: FinalOutput = reply.value
    return check_citations(output.answer, output.references, catalogue)


def _told(work: _Work, task: str) -> str:
    """What each query brought, as lines."""
    said = research_wording(task)
    lines = []
    for found, numbers in zip(work.found, work.numbers, strict=True):
        brought = said.failed if found.problem is not None else " ".join(f"[{number}]" for number in numbers)
        lines.append(f'- "{found.query}": {brought or said.nothing}')
    return "\n".join(lines)


def _new_queries(wanted: Iterable[str], run: Sequence[str]) -> list[str]:
    """Those of *wanted* that ask for something else than one before, or one that was *run*."""
    known = {_gist(query) for query in run}
    new: dict[frozenset[str], str] = {}
    for query in wanted:
        if (gist := _gist(query)) not in known:
            new.setdefault(gist, query)
    return list(new.values())


def _gist(query: str) -> frozenset[str]:
    """The words of a query, whatever their order, case and the marks around them."""
    words = unicodedata.normalize("NFKC", query).casefold().split()
    return frozenset(word.strip("\"'“”‘’«»()[],.;:!?？。，、！") or word for word in words)
