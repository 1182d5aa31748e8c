"""The MCP bundle of one platform, which Claude Desktop and other hosts install with one click."""

import json

from containers import write_zip
from release import SOURCES, TOP, common, fill, this_platform, version


def manifest():
    platform = this_platform()
    values = {**common(), "program": platform.program, "npm_os": platform.npm[0]}
    text = fill((SOURCES / "mcpb/manifest.json").read_text(), values)
    return json.loads(text)


def build(binary, out):
    platform = this_platform()
    files = [
        ("manifest.json", json.dumps(manifest(), indent=2).encode() + b"\n", False),
        (f"server/{platform.program}", binary.read_bytes(), True),
    ]
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        files.append((name, (TOP / name).read_bytes(), False))
    path = out / f"{platform.folder}.mcpb"
    write_zip(path, files)
    return [path]
