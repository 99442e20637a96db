"""Nothing is forgotten: every source is named in the CMakeLists.txt of its folder, every test file is run."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["src", "cli", "bench", "examples", "fuzz", "python"]


def sources():
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".h", ".cc"):
                yield file


def list_of(file):
    """The CMakeLists.txt that has to name the file: the nearest one above it."""
    return next(folder / "CMakeLists.txt" for folder in file.parents if (folder / "CMakeLists.txt").exists())


def is_listed(name, text):
    """Whether the text of a CMakeLists.txt names the file; fuzz targets are named without their prefix."""
    words = re.sub(r"#.*", "", text).replace("(", " ").replace(")", " ").split()
    return name in words or (name.startswith("fuzz_") and name[len("fuzz_") : -len(".cc")] in words)


def forgotten(files, after=""):
    """Those files that their CMakeLists.txt does not name, or not after the given word."""
    for file in files:
        cmake_list = list_of(file)
        text = cmake_list.read_text().partition(after)[2] if after else cmake_list.read_text()
        if not is_listed(str(file.relative_to(cmake_list.parent)), text):
            yield str(file.relative_to(ROOT))


class ListedFilesTest(unittest.TestCase):
    def test_every_source_is_in_the_build(self):
        self.assertGreater(len(list(sources())), 10, "the sources were not found")
        self.assertEqual(list(forgotten(sources())), [])

    def test_unit_tests_are_listed_as_tests(self):
        tests = [file for file in sources() if file.stem.endswith("_test")]
        self.assertEqual(list(forgotten(tests, after="TESTS")), [])

    def test_every_python_test_is_run(self):
        lists = (ROOT / "tests/CMakeLists.txt").read_text()
        for file in sorted((ROOT / "tests").rglob("*_test.py")):
            if file.parent.name != "cli":
                self.assertIn(file.stem.removesuffix("_test"), lists)

    def test_every_file_of_the_python_package_is_put_into_the_build(self):
        others = ("__pycache__", "README.md")
        files = [file for file in sorted((ROOT / "python/dssync").iterdir()) if file.name not in others]
        text = (ROOT / "python/CMakeLists.txt").read_text()
        self.assertEqual([file.name for file in files if not is_listed(file.name, text)], [])

    def test_finds_a_forgotten_file(self):
        text = "dssync_module(base SOURCES error.cc  # units.cc\n)"
        self.assertTrue(is_listed("error.cc", text))
        self.assertFalse(is_listed("units.cc", text))
        self.assertTrue(is_listed("fuzz_units.cc", "foreach(name units yaml)"))
        self.assertFalse(is_listed("fuzz_slurm.cc", "foreach(name units yaml)"))


if __name__ == "__main__":
    unittest.main()
