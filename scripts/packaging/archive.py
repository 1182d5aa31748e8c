"""The archive of one platform, from which installers and package managers take the binary."""

import pathlib
import subprocess
import tempfile

from containers import write_tar_gz, write_zip
from release import TOP, this_platform

COMPLETIONS = {"bash": "tine.bash", "zsh": "_tine", "fish": "tine.fish", "powershell": "tine.ps1"}


def build(binary, out):
    platform = this_platform()
    files = [(platform.program, binary.read_bytes(), True)]
    for name in ("README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"):
        files.append((name, (TOP / name).read_bytes(), False))
    for shell, name in COMPLETIONS.items():
        script = subprocess.run([binary, "completions", shell], check=True, stdout=subprocess.PIPE).stdout
        files.append((f"completions/{name}", script, False))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([binary, "manual", folder], check=True, stdout=subprocess.DEVNULL)
        for page in sorted(pathlib.Path(folder).iterdir()):
            files.append((f"man/{page.name}", page.read_bytes(), False))
    files = [(f"{platform.folder}/{name}", data, executable) for name, data, executable in files]
    path = out / platform.archive
    (write_zip if platform.windows else write_tar_gz)(path, files)
    return [path]
