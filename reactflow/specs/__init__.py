"""Agents as plain data: what SQL, TOML, YAML or Python define, checked when they are defined.

A spec says everything about an agent but its secrets, so it can be hashed, pickled and sent to another machine.
"""
