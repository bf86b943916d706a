"""A chat model with no model behind it: rules over tool schemas, so that everything runs without a key.

It chooses among the tools it is offered by the words of their schemas, fills the arguments from the question, writes
its answer from the results, and judges an answer by checking it against the question and the evidence.  It knows no
tool by name.  It shows how an agent works; it cannot show that reflection pays.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from itertools import chain
from typing import Any, TypeAlias

from reactflow import plain_words as plain
from reactflow.events import TextDelta
from reactflow.messages import (
    AssistantMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    estimate_tokens,
    is_real_user,
    this_turn,
)
from reactflow.model import ChatRequest, ChatResponse, ToolSpec
from reactflow.phrases import language
from reactflow.plain_json import compared, in_words

Schema: TypeAlias = Mapping[str, Any]
Results: TypeAlias = list[tuple[ToolCall, ToolMessage]]
FITS = {"place": ("place", "name", "han"), "id": ("id", "number"), "text": ("quoted", "name", "place", "id")}


def _specs(schema: Schema) -> dict[str, dict[str, Any]]:
    """The parameters of *schema*, references followed, and of several choices the first that is not null."""
    found: dict[str, dict[str, Any]] = {}
    for name, given in schema.get("properties", {}).items():
        spec = dict(given) if isinstance(given, Mapping) else {}
        spec |= next((one for one in spec.get("anyOf", ()) if one.get("type") != "null"), {})
        found[name] = spec | schema.get("$defs", {}).get(str(spec.get("$ref")).rpartition("/")[2], {})
    return found


def _kind(name: str, spec: Schema) -> str:
    """What a parameter wants, by its type, format, name and description."""
    kind = re.sub(r"\W|null", "", str(spec.get("type", "string"))).replace("integer", "number")
    if "enum" in spec or kind != "string":
        return "enum" if "enum" in spec else kind
    hints = [spec.get("format"), *plain.terms(name), *plain.terms(spec.get("description") or "")]
    return next((hint for hint in hints if hint in ("date", "place", "id", "search")), "text")


@dataclass(frozen=True, slots=True)
class Source:
    """Where arguments come from: a *text*, the *question* in it, and *facts*, values of earlier results by key."""

    text: str
    question: str
    today: date
    facts: Mapping[str, Any]

    def fill(self, schema: Schema) -> tuple[list[dict[str, Any]], list[str]]:
        """Arguments for *schema*, one set for each value of its one subject such as a city, and what is missing."""
        filled, missing, taken, more = dict[str, Any](), list[str](), set[int](), dict[str, Any]()
        for name, spec in _specs(schema).items():
            required = name in schema.get("required", ())
            kind, named = _kind(name, spec), plain.after_name(name, self.text)
            values = [value for value in self.values(kind, spec) if value[0] not in taken]
            values.sort(key=lambda value: value[0] not in named)
            if required and name in self.facts and kind != "place":
                values = [(-1, self.facts[name])]
            elif kind == "date" and not required:  # of several days the tool's own default knows best
                days = {day for _, day in values}
                values = values[:1] if len(days) == 1 and days != {self.today.isoformat()} else []
            elif not required and kind not in ("enum", "place"):
                values = [value for value in values if value[0] in named]
            if values:
                taken.add(values[0][0])
                filled[name] = values[0][1]
                others = dict.fromkeys(value for _, value in values if value != filled[name])
                more |= {name: others} if kind in ("place", "id", "enum") else {}
            elif required:
                missing.append(name)
        fan = next(iter(more)) if len(more) == 1 else ""
        return [filled, *({**filled, fan: value} for value in [*more.get(fan, ())][:7])], missing

    def values(self, kind: str, spec: Schema) -> plain.Found:
        """What fits a parameter, the best first, each with its place in the text."""
        if kind == "enum":
            return plain.mentions(spec["enum"], self.text)
        if kind == "array":
            inner = spec.get("items", {})
            items = [value for _, value in self.values(_kind("", inner), inner)]
            return [(-2, items)] if items else []
        kinds = FITS.get(kind, (kind,) if kind in ("number", "date") else ())
        found = [found for one in kinds if (found := plain.find(one, self.text, self.today))]
        if kind == "place" and found:  # in "Paris and Atlantis" the unknown name is a place too
            linked = {at: name for at, name in chain(*found) if plain.is_linked(self.text, at)}
            return sorted((linked | dict(found[0])).items())
        phrase = [(-2, plain.search_phrase(self.text, self.question))] if kind in ("text", "search") else []
        return found[0] if found else phrase


def _choose(tools: Sequence[ToolSpec], text: str, least: int = 2) -> list[ToolSpec]:
    """The tools whose name *text* asks for, by its first word or by all of it, else the closest one."""
    asked, named, shared = {*plain.terms(text)}, list[ToolSpec](), list[int]()
    told = asked | {kind for kind in ("place", "id") if plain.find(kind, text)}
    for tool in tools:
        name = [term for term in plain.terms(tool.name) if term != "search"] or plain.terms(tool.name)
        named += [tool] if name and (name[0] in asked or asked >= {*name}) else []
        schema = plain.terms(f"{tool.description} {json.dumps(dict(tool.parameters), ensure_ascii=False)}")
        shared.append(0 if asked & {*name} else len(told & {*schema}))  # who asks of an order does not cancel_order
    return named or [tool for tool, common in zip(tools, shared, strict=True) if common == max(least, *shared)][:1]


def _plan(request: ChatRequest, source: Source, feedback: str, results: Results) -> tuple[list[ToolCall], str]:
    """The calls to make now, and a sentence on a tool that fits but lacks arguments."""
    tools = [tool for tool in request.tools if request.tool_choice in (None, "auto", "required", tool.name)]
    worked = {result.name for _, result in results if not result.is_error}
    chosen = [tool for tool in _choose(tools, source.text) if tool.name not in worked]
    if feedback:
        chosen += _choose(tools, feedback, least=1)
        source = replace(source, text=f"{feedback}\n{source.text}")
    seen = "\n".join(f"{call.arguments} {result.text}" for call, result in results)
    if not chosen and (not results or plain.unsaid(source.question, seen)):  # ask a tool that takes any text
        kinds = [{_kind(*item) for item in _specs(tool.parameters).items()} for tool in tools]
        forced = tools[:1] if request.tool_choice not in (None, "auto") and not results else []
        chosen = [tool for tool, kind in zip(tools, kinds, strict=True) if "search" in kind] or forced
    spoken, planned, lacking = language(source.question), dict[tuple[str, str], None](), ""
    said = plain.said(spoken)
    for tool in chosen:
        filled, missing = source.fill(tool.parameters)
        if missing:
            lacking = said["needs"].format(
                tool.name, said["comma"].join(plain.label(one, spoken) or one for one in missing)
            )
        else:
            planned |= {(tool.name, json.dumps(arguments, ensure_ascii=False)): None for arguments in filled}
    fresh = planned.keys() - {(call.name, call.arguments) for call, _ in results}
    calls = [ToolCall(f"call_{len(request.messages)}_{n}", *one) for n, one in enumerate(planned) if one in fresh]
    return calls, lacking or said["no_tool"].format(said["comma"].join(tool.name for tool in tools) or said["none"])


def _write(question: str, results: Results, detail: bool) -> str:
    """The answer: what each result says, the figures side by side, what is missing, the notes of the results."""
    spoken, lines, notes, alike = language(question), list[str](), dict[str, None](), dict[str, dict[str, Any]]()
    said = plain.said(spoken)
    for call, result in results:
        asked, value = list(call.read_arguments().values()), plain.decoded(result.text)
        if isinstance(value, dict):
            notes |= {str(v): None for k, v in value.items() if plain.meaning(k) == "note"}
            value = {k: v for k, v in value.items() if not isinstance(v, str) or v not in (*asked, *notes)}
        told = in_words(value, spoken, detail=detail) or said["none"]
        told = said["no_result"].format(result.text) if result.is_error else told
        about = said["comma"].join(map(str, asked))
        head = plain.label(call.name, spoken).capitalize() + (said["brackets"].format(about) if about else "")
        lines.append(plain.sentence(f"{head}{said['colon']}{told}", spoken))
        alike.setdefault(call.name, {})[about] = value
    lines += filter(None, [compared(same, spoken) for same in alike.values() if detail])
    missing = plain.unsaid(question, "\n".join(lines)) if not all(result.is_error for _, result in results) else []
    lines += [said["nothing"].format(said["comma"].join(missing)), *notes] if missing else notes
    text = plain.fitted(question, ("\n\n" if detail else "\n").join(lines).replace(": \n", ":\n"))
    return f"{text}\n{said['short']}" if detail and "too_short" in plain.misfits(question, text) else text


def _judge(question: str, answer: str, evidence: str) -> dict[str, Any]:
    """Check the length of *answer*, what it leaves out, and for figures that come from nowhere."""
    said = plain.said(language(question))
    silent, known = plain.unsaid(question, answer), {*plain.pattern("figure").findall(evidence + question)}
    whole = "=>" in evidence and not plain.pattern("cut").search(evidence)
    invented = [one for one in plain.pattern("figure").findall(answer) if whole and one not in known]
    problems = [said["no_answer"]] if answer.startswith(said["cannot"].partition("{")[0]) else []
    problems += [said[which].format(*sizes) for which, sizes in plain.misfits(question, answer).items()]
    problems += [said["silent"].format(said["comma"].join(silent))] if silent else []
    problems += [said["invented"].format(said["comma"].join(dict.fromkeys(invented)))] if invented else []
    return {
        "issues": [{"description": problem, "severity": 3} for problem in problems],
        "feedback": " ".join(problems) or None,
        "score": max(0.0, 1 - len(problems) / 4),
        "confidence": 1.0,
        "passed": not problems,
        "verdict": "REQUIRED_CHANGES" if problems else "APPROVED",
    }


@dataclass(frozen=True, slots=True)
class OfflineChatModel:
    """Rules in the place of a model; the same request always gets the same reply.

    Args:
        name: What logs and events call it.
        today: The day that "today" means; the real one where it is None.
    """

    name: str = "offline"
    today: date | None = None

    async def complete(self, request: ChatRequest) -> ChatResponse:
        """Call tools, answer from their results, or judge where the schema asks for a verdict."""
        message = self._reply(request)
        for at in range(0, len(message.text), 24) if request.stream and not message.tool_calls else ():
            request.emit(TextDelta(message.text[at : at + 24]))
            await asyncio.sleep(0)
        read = sum(estimate_tokens(one.text) for one in request.messages)
        wrote = estimate_tokens(message.text + "".join(call.arguments for call in message.tool_calls))
        return ChatResponse(message, Usage(read, wrote), "tool_calls" if message.tool_calls else "stop")

    def _reply(self, request: ChatRequest) -> AssistantMessage:
        schema = request.response_schema or {}
        fields = schema.get("properties", {})
        *before, question = [m.text for m in request.messages if is_real_user(m)] or [request.run.question.text]
        if not {"passed", "verdict"} & fields.keys():
            return self._answer(request, question, before, schema)
        parts = plain.fenced(question) or [request.run.question.text, question]
        verdict = _judge(*[*parts, "", ""][:3])
        return AssistantMessage(json.dumps({k: v for k, v in verdict.items() if k in fields}, ensure_ascii=False))

    def _answer(self, request: ChatRequest, question: str, before: list[str], schema: Schema) -> AssistantMessage:
        turn, said = this_turn(request.messages), plain.said(language(question))
        calls = {call.id: call for one in turn if isinstance(one, AssistantMessage) for call in one.tool_calls}
        results = [(calls[one.call_id], one) for one in turn if isinstance(one, ToolMessage) and one.call_id in calls]
        told = [value for _, one in results if not one.is_error and isinstance(value := plain.decoded(one.text), dict)]
        facts = {key: value for one in told for key, value in one.items()}
        source = Source(plain.pattern("length").sub("", question), question, self.today or date.today(), facts)
        rejected = [one.text for one in turn if isinstance(one, UserMessage) and one.synthetic == "reflection"]
        feedback = "\n".join(re.findall("(?m)^> ?(.*)$", "\n".join(rejected)))
        planned, reason = _plan(request, source, feedback, results)
        new = [kind for kind in ("place", "date", "id") if plain.find(kind, question)]
        for earlier in reversed(before[-3:]) if new and not results else ():  # "and tomorrow?"
            if not planned:
                earlier = reduce(lambda text, kind: plain.pattern(kind).sub("", text), new, earlier)
                source = replace(source, text=f"{source.text}\n{earlier}")
                planned, reason = _plan(request, source, "", results)
        if planned:
            return AssistantMessage("", tuple(planned))
        text = _write(question, results, bool(rejected)) if results else said["cannot"].format(reason)
        if schema:
            facts |= dict.fromkeys(("answer", "report", "summary"), text)
            filled, missing = source.fill(schema)
            reason = said["unknown"].format(said["comma"].join(missing))
            text = said["cannot"].format(reason) if missing else json.dumps(filled[0], ensure_ascii=False)
        return AssistantMessage(text)
