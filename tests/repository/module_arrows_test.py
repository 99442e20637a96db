"""The modules include each other only in the allowed direction: the folder tree is the architecture."""

import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A module may include those that it points to, and what they point to. A new module needs its line here.
ARROWS = {
    "base": [],
    "topology": ["base"],
    "planner": ["topology"],
    "discovery": ["topology"],
    "monitor": ["planner"],
    "method": ["planner"],
    "json": ["planner"],
    "launch": ["base"],
    "report": ["base"],
    "testbed": ["topology"],
    "comm": ["topology", "launch"],
    "collective": ["comm", "planner"],
    "live": ["collective", "monitor", "discovery"],
    "sync": ["live", "method"],
    "training": ["sync", "json"],
    "benchmark": ["training"],
    "cli": ["planner", "method", "json", "report", "testbed", "training", "benchmark"],
    "python": ["planner", "sync"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<][^">]+)[">]', re.MULTILINE)


def reachable(module):
    found = {module}
    for below in ARROWS[module]:
        found |= reachable(below)
    return found


def module_of(path):
    """The module of a path below the include root: dssync/base/units.h -> base, cli/plan.cc -> cli."""
    return path.parts[1] if path.parts[0] == "dssync" else path.parts[0]


def files_of(root):
    """All sources as (file, path below the include root)."""
    for include_root, folder in ((root / "src", "dssync"), (root, "cli"), (root, "python")):
        for file in sorted((include_root / folder).rglob("*")):
            if file.suffix in (".h", ".cc"):
                yield file, file.relative_to(include_root)


def wrong_includes(root):
    """One sentence for each include that is not allowed."""
    for file, path in files_of(root):
        module = module_of(path)
        if module not in ARROWS:
            yield f"{path}: module {module} is unknown; write its arrows into tests/repository/module_arrows_test.py"
            continue
        for include in INCLUDE.findall(file.read_text()):
            target = pathlib.PurePath(include[1:])
            if target.parts[0] in ("dssync", "cli"):
                if module_of(target) not in reachable(module):
                    yield f"{path}: {module} must not include {target}"
            elif include[0] == '"' and module not in ("cli", "python"):
                yield f"{path}: an include path starts at src/, unlike {target}"


class ModuleArrowsTest(unittest.TestCase):
    def test_includes_follow_the_arrows(self):
        self.assertGreater(len(list(files_of(ROOT))), 10, "the sources were not found")
        self.assertEqual(list(wrong_includes(ROOT)), [])

    def test_finds_what_is_wrong(self):
        samples = {
            "src/dssync/base/a.h": '#include "dssync/planner/plan.h"\n',
            "src/dssync/topology/b.cc": '#include "dssync/topology/b.h"\n  #  include <cli/plan.h>\n',
            "src/dssync/planner/c.cc": '#include "dssync/base/a.h"\n#include "c.h"\n#include <vector>\n',
            "src/dssync/elsewhere/d.cc": "",
            "cli/e.cc": '#include "text/e.h"\n#include "dssync/base/a.h"\n',
        }
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in samples.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            found = [sentence.split(":")[0] for sentence in wrong_includes(root)]
        self.assertEqual(
            found,
            ["dssync/base/a.h", "dssync/elsewhere/d.cc", "dssync/planner/c.cc", "dssync/topology/b.cc"])


if __name__ == "__main__":
    unittest.main()
