"""What the documents say is there: the README's examples are those that are compiled, and every file named exists."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


class ReadmeTest(unittest.TestCase):
    def test_examples_are_the_files(self):
        blocks = re.findall(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        examples = ["train_a_model.cc", "plan_a_network.cc"]
        self.assertEqual(blocks, [(ROOT / "examples" / name).read_text() for name in examples])

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
