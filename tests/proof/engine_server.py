"""``engine_server.py DELAY_S``: a chat server that drafts, reviews and counts; prints its address, then serves.

Each question is ``row N``.  A draft is ``draft of row N``; the review approves every draft but those of rows that say
``bad``.  A line on standard input is answered with the calls so far as JSON: a list of [kind, text, seconds].
"""

import json
import re
import sys
import threading
import time

from reactflow.loopback import LoopbackServer, reply_error, reply_text

calls: list[tuple[str, str, float]] = []
lock = threading.Lock()


def respond(request):
    text = request.body["messages"][-1]["content"]
    row = re.search(r"row \d+(?: \w+)*", text)
    row = row[0] if row else text
    words = row.split()  # not any part of the text: a prompt has a mark of random hex digits, and "bad" may be in it
    kind = "critique" if "APPROVED" in text else "draft"
    with lock:
        calls.append((kind, row, time.time()))
    if "poison" in words:
        return reply_error(400, "no such thing")
    if kind == "draft":
        return reply_text(f"draft of {row}")
    good = "bad" not in words
    verdict = {"verdict": "APPROVED" if good else "REQUIRED_CHANGES", "confidence": 0.9, "issues": []}
    return reply_text(json.dumps(verdict | {"suggestions": "" if good else "Do it again."}))


if __name__ == "__main__":
    with LoopbackServer(respond=respond, delay=float(sys.argv[1])) as server:
        print(server.base_url, flush=True)
        for _ in sys.stdin:
            with lock:
                print(json.dumps(calls), flush=True)
