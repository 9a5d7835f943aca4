"""Read and write posts as Markdown files with front matter."""

import re

# Characters that a URL in Markdown must not contain
ENCODED = str.maketrans({character: f"%{ord(character):02X}" for character in "\t\n\r ()<>"})
NOT_IN_URL = ENCODED | str.maketrans({"\\": r"\\"})


def image_of(label: str, url: str) -> str:
    label = re.sub(r"[\[\]\\]", r"\\\g<0>", label)
    return f"![{label}]({url})"
