"""docs/scenarios.md has a row, with a public report, for every number that a test or a page names, and names tests that exist.

A number in a test's comment that the page does not give to that test is an error, too, so that the page cannot fall behind.
"""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NUMBER = re.compile(r"\bB\d{2,3}\b")
LINK = re.compile(r"\[[^\]]+\]\(https://github\.com/[^/]+/[^/]+/(issues|pull)/\d+\)")


def read_rows(text):
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| B") and NUMBER.fullmatch(cells[0]):
            rows[cells[0]] = cells[1:]
    return rows


def comments(path):
    return "\n".join(line for line in path.read_text(encoding="utf-8").splitlines() if line.lstrip().startswith("//"))


class Scenarios(unittest.TestCase):
    def setUp(self):
        self.rows = read_rows((ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8"))
        self.assertGreater(len(self.rows), 40)

    def test_each_row_has_a_report_words_and_tests(self):
        for number, (report, words, tests) in self.rows.items():
            self.assertRegex(report, LINK, number)
            self.assertTrue(words, number)
            paths = re.findall(r"`([^`]+)`", tests)
            self.assertTrue(paths, number)
            for path in paths:
                self.assertTrue((ROOT / path).is_file(), f"{number}: {path}")

    def test_each_number_of_a_test_has_its_row(self):
        seen = 0
        for path in (ROOT / "tests").rglob("*.cpp"):
            for number in NUMBER.findall(comments(path)):
                seen += 1
                self.assertIn(number, self.rows, path.name)
                self.assertIn(str(path.relative_to(ROOT)), self.rows[number][2], f"{number} is named by {path.name}")
        self.assertGreater(seen, 50)

    def test_each_number_of_a_page_has_its_row(self):
        page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
        self.assertIn("(scenarios.md)", page)
        for number in NUMBER.findall(page):
            self.assertIn(number, self.rows)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
