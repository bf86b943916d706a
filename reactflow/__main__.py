"""``python -m reactflow``: the command line."""

from reactflow.cli import main

if __name__ == "__main__":
    main()
