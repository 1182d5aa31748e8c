"""The npm packages: one for each platform that carries the binary, and one that depends on all of
them as optional packages, of which npm installs the one that fits."""

import json
import shutil
import subprocess
import tempfile
import pathlib

from release import PACKAGE, PLATFORMS, SOURCES, SUMMARY, TOP, common, fill, registry_name, repository, this_platform, version, workspace


def manifest(name, **fields):
    return {
        "name": name,
        "version": version(),
        "description": SUMMARY,
        "license": workspace()["license"],
        "repository": {"type": "git", "url": f"git+{repository()}.git"},
        **fields,
    }


def pack(fields, files, out):
    """Writes a package's files, (name, bytes, executable) each, and packs them with npm."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        licences = [(name, (TOP / name).read_bytes(), False) for name in ("LICENSE-APACHE", "LICENSE-MIT")]
        package = ("package.json", json.dumps(fields, indent=2).encode() + b"\n", False)
        for name, data, executable in [package, *licences, *files]:
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o755 if executable else 0o644)
        # On Windows, npm is a batch file, which only its full name starts.
        command = [shutil.which("npm") or "npm", "pack", "--json", "--loglevel=error", "--pack-destination", out]
        packed = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE).stdout
        listed = json.loads(packed)
        # An object by package name since npm 12, a list before.
        listed = list(listed.values()) if isinstance(listed, dict) else listed
        return out / listed[0]["filename"]


def build(binary, out):
    """Packs the package of this platform."""
    platform = this_platform()
    fields = manifest(
        platform.npm_package, os=[platform.npm[0]], cpu=[platform.npm[1]], preferUnplugged=True,
        files=[f"bin/{platform.program}", "LICENSE-*"])
    readme = f"# {platform.npm_package}\n\nThe binary of `{PACKAGE}` for {platform.name}. Install `{PACKAGE}` instead.\n"
    files = [(f"bin/{platform.program}", binary.read_bytes(), True), ("README.md", readme.encode(), False)]
    return [pack(fields, files, out), build_main(out)]


def build_main(out):
    """Packs the package that users install."""
    fields = manifest(
        PACKAGE, keywords=["conversations", "version-control", "llm", "agents", "mcp", "acp"],
        # The MCP registry looks for this name to check who publishes the package.
        mcpName=registry_name(), bin={"tine": "bin/tine.js"}, engines={"node": ">=18"}, files=["bin/tine.js", "LICENSE-*"],
        optionalDependencies={platform.npm_package: version() for platform in PLATFORMS.values()})
    readme = fill((SOURCES / "npm/README.md").read_text(), common())
    launcher = (SOURCES / "npm/tine.js").read_bytes()
    return pack(fields, [("bin/tine.js", launcher, True), ("README.md", readme.encode(), False)], out)
