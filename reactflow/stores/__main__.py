"""``python -m reactflow.stores``: the same as ``reactflow memory``."""

import sys

from reactflow.stores.commands import main

if __name__ == "__main__":
    sys.exit(main())
