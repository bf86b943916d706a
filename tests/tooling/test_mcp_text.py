"""Names for a model of a server's tools, and text of what they answer."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import CallToolResult, TextContent

from reactflow.errors import ToolError
from reactflow.tooling.mcp_text import answer_text, legal_names

LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["search", "get-page_2"], ["search", "get-page_2"]),
        (["files.read", "a b/c"], ["files_read", "a_b_c"]),
        (["a.b", "a_b", "a/b"], ["a_b_2e7336dc", "a_b", "a_b_c14cddc0"]),
        (["x" * 64, "x" * 65], ["x" * 64, f"{'x' * 55}_9537c5fd"]),
        (["查询", "天气", "天气.now"], ["tool_bcd6771e", "tool_4d947325", "___now"]),
        (["."], ["tool_cdb4ee2a"]),
    ],
)
def test_a_legal_name_stays_and_another_becomes_one_that_models_take(names, shown):
    assert list(legal_names(names).values()) == shown


def test_a_prefix_is_a_part_of_every_name():
    assert legal_names(["search", "天气", "y" * 60], "web.") == {
        "search": "web_search",
        "天气": "web_tool_4d947325",
        "y" * 60: "web_" + "y" * 60,
    }


@given(st.lists(st.text(max_size=130), unique=True, max_size=8), st.text(max_size=70))
def test_all_names_are_legal_and_none_is_there_twice(names, prefix):
    shown = legal_names(names, prefix)

    assert list(shown) == names
    assert all(LEGAL.fullmatch(each) for each in shown.values())
    assert len(set(shown.values())) == len(names)


def answered(*texts, **more):
    return answer_text(CallToolResult(content=[TextContent(text=each) for each in texts], **more))


@pytest.mark.parametrize(
    ("texts", "data", "shown"),
    [
        ([], None, ""),
        ([""], None, ""),
        (["a", "b"], None, "a\nb"),
        (['{"a": 1}'], {"a": 1}, '{"a": 1}'),
        (["5"], {"result": 5}, "5"),
        (["5"], {"result": "5"}, "5"),
        (["true"], {"result": True}, "true"),
        (["[1, 2]"], {"result": [1, 2]}, "[1, 2]"),
        (['{"result": 5}'], {"result": 5}, '{"result": 5}'),
        (["a", "b"], {"result": ["a", "b"]}, '["a","b"]'),
        (["a"], {"result": ["a"]}, '["a"]'),
        (["1", '{"x": "天气"}'], [1, {"x": "天气"}], '[1,{"x":"天气"}]'),
        ([], {"result": []}, "[]"),
        ([], {"result": None}, '{"result":null}'),
        ([], {"a": "天气"}, '{"a":"天气"}'),
        (["2 found"], {"found": [1, 2]}, '2 found\n{"found":[1,2]}'),
        (["[" * 100_000], {"a": 1}, "[" * 100_000 + '\n{"a":1}'),
    ],
)
def test_data_is_shown_where_the_text_does_not_say_it(texts, data, shown):
    assert answered(*texts, structured_content=data) == shown


def test_an_answer_that_says_it_failed_is_an_error_with_its_text():
    with pytest.raises(ToolError, match=r"^no such city\n\{\"code\":7\}$"):
        answered("no such city", structured_content={"code": 7}, is_error=True)
