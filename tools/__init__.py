"""Ready tools, one in each file.

``weather`` and ``search`` are mock tools: they answer from small bundled data, say so in each result, and need no
network.  ``from reactflow.tools import weather`` gives the tool.
"""

from reactflow.tools.search import search
from reactflow.tools.weather import weather

__all__ = ["search", "weather"]
