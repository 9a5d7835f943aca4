"""Read and write posts as Markdown files with front matter."""

import re
from importlib import import_module

# Characters that a URL in Markdown must not contain
ENCODED = str.maketrans({character: f"%{ord(character):02X}" for character in "\t\n\r ()<>"})
NOT_IN_URL = ENCODED | str.maketrans({"\\": r"\\"})


def image_of(label: str, url: str) -> str:
    label = re.sub(r"[\[\]\\]", r"\\\g<0>", label)
    return f"![{label}]({url})"


def safe_markdown_of(html: str) -> tuple[str, set[str]]:
    """Convert HTML in a thread, where importing the parser delays no request; at the start, it would take 75 ms."""
    return import_module("blogapi.markdown.html").safe_markdown_of(html)


def render(text: str) -> str:
    """Render Markdown in a thread, where importing the parser delays no request; at the start, it would take 30 ms."""
    return import_module("blogapi.markdown.rendering").render(text)
