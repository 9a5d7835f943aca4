"""Read and write the files in a folder safely."""

import errno
import fcntl
import json
import os
import tomllib
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from stat import S_IMODE, S_ISLNK, S_ISREG
from typing import IO, Any, BinaryIO
from zipfile import BadZipFile, ZipFile

import yaml

from blogapi.bounded import YamlLoader, check_json, check_toml, yaml_events
from blogapi.markdown.files import MAX_FILE_BYTES
from blogapi.markdown.front_matter import MarkdownError

MARKDOWN_SUFFIXES = (".md", ".markdown", ".mdx")


def real_folders(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the real paths of the folders among these paths, each followed by a slash."""
    return tuple(os.path.join(os.path.realpath(path), "") for path in paths if path.is_dir())


def exists(path: Path | str, folder: int | None = None) -> bool:
    """Return whether a file exists, or may exist in an unreadable folder. `path` can be relative to `folder`."""
    try:
        os.lstat(path, dir_fd=folder)
    except OSError as error:
        return not isinstance(error, FileNotFoundError | NotADirectoryError)
    return True


@contextmanager
def open_below(path: Path | str, roots: tuple[str, ...]) -> Iterator[BinaryIO]:
    """Open a regular file under one of the folders `roots`. Raises OSError for anything else."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:  # never waits
        real, state = os.path.realpath(path), os.fstat(file.fileno())
        # Refuse even a link that replaces the file while it is being opened.
        if not (S_ISREG(state.st_mode) and real.startswith(roots) and os.path.samestat(state, os.stat(real))):
            raise OSError(errno.EPERM, "not a regular file in the given folders")
        yield file


def reason_of(error: Exception) -> str:
    """Return the reason for an error, without the file name."""
    return getattr(error, "strerror", None) or str(error)


MAX_DATA_BYTES = 256 * 1024  # maximum size of a configuration or data file
MAX_DATA_DEPTH = 64  # maximum depth of lists and mappings, because the parsers are recursive
MAX_JSON_VALUES = 5_000_000  # maximum number of values in a Ghost export


class DataError(MarkdownError, ValueError):
    """A data file that cannot be read."""


def load_json(text: str) -> Any:
    """Parse JSON. Raises ValueError."""
    check_json(text.encode(errors="replace"), MAX_JSON_VALUES, MAX_DATA_DEPTH)
    return json.loads(text)


def load_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raises ValueError."""
    check_toml(text, MAX_DATA_BYTES, MAX_DATA_DEPTH)
    return tomllib.loads(text)


def load_yaml(text: str) -> Any:
    """Parse YAML into strings, lists and mappings, without other types. Raises ValueError."""
    try:
        for _ in yaml_events(text, MAX_DATA_BYTES, MAX_DATA_DEPTH):
            pass
        value = yaml.load(text, YamlLoader)
    except yaml.YAMLError:
        raise DataError("not valid YAML") from None
    _check_size(value)
    return value


def _check_size(value: Any) -> None:
    """Raise DataError if aliases make a value much larger than the file."""
    waiting, count = [value], 0
    while waiting:
        value = waiting.pop()
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        count += len(inner)
        if count > MAX_DATA_BYTES:
            raise DataError("its aliases repeat too many values")
        waiting.extend(inner)


LOADERS = {".json": load_json, ".toml": load_toml}  # file extension -> loader; other files are read as YAML


def read_text(path: Path, roots: tuple[str, ...]) -> str:
    """Return the text of a file under one of the folders `roots`. Raises DataError."""
    try:
        with open_below(path, roots) as file:
            data = file.read(MAX_DATA_BYTES + 1)
        if len(data) > MAX_DATA_BYTES:
            raise DataError(f"larger than {MAX_DATA_BYTES // 1024} KiB")
        return data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise DataError(reason_of(error)) from None


def read_data(path: Path, roots: tuple[str, ...]) -> dict[str, Any]:
    """Return the mapping in a file, with names in lower case; {} if there is no mapping. Raises DataError."""
    try:
        values = LOADERS.get(path.suffix, load_yaml)(read_text(path, roots))
    except ValueError as error:
        raise DataError(str(error)) from None
    return {str(name).lower(): value for name, value in values.items()} if isinstance(values, dict) else {}


MAX_FILES = 50_000
MAX_UNPACKED_BYTES = 2 * 1024**3
MAX_RATIO = 200  # maximum unpacked size, divided by the size of the archive


class Archives:
    """Unpacks the zip archives among some paths into subfolders of `top`."""

    def __init__(self, paths: Iterable[Path], top: str):
        self.faults: dict[Path, str] = {}  # archive that was not unpacked -> the reason
        self.left_out: defaultdict[str, list[str]] = defaultdict(list)  # kind -> files that were not unpacked
        # the path to read -> the path that was given
        self.paths = {self._unpack(path, Path(top, str(number), path.stem)): path for number, path in enumerate(paths)}

    def _unpack(self, path: Path, folder: Path) -> Path:
        if path.suffix.lower() != ".zip" or not path.is_file():
            return path
        try:
            folder.mkdir(parents=True)
            with ZipFile(path) as archive:
                files, limit = archive.infolist(), min(MAX_UNPACKED_BYTES, MAX_RATIO * path.stat().st_size)
                if len(files) > MAX_FILES or sum(file.file_size for file in files) > limit:
                    raise ValueError(f"the limits are {MAX_FILES:,} files and {limit:,} bytes; import a folder instead")
                for file in files:
                    if archive.getinfo(file.filename) is not file:
                        self.left_out["file with the same name as a later one"].append(f"{path}/{file.filename}")
                    elif S_ISLNK(file.external_attr >> 16):
                        self.left_out["link in an archive"].append(f"{path}/{file.filename}")
                    else:
                        archive.extract(file.filename, folder)  # never exceeds these sizes or writes outside the folder
        except (BadZipFile, EOFError, LZMAError, OSError, RuntimeError, ValueError, zlib.error) as error:
            self.faults[path] = f"cannot be read: {reason_of(error) or 'it is damaged'}"
            return path
        return folder


MAX_NAME_BYTES = 255  # maximum length of a file name (in bytes) on most disks


class Folder:
    """An open folder, unaffected by later changes to its path. Its methods refuse links with an OSError."""

    def __init__(self, path: Path, parent: "Folder | None" = None):
        self.path = path
        try:
            if parent:
                self.file: int = os.open(path.name, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent.file)
            else:
                self.file = os.open(path, os.O_DIRECTORY)
        except NotADirectoryError as error:
            which = f"{path} " if parent else ""
            raise OSError(error.errno, f"{which}must be a folder, and not a link") from error

    def lock(self) -> None:
        """Lock the folder until it is closed. Raises BlockingIOError if it is locked."""
        fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        os.close(self.file)

    def below(self, name: str, create: bool = False) -> "Folder":
        """Open a subfolder."""
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.file)
        return Folder(self.path / name, self)

    def state(self, name: str) -> os.stat_result:
        """Return the stat result of a file, without following links."""
        return os.stat(name, dir_fd=self.file, follow_symlinks=False)

    def open(self, name: str, mode: str) -> IO[bytes]:
        """Open a file, but refuse a link."""
        flags = os.O_NOFOLLOW | os.O_NONBLOCK  # Otherwise, opening a pipe would wait for its other end.
        return open(name, mode, opener=lambda path, more: os.open(path, more | flags, 0o666, dir_fd=self.file))

    @contextmanager
    def replacing(self, name: str) -> Iterator[IO[bytes]]:
        """Open a new file that atomically replaces the one named `name`, unless the block fails."""
        part = f".{os.fsdecode(os.fsencode(name)[: MAX_NAME_BYTES - 6])}.part"
        self.remove(part)  # a leftover if a command was killed
        try:
            with self.open(part, "xb") as file:
                yield file
            os.replace(part, name, src_dir_fd=self.file, dst_dir_fd=self.file)
        finally:
            self.remove(part)

    def write(self, name: str, pieces: Iterable[bytes], when: str, is_same: Callable[[IO[bytes]], bool]) -> str:
        """Replace a file atomically and set its time, unless it is a regular file that already has the same bytes."""
        mode = 0
        with suppress(OSError):
            if S_ISREG(mode := self.state(name).st_mode):
                with self.open(name, "rb") as file:
                    if is_same(file):
                        return "unchanged"
        seconds = datetime.fromisoformat(when).timestamp()
        with self.replacing(name) as file:
            file.writelines(pieces)
            file.flush()
            os.utime(file.fileno(), (seconds, seconds))
            if S_ISREG(mode):
                os.fchmod(file.fileno(), S_IMODE(mode))
        return "written"

    def write_bytes(self, name: str, data: bytes, when: str) -> str:
        """Replace the content of a file with `data`, as `write` does."""
        return self.write(name, [data], when, lambda file: file.read(len(data) + 1) == data)

    def remove(self, name: str) -> str:
        """Remove a file or link if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.file)
        return "deleted"

    def exists(self, name: str) -> bool:
        """Return whether the name is in use, or may be in use in a folder that cannot be read."""
        return exists(name, self.file)

    @contextmanager
    def place(self, name: str, create: bool = False) -> Iterator[tuple["Folder", str]]:
        """Open a file's folder without following links. Yield it, and the file's name in it. Raises OSError."""
        folder, (*folders, last) = self, PurePosixPath(name).parts
        with ExitStack() as opened:
            for part in folders:
                folder = opened.enter_context(closing(folder.below(part, create)))
            yield folder, last

    def read_bytes(self, name: str) -> bytes:
        """Return at most MAX_FILE_BYTES + 1 bytes of a file that is not a link. Raises OSError."""
        with self.place(name) as (folder, last), folder.open(last, "rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
