"""What all packages have in common: version, addresses, platforms and file names."""

import dataclasses
import functools
import hashlib
import os
import pathlib
import re
import tomllib

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = TOP / "deploy/packaging"

# Name of the packages on PyPI and npm, where `tine` belongs to other projects.
PACKAGE = "tine-bin"
SUMMARY = "Version control for conversations: fork, edit, merge, search and verify what was said"
AUTHOR = "The Tine project"

# Packages are reproducible: every file in them has this time, the first that ZIP can express.
TIMESTAMP = int(os.environ.get("SOURCE_DATE_EPOCH", 315532800))


@dataclasses.dataclass(frozen=True)
class Platform:
    name: str
    # Tags of wheels. On Linux, those of a statically linked binary, which needs no libc.
    wheel_tags: tuple
    # `os` and `cpu` of npm packages.
    npm: tuple
    # Key in the ACP registry.
    acp: str

    @property
    def windows(self):
        return self.name.startswith("windows-")

    @property
    def program(self):
        return "tine.exe" if self.windows else "tine"

    @property
    def folder(self):
        """Returns the name of the folder in the archive."""
        return f"tine-{version()}-{self.name}"

    @property
    def archive(self):
        return self.folder + (".zip" if self.windows else ".tar.gz")

    @property
    def npm_package(self):
        return f"{PACKAGE}-{self.npm[0]}-{self.npm[1]}"


def linux_tags(machine):
    return tuple(f"{tag}_{machine}" for tag in ("manylinux_2_17", "manylinux2014", "musllinux_1_1"))


PLATFORMS = {platform.name: platform for platform in (
    Platform("linux-x86_64", linux_tags("x86_64"), ("linux", "x64"), "linux-x86_64"),
    Platform("linux-arm64", linux_tags("aarch64"), ("linux", "arm64"), "linux-aarch64"),
    Platform("macos-x86_64", ("macosx_10_12_x86_64",), ("darwin", "x64"), "darwin-x86_64"),
    Platform("macos-arm64", ("macosx_11_0_arm64",), ("darwin", "arm64"), "darwin-aarch64"),
    Platform("windows-x86_64", ("win_amd64",), ("win32", "x64"), "windows-x86_64"),
)}


def this_platform():
    """Returns the platform of this machine."""
    # `os.uname` is missing on Windows.
    system = {"posix": "linux", "nt": "windows"}[os.name]
    machine = os.environ.get("PROCESSOR_ARCHITECTURE", "") if os.name == "nt" else os.uname().machine
    if os.name == "posix" and os.uname().sysname == "Darwin":
        system = "macos"
    machine = {"aarch64": "arm64", "AMD64": "x86_64"}.get(machine, machine)
    platform = PLATFORMS.get(f"{system}-{machine}")
    if not platform:
        raise SystemExit(f"no packages are defined for {system}-{machine}; known: {', '.join(PLATFORMS)}")
    return platform


@functools.cache
def workspace():
    return tomllib.loads((TOP / "Cargo.toml").read_text())["workspace"]["package"]


def version():
    return workspace()["version"]


def repository():
    """Returns the address of the repository, from which releases are downloaded."""
    return os.environ.get("TINE_REPOSITORY") or workspace()["repository"]


def registry_name():
    """Returns the name in the MCP registry: a domain in reverse order, and a name below it."""
    host, _, path = repository().split("://")[1].partition("/")
    owner, _, name = path.rpartition("/")
    if host == "github.com":
        return f"io.github.{owner}/{name}"
    return f"{'.'.join(reversed(host.split('.')))}/{name}"


def download(name):
    """Returns the address of a file of the release."""
    return f"{repository()}/releases/download/v{version()}/{name}"


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fill(template, values):
    """Replaces every `{{name}}` in a template."""
    def value(match):
        if match[1] not in values:
            raise SystemExit(f"a template has the unknown field {match[0]}")
        return str(values[match[1]])

    return re.sub(r"\{\{([\w.-]+)\}\}", value, template)


def common():
    """Returns the fields that every template can use."""
    return {
        "version": version(),
        "repository": repository(),
        "registry_name": registry_name(),
        "package": PACKAGE,
        "summary": SUMMARY,
        "author": AUTHOR,
        "license": workspace()["license"],
    }
