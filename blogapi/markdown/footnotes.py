"""Find the footnotes in HTML, so that they become footnotes in Markdown.

Every program marks footnotes in its own way, but always with two links: one leads from the text to the note, and one
leads back from the note to the text.
"""

import re
from collections.abc import Iterable, Mapping

from turbohtml import Element, Text

NOTE = "footnote"  # the tag of a note in the changed tree
MARK = re.compile(r"\W*(?:(?P<name>\d{1,4}|[a-z]|[ivxlc]{1,6})|[*†‡§¶]{1,4})\W*")  # the text of a link to a note
CONTAINERS = ("dd", "li", "p")  # elements that can contain a note, besides a <div> with an id
Link = tuple[Element, int, str]  # a link, its container's place among all containers, and the name that it leads to


def mark_footnotes(tree: Element) -> None:
    """Replace each link to a note with a mark such as `[^1]`, and move the notes to the end."""
    # For MAX_SENT characters of HTML, the most in a request, this takes less than 0.1 s.
    containers, places, links = _find_links(tree)
    names = _mark_links(places, links)
    before = containers[min(names, default=0)].preceding
    nearest = next((node for node in before if isinstance(node, Element) or node.text.strip()), None)
    if isinstance(nearest, Element) and nearest.tag == "hr":
        nearest.decompose()  # The site draws its own rule above the notes.
    notes = []
    for place in sorted(names, reverse=True):  # A note inside another one is moved first, so that no note moves twice.
        note = Element(NOTE, {}, list(containers[place].children))
        first = next((child for child in note.children if isinstance(child, Element)), note)
        (first if first.tag == "p" else note).insert(0, Text(f"[^{names[place]}]: "))
        containers[place].decompose()
        notes.append(Element("div", {}, [note]))
    tree.extend(notes[::-1])


def _mark_links(places: Mapping[str, int], links: Iterable[Link]) -> dict[int, str]:
    """Replace the links to notes, and remove the links back. Return the notes' names by container."""
    ways = {(start, places[name]) for _, start, name in links if name in places}
    names: dict[int, str] = {}
    for link, start, target in links:
        end = places.get(target, start)
        mark = MARK.fullmatch(link.text)
        if (end, start) not in ways or start == end:
            continue
        if start in names:  # The site adds its own link back.
            if isinstance(after := link.next_sibling, Text):
                after.data = after.data.lstrip()
            link.decompose()
        elif start < end and mark:
            name = mark["name"] or str(len(names) + 1)
            names.setdefault(end, f"{name}_{end}" if name in names.values() else name)
            is_alone = link.previous_sibling is link.next_sibling is None
            raised = link.parent if is_alone and isinstance(link.parent, Element) else link
            (raised if raised.tag == "sup" else link).replace_with(Text(f"[^{names[end]}]"))
    return names


def _find_links(tree: Element) -> tuple[list[Element], dict[str, int], list[Link]]:
    """Return the containers, the place of each name, and the links, in the order of the document."""
    containers, places, links = [tree], dict[str, int](), list[Link]()
    pending = [(tree, 0)]
    while pending:
        element, place = pending.pop()
        is_paragraph_of_note = element.tag == "p" and place > 0
        if not is_paragraph_of_note and (element.tag in CONTAINERS or (element.tag == "div" and element.attr("id"))):
            place = len(containers)
            containers.append(element)
        for name in filter(None, (element.attr("id"), element.attr("name"))):
            places.setdefault(name, place)
        _, is_link, target = (element.attr("href") or "").rpartition("#")
        if is_link:
            links.append((element, place, target))
        pending += [(child, place) for child in reversed(list(element.children)) if isinstance(child, Element)]
    return containers, places, links
