"""MCP tools: real servers over standard input and output and over HTTP, their tools, their ends and their errors."""

import asyncio
import gc
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import mcp
import pytest
from mcp.client.stdio import get_default_environment
from structlog.testing import capture_logs

from reactflow.agent import SimpleReactAgent
from reactflow.errors import ConfigurationError, DuplicateToolError, ProviderError, ToolError
from reactflow.mcp_endpoint import read_endpoint
from reactflow.mcp_session import Line
from reactflow.mcp_tools import mcp_tools
from reactflow.messages import ToolMessage
from reactflow.specs.building import Workshop
from reactflow.specs.catalog import Catalog
from reactflow.specs.making import Definition
from reactflow.specs.running import AgentRunner
from reactflow.testing import ScriptedChatModel, calls, says
from reactflow.toolbox import Tool
from reactflow.workflows.best_of_n import BestOfN
from reactflow.workflows.critic_refiner import CriticRefiner
from reactflow.workflows.drafter_critic import DrafterCritic
from reactflow.workflows.reflexion import Reflexion
from reactflow.workflows.research import ResearchReflexion

SERVER = [sys.executable, str(Path(__file__).with_name("mcp_server.py"))]
BARE = get_default_environment()  # above all without coverage, which disturbs anyio in Python 3.11
OPENING_S = 60  # a busy machine may need long to start a process
NAMES = ["add", "echo", "found", "parts", "fails", "refuses", "wrong", "slow", "crashes", "process"]
NAMES += ["files.read", "查询天气", "send", "search", "put"]

RAW = """
import json, sys

mode = sys.argv[1]
if mode == "exits":
    sys.exit(1)
if mode == "chats":
    print("Server is ready!", flush=True)
schema = {"type": "object", "properties": {"a": {"type": "nothing"}} if mode == "illegal" else {}}
if mode == "untyped":
    del schema["type"]
tool = {"name": "hello", "title": "Says hello.", "inputSchema": schema}
known = {
    "initialize": {
        "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "raw", "version": "1"}
    },
    "tools/list": {"tools": [tool, {**tool, "title": "Another."}], "nextCursor": "1" if mode == "endless" else ""},
    "tools/call": {"content": [{"type": "text", "text": "hello"}]},
}
for line in sys.stdin:
    message = json.loads(line)
    if len(sys.argv) > 2:
        open(sys.argv[2], "w").close()
    if mode == "silent" or "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in known:
        reply["result"] = known[message["method"]]
    else:
        reply["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(reply), flush=True)
"""


def raw(mode):
    """The command of a small server that goes wrong in one way."""
    return [sys.executable, "-I", "-c", RAW, mode]


@contextmanager
def serving(*options):
    """A server of this machine at a URL; ends with the block."""
    command = [*SERVER, "--http", *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=BARE) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def port_of(url):
    return int(url.rpartition(":")[2].removesuffix("/mcp"))


def eventually(condition):
    deadline = time.monotonic() + 30
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def read(notes):
    return notes.read_text("utf-8").splitlines() if notes.exists() else []


async def use(tools, name, **arguments):
    """Let a model call tool *name*; what it gets to read."""
    model = ScriptedChatModel(calls(name, **arguments), says("done"))
    await SimpleReactAgent(model=model, tools=tools).arun("question")
    return model.seen[1].messages[-1]


async def text_of(tools, name, **arguments):
    message = await use(tools, name, **arguments)
    assert not message.is_error, message.text
    return message.text


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    return tmp_path_factory.mktemp("mcp") / "notes"


@pytest.fixture
def heard(notes):
    """What the two servers of this module have heard of since the test began."""
    before = len(read(notes))
    return lambda: read(notes)[before:]


@pytest.fixture(scope="module")
def at_url(notes):
    with serving("--notes", notes) as url:
        yield url


@pytest.fixture(scope="module")
def over_http(at_url):
    with mcp_tools(at_url, timeout=OPENING_S) as tools:
        yield tools


@pytest.fixture(scope="module")
def over_stdio(notes):
    with mcp_tools([*SERVER, "--notes", str(notes)], timeout=OPENING_S) as tools:
        yield tools


@pytest.fixture(params=["over_stdio", "over_http"])
def tools(request):
    return request.getfixturevalue(request.param)


# ------------------------------------------------------------------------------------------------ the list


async def test_the_tools_of_all_pages_are_listed_under_names_that_models_take(tools):
    shown = [one.name for one in tools]

    assert shown[:11] == [*NAMES[:10], "files_read"]
    assert shown[11:] == ["tool_22cf3c76", "send", "search", "put"]
    assert all(isinstance(one, Tool) for one in tools)


async def test_the_model_is_shown_what_the_server_says_of_a_tool(tools):
    add, echo, *_ = tools

    assert add.description == "Adds two numbers."
    assert dict(echo.parameters) == {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    assert (add.timeout_s, add.max_result_chars, add.return_direct) == (OPENING_S, None, False)


async def test_a_tool_that_says_it_writes_has_a_side_effect_unless_it_may_be_repeated(tools):
    assert [one.name for one in tools if one.side_effect] == ["send"]


async def test_only_allowed_tools_are_offered_and_in_the_order_of_the_list(at_url):
    async with mcp_tools(at_url, allowed=["files.read", "add", "files.read"]) as tools:
        model = ScriptedChatModel(says("done"))
        await SimpleReactAgent(model=model, tools=tools).arun("question")

    assert [one.name for one in model.seen[0].tools] == ["files_read", "add"]


async def test_a_tool_that_is_not_allowed_is_never_asked_for_at_the_server(at_url, heard):
    async with mcp_tools(at_url, allowed=["add"]) as tools:
        refused = await use(tools, "echo", text="hello")
        allowed = await use(tools, "add", a=1, b=2)

    assert refused == ToolMessage(
        "There is no tool 'echo'. Offered: add.", call_id="call_echo", name="echo", is_error=True
    )
    assert allowed.text == '{"sum": 3}'
    assert heard() == ["began add", "ended add"]


async def test_an_allowed_tool_that_the_server_lacks_is_an_error_that_names_near_ones(at_url):
    for open_ in (lambda tools: tools.__aenter__(), lambda tools: asyncio.to_thread(list, tools)):
        with pytest.raises(ConfigurationError) as caught:
            await open_(mcp_tools(at_url, allowed=["ecko", "add", "xyz"]))

        assert str(caught.value) == (
            f"MCP server {at_url.removesuffix('/mcp')} has no tool 'ecko' and no 'xyz'; did you mean 'echo'? "
            f"It has: {', '.join(NAMES)}."
        )


async def test_two_servers_may_have_tools_of_one_name(at_url, over_stdio):
    other = mcp_tools(at_url, allowed=["echo", "files.read"], prefix="other.")
    with pytest.raises(DuplicateToolError):
        SimpleReactAgent(model=ScriptedChatModel(), tools=[*over_stdio, *over_stdio])

    async with other:
        assert [one.name for one in other] == ["other_echo", "other_files_read"]
        assert await text_of([*over_stdio, *other], "other_echo", text="there") == "there"


async def test_a_sick_list_of_tools_is_taken_as_far_as_it_goes():
    async with mcp_tools(raw("healthy"), timeout=OPENING_S) as tools:
        (hello,) = tools
        answer = await text_of(tools, "hello")

    assert (hello.description, dict(hello.parameters)) == ("Says hello.", {"type": "object", "properties": {}})
    assert answer == "hello"


# ------------------------------------------------------------------------------------------------ calls


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("add", {"a": 2, "b": 3}, '{"sum": 5}'),
        ("echo", {"text": " 你好，\n世界 🌍 "}, " 你好，\n世界 🌍 "),
        ("found", {}, '2 found\n{"found":["杭州","北京"]}'),
        (
            "search",
            {"query": "天气"},
            '[{"url":"https://example.org/1","text":"第 1 页"},{"url":"https://example.org/2","text":"第 2 页"}]',
        ),
        (
            "parts",
            {},
            "first\n[image, image/png, 3 bytes, not shown]\nsecond\n[notes://b.bin, unknown type, 2 bytes, not shown]\n"
            "[more: notes://c.txt] The rest.",
        ),
        ("files_read", {"path": "a.txt"}, "a.txt"),
        ("tool_22cf3c76", {"city": "杭州"}, "杭州"),
    ],
)
async def test_what_a_tool_answers_is_text_for_the_model(tools, name, arguments, answer):
    assert await use(tools, name, **arguments) == ToolMessage(answer, call_id=f"call_{name}", name=name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("fails", "No such city. Give another."),
        (
            "refuses",
            "'refuses' failed at SERVER: The disk is full. Correct the call if that is the cause, else try another "
            "way.",
        ),
        (
            "wrong",
            "SERVER answered 'wrong' against its own rules (Invalid structured content returned by tool wrong: 'sum' "
            "is a required property). The call may have taken effect all the same; go on without the answer.",
        ),
    ],
)
async def test_what_goes_wrong_at_the_server_is_told_to_the_model(tools, name, words):
    message = await use(tools, name)

    label = repr(tools).removeprefix("<tools of ").removesuffix(">")
    assert (message.text, message.is_error) == (words.replace("SERVER", label), True)


async def test_arguments_that_do_not_fit_the_schema_do_not_reach_the_server(tools, heard):
    message = await use(tools, "add", a=1, b="two")

    assert message.is_error
    assert 'arguments.b: "two" breaks the rule type: "number"' in message.text
    assert heard() == []


async def test_a_long_answer_is_cut(at_url):
    async with mcp_tools(at_url, allowed=["echo"], max_result_chars=3) as tools:
        assert await text_of(tools, "echo", text="abcdef") == "abc\n[3 of 6 characters were left out]"


async def test_all_calls_of_one_reply_run_at_the_same_time(tools, heard):
    model = ScriptedChatModel(sum([calls("slow", seconds=1)] * 4, start=calls("echo", text="quick")), says("done"))
    result = await SimpleReactAgent(model=model, tools=tools).arun("question")

    assert [message.text for message in result.messages if isinstance(message, ToolMessage)] == ["quick", *"1111"]
    assert [note for note in heard() if note.endswith("slow")] == ["began slow"] * 4 + ["ended slow"] * 4


# ------------------------------------------------------------------------------------------------ roles


VERDICT = json.dumps({"verdict": "APPROVED", "confidence": 1, "issues": [], "suggestions": ""})
REVIEW = json.dumps({"issues": [], "overall_score": 90})
ISSUE = {"category": "tone", "snippet": "draft", "suggestion": "text", "severity": 5}
FAULTY = json.dumps({"issues": [ISSUE], "overall_score": 10})
EDITS = json.dumps({"edits": [{"snippet": "draft", "replacement": "text"}]})


def judging(agent):
    async def judge(draft):
        return (await agent.arun(draft.text)).text == "yes"

    return judge


@pytest.mark.parametrize(
    ("make", "replies"),
    [
        pytest.param(lambda role: DrafterCritic(role, ScriptedChatModel(VERDICT)), "a draft", id="drafter"),
        pytest.param(lambda role: DrafterCritic(ScriptedChatModel("a draft"), role), VERDICT, id="critic"),
        pytest.param(lambda role: CriticRefiner(role, ScriptedChatModel(REVIEW)), "a draft", id="generator"),
        pytest.param(lambda role: CriticRefiner(ScriptedChatModel("a draft"), role), REVIEW, id="reviewer"),
        pytest.param(
            lambda role: CriticRefiner(ScriptedChatModel("a draft"), ScriptedChatModel(FAULTY, REVIEW), role),
            EDITS,
            id="refiner",
        ),
        pytest.param(lambda role: Reflexion(role, lambda draft: True, lambda prompt: ""), "a draft", id="actor"),
        pytest.param(
            lambda role: Reflexion(ScriptedChatModel("a draft"), judging(role), lambda prompt: ""),
            "yes",
            id="evaluator",
        ),
        pytest.param(
            lambda role: Reflexion(
                ScriptedChatModel("a draft", "another"), lambda draft: draft.text == "another", role
            ),
            "Say something else.",
            id="reflector",
        ),
        pytest.param(lambda role: BestOfN(role, lambda draft: True, 1), "a draft", id="candidate"),
    ],
)
async def test_every_role_of_a_workflow_can_use_the_tools(over_stdio, make, replies):
    model = ScriptedChatModel(calls("echo", text="from the server"), says(replies))

    result = await make(SimpleReactAgent(model=model, tools=over_stdio)).arun("the task")

    assert model.seen[1].messages[-1] == ToolMessage("from the server", call_id="call_echo", name="echo")
    assert result.approved
    model.assert_finished()


async def test_a_tool_can_be_the_search_of_a_research(at_url):
    draft = json.dumps({"answer": "Maybe.", "reflection": "Look it up.", "search_queries": ["weather", "天气"]})
    final = {"answer": "Rain [1].", "reflection": "", "search_queries": [], "references": ["https://example.org/1"]}

    async with mcp_tools(at_url, allowed=["search"]) as (search,):
        result = await ResearchReflexion(ScriptedChatModel(draft, json.dumps(final)), search).arun("Rain?")

    assert result.researched
    assert [(source.url, source.text) for source in result.references] == [("https://example.org/1", "第 1 页")]
    assert len(result.sources) == 2


async def test_an_agent_from_a_definition_uses_the_allowed_tools_of_its_server(at_url, heard):
    catalog = Catalog(environment={})
    for kind, name, clauses, options in (
        ("connection", "c", {}, {"type": "openai", "endpoint": "http://127.0.0.1:1/v1"}),
        ("model", "m", {}, {"provider": "openai", "openai.connection": "c", "openai.model_version": "any"}),
        ("connection", "s", {}, {"type": "mcp_server", "endpoint": at_url}),
        ("tool", "t", {"connection": "s"}, {"type": "mcp", "allowed_tools": "echo, add"}),
        ("agent", "a", {"model": "m", "prompt": "Be brief.", "tools": ("t",)}, {}),
    ):
        catalog.create(Definition(kind=kind, name=name, clauses=clauses, options=options))
    model = ScriptedChatModel(calls("echo", text="from the server"), says("done"))

    runner = AgentRunner(catalog.agent("a"), workshop=Workshop(make_model=lambda *_: model))
    outcome = await runner.run("question")
    runner.close()

    assert outcome.response == "done"
    assert [one.name for one in model.seen[0].tools] == ["echo", "add"]
    assert model.seen[1].messages[-1].text == "from the server"
    assert heard() == ["began echo", "ended echo"]


# ------------------------------------------------------------------------------------------------ one session for all


async def test_agents_on_any_loop_and_in_any_thread_share_one_session(over_stdio):
    agent_of = lambda: SimpleReactAgent(  # noqa: E731
        model=ScriptedChatModel(calls("process"), says("done")), tools=over_stdio
    )

    here = await agent_of().arun("question")
    plain = await asyncio.to_thread(agent_of().run, "question")
    own = await asyncio.to_thread(lambda: asyncio.run(agent_of().arun("question")))

    processes = {result.messages[-2].text for result in (here, plain, own)}
    assert len(processes) == 1
    assert runs(int(processes.pop()))


async def test_many_who_come_first_open_one_session(tmp_path):
    notes = tmp_path / "notes"
    tools = mcp_tools([*SERVER, "--notes", str(notes)], timeout=OPENING_S)

    with ThreadPoolExecutor(4) as pool:
        lists = list(pool.map(lambda _: list(tools), range(4)))
    tools.close()

    assert [len(one) for one in lists] == [len(NAMES)] * 4
    assert read(notes) == ["started"]


async def test_opening_does_not_hold_up_the_event_loop():
    ticks = []

    async def tick():
        while True:
            await asyncio.sleep(0.01)
            ticks.append(1)

    ticking = asyncio.create_task(tick())
    async with mcp_tools(raw("healthy"), timeout=OPENING_S):
        ticking.cancel()

    assert ticks


async def test_closing_ends_the_process_and_a_later_call_starts_another():
    tools = mcp_tools(SERVER, timeout=OPENING_S)
    with tools:
        first = int(await text_of(tools, "process"))
    ended = not runs(first)

    async with tools:
        second = int(await text_of(tools, "process"))
    tools.close()  # a second time does nothing

    assert ended
    assert second != first
    assert not runs(second)


async def test_tools_that_nobody_has_any_more_end_their_process():
    tools = mcp_tools(SERVER, timeout=OPENING_S)
    process = int(await text_of(tools, "process"))

    del tools
    gc.collect()

    assert eventually(lambda: gc.collect() is not None and not runs(process))


def test_a_program_that_ends_without_closing_ends_the_process_quietly():
    program = (
        "import sys\nfrom reactflow.mcp_tools import mcp_tools\n"
        f"tools = list(mcp_tools({SERVER!r}, allowed=['process'], timeout={OPENING_S}))\n"
        "import asyncio\nprint(asyncio.run(tools[0]({})))"
    )

    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=BARE, timeout=120)

    assert (done.returncode, done.stderr) == (0, "")
    eventually(lambda: not runs(int(done.stdout)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_starts_a_server_of_its_own(over_stdio):
    (process,) = [one for one in over_stdio if one.name == "process"]
    parents = asyncio.run(process({}))

    child = os.fork()
    if not child:  # pragma: no cover - another process
        signal.alarm(60)
        childs = asyncio.run(process({}))
        over_stdio.close()
        os._exit(0 if childs != parents else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert asyncio.run(process({})) == parents


# ------------------------------------------------------------------------------------------------ waiting


async def test_a_call_that_takes_too_long_is_given_up_and_cancelled_at_the_server(at_url, heard):
    async with mcp_tools(at_url, timeout=4) as tools:
        message = await use(tools, "slow", seconds=60)
        await asyncio.to_thread(eventually, lambda: "cancelled slow" in heard())

    assert (message.text, message.is_error) == (
        "'slow' did not finish within 4 s and was given up. Ask for less, or do without it.",
        True,
    )


async def test_a_cancel_goes_on_to_the_server_and_leaves_the_session_as_it_is(tools, heard):
    before = await text_of(tools, "process")
    run = asyncio.create_task(use(tools, "slow", seconds=60))
    await asyncio.to_thread(eventually, lambda: "began slow" in heard())
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await asyncio.to_thread(eventually, lambda: "cancelled slow" in heard())

    assert await text_of(tools, "process") == before


# ------------------------------------------------------------------------------------------------ servers that die


async def test_a_process_that_dies_in_mid_call_is_an_error_for_all_its_calls_and_is_started_again(tmp_path):
    notes = tmp_path / "notes"

    async with mcp_tools([*SERVER, "--notes", str(notes)], timeout=OPENING_S) as tools:
        first = await text_of(tools, "process")
        waiting = asyncio.create_task(use(tools, "slow", seconds=60))
        await asyncio.to_thread(eventually, lambda: "began slow" in read(notes))
        with capture_logs() as logs:
            message = await use(tools, "crashes")
            waited = await waiting
            second = await text_of(tools, "process")
            lost = eventually(lambda: [log for log in logs if log["event"] == "mcp.session_lost"])

    label = f"MCP server {os.path.basename(sys.executable)!r}"
    assert message.is_error
    assert message.text == (
        f"{label} broke off 'crashes' (Connection closed). It may have taken effect all the same: check before you "
        "repeat it."
    )
    assert (waited.is_error, waited.text) == (True, message.text.replace("crashes", "slow"))
    assert second != first
    assert lost == [{"event": "mcp.session_lost", "server": label, "log_level": "warning"}]


async def test_a_process_that_died_between_two_calls_is_started_again_and_the_model_sees_nothing_of_it():
    async with mcp_tools(SERVER, timeout=OPENING_S) as tools:
        first = int(await text_of(tools, "process"))
        os.kill(first, signal.SIGKILL)
        eventually(lambda: not runs(first))

        assert int(await text_of(tools, "process")) != first


@pytest.mark.parametrize("old", [(), ("--old",)])
async def test_a_server_at_a_url_that_dies_in_mid_call_is_an_error_until_it_is_back(old):
    with serving(*old) as url:
        tools = mcp_tools(url, timeout=OPENING_S)
        first = await text_of(tools, "process")
        message = await use(tools, "crashes")
    gone = await use(tools, "process")
    still = await use(tools, "process")
    with serving("--port", port_of(url), *old):
        second = await text_of(tools, "process")
        await tools.aclose()

    assert message.is_error
    assert message.text.startswith(f"MCP server {url.removesuffix('/mcp')} broke off 'crashes' (")
    assert gone.is_error
    assert (still.text, still.is_error) == (
        f"'process' was not run. MCP server {url.removesuffix('/mcp')} cannot be used: All connection attempts failed. "
        "Try again later, or do without it.",
        True,
    )
    assert first != second


@pytest.mark.parametrize("old", [(), ("--old",)])
async def test_a_server_at_a_url_that_has_restarted_is_used_on_and_the_model_sees_nothing_of_it(old):
    with serving(*old) as url:
        tools = mcp_tools(url, timeout=OPENING_S)
        first = await text_of(tools, "process")
    with serving("--port", port_of(url), *old):
        several = await asyncio.gather(*(text_of(tools, "process") for _ in range(3)))
        await tools.aclose()

    assert len({first, *several}) == 2


# ------------------------------------------------------------------------------------------------ what cannot be opened


def opening(*given, **settings):
    with mcp_tools(*given, **settings) as tools:
        return list(tools)


def test_a_command_that_does_not_exist_is_an_error_of_the_configuration():
    with pytest.raises(ConfigurationError, match=r"^MCP server 'no-such-server' cannot be started: .*No such file"):
        opening("no-such-server --token s3cret")


def test_a_process_that_ends_at_once_is_an_error_of_the_server():
    with pytest.raises(ProviderError, match=r"cannot be used: Connection closed\. It has ended; run the") as caught:
        opening(raw("exits"), timeout=OPENING_S)

    assert (caught.value.status, caught.value.retryable) == (None, True)


def test_a_server_that_does_not_answer_is_given_up():
    with pytest.raises(ProviderError, match=r"did not answer within 0.5 s\.$") as caught:
        opening(raw("silent"), timeout=0.5)

    assert caught.value.retryable


def test_a_list_of_tools_without_an_end_is_an_error():
    with pytest.raises(ProviderError, match="lists its tools on more than 100 pages without an end"):
        opening(raw("endless"), timeout=OPENING_S)


def test_a_list_of_tools_that_breaks_the_protocol_is_an_error():
    with pytest.raises(ProviderError, match=r"cannot be used: 2 validation errors .* tools.0.inputSchema.type Field"):
        opening(raw("untyped"), timeout=OPENING_S)


def test_an_illegal_schema_is_an_error_that_names_the_tool_and_the_way_out():
    with pytest.raises(ConfigurationError, match=r"Tool 'hello': invalid schema .* Leave it out by allowed=\[...\]\.$"):
        opening(raw("illegal"), timeout=OPENING_S)


def test_a_server_that_prints_other_things_works_all_the_same():
    assert [one.name for one in opening(raw("chats"), timeout=OPENING_S)] == ["hello"]


def test_a_url_where_nobody_answers_is_an_error_of_the_server():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    with pytest.raises(ProviderError) as caught:
        opening(f"http://user:s3cret@127.0.0.1:{port}/secret/mcp?key=s3cret")

    assert str(caught.value) == f"MCP server http://127.0.0.1:{port} cannot be used: All connection attempts failed."
    assert caught.value.retryable


async def test_a_server_that_wants_a_key_gets_it_by_the_headers():
    with serving("--key", "k-12345678") as url:
        with pytest.raises(ProviderError) as caught:
            await asyncio.to_thread(opening, url)
        async with mcp_tools(url, headers={"Authorization": "Bearer k-12345678"}) as tools:
            answer = await text_of(tools, "echo", text="let in")

    assert (caught.value.status, caught.value.retryable) == (401, False)
    assert str(caught.value).endswith(
        "HTTP 401, Server returned an error response. Give a valid key with headers={'Authorization': 'Bearer ...'}."
    )
    assert answer == "let in"


async def test_closing_ends_an_opening_that_is_under_way(tmp_path):
    begun = tmp_path / "begun"
    tools = mcp_tools([*raw("silent"), str(begun)], timeout=None)
    listing = asyncio.create_task(asyncio.to_thread(list, tools))
    await asyncio.to_thread(eventually, begun.exists)
    await tools.aclose()

    with pytest.raises(ProviderError, match="was closed before it was open"):
        await listing


async def test_a_call_that_comes_while_the_session_is_being_closed_opens_no_other():
    line = Line(read_endpoint(raw("healthy"), timeout=None, headers=None, env=None, cwd=None), None)
    await line.close()

    with pytest.raises(ToolError, match=r"^'hello' was not run\. The session with MCP server .* was closed"):
        await line.call("hello", {})


def test_an_interrupt_ends_an_opening_that_is_under_way():
    main, before = threading.main_thread().ident, set(threading.enumerate())

    def interrupted():
        threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
        list(mcp_tools(raw("silent"), timeout=None))

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    eventually(lambda: set(threading.enumerate()) <= before)


# ------------------------------------------------------------------------------------------------ what is given


@pytest.mark.parametrize(
    ("server", "settings", "match"),
    [
        (SERVER, {"timeout": 0}, "timeout=0: give a finite number of seconds above 0"),
        (SERVER, {"timeout": float("nan")}, "timeout=nan"),
        (SERVER, {"timeout": True}, "timeout=True"),
        (SERVER, {"timeout": "30"}, "timeout='30'"),
        (SERVER, {"allowed": "add"}, r"allowed='add': give a list of names, \[...\]"),
        (SERVER, {"allowed": 1}, "allowed=1: give a list"),
        (SERVER, {"allowed": []}, r"allowed=\[\]: name at least one tool"),
        (SERVER, {"allowed": [1]}, r"allowed=\[1\]: name at least one tool"),
        (SERVER, {"headers": {}}, "headers are for a server at a URL"),
        ("http://127.0.0.1/mcp", {"env": {}}, "env and cwd are for a server that is started by a command"),
        ("http://127.0.0.1/mcp", {"cwd": "."}, "env and cwd"),
        ("http://", {}, "names no host"),
        ("http://[::1/mcp", {}, "names no host"),
        ("", {}, "'' is no URL and no command; give one of them"),
        ("serve 'it", {}, "is no URL and no command: No closing quotation"),
        ([], {}, r"\[\] is no URL and no command"),
        ([b"serve"], {}, "is no URL and no command"),
        (42, {}, "42 is no URL and no command"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_opened(server, settings, match):
    with pytest.raises(ConfigurationError, match=match):
        mcp_tools(server, **settings)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)

    with pytest.raises(ConfigurationError, match=r"pip install reactflow\[mcp\]"):
        mcp_tools(SERVER)


async def test_a_command_may_be_one_text_with_an_environment_and_a_folder(tmp_path):
    command = f"{sys.executable} -c 'import os, runpy; exec(os.environ[\"CODE\"])' {tmp_path.name}"
    code = f"import sys, os; assert os.path.basename(os.getcwd()) == sys.argv[1]; sys.argv = ['', 'x']\n{RAW}"

    async with mcp_tools(command, env={"CODE": code}, cwd=tmp_path, timeout=OPENING_S) as tools:
        assert await text_of(tools, "hello") == "hello"


async def test_any_transport_of_the_package_will_do():
    start = mcp.StdioServerParameters(command=sys.executable, args=raw("healthy")[1:])

    async with mcp_tools(lambda: mcp.stdio_client(start), timeout=OPENING_S) as tools:
        assert await text_of(tools, "hello") == "hello"

    assert repr(tools) == "<tools of The MCP server>"


async def test_a_program_without_a_standard_error_of_its_own_can_start_a_server(monkeypatch):
    monkeypatch.setattr(sys, "__stderr__", io.StringIO())

    async with mcp_tools(raw("healthy"), timeout=OPENING_S) as tools:
        assert await text_of(tools, "hello") == "hello"


@pytest.mark.parametrize(
    ("server", "settings", "words"),
    [
        (
            "https://example.org/s/Zm9vYmFyYmF6/mcp?key=1234567890",
            {"headers": {"Authorization": "Bearer token-1234", "X-Short": "on"}},
            "Redirect to https://example.org/*** on ***; *** not followed",
        ),
        ("serve", {"env": {"TOKEN": "token-1234", "MODE": "on"}}, "Redirect to https://example.org/s/Zm9vYmFyYmF6/mcp"),
    ],
)
def test_what_a_server_says_is_shown_without_the_keys_that_it_was_given(server, settings, words):
    given = {"headers": None, "env": None, "cwd": None, "timeout": 1, **settings}
    said = "Redirect to https://example.org/s/Zm9vYmFyYmF6/mcp on Bearer token-1234; 1234567890 not followed"

    shown = read_endpoint(server, **given).words(RuntimeError(said))

    assert shown.startswith(words)
    assert "token-1234" not in shown
