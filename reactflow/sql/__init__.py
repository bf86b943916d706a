"""The SQL of reflection agents, on an engine that runs inside this process."""
