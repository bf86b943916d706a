"""A chat model with no model behind it: rules over tool schemas, so that everything runs without a key."""

import json
import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeAlias

from reactflow.events import TextDelta
from reactflow.messages import AssistantMessage, ToolCall, ToolMessage, Usage, estimate_tokens, is_real_user, this_turn
from reactflow.model import ChatRequest, ChatResponse, ToolSpec
from reactflow.phrases import language
from reactflow.words import FILLER, words

Results: TypeAlias = Sequence[tuple[ToolCall, ToolMessage]]
# Words of one meaning: the first one names it, and a Chinese answer says the first Chinese one.
MEANINGS = """
weather warm warmer cold hot rain 天气 暖和 更热 更冷 下雨; temperature 气温 温度; humidity 湿度; high 最高; low 最低;
trend forecast 趋势 预报 未来; warning alert 预警 警报; precipitation 降水; condition 状况; now current 现在; wind 风速;
search searching find 搜索 查找; list all each every 列出 所有; add sum total plu + 合计 相加 加上; result 结果;
order 订单; convert exchange 换算 兑换 换成; customer 客户; price 价格; item 商品; stock 库存; country 国家; city 城市;
status statu 状态; usd 美元; eur 欧元; currency 货币; id sku number 编号; date day 日期; time 时间; lookup query 查询
"""
ROWS = [row.split() for row in MEANINGS.split(";")]
MEANING = {word: row[0] for row in ROWS for word in row} | dict.fromkeys(FILLER, "")
LABEL = {word: next(one for one in row if one >= "一") for row in ROWS for word in row}
DAYS = {"tomorrow": 1, "明天": 1, "后天": 2, "yesterday": -1, "昨天": -1}
UNITS = {"c": "°C", "percent": "%", "kmh": "km/h", "mm": "mm", "km": "km", "kg": "kg", "eur": "EUR", "usd": "USD"}
HAN = "|".join(re.escape(one) for one in sorted(MEANING, key=len)[::-1] if not re.fullmatch("[a-z]+", one))
LATIN = "|".join(one for one in MEANING if one.isascii() and len(one) > 2 and one not in ("for", "usd", "eur"))
QUOTED = r"""(?<!\w)'[^'\n]{1,300}'(?!\w)|["“「『《][^"”」』》\n]{1,300}["”」』》]"""
KNOWN = re.compile(rf"({QUOTED})|{HAN}|\b(?i:{LATIN})s?\b")
LETTER = r"[^\W\d_\u4e00-\u9fff]"
NAME = rf"[A-Z\u00c0-\u00de\u0400-\u042f]{LETTER}+(?:(?:['’-]{LETTER}|\ [A-Z]){LETTER}+)*"
NUMBER = r"(?<![A-Za-z\d_.)-])-?\d{1,15}(?:,\d{3}){0,4}(?:\.\d{1,15})?(?!\d|-\d|\.\d)"
ID = r"#[A-Za-z\d-]+|(?<![A-Za-z\d-])(?:[A-Za-z]+-?\d[A-Za-z\d-]*|(?!\d{4}-)\d+(?:[A-Z]+\d|[A-Za-z]*-)[A-Za-z\d-]+)"
PATTERNS = {  # of several the first that finds something counts; a capital after a full stop says nothing
    "number": [NUMBER],
    "date": [r"\d{4}-\d\d-\d\d"],
    "id": [ID, NUMBER],
    "query": [r"(?i)(?<=search for )[^,;?!\n]+|(?<=searching for )[^,;?!\n]+|(?<=搜索)[^，。；？！\n]+", r"(?s).+"],
    "name": [
        rf"{QUOTED}|(?:(?<=[^.!?\s]\s)|\b(?={NAME},? (?:and|or) )){NAME}|[\u4e00-\u9fff]{{2,10}}",
        rf"(?>{NAME})(?! [a-z])|(?:(?<=\bin )|(?<=\bof )|(?<=\bfor )){LETTER}{{3,}}(?: {LETTER}{{3,}})*|{ID}",
    ],
}
LENGTH = re.compile(r"(?i)((at least|不少于|至少|at most|不超过|最多)\s*(\d{1,9})[\s-]*(words?\b|字))")
FIGURE = re.compile(r"\d+(?:\.\d+)?")
FENCED = re.compile(r"(?ms)^--- [^\n]*? ([0-9a-f]{16}) ---\n(.*?)\n--- [^\n]*? \1 ---$")
SAID = {
    "cannot": (
        "I cannot answer this offline, by rules over tools. {} A real answer needs OpenAIChatModel and OPENAI_API_KEY.",
        "离线模式只有基于工具的规则，无法回答这个问题。{}如需真实回答，请设置 OPENAI_API_KEY 并使用 OpenAIChatModel。",
    ),
    "no tool": ("No tool that I am offered fits the question ({}).", "现有工具都不适合这个问题（{}）。"),
    "needs": ("The tool {} would fit, but the question does not say: {}.", "工具 {} 适合，但问题中没有给出：{}。"),
    "silent": ("Nothing is said about: {}.", "没有提到：{}。"),
    "length": ("The answer has {} {}; the question asks for {}.", "回答有 {} {}，问题要求{}。"),
    "invented": ("These figures are not in the evidence: {}.", "以下数字在证据中找不到：{}。"),
    "result": ("{} ({}): {}", "{}（{}）：{}"),
    "comma": (", ", "，"),
}


def _say(what: str, question: str, *parts: object) -> str:
    told = (_say("comma", question).join(map(str, one)) if isinstance(one, list) else one for one in parts)
    return SAID[what][language(question) == "zh"].format(*told)


def _terms(text: str) -> dict[str, str]:
    """What *text* speaks of, without filler: one name for all words of one meaning, each with the word in the text."""
    spaced = re.sub("_|(?<=[a-z])(?=[A-Z])", " ", text)
    found = [*re.findall(HAN, spaced), *words(re.sub(HAN, " ", spaced))]
    return {meaning: word for word in found if (meaning := MEANING.get(word, word)) and not word.isdigit()}


def _find(kind: str, text: str, choices: Sequence[Any] = ()) -> list[tuple[int, Any]]:
    """The values of one *kind* in *text*, or those of *choices* that it names, each with its place."""
    if choices:  # first what stands behind an amount, as in "9 USD"
        asked, low = _terms(text), text.lower()
        named = [(low.find(word), one) for one in choices if (word := asked.get(next(iter(_terms(str(one))), "")))]
        return sorted(named, key=lambda one: (not re.search(r"\d\s*$", text[: one[0]]), one[0]))
    text = KNOWN.sub(lambda one: one[1] or "|" * len(one[0]), text) if kind == "name" else text  # no known word is one
    found = next(filter(None, (list(re.finditer(one, text)) for one in PATTERNS.get(kind, ()))), [])
    if kind == "number":
        return [(one.start(), (float if "." in one[0] else int)(one[0].replace(",", ""))) for one in found]
    return [(one.start(), one[0].strip("#.?。？\"'“”「」『』《》")) for one in found]


def _unsaid(question: str, text: str, told: Container[str]) -> list[str]:
    """The names in *question* that *text* leaves out, and of its subjects those that are not among the *told* ones."""
    names = dict.fromkeys(str(name) for kind in ("name", "id") for _, name in _find(kind, question))
    subjects = [
        word if word > "一" else one for one, word in _terms(question).items() if one in LABEL and one not in told
    ]
    return [one for one in names if one.lower() not in text.lower()] + subjects


def _resolved(spec: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(spec) if isinstance(spec, Mapping) else {}  # of several choices the first that is not null counts
    found |= next((one for one in found.get("anyOf", ()) if one.get("type") != "null"), {})
    return {**found, **schema.get("$defs", {}).get(str(found.get("$ref")).rpartition("/")[2], {})}


def _choose(tools: Sequence[ToolSpec], text: str, least: int = 2) -> list[ToolSpec]:
    """The tools whose subject *text* names, of several with one subject the closest; else the closest of all."""
    values = {"id": re.search(ID, text), "city": _find("name", text)}  # what stands there, though nobody calls it so
    asked, best = {*_terms(text), *filter(values.get, values)}, dict[str, tuple[int, ToolSpec]]()
    for tool in tools:
        names = [one for one in _terms(tool.name) if one not in ("search", "list", "now")] or [tool.name]
        about = f"{tool.name} {tool.description} {json.dumps(dict(tool.parameters), ensure_ascii=False)}"
        shared, subject = len(asked & _terms(about).keys()), names[0] if names[0] in asked else ""
        if subject or (shared >= least and asked.isdisjoint(names)):  # who asks of an order does not cancel it
            best[subject] = max(best.get(subject, (0, tool)), (shared, tool), key=lambda one: one[0])
    return [tool for subject, (_, tool) in best.items() if subject or len(best) == 1]


def _fill(tool: ToolSpec, texts: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Arguments for *tool* from the first of *texts* that has them, one set for each subject; what is missing."""
    required, taken, filled = list(tool.parameters.get("required", ())), list[int](), dict[str, list[Any]]()
    specs = {name: _resolved(one, tool.parameters) for name, one in tool.parameters.get("properties", {}).items()}
    for name, spec in sorted(specs.items(), key=lambda one: "enum" not in one[1]):  # before what may be any name
        item = _resolved(spec.get("items", spec), tool.parameters)
        hints = {item.get("format"), name, *_terms(name)}
        kind = re.sub(r"\W|null", "", str(item.get("type", "string"))).replace("integer", "number")
        kind = next((one for one in ("date", "id", "query") if one in hints), "name") if kind == "string" else kind
        found = next((found for text in texts if (found := _find(kind, text, item.get("enum", ())))), [])
        found = [one for one in found if one[0] not in taken and str(one[1]).lower() not in tool.name.lower()]
        free = found[: 8 if "items" in spec or required in ([], [name]) else 1]
        if free and (name in required or "enum" in item or kind in ("date", *(() if required else ("name", "id")))):
            taken += [at for at, _ in free]
            filled[name] = [[value for _, value in free]] if "items" in spec else [value for _, value in free]
    several = range(max(map(len, filled.values()), default=1))
    sets = [{name: filled[name][at % len(filled[name])] for name in specs if name in filled} for at in several]
    return sets[:8], [name for name in required if name not in filled]


def _told(value: Any, question: str, detail: bool, key: str = "") -> str:
    """*value* in words, with its *key* and unit; without *detail* of a long list only the first row."""
    head, _, unit = key.rpartition("_")
    parts, unit = (head.split("_"), UNITS[unit]) if head and unit in UNITS else (key.split("_"), "")
    zh, comma = language(question) == "zh", _say("comma", question)
    name = "".join(LABEL.get(one.removesuffix("s"), one) for one in parts) if zh else " ".join(parts)
    if isinstance(value, dict):
        told = [_told(one, question, detail, key) for key, one in value.items() if one not in (None, "", [], {})]
        return f"{name} ({comma.join(told)})" if name else comma.join(told)
    if isinstance(value, list):
        rows = [_told(one, question, detail) for one in value]
        if not detail and estimate_tokens(" ".join(rows)) > 100:
            rows = [re.split(r"(?<=[a-z0-9)%][.!?])\s|(?<=。)", rows[0])[0], "…"]
        return f"{name}:" * bool(name) + "".join(f"\n- {row}" for row in rows)
    return f"{name} {value if isinstance(value, str) else json.dumps(value)} {unit}".strip()


def _write(question: str, results: Results, detail: bool) -> str:
    """What each result says, what nothing is said about, and the notes in the results."""
    lines, notes = list[str](), dict[str, None]()
    for call, result in results:
        asked, told = list[Any](), result.text
        with suppress(ValueError, RecursionError):  # what is no JSON, or too deep, is told as it is
            asked = list(call.read_arguments().values())
            value = json.loads(result.text)
            if isinstance(value, dict):
                notes |= {str(value.pop("note")): None} if "note" in value else {}
                value = {key: one for key, one in value.items() if one not in asked}
            told = _told(value, question, detail)
        title = _told("", question, detail, re.sub("(?<=[a-z])(?=[A-Z])", "_", call.name)).capitalize()
        lines.append(_say("result", question, title, asked, told).replace(" ()", "").replace("（）", ""))
    text = "\n".join(lines)
    silent = _unsaid(question, text, ("search", "list", "now", *_terms(text)))  # what to do is no subject
    return ("\n\n" if detail else "\n").join([*lines, *([_say("silent", question, silent)] if silent else []), *notes])


def _verdict(question: str, answer: str, evidence: str = "") -> dict[str, Any]:
    """What is wrong with *answer*: its length, what it leaves out, and figures that come from nowhere."""
    problems, asked = list[str](), LENGTH.sub("", question)
    silent = [asked] if answer.startswith(("I cannot answer", "离线模式")) else _unsaid(asked, answer, _terms(asked))
    for demand, bound, size, unit in LENGTH.findall(question):
        count = len(re.findall(r"[\u4e00-\u9fff]" if unit == "字" else r"\w+(?:[.:/’'-]\w+)*", answer))
        if count < int(size) if bound.lower() in ("at least", "不少于", "至少") else count > int(size):
            problems.append(_say("length", question, count, unit, demand))
    problems += [_say("silent", question, silent)] if silent else []
    whole, known = re.search("^…|left out|略去", evidence) is None, FIGURE.findall(evidence + question)
    invented = [one for one in dict.fromkeys(FIGURE.findall(answer)) if "=>" in evidence and whole and one not in known]
    problems += [_say("invented", question, invented)] if invented else []
    verdict = {"passed": not problems, "verdict": "REQUIRED_CHANGES" if problems else "APPROVED", "confidence": 1.0}
    score, issues = max(0.0, 1 - len(problems) / 4), [{"description": one, "severity": 3} for one in problems]
    return {**verdict, "score": score, "feedback": " ".join(problems) or None, "issues": issues}


@dataclass(frozen=True, slots=True)
class OfflineChatModel:
    """Rules in the place of a model: the same request gets the same reply, and no sign of whether reflection pays."""

    name: str = "offline"
    today: date | None = None  # the day that "tomorrow" counts from; None for the real one

    async def complete(self, request: ChatRequest) -> ChatResponse:
        """Call tools, answer from their results, or judge where the schema asks for a verdict."""
        message = self._reply(request)
        for at in range(0, len(message.text), 24) if request.stream else ():
            request.emit(TextDelta(message.text[at : at + 24]))
        read = sum(estimate_tokens(one.text) for one in request.messages)
        wrote = estimate_tokens(message.text + "".join(call.arguments for call in message.tool_calls))
        return ChatResponse(message, Usage(read, wrote), "tool_calls" if message.tool_calls else "stop")

    def _reply(self, request: ChatRequest) -> AssistantMessage:
        fields = (request.response_schema or {}).get("properties", {})
        questions = [one.text for one in request.messages if is_real_user(one)] or [request.run.question.text]
        if {"passed", "verdict"} & fields.keys():
            parts = [part for _, part in FENCED.findall(questions[-1])] or [request.run.question.text, questions[-1]]
            return AssistantMessage(json.dumps({k: v for k, v in _verdict(*parts[:3]).items() if k in fields}))
        turn = this_turn(request.messages)
        calls = {call.id: call for one in turn for call in getattr(one, "tool_calls", ())}
        results = [(calls[one.call_id], one) for one in turn if isinstance(one, ToolMessage) and one.call_id in calls]
        rejected = "\n".join(one.text for one in turn if getattr(one, "synthetic", None) == "reflection")
        feedback = "\n".join(re.findall("(?m)^> ?(.*)", rejected))
        texts = [feedback, *(self._dated(LENGTH.sub("", one[:20_000])) for one in reversed(questions))]
        planned, lacking = self._plan(request, texts, results)
        if planned or not results:
            return AssistantMessage("" if planned else _say("cannot", texts[1], lacking), planned)
        return AssistantMessage(_write(texts[1], results, bool(rejected) or "list" in _terms(texts[1])))

    def _plan(self, request: ChatRequest, texts: Sequence[str], results: Results) -> tuple[tuple[ToolCall, ...], str]:
        """The calls to make now, and why there is none; *texts* are the feedback and the questions, newest first."""
        feedback, question, *before = texts
        tools = [tool for tool in request.tools if request.tool_choice in (None, "auto", "required", tool.name)]
        done = {result.name for _, result in results if not result.is_error}
        wanted = [(tool, texts[:2]) for tool in _choose(tools, feedback, least=99)]
        wanted += [(tool, [question]) for tool in _choose(tools, question) if tool.name not in done]
        new = str(_find("name", question) + _find("date", question)) if re.search("[?？呢]", question) else ""
        if before and new and not (wanted or results) and _terms(question).keys() <= _terms(new).keys():
            wanted = [(tool, texts[1:]) for tool in next(filter(None, (_choose(tools, one) for one in before)), [])]
        told = " ".join(f"{call.name} {call.arguments} {result.text}" for call, result in results)
        if not wanted and (not done or _unsaid(question, told, ("search", "list", "now", *_terms(told)))):
            wanted = [(tool, [question]) for tool in tools if "query" in tool.parameters.get("required", ())]
        planned, lacking = dict[tuple[str, str], None](), _say("no tool", question, [one.name for one in tools] or "-")
        for tool, sources in wanted:
            sets, missing = _fill(tool, sources)
            lacking = _say("needs", question, tool.name, missing) if missing else lacking
            planned |= {(tool.name, json.dumps(one, ensure_ascii=False)): None for one in sets if not missing}
        fresh = [one for one in planned if one not in {(call.name, call.arguments) for call, _ in results}]
        return tuple(ToolCall(f"call_{len(request.messages)}_{at}", *one) for at, one in enumerate(fresh)), lacking

    def _dated(self, text: str) -> str:
        today = self.today or date.today()
        return re.sub("|".join(DAYS), lambda one: f"{today + timedelta(DAYS[one[0].lower()])} ", text, flags=re.I)
