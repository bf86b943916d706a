"""Many rows, one agent, one machine: files in, files out, and nothing paid twice."""
