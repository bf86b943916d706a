"""The parts of a tool: schema, arguments, call, result.  What users need is in :mod:`reactflow.toolbox`."""
