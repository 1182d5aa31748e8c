"""The files that name other files of the release by address and checksum: installers, manifests of
package managers, and entries of registries. All of them are made from templates.

A manifest is made if every file that it names has been built; the others are reported.
"""

import json
import re

from release import PLATFORMS, SOURCES, common, download, fill, sha256, version

# Each manifest: its templates, and the files that are made of them.
MANIFESTS = (
    {"install.sh": "install.sh"},
    {"install.ps1": "install.ps1"},
    {"homebrew/tine.rb": "homebrew/tine.rb"},
    {"scoop/tine.json": "scoop/tine.json"},
    {
        "winget/version.yaml": "winget/{identifier}.yaml",
        "winget/installer.yaml": "winget/{identifier}.installer.yaml",
        "winget/locale.yaml": "winget/{identifier}.locale.en-US.yaml",
    },
    {"mcp-registry/server.json": "mcp-registry/server.json"},
    {"acp-registry/agent.json": "acp-registry/tine/agent.json", "acp-registry/icon.svg": "acp-registry/tine/icon.svg"},
)
IDENTIFIER = "Tine.Tine"


def values(out):
    """Returns the fields of all platforms whose archives are in the folder."""
    found = {**common(), "winget_identifier": IDENTIFIER, "download": download("").rstrip("/")}
    for platform in PLATFORMS.values():
        for suffix, name in (("", platform.archive), (".mcpb", f"{platform.folder}.mcpb")):
            if (out / name).exists():
                found[f"sha256.{platform.name}{suffix}"] = sha256(out / name)
        if (out / platform.archive).exists():
            found[f"archive.{platform.name}"] = platform.archive
        found[f"folder.{platform.name}"] = platform.folder
    return found


def build(_binary, out):
    known = values(out)
    made = []
    for manifest in MANIFESTS:
        templates = {source: (SOURCES / source).read_text() for source in manifest}
        needed = re.findall(r"\{\{((?:sha256|archive)\.[\w.-]+)\}\}", "".join(templates.values()))
        missing = sorted({field.partition(".")[2] for field in needed if field not in known})
        if missing:
            print(f"{next(iter(manifest))}: skipped, because these are not in {out}: {', '.join(missing)}")
            continue
        for source, target in manifest.items():
            text = fill(templates[source], known)
            path = out / target.format(identifier=IDENTIFIER)
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".json":
                text = json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
            path.write_text(text)
            made.append(path)
    made.append(checksums(out))
    return made


def checksums(out):
    """Writes the checksums of all files of the release, in the form that `sha256sum --check` reads."""
    names = sorted(
        path.name for path in out.iterdir()
        if path.is_file() and version() in path.name or path.name in ("install.sh", "install.ps1"))
    path = out / "SHA256SUMS"
    path.write_text("".join(f"{sha256(out / name)}  {name}\n" for name in names))
    return path
