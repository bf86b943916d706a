"""The same agents on engines that span machines: what goes to the workers, and a thin layer for each engine.

Each engine has an extra and an environment of its own, because what they pin clashes.
"""
