"""Tools of an MCP server in a script, over a real server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp")
pytest.importorskip("reactflow.mcp_tools")

from mcp.client.stdio import get_default_environment

from reactflow.messages import AssistantMessage, ToolCall, ToolMessage
from reactflow.model import ChatResponse

SERVER = Path(__file__).parents[1] / "mcp_server.py"
KEY = "a-bearer-token"


@pytest.fixture(scope="module")
def url():
    command = [sys.executable, str(SERVER), "--http", "--key", KEY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=get_default_environment()) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def script(url, allowed):
    return f"""
        CREATE CONNECTION server WITH ('type' = 'mcp_server', 'endpoint' = '{url}', 'api-key' = '{KEY}');
        CREATE TOOL sums USING CONNECTION server
        WITH ('type' = 'mcp', 'allowed_tools' = '{allowed}', 'request_timeout' = '60');
        ALTER AGENT extractor ADD TOOL sums;
        SELECT response FROM claims c, LATERAL TABLE(AI_RUN_AGENT('extractor', c.description)) WHERE id = 1;"""


def test_an_agent_calls_the_tools_that_are_allowed_and_sees_no_others(session, rows, model, url):
    async def answer(request):
        model.seen.append(request)
        last = request.messages[-1]
        if isinstance(last, ToolMessage):
            return ChatResponse(AssistantMessage(last.text))
        return ChatResponse(AssistantMessage("", (ToolCall("1", "add", '{"a": 2, "b": 3}'),)))

    model.complete = answer

    ((response,),) = rows(session(), script(url, "add"))

    assert json.loads(response) == {"sum": 5}
    assert [tool.name for tool in model.seen[0].tools] == ["add"]


def test_a_tool_that_the_server_lacks_is_told_before_a_row_is_asked(session, rows, model, url):
    with pytest.raises(Exception, match="has no tool") as caught:
        rows(session(), script(url, "ad"))

    assert KEY not in str(caught.value)
    assert model.seen == []
