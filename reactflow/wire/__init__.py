"""What goes over the wire to a server that speaks the OpenAI chat API, and what comes back.

Nothing here knows a client library: requests become bytes (``encode``), replies and streams become responses
(``reply``, ``stream``, ``calls``, ``text``), failures become errors (``failure``), and ``legality`` says what the
strictest servers would refuse.
"""
