"""Every folder with sources has a README.md that says what each of its files is for, and names none that is not there.

The table of a README has a line per file or family of files. Its first column names them in backticks, with braces as in a
shell: `plan{.h,.cc,_test.cc}` is plan.h, plan.cc and plan_test.cc. A folder inside it that has sources is a line, too: `text/`.
All of src, cli, bench, fuzz, examples, python and tests is looked at; sources are .h, .cc and .py files.
"""

import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["src", "cli", "bench", "fuzz", "examples", "python", "tests"]
SUFFIXES = (".h", ".cc", ".py")


def expanded(word):
    """As a shell does: "a{.h,.cc}" -> ["a.h", "a.cc"]."""
    braces = re.fullmatch(r"(.*?)\{([^{}]*)\}(.*)", word)
    if not braces:
        return [word]
    start, middle, end = braces.groups()
    return [name for part in middle.split(",") for name in expanded(start + part + end)]


def names_in(text):
    """All names in backticks, expanded; what has a space in it is no name."""
    for word in re.findall(r"`([^`\s]+)`", text):
        yield from expanded(word)


def is_source(name):
    return name.endswith(SUFFIXES)


def sources_of(folder):
    return [file.name for file in sorted(folder.iterdir()) if file.is_file() and is_source(file.name)]


def folders_of(root):
    """Those that hold sources themselves."""
    for top in FOLDERS:
        for folder in [root / top, *sorted((root / top).rglob("*"))]:
            if folder.is_dir() and sources_of(folder):
                yield folder


def problems_of(folder, root):
    """One sentence for each name that is missing in the folder's README.md, or that leads nowhere."""
    where = folder.relative_to(root)
    readme = folder / "README.md"
    if not readme.exists():
        yield f"{where}: has no README.md"
        return
    text = readme.read_text(encoding="utf-8")
    first_columns = re.findall(r"^\|([^|]*)\|", text, re.MULTILINE)
    listed = [name for column in first_columns for name in names_in(column)]
    rooms = [inner.name + "/" for inner in sorted(folder.iterdir()) if inner.is_dir() and sources_of(inner)]
    for name in sources_of(folder) + rooms:
        if listed.count(name) != 1:
            yield f"{where}: README.md has {listed.count(name)} lines for {name}"
    for name in [*listed, *filter(is_source, names_in(text))]:
        bases = [folder, root, root / "src"] if "/" in name.rstrip("/") else [folder]
        if not any((base / name).exists() for base in bases):
            yield f"{where}: README.md names {name}, which does not exist"


def problems(root):
    return [problem for folder in folders_of(root) for problem in dict.fromkeys(problems_of(folder, root))]


class ReadmesTest(unittest.TestCase):
    maxDiff = None

    def test_every_file_has_a_line(self):
        self.assertGreater(len(list(folders_of(ROOT))), 10, "the folders were not found")
        self.assertEqual(problems(ROOT), [])

    def test_expands_braces(self):
        self.assertEqual(expanded("a.h"), ["a.h"])
        self.assertEqual(expanded("a{.h,.cc,_test.cc}"), ["a.h", "a.cc", "a_test.cc"])
        self.assertEqual(expanded("a_{b,c}.{h,cc}"), ["a_b.h", "a_b.cc", "a_c.h", "a_c.cc"])

    def test_finds_what_is_missing_and_what_is_stale(self):
        samples = {
            "src/dssync/good/README.md": "See `b.h`.\n\n| file | job |\n| --- | --- |\n| `a{.h,.cc}`, `b.h` | all |\n| `room/` | more |\n",
            "src/dssync/good/a.h": "",
            "src/dssync/good/a.cc": "",
            "src/dssync/good/b.h": "",
            "src/dssync/good/notes.txt": "",
            "src/dssync/good/room/README.md": "| `c.py` | of `dssync/good/a.h`, `src/dssync/good/a.cc` |\n",
            "src/dssync/good/room/c.py": "",
            "cli/README.md": "`a.cc` is named in a sentence only.\n\n| `b{.h,.cc}`, `b.h` | b |\n| `old.py` | gone |\n",
            "cli/a.cc": "",
            "cli/b.h": "",
            "cli/text/c.h": "",
            "docs/d.py": "",
        }
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in samples.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            found = problems(root)
        self.assertEqual(found, [
            "cli: README.md has 0 lines for a.cc",
            "cli: README.md has 2 lines for b.h",
            "cli: README.md has 0 lines for text/",
            "cli: README.md names b.cc, which does not exist",
            "cli: README.md names old.py, which does not exist",
            "cli/text: has no README.md",
        ])


if __name__ == "__main__":
    unittest.main()
