"""The words of a text in English and Chinese, for matching one text with another."""

from __future__ import annotations

import re
import unicodedata

_FILLER = """
a about also an and any are as at be by can could did do does fetch for from get give had has have help here how i if
in into is it its know let like look lookup many me more most much must my need next no not of off on one or our out
over please query really say see seven should show situation so some tell than thank thanks that the their them then
there these they this those to today tomorrow too two up us use using very want was we week were what when where
whether which who whom whose why will with would yesterday you your
的 了 和 与 跟 及 以及 或 还是 并 请 请你 请问 帮我 告诉我 我 我们 你 您 他 她 是 在 有 没有 有没有 吗 呢 吧 哪个 哪里
哪些 什么 怎么 怎么样 怎样 如何 多少 多少钱 为什么 谁 这 那 给 把 根据 关于 情况 一份 一个 一下 能 会 可以 需要 想 要
知道 看 看看 查 查看 查询 用 比 比较 更 最 介绍 说明 很 也 还 从 到 等于 七天 一周 今天 明天 后天 昨天 谢谢 你好 适合
写 生成 综合 分析 报告
"""


def words(text: str) -> list[str]:
    """The words of *text* for matching: lower case, no accents, no plural s; Chinese in pairs of characters."""
    folded = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(character for character in folded if not unicodedata.combining(character))
    found: list[str] = []
    for run in re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]+", plain):
        if run[0] < "\u4e00":
            found.append(run[:-1] if len(run) > 3 and run.endswith("s") and not run.endswith("ss") else run)
        else:
            found.extend(run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return found


FILLER = frozenset((*_FILLER.split(), *words(_FILLER)))
"""Words that do not say what a text is about, as they are written and as :func:`words` gives them."""
