"""A read-only dict and list: what contexts, extras and usage tables are made of."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A dict that refuses to change.

    Unlike ``types.MappingProxyType`` it can be pickled, deep-copied and written as JSON, which results that
    cross a process border need.  ``frozen | other`` gives a plain dict.
    """

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this mapping is read-only; build a new one with {**mapping, key: value}")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[FrozenDict[K, V]], tuple[dict[K, V]]]:
        return FrozenDict, (dict(self),)


class FrozenList(list[V]):
    """A list that refuses to change; equal to a list, and written as JSON like one."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this list is read-only; build a new one with [*items, item]")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[type[FrozenList[V]], tuple[list[V]]]:
        return FrozenList, (list(self),)


EMPTY: FrozenDict[str, Any] = FrozenDict()
