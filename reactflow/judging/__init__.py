"""The parts of judging: reading verdicts, evidence, evaluators.  What users need is in :mod:`reactflow.judge`."""
