"""Checks the generated manifests in a folder of packages: `check_manifests.py PACKAGES SCHEMAS`.

Every address of a manifest names a file in the folder, and the checksums beside are those of the
files. Every manifest has the fields that its consumer requires. If the published schemas can be
downloaded, the manifests are also validated against them; SCHEMAS keeps them for later runs.
"""

import hashlib
import json
import pathlib
import re
import sys
import urllib.error
import urllib.request

import jsonschema
import yaml

GITHUB = "https://raw.githubusercontent.com"
WINGET = f"{GITHUB}/microsoft/winget-cli/fa3d9e511d1bd9bed2f1b72e9f0fa25323e7f3eb/schemas/JSON/manifests/v1.9.0"
CLAUDE = f"{GITHUB}/SchemaStore/schemastore/3b6446ad8a077bac56f4a4796c0b7fd88927fc8e/src/schemas/json"

# File, required fields, and the published schema: its address and checksum.
MANIFESTS = {
    "scoop/tine.json": (
        ["version", "homepage", "license", "architecture.64bit.url", "architecture.64bit.hash", "bin"],
        f"{GITHUB}/ScoopInstaller/Scoop/b588a06e41d920d2123ec70aee682bae14935939/schema.json",
        "6c15a47b09dba92bcdee8b0dadbe2776339c699e3bf4db0eff0ef0a000f2496c"),
    "winget/Tine.Tine.yaml": (
        ["PackageIdentifier", "PackageVersion", "DefaultLocale", "ManifestType", "ManifestVersion"],
        f"{WINGET}/manifest.version.1.9.0.json",
        "6874e71495b38d13909192c18256ee9b63753d4eb4490253ff7e734ef3d1c4a5"),
    "winget/Tine.Tine.installer.yaml": (
        ["PackageIdentifier", "PackageVersion", "Installers.0.Architecture", "Installers.0.InstallerUrl",
         "Installers.0.InstallerSha256", "NestedInstallerFiles.0.RelativeFilePath", "ManifestType"],
        f"{WINGET}/manifest.installer.1.9.0.json",
        "053cab82b5130bbf54ce97142ea852ad17e04fe59b1edafcd087c1254b327b90"),
    "winget/Tine.Tine.locale.en-US.yaml": (
        ["PackageIdentifier", "PackageVersion", "PackageLocale", "Publisher", "PackageName", "License",
         "ShortDescription", "ManifestType"],
        f"{WINGET}/manifest.defaultLocale.1.9.0.json",
        "5c7dc375a3c3b95aede4a74dd0ec7ca090306938f14a8dcc5e346fe347934bea"),
    "mcp-registry/server.json": (
        ["$schema", "name", "description", "version", "packages.0.registryType", "packages.0.identifier",
         "packages.0.transport.type"],
        "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "3fba09590c99f61735d234822279f4223fab9e300c0a81e81c91ab62a4114de0"),
    "acp-registry/tine/agent.json": (
        ["id", "name", "version", "description", "distribution.binary", "distribution.npx.package"],
        f"{GITHUB}/agentclientprotocol/registry/3de1678346d1b37b6c3f07de503043ebcbb9cbdb/agent.schema.json",
        "17056bae2fb3acf4b5be809a2796772385170bae73a54f61bcb619682524efbd"),
}
# In the repository itself.
SOURCES = {
    ".claude-plugin/marketplace.json": (
        ["name", "owner.name", "plugins.0.name", "plugins.0.source"],
        f"{CLAUDE}/claude-code-marketplace.json",
        "42c3f80413638e93a420256d942f409104b651379b9ac2451cc636f581de2ffc"),
    "packages/claude-code/.claude-plugin/plugin.json": (
        ["name", "version", "description", "author.name"],
        f"{CLAUDE}/claude-code-plugin-manifest.json",
        "3f69938d71a47a72fa60050b2050dd620054708911defc1c1dcd7188dcb169f5"),
}
OTHERS = ("install.sh", "install.ps1", "homebrew/tine.rb")


def read(path):
    text = path.read_text()
    return yaml.safe_load(text) if path.suffix == ".yaml" else json.loads(text)


def field(document, path):
    """Returns the field at a dotted path; fails if it is missing or empty."""
    for key in path.split("."):
        try:
            document = document[int(key) if isinstance(document, list) else key]
        except (KeyError, IndexError):
            raise AssertionError(f"the field {path} is missing") from None
    assert document not in ("", [], {}, None), f"the field {path} is empty"
    return document


def schema(url, checksum, folder):
    """Returns a published schema, or None if it cannot be downloaded."""
    path = folder / f"{checksum}.json"
    if not path.exists():
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                content = answer.read()
        except (urllib.error.URLError, TimeoutError):
            return None
        assert hashlib.sha256(content).hexdigest() == checksum, f"{url} has changed"
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return json.loads(path.read_text())


def check_downloads(path, packages):
    """Checks that a text names files in the folder, and exactly their checksums."""
    text = path.read_text()
    names = set(re.findall(r"/releases/download/v[\d.]+/([\w.-]+\w)", text))
    checksums = set(re.findall(r"\b[0-9a-f]{64}\b", text))
    missing = sorted(name for name in names if not (packages / name).exists())
    assert not missing, f"names files that do not exist: {missing}"
    expected = {hashlib.sha256((packages / name).read_bytes()).hexdigest() for name in names}
    # The ACP registry has no field for checksums.
    if names and "acp-registry" not in path.parts:
        assert checksums == expected, "the checksums are not those of the files"


def check_list(packages):
    """Checks SHA256SUMS, which has to name every file that users download."""
    lines = (packages / "SHA256SUMS").read_text().splitlines()
    listed = dict(reversed(line.split("  ")) for line in lines)
    for name, checksum in listed.items():
        assert hashlib.sha256((packages / name).read_bytes()).hexdigest() == checksum, name
    there = {path.name for path in packages.iterdir() if path.is_file()}
    assert there - set(listed) == {"SHA256SUMS"}, f"not listed: {sorted(there - set(listed))}"


def check_icon(path):
    icon = path.read_text()
    assert 'width="16" height="16"' in icon, "the icon is not 16 by 16"
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', icon))
    assert colours <= {"none", "currentColor"}, f"the icon has its own colours: {colours}"


def main():
    packages, schemas = map(pathlib.Path, sys.argv[1:3])
    repository = pathlib.Path(sys.argv[3])
    version = re.search(r'^version = "(.*)"', (repository / "Cargo.toml").read_text(), re.MULTILINE)[1]
    against = {}
    for folder, manifests in ((packages, MANIFESTS), (repository, SOURCES)):
        for name, (fields, url, checksum) in manifests.items():
            try:
                document = read(folder / name)
                for path in fields:
                    field(document, path)
                stated = document.get("version") or document.get("PackageVersion") or version
                assert stated == version, f"has version {stated}, not {version}"
                if folder == packages:
                    check_downloads(folder / name, packages)
                published = schema(url, checksum, schemas)
                if published:
                    jsonschema.validate(document, published)
                against[name] = bool(published)
            except (AssertionError, jsonschema.ValidationError) as failure:
                sys.exit(f"{name}: {failure}")
    for name in OTHERS:
        check_downloads(packages / name, packages)
    check_list(packages)
    check_icon(packages / "acp-registry/tine/icon.svg")
    unchecked = sorted(name for name, checked in against.items() if not checked)
    print(f"{sum(against.values())} of {len(against)} manifests match their published schemas"
          + (f"; not downloaded, so only the required fields were checked: {', '.join(unchecked)}" if unchecked else ""))


main()
