"""The modules include each other only in the allowed direction, and so do the rooms inside a module: the folder tree is the
architecture."""

import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A module may include those that it points to, and what they point to. A new module needs its line here.
ARROWS = {
    "base": [],
    "topology": ["base"],
    "codec": ["base"],
    "planner": ["topology", "codec"],
    "discovery": ["topology"],
    "monitor": ["planner"],
    "method": ["planner"],
    "json": ["planner", "runlog"],
    "launch": ["base"],
    "runlog": ["base"],
    "report": ["runlog"],
    "testbed": ["topology"],
    "comm": ["topology", "launch"],
    "collective": ["comm", "planner"],
    "live": ["collective", "monitor", "discovery"],
    "sync": ["live", "method"],
    "workers": ["comm"],
    "training": ["sync", "json"],
    "benchmark": ["training"],
    "cli": ["planner", "method", "json", "report", "testbed", "training", "benchmark", "workers"],
    "python": ["planner", "sync"],
}

# The same for the folders inside a module, its rooms. "." is the module's own folder, without rooms.
ROOMS = {
    "cli": {
        "text": [],
        "terminal": ["text"],
        "flags": ["text"],
        "network": ["flags", "terminal"],
        "plan": ["flags", "terminal"],
        "report": ["flags", "terminal"],
        "testbed": ["network"],
        "bench": ["network"],
        "train": ["network"],
        ".": ["plan", "report", "testbed", "bench", "train"],
    },
    "python": {
        "bindings": [],
        "tests": [],
    },
    "comm": {
        "c10d": [],
        "losses": ["c10d"],
        ".": ["c10d", "losses"],
    },
    "collective": {
        "program": [],
        "operations": ["program"],
        ".": ["program", "operations"],
    },
    "training": {
        "data": [],
        "models": ["data"],
        "checkpoints": [],
        "log": [],
        ".": ["data", "models", "checkpoints", "log"],
    },
    "sync": {
        ".": [],
        "optimizers": ["."],
        "methods": [".", "optimizers"],
    },
}
# Files that may do what their room may not.
EXCEPTIONS = {
    "dssync/sync/synchronizer.cc": ["methods"],  # chooses among implementations
    "dssync/collective/operations/accumulate.cc": ["."],  # for the module's tuned numbers
    "dssync/collective/operations/all_reduce.cc": ["."],  # for the same
    "dssync/collective/program/plan_program_test.cc": ["."],  # runs what it has made
    "dssync/training/data/images_test.cc": ["models", "."],  # finds out what can be learned from the images
    "dssync/comm/c10d/bounded_store_test.cc": ["."],  # for the helpers of tests
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<][^">]+)[">]', re.MULTILINE)


def reachable(start, arrows):
    """What may be included from there."""
    found = {start}
    for below in arrows[start]:
        found |= reachable(below, arrows)
    return found


def module_of(path):
    """The module of a path below the include root: dssync/base/units.h -> base, cli/plan/plan.cc -> cli."""
    return path.parts[1] if path.parts[0] == "dssync" else path.parts[0]


def room_of(path):
    """The folder inside the module, or ".": cli/plan/plan.cc -> plan, dssync/sync/replica.h -> "."."""
    inner = path.parts[2:] if path.parts[0] == "dssync" else path.parts[1:]
    return inner[0] if len(inner) > 1 else "."


def files_of(root):
    """All sources as (file, path below the include root)."""
    for include_root, folder in ((root / "src", "dssync"), (root, "cli"), (root, "python")):
        for file in sorted((include_root / folder).rglob("*")):
            if file.suffix in (".h", ".cc"):
                yield file, file.relative_to(include_root)


def includes_of(file, path):
    """What a file includes of the project, as (the path below the include root, whether it is written so)."""
    for include in INCLUDE.findall(file.read_text()):
        target = pathlib.PurePath(include[1:])
        if target.parts[0] in ("dssync", "cli"):
            yield target, True
        elif include[0] == '"':
            folder = pathlib.PurePath("cli") if path.parts[0] == "cli" else path.parent  # cli is its own include root
            yield folder / target, False


def wrong_modules(root):
    """One sentence for each include that the arrows between modules do not allow."""
    for file, path in files_of(root):
        module = module_of(path)
        if module not in ARROWS:
            yield f"{path}: module {module} is unknown; write its arrows into tests/repository/module_arrows_test.py"
            continue
        for target, is_whole in includes_of(file, path):
            if module_of(target) not in reachable(module, ARROWS):
                yield f"{path}: {module} must not include {target}"
            if not is_whole and module not in ("cli", "python"):
                yield f"{path}: an include path starts at src/, unlike {target.name}"


def wrong_rooms(root):
    """One sentence for each include that the arrows between the rooms of a module do not allow."""
    for file, path in files_of(root):
        rooms = ROOMS.get(module_of(path), {".": []})
        room = room_of(path)
        if room not in rooms:
            yield f"{path}: room {room} is unknown; write its arrows into tests/repository/module_arrows_test.py"
            continue
        allowed = reachable(room, rooms) | set(EXCEPTIONS.get(str(path), []))
        for target, _ in includes_of(file, path):
            if module_of(target) == module_of(path) and room_of(target) not in allowed:
                yield f"{path}: room {room} must not include {target}"


class ModuleArrowsTest(unittest.TestCase):
    def test_includes_follow_the_arrows(self):
        self.assertGreater(len(list(files_of(ROOT))), 10, "the sources were not found")
        self.assertEqual(list(wrong_modules(ROOT)), [])

    def test_includes_follow_the_arrows_between_rooms(self):
        self.assertEqual(list(wrong_rooms(ROOT)), [])

    def found_in(self, samples, search):
        """Which of these files have something wrong."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in samples.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return [sentence.split(":")[0] for sentence in search(root)]

    def test_finds_what_is_wrong(self):
        samples = {
            "src/dssync/base/a.h": '#include "dssync/planner/plan.h"\n',
            "src/dssync/topology/b.cc": '#include "dssync/topology/b.h"\n  #  include <cli/plan.h>\n',
            "src/dssync/planner/c.cc": '#include "dssync/base/a.h"\n#include "c.h"\n#include <vector>\n',
            "src/dssync/elsewhere/d.cc": "",
            "cli/e.cc": '#include "text/e.h"\n#include "dssync/base/a.h"\n',
        }
        self.assertEqual(
            self.found_in(samples, wrong_modules),
            ["dssync/base/a.h", "dssync/elsewhere/d.cc", "dssync/planner/c.cc", "dssync/topology/b.cc"])

    def test_finds_what_is_wrong_between_rooms(self):
        samples = {
            "src/dssync/sync/methods/a.cc": '#include "dssync/sync/methods/a.h"\n#include "dssync/sync/replica.h"\n',
            "src/dssync/sync/replica.cc": '#include "dssync/sync/methods/a.h"\n',
            "src/dssync/sync/synchronizer.cc": '#include "dssync/sync/methods/a.h"\n',
            "src/dssync/base/cellar/b.h": "",
            "cli/main.cc": '#include "plan/plan.h"\n#include "tool.h"\n',
            "cli/tool.h": "",
            "cli/plan/plan.h": '#include "text/style.h"\n#include "report/report.h"\n#include "tool.h"\n',
            "cli/text/style.h": '#include "text/numbers.h"\n#include "dssync/base/units.h"\n',
            "cli/text/numbers.h": '#include "flags/flags.h"\n',
        }
        self.assertEqual(
            self.found_in(samples, wrong_rooms),
            ["dssync/base/cellar/b.h", "dssync/sync/replica.cc", "cli/plan/plan.h", "cli/plan/plan.h",
             "cli/text/numbers.h"])


if __name__ == "__main__":
    unittest.main()
