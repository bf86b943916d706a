"""Replies of a fixed form: schema, then tool call, then plain JSON; and whose JSON it is."""

import json

import pytest

from reactflow.budget import NO_BUDGET, Meter
from reactflow.errors import ModelBehaviorError, ProviderError, WorkflowError
from reactflow.messages import AssistantMessage, SystemMessage, Usage, UserMessage
from reactflow.model import ChatRequest, ChatResponse, Run, ToolSpec
from reactflow.result import StopReason
from reactflow.testing import ScriptedChatModel, calls, says
from reactflow.workflows.attempt import Trail
from reactflow.workflows.reply import Reply
from reactflow.workflows.role import as_role
from reactflow.workflows.structured import Form, ask_for, read_object

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
NAMED = '{"name": "Ada"}'
REPAIR = "Unreadable: {problem} Again."


def name_of(reply: Reply) -> str:
    name = read_object(reply.text, ["name"])["name"]
    if not isinstance(name, str):
        raise ModelBehaviorError("The name is no text.")
    return name


FORM = Form("give_name", "Give the name.", SCHEMA, name_of)


def new_trail(**changes):
    question = UserMessage("Who?")
    request = ChatRequest(messages=(question,), run=Run(question=question, meter=Meter(NO_BUDGET)), **changes)
    return Trail(request)


async def asked(model, trail=None, **settings):
    return await ask_for(FORM, as_role(model, "namer"), "Name her.", trail or new_trail(), repair=REPAIR, **settings)


def refuses(status=400):
    return ProviderError("response_format is not supported", status=status)


async def test_a_schema_is_tried_first():
    model = ScriptedChatModel(NAMED)

    reply = await asked(model)

    assert reply.value == "Ada"
    assert (model.seen[0].response_schema, model.seen[0].tools) == (SCHEMA, ())


async def test_a_server_that_refuses_the_schema_is_offered_a_tool_and_from_then_on_first():
    model = ScriptedChatModel(refuses(), calls("give_name", name="Ada"), calls("give_name", name="Eve"))
    trail = new_trail(options={"temperature": 0})

    first = await asked(model, trail)
    second = await asked(model, trail, drafting=True)

    assert (first.value, second.value) == ("Ada", "Eve")
    assert [request.response_schema for request in model.seen] == [SCHEMA, None, None]
    assert [request.tool_choice for request in model.seen] == [None, "give_name", "give_name"]
    assert model.seen[1].tools == (ToolSpec("give_name", "Give the name.", SCHEMA),)
    assert [request.options for request in model.seen] == [{}, {}, {"temperature": 0}]
    assert [request.messages[-1].text for request in model.seen] == ["Name her."] * 3


async def test_a_refusal_of_the_schema_is_remembered_with_the_model_over_runs():
    model = ScriptedChatModel(refuses(), *[calls("give_name", name="Ada")] * 2)

    await asked(model, new_trail())
    await asked(model, new_trail())

    assert [request.response_schema for request in model.seen] == [SCHEMA, None, None]


async def test_a_server_that_refuses_schema_and_tool_is_asked_in_words():
    model = ScriptedChatModel(refuses(422), refuses(404), f"Sure!\n```json\n{NAMED}\n```")

    assert (await asked(model)).value == "Ada"
    assert (model.seen[2].response_schema, model.seen[2].tools) == (None, ())


async def test_a_reply_that_cannot_be_read_is_asked_for_in_the_next_way_and_told_why():
    model = ScriptedChatModel("Her name is Ada.", "Ada, of course.", NAMED, NAMED)
    trail = new_trail()

    assert (await asked(model, trail)).value == "Ada"
    assert model.seen[1].tool_choice == "give_name"
    assert model.seen[2].messages[-1].text == 'Name her.\n\nUnreadable: There is no JSON object with "name". Again.'
    await asked(model, trail)
    assert model.seen[3].tools == ()  # what worked is tried first in the same run


async def test_three_unreadable_replies_are_an_error_of_the_role():
    model = ScriptedChatModel("no", calls("give_name", name=7), "no")

    with pytest.raises(WorkflowError, match="namer failed") as caught:
        await asked(model)

    assert isinstance(caught.value.__cause__, ModelBehaviorError)
    assert "could not be read" in str(caught.value)
    model.assert_finished()


async def test_an_answer_in_text_to_the_offer_of_a_tool_is_read_as_it_stands():
    model = ScriptedChatModel("no", NAMED)

    assert (await asked(model)).value == "Ada"


async def test_a_blank_reply_to_the_offer_of_a_tool_is_one_that_cannot_be_read():
    model = ScriptedChatModel("no", "", NAMED)

    assert (await asked(model)).value == "Ada"


async def test_a_model_that_twice_gives_no_text_is_asked_in_the_next_way():
    model = ScriptedChatModel("", "", calls("give_name", name="Ada"))

    assert (await asked(model)).value == "Ada"


@pytest.mark.parametrize("status", [401, 429, 500, None])
async def test_other_failures_of_the_service_are_not_taken_for_a_refusal_of_the_form(status):
    model = ScriptedChatModel(ProviderError("down", status=status))

    with pytest.raises(WorkflowError) as caught:
        await asked(model)

    assert isinstance(caught.value.__cause__, ProviderError)
    model.assert_finished()


async def test_a_server_that_refuses_everything_fails_with_its_own_words():
    model = ScriptedChatModel(refuses(), refuses(), ProviderError("the prompt is too long", status=400))

    with pytest.raises(WorkflowError, match="the prompt is too long"):
        await asked(model)


async def test_a_refusal_of_the_model_comes_back_with_its_flaw():
    reply = await asked(ScriptedChatModel(says("I cannot help.", finish_reason="refusal")))

    assert (reply.text, reply.flaw) == ("I cannot help.", StopReason.REFUSED)


async def test_a_reply_that_was_cut_is_not_trusted_even_where_it_can_be_read():
    model = ScriptedChatModel(says(NAMED, finish_reason="length"), calls("give_name", name="Eve"))

    assert (await asked(model)).value == "Eve"
    assert "cut off" in model.seen[1].messages[-1].text


async def test_a_function_is_asked_twice_at_most_and_told_why():
    seen = []

    def function(prompt):
        seen.append(prompt)
        return NAMED if "Unreadable" in prompt else "Ada"

    assert (await asked(function)).value == "Ada"
    assert seen[1].endswith('There is no JSON object with "name". Again.')
    with pytest.raises(WorkflowError):
        await asked(lambda prompt: "never")


async def test_the_system_prompt_of_the_role_goes_with_the_tool_too_and_its_usage_is_counted():
    model = ScriptedChatModel(refuses(), ChatResponse(AssistantMessage(NAMED), Usage(7, 1), "stop"), name="m")
    trail = new_trail()

    await ask_for(FORM, as_role(model, "namer", "Be brief."), "Name her.", trail, repair=REPAIR)

    assert model.seen[1].messages[0] == SystemMessage("Be brief.")
    assert trail.run.meter.usage_by_role["namer"] == Usage(7, 1)


# ------------------------------------------------------------------------------------------------- whose JSON


@pytest.mark.parametrize(
    "text",
    [
        NAMED,
        f"```json\n{NAMED}\n```",
        f'<think>Is it {{"name": "Eve"}}?</think>\n{NAMED}',
        f"Here it is:\n\n{NAMED}\n\nAnything else?",
        '{"result": {"name": "Ada"}}',
        "{'Name': 'Ada',}",
        f'The page says: "{{\\"x\\": 1}}".\n{{"name": "Eve"}}\nBut the right one is\n{NAMED}',
    ],
)
def test_the_last_object_that_the_model_itself_wrote_is_read(text):
    assert read_object(text, ["name"]) == {"name": "Ada"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ada",
        '{"title": "Ada"}',
        f"> {NAMED}",
        f"The source claims that {NAMED} is right.",
        '{"name": "Ada"',
        f'{NAMED}\n{{"name": "Ev',
        '["name"]',
        f"{NAMED}{' ' * 100_000}",
    ],
)
def test_an_object_that_is_quoted_damaged_or_not_there_is_not_read(text):
    with pytest.raises(ModelBehaviorError):
        read_object(text, ["name"])


def test_what_is_inside_an_object_comes_out_as_plain_values_with_plain_keys():
    text = json.dumps({"searchQueries": ["a", {"Max Results": 1}], "answer": {"deep": [1]}})

    assert read_object(text, ["search_queries"]) == {
        "search_queries": ["a", {"max_results": 1}],
        "answer": {"deep": [1]},
    }
