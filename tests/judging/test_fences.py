import pytest

from reactflow.judging.fences import Block, code_of, fenced_blocks, unfenced

ANSWER = """Here it is:

```python
def f():
    return 1
```

Run it:

~~~sh
python f.py
~~~
"""


def test_blocks_are_found_with_their_language():
    assert fenced_blocks(ANSWER) == (Block("python", "def f():\n    return 1\n"), Block("sh", "python f.py\n"))


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("no fence, `code` only", ()),
        ("```\nplain\n```", (Block("", "plain\n"),)),
        ("```JSON title=x\n{}\n```", (Block("json", "{}\n"),)),
        ("```{.python}\nx\n```", (Block("", "x\n"),)),
        ("- item\n\n    ```py\n    x = 1\n    ```\n", (Block("py", "x = 1\n"),)),
        ("```python\nnever closed\n", (Block("python", "never closed\n"),)),
        ("````md\n```py\nx\n```\n````", (Block("md", "```py\nx\n```\n"),)),
        ("```py\r\nx\r\n```\r\n", (Block("py", "x\n"),)),
        ("```py\n```", (Block("py", ""),)),
    ],
)
def test_odd_fences_are_read(text, blocks):
    assert fenced_blocks(text) == blocks


def test_the_code_of_one_language_is_joined():
    text = "```python\na = 1\n```\ntext\n```py\nb = 2\n```\n```js\nc\n```"

    assert code_of(text, "Python") == "a = 1\n\nb = 2\n"
    assert code_of(text, "javascript") == "c\n"


def test_without_a_label_unlabelled_blocks_count_and_without_blocks_all_of_the_text():
    assert code_of("See\n```\na = 1\n```", "python") == "a = 1\n"
    assert code_of("a = 1", "python") == "a = 1"
    assert code_of("```sql\nselect 1\n```", "python") == "```sql\nselect 1\n```"


@pytest.mark.parametrize(
    ("text", "inside"),
    [("```json {} ```", "{}"), ("```{}```", "{}"), (" ```json\n{}\n``` ", " ```json\n{}\n``` "), ("{}", "{}")],
)
def test_a_fence_on_one_line_is_taken_off(text, inside):
    assert unfenced(text) == inside
