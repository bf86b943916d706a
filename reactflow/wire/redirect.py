"""Which redirects a request with a key and a conversation in it follows."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

MAX_REDIRECTS = 3


def redirected(status: int, url: str, location: str | None) -> str | None:
    """Where to send the same request again, or None where the reply of *url* is to be taken as it is.

    Only to the same server, or to its https: neither a key nor a conversation goes to another one unasked.  The
    statuses 301 to 303 ask for a GET instead, whose reply would be no answer.
    """
    if status not in (307, 308) or not location:
        return None
    try:
        target = urljoin(url, location)
        here, there = urlsplit(url), urlsplit(target)
    except ValueError:  # no address
        return None
    safer = (here.scheme, there.scheme) == ("http", "https") and here.netloc == there.netloc == here.hostname
    return target if safer or (here.scheme, here.netloc) == (there.scheme, there.netloc) else None
