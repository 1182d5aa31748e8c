"""The wheel that carries the binary. It installs the command `tine` and no Python module."""

import base64
import csv
import hashlib
import io
import struct

from containers import write_zip
from release import PACKAGE, SOURCES, SUMMARY, TOP, common, fill, repository, this_platform, version, workspace

DISTRIBUTION = PACKAGE.replace("-", "_")


def is_static(binary):
    """Tells if an ELF file names no interpreter, and so needs no shared library."""
    header = struct.Struct("<16sHHIQQQIHHH")
    magic, *_, offset, _, _, _, size, count = header.unpack_from(binary)
    if magic[:4] != b"\x7fELF" or magic[4] != 2:
        raise SystemExit("the binary is not a 64-bit ELF file")
    kinds = [struct.unpack_from("<I", binary, offset + size * number)[0] for number in range(count)]
    return 3 not in kinds  # PT_INTERP


def tags(binary):
    """Returns the platform tags of the wheel, the first of which names the file."""
    platform = this_platform()
    if platform.name.startswith("linux-") and not is_static(binary):
        # Depends on this machine's libraries: pip installs such a wheel, PyPI refuses it.
        return (platform.wheel_tags[0].replace("manylinux_2_17", "linux"),)
    return platform.wheel_tags


def metadata():
    readme = fill((SOURCES / "pypi/README.md").read_text(), common())
    return f"""Metadata-Version: 2.4
Name: {PACKAGE}
Version: {version()}
Summary: {SUMMARY}
License-Expression: {workspace()["license"]}
License-File: LICENSE-APACHE
License-File: LICENSE-MIT
Project-URL: Repository, {repository()}
Keywords: conversations,version control,llm,agents,mcp
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{readme}"""


def build(binary, out):
    program = binary.read_bytes()
    platforms = tags(program)
    info = f"{DISTRIBUTION}-{version()}.dist-info"
    wheel = "Wheel-Version: 1.0\nGenerator: tine scripts/package\nRoot-Is-Purelib: false\n"
    wheel += "".join(f"Tag: py3-none-{tag}\n" for tag in platforms)
    files = [
        (f"{DISTRIBUTION}-{version()}.data/scripts/{this_platform().program}", program, True),
        (f"{info}/METADATA", metadata().encode(), False),
        (f"{info}/WHEEL", wheel.encode(), False),
    ]
    for name in ("LICENSE-APACHE", "LICENSE-MIT"):
        files.append((f"{info}/licenses/{name}", (TOP / name).read_bytes(), False))
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for name, data, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow((name, f"sha256={digest}", len(data)))
    rows.writerow((f"{info}/RECORD", "", ""))
    files.append((f"{info}/RECORD", record.getvalue().encode(), False))
    path = out / f"{DISTRIBUTION}-{version()}-py3-none-{'.'.join(platforms)}.whl"
    write_zip(path, files)
    return [path]
