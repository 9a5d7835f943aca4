"""Read the elements of an XML file one by one, without entities and in bounded memory."""

import io
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser, iterparse

from blogapi.wings.markdown.front_matter import MarkdownError

MAX_ITEM_BYTES = 32 * 1024 * 1024  # limit for an item, which is held in memory as a whole
MAX_TAG_BYTES = 1024 * 1024  # limit for a tag or comment, which the parser reads again with each of its pieces
# XML forbids them, but WordPress writes them.
CONTROL_CHARACTERS = bytes({*range(0x20)} - {*b"\t\n\r"})


class CleanFile(io.FileIO):
    """A file without control characters, for a parser. Raises MarkdownError for a large item or tag."""

    remaining = MAX_ITEM_BYTES
    passed = 0  # number of bytes that the parser has received

    def __init__(self, path: Path, parser: DefusedXMLParser):
        super().__init__(path)
        self.expat = parser.parser
        if hasattr(self.expat, "SetReparseDeferralEnabled"):  # Otherwise, CurrentByteIndex lags behind.
            self.expat.SetReparseDeferralEnabled(False)

    def read(self, size: int | None = -1) -> bytes:
        """Read up to `size` bytes: fewer if some were control characters, none only at the end."""
        while (data := super().read(size)) and not (clean := data.translate(None, CONTROL_CHARACTERS)):
            pass
        self.remaining -= len(data)
        if self.remaining < 0:
            raise MarkdownError(f"an item must have at most {MAX_ITEM_BYTES // 1024**2} MiB")
        if self.passed - self.expat.CurrentByteIndex > MAX_TAG_BYTES:
            raise MarkdownError(f"a tag must have at most {MAX_TAG_BYTES // 1024**2} MiB")
        self.passed += len(clean) if data else 0
        return clean if data else b""


def elements(path: Path) -> Iterator[Element]:
    """Yield the elements in the channel of an RSS file, or in the root of an Atom or RDF file. Raises MarkdownError."""
    parents: list[Element] = []
    depth = 2
    try:
        parser = DefusedXMLParser(target=TreeBuilder(), forbid_dtd=True)
        with CleanFile(path, parser) as file:
            for event, element in iterparse(file, ("start", "end"), parser):
                if event == "start":
                    depth = depth if parents else 1 if local_name(element) in ("feed", "RDF") else 2
                    parents.append(element)
                    continue
                parents.pop()
                if len(parents) == depth:
                    yield element
                    parents[-1].clear()
                    file.remaining = MAX_ITEM_BYTES
    except ParseError as error:
        raise MarkdownError(f"not valid XML: {str(error).partition(':')[0]}", error.position[0]) from None
    except DefusedXmlException:
        raise MarkdownError("must not have a document type definition") from None
    except (LookupError, ValueError):  # raised by the parser
        raise MarkdownError("its encoding is not supported: convert it to UTF-8") from None


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def child_text(item: Element, name: str, space: str = "") -> str:
    """Return the text of a child. `space` is part of its namespace."""
    return next((child.text or "" for child in item.iterfind(f"{{*}}{name}") if space in child.tag), "").strip()
