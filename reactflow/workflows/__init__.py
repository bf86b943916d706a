"""Workflows that draft, judge and draft again, on one bounded loop.

Every one is an agent too: ``call``, ``run``, ``arun``, ``stream`` and ``astream``, a role in another workflow, or a
tool.
"""
