#!/usr/bin/env python3
"""Saves a document as an office program does: a lock file, a temporary zip file, sync, rename, sync of the directory."""

import io
import os
import zipfile

from workload import Run, main, pattern


def document(save: int, kb: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        # First and uncompressed, as the format requires.
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        archive.writestr(
            "content.xml", f"<p>{save}</p>" + "<p>text</p>" * (kb * 20), zipfile.ZIP_DEFLATED
        )
        archive.writestr("styles.xml", "<style/>" * 200, zipfile.ZIP_DEFLATED)
        archive.writestr("Pictures/1.png", pattern(kb << 10, seed=save))
    return out.getvalue()


def body(run: Run) -> None:
    with run.timed():
        lock = run.dir / ".~lock.report.odt#"
        fd = run.open(lock)
        run.write(fd, b",user,host,01.01.2025 12:00,file:///home/user;")
        os.close(fd)
        for save in range(run.number("saves")):
            content = document(save, run.number("kb"))
            temporary = run.dir / f"lu{save:04}.tmp"
            fd = run.open(temporary)
            for at in range(0, len(content), 32768):
                run.write(fd, content[at : at + 32768])
            run.sync(fd)
            os.close(fd)
            temporary.rename(run.dir / "report.odt")
            run.sync_dir(run.dir)
        lock.unlink()


main(body, __doc__, saves=5, kb=24)
