"""An MCP server to test against, over standard input and output or, with ``--http``, at a URL that it prints.

    python tests/mcp_server.py [--notes FILE] [--http] [--port N] [--old] [--key KEY]

``--notes`` writes a line for the start, and for each call that begins, ends or is cancelled; ``--old`` knows sessions,
as servers did before the protocol went without them; ``--key`` wants it as a bearer token.
"""

import argparse
import asyncio
import contextlib
import json
import os
import socket
import sys
from pathlib import Path

import anyio
import uvicorn
from mcp import MCPError
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

PAGE = 4


def a_tool(name, description="", *, output_schema=None, annotations=None, **properties):
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return Tool(
        name=name,
        description=description or None,
        input_schema=schema,
        output_schema=output_schema,
        annotations=annotations,
    )


NUMBER, TEXT = {"type": "number"}, {"type": "string"}
SUM = {"type": "object", "properties": {"sum": NUMBER}, "required": ["sum"]}
WRITES = ToolAnnotations(read_only_hint=False)
AGAIN = ToolAnnotations(read_only_hint=False, idempotent_hint=True)

TOOLS = [
    a_tool("add", "Adds two numbers.", output_schema=SUM, a=NUMBER, b=NUMBER),
    a_tool("echo", "Says the same.", text=TEXT),
    a_tool("found", "Text, and data that it does not say."),
    a_tool("parts", "All kinds of content."),
    a_tool("fails", "Says that it failed."),
    a_tool("refuses", "An error of the protocol."),
    a_tool("wrong", "Breaks its own schema.", output_schema=SUM),
    a_tool("slow", "Takes its time.", seconds=NUMBER),
    a_tool("crashes", "Ends the process in the middle of the call."),
    a_tool("process", "The number of the process."),
    a_tool("files.read", "A name that models do not take.", path=TEXT),
    a_tool("查询天气", "城市的天气。", city=TEXT),
    a_tool("send", "Has an effect.", annotations=WRITES, text=TEXT),
    a_tool("search", "Finds pages.", query=TEXT),
    a_tool("put", "Has an effect once.", annotations=AGAIN, text=TEXT),
]


def text(*lines, **more):
    return CallToolResult(content=[TextContent(text=line) for line in lines], **more)


PARTS = [
    TextContent(text="first"),
    ImageContent(data="AAAA", mime_type="image/png"),
    EmbeddedResource(resource=TextResourceContents(uri="notes://a.txt", text="second")),
    EmbeddedResource(resource=BlobResourceContents(uri="notes://b.bin", blob="AAA=")),
    ResourceLink(name="more", uri="notes://c.txt", description="The rest."),
]


def answer(name, given):
    if name == "add":
        total = given["a"] + given["b"]
        return text(f'{{"sum": {total}}}', structured_content={"sum": total})
    if name == "found":
        return text("2 found", structured_content={"found": ["杭州", "北京"]})
    if name == "search":
        pages = [{"url": f"https://example.org/{number}", "text": f"第 {number} 页"} for number in (1, 2)]
        return text(*(json.dumps(page) for page in pages), structured_content={"result": pages})
    if name == "parts":
        return CallToolResult(content=PARTS)
    if name == "fails":
        return text("No such city. Give another.", is_error=True)
    if name == "refuses":
        raise MCPError(-32603, "The disk is full")
    if name == "wrong":
        return text("no sum", structured_content={"total": 1})
    if name == "process":
        return text(str(os.getpid()))
    if name == "crashes":
        os._exit(3)
    return text("，".join(str(value) for value in given.values()))


def make_server(note):
    async def list_tools(_, params):
        start = int(params.cursor) if params is not None and params.cursor else 0
        after = start + PAGE
        return ListToolsResult(tools=TOOLS[start:after], next_cursor=str(after) if after < len(TOOLS) else None)

    async def call_tool(_, params):
        given = params.arguments or {}
        note(f"began {params.name}")
        try:
            if params.name == "slow":
                await asyncio.sleep(given["seconds"])
            return answer(params.name, given)
        except asyncio.CancelledError:
            note(f"cancelled {params.name}")
            raise
        finally:
            note(f"ended {params.name}")

    return Server("tests", on_list_tools=list_tools, on_call_tool=call_tool)


def gate(app, *, old, key):
    """Refuse what an old server does not know, and whoever has no key."""

    async def gated(scope, receive, send):
        headers = dict(scope.get("headers", ()))
        version = headers.get(b"mcp-protocol-version", b"")
        if scope["type"] == "http" and key and headers.get(b"authorization") != f"Bearer {key}".encode():
            await refuse(send, 401)
        elif scope["type"] == "http" and old and version >= b"2026":
            await refuse(send, 400)
        else:
            await app(scope, receive, send)

    return gated


async def refuse(send, status):
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b"refused"})


async def over_stdio(server):
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def over_http(server, *, port, old, key):
    listening = socket.create_server(("127.0.0.1", port))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    app = gate(server.streamable_http_app(), old=old, key=key)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--notes", type=Path)
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--old", action="store_true")
    parser.add_argument("--key")
    given = parser.parse_args()

    def note(line):
        if given.notes is not None:
            with given.notes.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")

    note("started")
    server = make_server(note)
    if given.http:
        over_http(server, port=given.port, old=given.old, key=given.key)
    else:
        anyio.run(over_stdio, server)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
