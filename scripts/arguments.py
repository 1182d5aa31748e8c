"""Command-line handling shared by the Python scripts."""

import argparse
import os
import sys


class Parser(argparse.ArgumentParser):
    """An argument parser whose help is the script's docstring and whose errors are one line."""

    def __init__(self, doc):
        super().__init__(
            prog="scripts/" + os.path.basename(sys.argv[0]),
            description=doc,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message):
        known = " ".join(name for name in self._option_string_actions if name.startswith("--"))
        self.exit(2, f"{self.prog}: {message}; options: {known}\n")
