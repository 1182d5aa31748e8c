"""Builds one package from a binary of `tine`: `python3 scripts/packaging PART OUT [BINARY]`."""

import importlib
import pathlib
import sys

PARTS = ("archive", "wheel", "npm", "mcpb", "manifests")

part, out, *binary = sys.argv[1:]
assert part in PARTS, part
out = pathlib.Path(out).resolve()
out.mkdir(parents=True, exist_ok=True)
for path in importlib.import_module(part).build(pathlib.Path(binary[0]).resolve() if binary else None, out):
    print(path)
