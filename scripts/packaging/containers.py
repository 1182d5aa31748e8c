"""Reproducible archives: fixed times, owners and order."""

import gzip
import io
import tarfile
import time
import zipfile

from release import TIMESTAMP


def write_zip(path, files):
    """Writes files, (name, bytes, executable) each, as a ZIP archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, data, executable in files:
            entry = zipfile.ZipInfo(name, time.gmtime(TIMESTAMP)[:6])
            entry.create_system = 3  # Unix, so that the mode below counts.
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def write_tar_gz(path, files):
    """Writes files, (name, bytes, executable) each, as a compressed TAR archive."""
    with open(path, "wb") as raw, \
            gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=TIMESTAMP) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data, executable in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o755 if executable else 0o644
            entry.mtime = TIMESTAMP
            archive.addfile(entry, io.BytesIO(data))
