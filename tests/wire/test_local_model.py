"""A GGUF file in this process: a tiny model that says "a", whatever it is asked."""

import asyncio
import os
import pickle
import struct

import pytest

from reactflow import LocalChatModel, SimpleReactAgent
from reactflow.demos._common import choose_model
from reactflow.errors import ConfigurationError, ProviderError

pytest.importorskip("xllamacpp")

WIDTH = 32
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "a"]
NUMBER, REAL, TEXT, LIST = 4, 6, 8, 9  # the types of GGUF's metadata


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(name, kind, value):
    pack = {NUMBER: "<I", REAL: "<f"}
    return text(name) + struct.pack("<I", kind) + (text(value) if kind == TEXT else struct.pack(pack[kind], value))


def entries(name, kind, values):
    pack = {NUMBER: "<i", REAL: "<f"}
    packed = b"".join(text(value) if kind == TEXT else struct.pack(pack[kind], value) for value in values)
    of = 5 if kind == NUMBER else kind  # a list of token types has signed numbers
    return text(name) + struct.pack("<IIQ", LIST, of, len(values)) + packed


def matrix(rows, value, at=None):
    """*rows* rows of one number; where *at* is given, all other rows are zero."""
    return [value if at in (None, row) else 0.0 for row in range(rows) for _ in range(WIDTH)]


def tiny_gguf():
    """A llama of one layer that adds nothing, in GGUF version 3: the last matrix alone decides, for "a"."""
    numbers = {
        "context_length": 2048,
        "embedding_length": WIDTH,
        "block_count": 1,
        "feed_forward_length": WIDTH,
        "attention.head_count": 2,
        "attention.head_count_kv": 2,
        "rope.dimension_count": WIDTH // 2,
    }
    kinds = [2, 3, 3, *[6] * 256, 1]  # unknown, control, byte, normal
    metadata = [
        entry("general.architecture", TEXT, "llama"),
        *(entry(f"llama.{name}", NUMBER, value) for name, value in numbers.items()),
        entry("llama.attention.layer_norm_rms_epsilon", REAL, 1e-5),
        entry("tokenizer.ggml.model", TEXT, "llama"),
        entries("tokenizer.ggml.tokens", TEXT, TOKENS),
        entries("tokenizer.ggml.scores", REAL, [0.0] * len(TOKENS)),
        entries("tokenizer.ggml.token_type", NUMBER, kinds),
        entry("tokenizer.ggml.bos_token_id", NUMBER, 1),
        entry("tokenizer.ggml.eos_token_id", NUMBER, 2),
    ]
    square = matrix(WIDTH, 0.0)
    layer = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"), square)
    tensors = {
        "token_embd": matrix(len(TOKENS), 1.0),
        "output_norm": [1.0] * WIDTH,
        "output": matrix(len(TOKENS), 1.0, at=TOKENS.index("a")),
        **{f"blk.0.{name}": [1.0] * WIDTH for name in ("attn_norm", "ffn_norm")},
        **{f"blk.0.{name}": values for name, values in layer.items()},
    }
    described, offset = [], 0
    for name, values in tensors.items():
        shape = [WIDTH] if len(values) == WIDTH else [WIDTH, len(values) // WIDTH]
        sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        described.append(text(f"{name}.weight") + sizes + struct.pack("<IQ", 0, offset))
        offset += 4 * len(values)  # a multiple of 32, as WIDTH is
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + b"".join([*metadata, *described])
    data = b"".join(struct.pack(f"<{len(values)}f", *values) for values in tensors.values())
    return head + bytes(-len(head) % 32) + data


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    path.write_bytes(tiny_gguf())
    return path


@pytest.fixture
def model(file):
    model = LocalChatModel(file, context_tokens=1024, max_tokens=5, temperature=0)
    yield model
    model.close()


async def ask(model, question="What?"):
    return await SimpleReactAgent(model=model, react_prompt=None).arun(question)


async def test_a_file_answers_in_this_process(model):
    result = await ask(model)

    assert (result.text, result.stop_reason, result.usage.output_tokens) == ("aaaaa", "truncated", 5)
    assert model.name == "tiny"


async def test_questions_at_the_same_time_load_the_file_once(model):
    results = await asyncio.gather(*(ask(model) for _ in range(4)))

    assert [result.text for result in results] == ["aaaaa"] * 4


def test_a_closed_or_pickled_model_loads_the_file_again(model, file):
    assert asyncio.run(ask(model)).text == "aaaaa"
    model.close()
    assert asyncio.run(ask(model)).text == "aaaaa"
    copy = pickle.loads(pickle.dumps(model))
    assert asyncio.run(ask(copy)).text == "aaaaa"
    copy.close()
    assert repr(copy) == f"LocalChatModel({str(file)!r})"


async def test_a_conversation_longer_than_the_context_says_so(model):
    with pytest.raises(ProviderError, match="The conversation is too long for model 'tiny'"):
        await ask(model, "b" * 3000)


def test_only_this_process_has_the_key_to_the_port(model, file):
    asyncio.run(ask(model))
    _, client = model._served

    assert client._api_key not in (None, "", "none")
    assert client._api_key not in repr(client) + repr(model)


async def test_the_demos_use_the_file_that_the_environment_names(file, monkeypatch, capsys):
    monkeypatch.setenv("REACTFLOW_GGUF", str(file))

    model = choose_model()

    assert (repr(model), capsys.readouterr().out) == (
        f"LocalChatModel({str(file)!r})",
        "Model: tiny, in this process\n",
    )


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"threads": 0}, "threads=0"),
        ({"context_tokens": True}, "context_tokens=True"),
        ({"parallel": 1.5}, "parallel=1.5"),
        ({"tool_mode": "magic"}, "tool_mode='magic'"),
        ({"temperature": {1}}, "cannot be written as JSON"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_anything_is_loaded(file, settings, says):
    with pytest.raises(ConfigurationError, match=says):
        LocalChatModel(file, **settings)


async def test_a_file_that_is_missing_or_no_model_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="there is no such file"):
        LocalChatModel(tmp_path / "none.gguf")
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ConfigurationError, match="this is no GGUF file"):
        LocalChatModel(os.fspath(tmp_path / "text.gguf"))
    (tmp_path / "cut.gguf").write_bytes(tiny_gguf()[:5000])
    with pytest.raises(ConfigurationError, match=r"llama\.cpp cannot load"):
        await ask(LocalChatModel(tmp_path / "cut.gguf"))
