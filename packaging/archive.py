#!/usr/bin/env python3
"""Write a zip archive of a folder: sorted, without times, so that the same files give the same bytes.

    packaging/archive.py ARCHIVE FOLDER [PREFIX]

PREFIX precedes each name in the archive. A jar is such an archive.
"""

import pathlib
import sys
import zipfile


def main() -> None:
    archive, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    prefix = sys.argv[3] if len(sys.argv) > 3 else ""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(prefix + path.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, path.read_bytes())


main()
