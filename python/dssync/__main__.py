"""`python -m dssync` is the command line tool `dssync`: the one that $DSSYNC names, the package's own, or the one on PATH."""

import os
import pathlib
import shutil
import sys


def main() -> None:
    own = pathlib.Path(__file__).parent / "bin" / "dssync"
    tool = os.environ.get("DSSYNC") or (str(own) if own.exists() else shutil.which("dssync"))
    if tool is None:
        sys.exit("dssync: this package was built without the command line tool, and there is none on PATH")
    os.execv(tool, [tool, *sys.argv[1:]])


if __name__ == "__main__":
    main()
