"""Find and store the image files that imported posts refer to."""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from unicodedata import normalize
from urllib.parse import unquote, urljoin

from blogapi.documents import each_text
from blogapi.storage.database import Database, write_patiently
from blogapi.wings.images import storage as images
from blogapi.wings.images.formats import EXTENSIONS, MAX_IMAGE_BYTES, InvalidImage, UnsupportedImage
from blogapi.wings.images.storage import IMAGE_ID
from blogapi.wings.transfer.content import IS_RELATIVE, host_of, with_images
from blogapi.wings.transfer.folder import MARKDOWN_SUFFIXES, open_below, real_folders, reason_of
from blogapi.wings.transfer.items import Note

URL_PARTS = re.compile(r"(?P<host>(?:https?:)?//[^/?#]*)?(?P<path>[^?#]*)", re.IGNORECASE)
SUFFIXES = {".jpeg", *(f".{extension}" for extension in EXTENSIONS.values())}
IMAGE_FOLDER = "images"  # the image folder of an export, and the first segment of image paths
IMAGE_FILE = rf"{IMAGE_ID}\.(?:{'|'.join(EXTENSIONS.values())})"
# Any host matches, because a service can move. A relative URL must not be the end of a longer one.
ANY_HOST, BEGINS = r"https?://[^\s\"'<>()]{1,300}?", r"(?<![\w./~%-])"
IMAGE_URL = re.compile(rf"(?:{ANY_HOST}|{BEGINS})/{IMAGE_FOLDER}/({IMAGE_FILE})\b".encode())
# A URL with its host, or a relative one in a standalone export
EXPORTED_URL = re.compile(rf"(?P<service>{ANY_HOST}/|{BEGINS})(?P<path>{IMAGE_FOLDER}/{IMAGE_FILE})\b")
SIZE = re.compile(r"\d+(x\d+)?")  # Obsidian writes the size of an image in place of a label.
# Liquid such as {{ '/a.png' | relative_url }}
LIQUID_FILTER = re.compile(r"\{\{-?\s*(?:[\"']([^\"'{}]*)[\"'])?[^{}]*\}\}")
# A value in params that is the URL of an image
IN_PARAMS = re.compile(rf"[^\n<>\"{{}}|\\]{{1,300}}(?:{'|'.join(map(re.escape, SUFFIXES))}|\.svg)", re.IGNORECASE)

IsStored = Callable[[str], bool]
IMAGE_ERRORS = (OSError, InvalidImage, UnsupportedImage)


def with_urls(urls: Mapping[bytes, bytes]) -> Callable[[str], str]:
    """Return a function that replaces the image URLs in a string. `urls` maps file names to new URLs."""
    return lambda text: IMAGE_URL.sub(lambda match: urls.get(match[1], match[0]), text.encode()).decode()


class LocalImages:
    """The images in imported folders and beside imported files. Their new URLs begin with `url`.

    URLs with a host or a leading slash are looked up in `static`, the root folder of the old site. If `static` is None,
    URLs with a leading slash are looked up in the subfolders `tops` of each folder. `is_stored` returns whether the
    service has an image with the given id.
    """

    def __init__(
        self, paths: Sequence[Path], url: str, static: Path | None, is_stored: IsStored, tops: Sequence[str] = ()
    ):
        self.url, self.is_stored = url, is_stored
        self.with_host = [static] if static else []
        self.without_host = self.with_host or [path / name for path in paths for name in tops]
        parents = [path.parent for path in paths if path.is_file() and path.suffix.lower() in MARKDOWN_SUFFIXES]
        self.roots = real_folders([*paths, *parents, *filter(None, [static])])
        self.refused: dict[str, str] = {}  # file -> reason
        self._urls: dict[str, str] = {}  # file -> new URL; "" if the image was refused
        self._names: dict[Path, dict[str, list[str]]] = {}  # top folder -> file name -> image files

    def find(self, url: str, folders: Iterable[Path]) -> str | None:
        """Return the real path of a URL's file under one of the roots. A relative URL is looked up in `folders`."""
        match = URL_PARTS.match(LIQUID_FILTER.sub(r"\1", url))
        assert match is not None  # An empty pattern matches every string.
        path = unquote(match["path"])
        candidates: Iterable[Path]
        if match["host"] or path.startswith("/"):
            tops = self.with_host if match["host"] else self.without_host
            candidates = (candidate for top in tops for candidate in _below_root(top, path))
        else:
            candidates = [folder / path for folder in folders] if IS_RELATIVE.match(url) else []
        return next(filter(None, map(self._allowed, candidates)), None)

    def _allowed(self, path: Path) -> str | None:
        """Return the real path of a file under the roots, even if its name uses another Unicode form (NFC or NFD)."""
        forms = (str(path), *(normalize(form, str(path)) for form in ("NFC", "NFD")))
        real = next((os.path.realpath(form) for form in forms if os.path.isfile(form)), "")
        return real if real.startswith(self.roots) else None

    def find_by_name(self, name: str, top: Path) -> str | None:
        """Return the image under `top` whose path ends with `name`, or None if there is no such image or several."""
        if top not in self._names:
            self._names[top] = images_below(top)
        ending = f"/{name.strip().lstrip('/')}".casefold()
        named = self._names[top].get(ending.rpartition("/")[2], ())
        paths = [path for path in named if path.casefold().endswith(ending)]
        return self._allowed(Path(paths[0])) if len(paths) == 1 else None

    def url_of(self, file: str) -> str:
        """Return the new URL of the image in a file, or "" if the image is refused."""
        if file not in self._urls:
            self._urls[file] = ""
            try:
                with open_below(file, self.roots) as opened:
                    if os.path.getsize(file) > MAX_IMAGE_BYTES:
                        raise InvalidImage(f"must have at most {MAX_IMAGE_BYTES // 1024**2} MiB")
                    self._urls[file] = self.url + images.identify(opened, file)[0].path
            except IMAGE_ERRORS as error:
                self.refused[file] = reason_of(error)
        return self._urls[file]


def _below_root(root: Path, path: str) -> Iterator[Path]:
    """Yield the files that a path may mean under a root folder. The path may repeat the last folders of the root."""
    names, last = [name for name in path.split("/") if name], Path(os.path.abspath(root)).parts[1:]
    for count in range(min(len(names), len(last) + 1)):
        if tuple(names[:count]) == last[len(last) - count :]:
            yield root.joinpath(*names[count:])


class ImageStore:
    """Stores images in the database. A dry run only counts them."""

    def __init__(self, database: Database, max_bytes: int, dry_run: bool):
        self.database, self.max_bytes, self.dry_run = database, max_bytes, dry_run
        self.counts = Counter({"new": 0, "already stored": 0, "missing": 0})
        self._stored: set[str] = set()  # files
        self._planned: dict[str, int] = {}  # image id -> size, for images that a dry run would store

    def is_stored(self, image_id: str) -> bool:
        """Return whether an image is stored or, in a dry run, would have been stored by now."""
        return image_id in self._planned or images.find(self.database, image_id) is not None

    def store(self, roots: tuple[str, ...], file: str) -> None:
        """Store an image file under one of `roots`, unless it is already stored. Raises IMAGE_ERRORS, Unavailable."""
        if file not in self._stored:
            with open_below(file, roots) as opened:
                self.add(opened, file)
            self._stored.add(file)

    def add(self, file: BinaryIO, name: str, fetched_from: str = "") -> images.StoredImage:
        """Store the image in an open file. If it was fetched, remember its URL."""
        image, kept = images.identify(file, name)
        if is_new := not self.is_stored(image.id):
            if image.bytes > self.bytes_left():
                raise InvalidImage("the images would exceed BLOGAPI_IMAGES_MB")
            if self.dry_run:
                self._planned[image.id] = image.bytes
            else:
                images.store(self.database, partial(write_patiently, self.database), image, kept)
        if fetched_from:
            write_patiently(self.database, images.remember_fetched, fetched_from, image.id)
        self.counts["new" if is_new else "already stored"] += 1
        return image

    def bytes_left(self) -> int:
        """Return how many bytes of images can still be stored."""
        return self.max_bytes - images.total_bytes(self.database) - sum(self._planned.values())


@dataclass
class Placement:
    """Replaces the image URLs in a post, and collects the image files and the URLs of missing images.

    The first of `folders` contains the post's file. It is under `top`, the imported folder. `site` is the base URL for
    the relative URLs of missing images. `hosts` counts the images on other hosts. If `images` is None, no image is
    looked up.
    """

    images: LocalImages | None
    site: str | None
    hosts: Counter[str]
    top: Path | None = None
    folders: Sequence[Path] = ()
    files: dict[str, None] = field(default_factory=dict, init=False)
    missing: dict[str, None] = field(default_factory=dict, init=False)  # URLs, as an ordered set
    is_lost: bool = field(default=False, init=False)  # whether an exported image is missing from this service

    def replace(self, fields: dict[str, Any]) -> dict[Note, int | None]:
        """Replace the image URLs in all fields of a post. Return notes and, if known, their lines in the content."""
        notes: dict[Note, int | None] = {}
        if self.images:
            exported = partial(self._exported, self.images)
            fields |= {name: each_text(value, partial(_with_exported, exported)) for name, value in fields.items()}
        if "content" in fields:
            fields["content"], constructs = with_images(fields["content"], self._new_or_old_url, self._embedded)
            notes |= constructs
        if "cover_image" in fields:
            fields["cover_image"] = self._new_or_old_url(fields["cover_image"])
        if self.images and "params" in fields:
            known = len(self.missing)
            fields["params"] = each_text(fields["params"], self._in_params)
            notes |= {Note.IMAGES_IN_PARAMS: None} if len(self.missing) > known else {}
        return notes | ({Note.LOST_IMAGES: None} if self.is_lost else {})

    def _new_url(self, *urls: str) -> str:
        """Return the new URL of the first image found at these URLs, or ""."""
        files = (self.images.find(url, self.folders) for url in urls) if self.images else ()
        return self._use(next(filter(None, files), None))

    def _use(self, file: str | None) -> str:
        new_url = self.images.url_of(file) if self.images and file else ""
        self.files |= {file: None} if file and new_url else {}
        return new_url

    def _new_or_old_url(self, url: str) -> str:
        """Return an image's new URL or, if it was not found, its old URL, made absolute. Count images elsewhere."""
        if new_url := self._new_url(url):
            return new_url
        if IS_RELATIVE.match(url):
            self.missing[url] = None
            url = self._absolute(url)
        if (host := host_of(url)) and not (self.images and url.startswith(f"{self.images.url}/")):
            self.hosts[host] += 1
        return url

    def _absolute(self, url: str) -> str:
        """Return the URL of an image on the old site, or the given URL unchanged if `site` is unknown."""
        if not self.site or url.startswith("{"):
            return url
        below = "/".join(self.folders[0].parts[len(self.top.parts) :]) if self.top else ""
        return f"{self.site}{url}" if url.startswith("/") else urljoin(f"{self.site}/{below}/", url)

    def _in_params(self, value: str) -> str:
        """Return the new URL of an image in params, or any other value unchanged."""
        if not IN_PARAMS.fullmatch(value):
            return value
        is_relative = IS_RELATIVE.match(value)
        new_url = self._new_url(value, f"/{value}") if is_relative else self._new_url(value)
        if not new_url and is_relative and " " not in value:
            self.missing[value] = None
        return new_url or value

    def _embedded(self, name: str, label: str) -> str:
        """Return the Markdown for an image that Obsidian embeds, or "" if the image is not found."""
        new_url = self._use(self.images.find_by_name(name, self.top)) if self.images and self.top else ""
        if not new_url and Path(name).suffix.lower() in SUFFIXES:
            self.missing[name] = None
        text = Path(name).stem if SIZE.fullmatch(label) else label or Path(name).stem
        return new_url and f"![{text}]({new_url})"

    def _exported(self, local: LocalImages, match: re.Match[str]) -> str:
        """Return the new URL for an image URL that an export wrote."""
        path, new_url = match["path"], self._new_url(match["path"])
        if not new_url and match["service"] == f"{local.url}/" and not local.is_stored(Path(path).stem):
            self.is_lost = True
            self.missing[path] = None
        return new_url or match[0]


def _with_exported(exported: Callable[[re.Match[str]], str], text: str) -> str:
    return EXPORTED_URL.sub(exported, text) if f"{IMAGE_FOLDER}/" in text else text  # The pattern is slow.


def images_below(top: Path) -> dict[str, list[str]]:
    """Return the paths of all images in and under a folder, by case-folded name."""
    paths = defaultdict(list)
    for folder, below, files in os.walk(top):
        below[:] = [name for name in below if not name.startswith((".", "node_modules"))]
        for name in files:
            if os.path.splitext(name)[1].lower() in SUFFIXES:
                paths[name.casefold()].append(os.path.join(folder, name))
    return paths
