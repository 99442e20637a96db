"""What the documents say is there: the README's examples are those that are compiled, and every file named exists."""

import difflib
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["docs", "src", "cli", "bench", "fuzz", "examples", "python", "tests"]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(page for folder in FOLDERS for page in sorted((ROOT / folder).rglob("*.md")))]


class ReadmeTest(unittest.TestCase):
    def test_examples_are_the_files(self):
        blocks = re.findall(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        examples = ["train_a_model.cc", "plan_a_network.cc"]
        self.assertEqual(blocks, [(ROOT / "examples" / name).read_text() for name in examples])

    def test_the_diff_is_that_of_the_python_examples(self):
        plain, ours = ((ROOT / "python/examples" / name).read_text().split("\n")[1:] for name in ("ddp.py", "smallest.py"))
        changes = [line for line in difflib.ndiff(plain, ours) if line[0] in "-+"]
        expected = "".join(f"{line[0]}{line[2:]}\n" for line in changes)
        for page in ("README.md", "docs/pytorch.md"):
            self.assertIn(f"```diff\n{expected}```", (ROOT / page).read_text())

    def test_links_lead_somewhere(self):
        for document in DOCUMENTS:
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
                if "://" not in target:
                    self.assertTrue((document.parent / target).exists(), f"{document.name}: {target} does not exist")

    def test_pages_named_in_the_sources_exist(self):
        for file in sorted((ROOT / "src").rglob("*.h")) + sorted((ROOT / "cli").rglob("*.h")):
            for page in re.findall(r"docs/\w+\.md", file.read_text()):
                self.assertTrue((ROOT / page).exists(), f"{file.name}: {page} does not exist")


if __name__ == "__main__":
    unittest.main()
