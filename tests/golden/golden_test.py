"""Every shipped example prints what it printed before: a change in a prediction shows up as a failed test.

Each case is a command, run in the root of the repository, whose stdout is compared with a file beside this one. After a change
that is meant, `make golden` writes the files anew. DSSYNC names the tool, DSSYNC_EXAMPLES the folder of the built examples.
"""

import difflib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def cases():
    """(name of the expected output, command)"""
    tool = pathlib.Path(os.environ["DSSYNC"]).resolve()
    examples = pathlib.Path(os.environ["DSSYNC_EXAMPLES"]).resolve()
    for topology in sorted((ROOT / "examples/topologies").iterdir()):
        if topology.suffix in (".yaml", ".conf"):
            yield f"plan-{topology.stem}.txt", [tool, "plan", "--topology", topology.relative_to(ROOT)]
    yield "plan-two-racks.json", [tool, "plan", "--topology", "examples/topologies/two-racks.yaml", "--format", "json"]
    for name in ("two-racks", "two-sites-wan"):
        topology = f"examples/topologies/{name}.yaml"
        yield f"codecs-{name}.txt", [tool, "plan", "--topology", topology, "--codec", "auto"]
    for source in sorted((ROOT / "examples").glob("plan_*.cc")):
        yield f"example-{source.stem}.txt", [examples / source.stem]


def run(command):
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"golden: status {result.returncode} from: {' '.join(map(str, command))}")
    return result.stdout


def differences(name, output):
    file = HERE / name
    expected = file.read_text() if file.exists() else ""
    lines = [text.splitlines(keepends=True) for text in (expected, output)]
    return list(difflib.unified_diff(*lines, fromfile=f"tests/golden/{name}", tofile="now"))


def main():
    update = sys.argv[1:] == ["--update"]
    outputs = {name: run(command) for name, command in cases()}
    if update:
        for name, output in outputs.items():
            (HERE / name).write_text(output)
        print(f"golden: wrote {len(outputs)} files in tests/golden")
        return
    changed = [line for name, output in outputs.items() for line in differences(name, output)]
    stale = [file.name for file in sorted(HERE.iterdir()) if file.suffix in (".txt", ".json") and file.name not in outputs]
    sys.stdout.writelines(changed)
    for name in stale:
        print(f"golden: tests/golden/{name} belongs to no example; remove it")
    if changed or stale:
        sys.exit("golden: outputs changed; if that is meant, run `make golden`")
    print(f"golden: {len(outputs)} outputs are as expected")


if __name__ == "__main__":
    main()
