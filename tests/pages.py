"""README and the pages in docs/, by their headings and blocks."""

import re

from tests.service import CHECKOUT

NAMES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{file.name}" for file in (CHECKOUT / "docs").glob("*.md"))]
HEADING_OR_BLOCK = re.compile(r"^#+ ([^\n]+)$|^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Page:
    """A page. Tests take its blocks by heading and language, so that no block is forgotten."""

    def __init__(self, name):
        self.text = (CHECKOUT / name).read_text()
        self.headings, self.blocks = [], []
        for heading, language, block in HEADING_OR_BLOCK.findall(self.text):
            if heading:
                self.headings.append(heading)
            else:
                self.blocks.append((self.headings[-1], language, block))

    def take(self, heading, language="sh"):
        """Take the blocks in this language below a heading."""
        taken = [each for each in self.blocks if each[:2] == (heading, language)]
        self.blocks = [each for each in self.blocks if each not in taken]
        return [block for *_, block in taken]

    @property
    def forgotten(self):
        """The runnable blocks that no test took."""
        return [each for each in self.blocks if each[1] in ("sh", "python", "html")]

    @property
    def anchors(self):
        """The page's anchors, as GitHub names them."""
        return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in self.headings}

    @property
    def links(self):
        """The links within the project: file name and anchor, either of which can be empty."""
        return re.findall(r"\]\((?!https?:|/)([^#)]*)#?([^)]*)\)", self.text.replace("\n", " "))
