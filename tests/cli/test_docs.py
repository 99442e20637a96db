"""The output that docs/command-line.md explains is what the tool prints. After a change that is meant, run this file with
DSSYNC_UPDATE=1 to write it anew."""

import os
import textwrap

from conftest import ROOT

PAGE = ROOT / "docs/command-line.md"
COMMAND = "    $ dssync plan --topology examples/topologies/two-racks.yaml\n"
END = "\n\n- **Network.**"


def test_the_explained_output_is_current(plan):
    before, rest = PAGE.read_text(encoding="utf-8").split(COMMAND)
    shown, after = rest.split(END)
    output = textwrap.indent(plan("--topology", "examples/topologies/two-racks.yaml"), "    ").rstrip("\n")
    if os.environ.get("DSSYNC_UPDATE"):
        PAGE.write_text(before + COMMAND + output + END + after, encoding="utf-8")
        shown = output
    assert shown == output
