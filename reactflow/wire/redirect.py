"""Which redirects a request with a key and a conversation in it follows, and what to say of the others."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from reactflow.wire.address import ENDPOINT

MAX_REDIRECTS: Final = 3
"""How many redirects in a row one request follows, each on the server that it was meant for."""

SAME_REQUEST: Final = frozenset({307, 308})
"""The statuses that ask for the same request again; 301 to 303 get a GET, whose reply would be no answer."""

_PORTS: Final = {"http": 80, "https": 443}
_AS_THEY_ARE: Final = "%/:?@!$&'()*+,;=~[]"
_LONGEST_SHOWN: Final = 200


def redirected(status: int, url: str, location: str | None) -> str | None:
    """Where to send the same request again, or None where the reply of *url* is to be taken as it is.

    Only to the same server, however it is spelled, or from its http to its https: neither a key nor a conversation
    goes to another one unasked.  The result has the server, the user and the password as *url* has them; of *location*
    it takes the path and the query, and no character that a line of HTTP cannot carry.
    """
    there = _target(url, location) if status in SAME_REQUEST and location is not None else None
    if there is None:
        return None
    here = urlsplit(url)
    netloc = here.netloc if here.scheme == there.scheme else re.sub(r":\d*\Z", "", here.netloc)
    return there._replace(netloc=netloc).geturl() if _is_home(here, there) else None


def unfollowed(status: int, url: str, location: str, base_url: str) -> str:
    """Why the redirect of *url* was not followed, and what to do; of *location* only what holds no secret is named."""
    there = _target(url, location)
    if there is None:
        return "it redirects to an address that cannot be read. Check base_url."
    shown = there._replace(netloc=there.netloc.rpartition("@")[2], query="")
    named = f"{shown.geturl():.{_LONGEST_SHOWN}}"
    if not _is_home(urlsplit(url), there):
        why = f"it redirects to another server, {named}, and neither a key nor a conversation goes there unasked"
    elif status not in SAME_REQUEST:
        why = f"it redirects to {named} by status {status}, and only 307 and 308 ask for the same request again"
    else:
        why = f"it redirects more than {MAX_REDIRECTS} times in a row, at last to {named}"
    return f"{why}. {_advice(shown, urlsplit(base_url))}"


def _advice(shown: SplitResult, own: SplitResult) -> str:
    """What to pass as base_url, where *shown* is what a client would make of another one that is no less safe."""
    path = shown.path.rstrip("/")
    safe = shown.scheme in ("https", own.scheme) and shown.hostname
    if safe and path.endswith(ENDPOINT) and len(shown.geturl()) <= _LONGEST_SHOWN:
        while path.endswith(ENDPOINT):
            path = path.removesuffix(ENDPOINT).rstrip("/")
        if (_server(shown), path) != (_server(own), own.path):
            return f"If that is the right one, pass base_url={shown._replace(path=path).geturl()!r}."
    return "Check base_url."


def _target(url: str, location: str) -> SplitResult | None:
    """The address that *location* names, seen from *url*; None where it is none."""
    try:
        there = urlsplit(urljoin(url, location.strip()))
        _server(there)
        scheme, netloc, path, query, _ = (quote(part, safe=_AS_THEY_ARE) for part in there)
    except ValueError:
        return None
    return SplitResult(scheme, netloc, path, query, "")


def _is_home(here: SplitResult, there: SplitResult) -> bool:
    """Whether *there* is the server of *here*, or its https."""
    server, other = _server(here), _server(there)
    return other == server or (server, other) == (("http", here.hostname, 80), ("https", here.hostname, 443))


def _server(parts: SplitResult) -> tuple[str, str | None, int | None]:
    """Scheme, host and port.

    Raises:
        ValueError: The port is no number.
    """
    return parts.scheme, parts.hostname, _PORTS.get(parts.scheme) if parts.port is None else parts.port
