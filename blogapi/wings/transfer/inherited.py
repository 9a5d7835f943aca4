"""Find the values that a post inherits from its path, data files in its folders, and its site's configuration."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from blogapi.markdown.front_matter import MarkdownError, read_toml, read_yaml, shown, split
from blogapi.markdown.programs import ANY, SCRIPTS
from blogapi.markdown.public import Inherited
from blogapi.wings.transfer.exclusions import EXCLUDING_FILES, Patterns, excluded_by
from blogapi.wings.transfer.folder import DataError, read_data, read_text
from blogapi.wings.transfer.sites import Site, collections_in, files_in, folders_up_to, mappings, names_in, roots_of

# Names of unpublished files, in order: in Astro, Docusaurus and Jekyll; in Blot; by convention; in Nuxt
DRAFT_NAME = re.compile(
    r"_.*|\[drafts?\].*|(draft|wip)[-_ ].*|.*\.(draft|private|hidden)(\..*)?", re.DOTALL | re.IGNORECASE
)
TRANSLATED_INDEX = re.compile(r"_index\.[\w-]+\.md")  # in Hugo and Zola
LITERAL = re.compile(r"[\"']?(\w+)[\"']?\s*:\s*(true\b|false\b|\"[^\"\n]*\"|'[^'\n]*')")  # in a script
HARP_DATA = "_data.json"  # maps names of the files beside it to their front matter
# Top-level settings of a site that apply to all its posts. Other settings concern the site itself.
SITE_WIDE = ("draft", "private", "published", "hidden", "unlisted", "visibility")


def inherited_by(path: Path, bound: Path, site: Site, tags: Iterable[str]) -> Iterator[Inherited]:
    """Yield the values that apply to the post in a file, from the nearest source to the most distant."""
    yield from _from_names(path, bound, site)
    for file in files_in(path.parent, [name.format(path.stem) for name in ANY.post_data_files]):
        yield from _read(file, roots_of(bound))
    parts = tuple(part.lower() for part in path.parts[len(bound.parts) :])
    from_folders = chain.from_iterable(_from_folder(folder, bound) for folder in folders_up_to(bound, path.parent))
    for entry in chain(from_folders, _from_site(site, {tag.lower() for tag in tags})):
        targets = mappings(entry.values.get("_target", entry.values.get("target")))  # limits in Hugo and Jekyll
        if not targets or any(_is_target(target, parts) for target in targets):
            yield entry
    yield from excluded_by(path, bound)


def is_settings(file: Path) -> bool:
    """Return whether a file is read for its settings or values. The report does not list such files as unread."""
    names = (*(name.format(file.parent.name) for name in ANY.data_files), *EXCLUDING_FILES)
    return any(f"/{file}".endswith(f"/{name}") for name in names) or (
        file.with_suffix(".md").is_file() and file.suffix in (".json", ".yaml", ".yml")
    )


def _from_names(path: Path, bound: Path, site: Site) -> Iterator[Inherited]:
    """Yield reasons to hide a post, based on the names of its file and folders."""
    if DRAFT_NAME.fullmatch(path.stem):
        yield Inherited("its name", why=shown(f"its name: {path.name}"))
    if site.program.hides_underscore_folders and site.values is not None:
        known = {"_posts", "_drafts", *(f"_{name}" for name in collections_in(site.values))}
        for folder in path.parts[len(bound.parts) : -1]:
            if folder.startswith("_") and folder not in known:
                yield Inherited("its path", why=shown(f"its folder: {folder}"))


@cache
def _from_folder(folder: Path, bound: Path) -> tuple[Inherited, ...]:
    """Return the values in a folder's data files, whichever program they belong to."""
    entries = names_in(folder)
    if entries is None:
        return (_unreadable(folder),)
    names = [name.format(folder.name) for name in ANY.data_files]
    translated = sorted(filter(TRANSLATED_INDEX.fullmatch, entries))
    return tuple(entry for file in files_in(folder, [*names, *translated]) for entry in _read(file, roots_of(bound)))


def _unreadable(file: Path) -> Inherited:
    return Inherited(file.name, why=f"{file.name} cannot be read")


def _read(file: Path, roots: tuple[str, ...]) -> Iterator[Inherited]:
    """Yield the values in a data file. From a script, yield only literal values."""
    try:
        if file.suffix[1:] in SCRIPTS:
            yield Inherited(file.name, _literals(read_text(file, roots)))
        elif file.suffix == ".md":
            delimiter, text, _, _ = split(read_text(file, roots).encode(), skip_blank=True)
            read, _ = (read_toml if delimiter == b"+++" else read_yaml)(text)
            values = {name.lower(): value for name, value in read.items()}
            cascade = mappings(values.pop("cascade", None))
            values.pop("render", None)  # In Zola, this concerns only the section's own page.
            yield Inherited(file.name, values, is_default=False)
            yield from (Inherited(file.name, part) for part in cascade)
        else:
            values = read_data(file, roots)
            names = files_in(file.parent, [f"{name}.md" for name in values]) if file.name == HARP_DATA else ()
            yield Inherited(file.name, {name: values[name] for name in values.keys() - {path.stem for path in names}})
    except (DataError, MarkdownError):
        yield _unreadable(file)


def _literals(script: str) -> dict[str, str]:
    return {name: value.strip("\"'") for name, value in LITERAL.findall(script)}


def values_of_file(path: Path, roots: tuple[str, ...]) -> dict[str, Any]:
    """Return a post's values from the data file in its folder (Harp). Raises DataError."""
    data = [read_data(file, roots).get(path.stem.lower()) for file in files_in(path.parent, [HARP_DATA])]
    return next(iter(mappings(data)), {})


def _from_site(site: Site, tags: set[str]) -> Iterator[Inherited]:
    """Yield the values in a site's configuration that apply to its posts."""
    if not site.config:
        return
    name, values = site.config.name, site.values
    if values is None:
        yield _unreadable(site.config)
        return
    yield Inherited(name, {key: values[key] for key in SITE_WIDE if key in values})
    yield Inherited(name, _literals(str(values.get("default_metadata"))))  # Pelican
    yield from (Inherited(name, part) for part in mappings(values.get("cascade")))
    for default in mappings(values.get("defaults")):
        for own in mappings(default.get("values")):
            yield Inherited(name, own | {"_target": default.get("scope")})
    for label, options in collections_in(values).items() if "_posts" in site.program.post_folders else ():
        if label != "posts":
            of_label = {"output": options.get("output", "false"), "_target": {"type": label}}
            yield Inherited(name, of_label, is_default=False)
    encrypted = [tag for options in mappings(values.get("encrypt")) for tag in mappings(options.get("tags"))]
    hidden = tags & {str(tag.get("name")).lower() for tag in encrypted}
    yield from (Inherited(name, why=f"the tag {tag} in {name}") for tag in sorted(hidden))


def _is_target(target: Mapping[str, Any], parts: tuple[str, ...]) -> bool:
    """Return whether a Hugo target or a Jekyll scope may include a file."""
    kind, of_type = str(target.get("kind") or "page"), str(target.get("type") or "posts").lower()
    if not ("page" in kind or "*" in kind):
        return False
    if of_type == "pages" and any(part.startswith("_") for part in parts):
        return False
    if of_type not in ("post", "posts", "drafts", "pages") and f"_{of_type}" not in parts:
        return False
    paths = str(target.get("path") or "**").lower().strip("{}").split(",")
    return Patterns([path.strip() for path in paths]).matches("/".join(parts))
