"""Write the log of gunicorn, the worker and the application to standard error, masking secrets (docs/running.md)."""

import atexit
import io
import json
import logging
import os
import re
import sys
import time
from contextlib import suppress
from typing import Any
from urllib.parse import quote, unquote

from gevent.monkey import get_original
from gunicorn.glogging import Logger

from blogapi.clock import rfc3339
from blogapi.config import Config

SECRET = re.compile(r"(blog_)[A-Za-z0-9_-]{16,}|(whsec_)[A-Za-z0-9+/%=]+")
# Control characters that a terminal would interpret, and characters that change the text direction
UNPRINTABLE = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
MAX_TARGET = 1000  # at most this many characters of a request target are logged
MAX_WAITING = 10_000  # while this many lines are queued, further lines are dropped
BATCH_SECONDS = 0.02  # lines logged within this time are written together
EXIT_SECONDS = 1.0  # when a process ends, longest wait for its last lines to be written

# The originals of the classes and functions that gevent replaces. With gevent's versions, the writer would be a
# greenlet, and a blocking write would block all other greenlets.
SimpleQueue = get_original("queue", "SimpleQueue")
start_new_thread = get_original("_thread", "start_new_thread")
select = get_original("select", "select")

# Whether standard error is systemd's journal (systemd.exec(5), JOURNAL_STREAM), which adds the time to each line itself
IN_JOURNAL = False
with suppress(OSError):  # raised if standard error is closed
    IN_JOURNAL = os.environ.get("JOURNAL_STREAM") == f"{os.fstat(2).st_dev}:{os.fstat(2).st_ino}"


def sleep(seconds: float) -> None:
    """Sleep. Unlike time.sleep, this works even if the clock is broken, so that the log can report the broken clock."""
    select([], [], [], seconds)


def mask(text: str) -> str:
    """Mask everything in a string that looks like an API key or a webhook secret."""
    return SECRET.sub(r"\1\2[masked]", text) if "blog_" in text or "whsec_" in text else text


def printable_target(target: str) -> str:
    """Shorten a request target for the log, encode quotation marks, and mask keys, even percent-encoded ones."""
    if "%" in target:
        decoded = unquote(target)
        masked = mask(decoded)
        if masked != decoded:
            target = quote(masked, safe="/?&=[]:;,+@!$'()*~")
    return mask(target).replace('"', "%22")[:MAX_TARGET]


class LogWriter(io.TextIOBase):
    """A text stream to standard error. Writing to it never blocks, because a thread does the actual writing."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self.formatter = formatter
        self.start()
        os.register_at_fork(after_in_child=self.start)  # The thread does not exist in a forked process.
        atexit.register(self.drain)

    def start(self) -> None:
        self.queue = SimpleQueue()
        self.put = self.written = self.dropped = 0
        start_new_thread(self.run, ())

    def write(self, text: str) -> int:
        if self.put - self.written < MAX_WAITING:
            self.put += 1
            self.queue.put(text)
        else:
            self.dropped += 1
        return len(text)

    def drain(self) -> None:
        """Wait until all queued lines are written, for at most EXIT_SECONDS."""
        deadline = time.monotonic() + EXIT_SECONDS
        while self.written < self.put and time.monotonic() < deadline:
            sleep(0.005)

    def run(self) -> None:
        """Write the queued lines to standard error until the process ends."""
        while True:
            pieces = [self.queue.get()]
            sleep(BATCH_SECONDS)
            pieces += [self.queue.get() for _ in range(self.queue.qsize())]
            self.write_out("".join(pieces))
            self.written += len(pieces)
            if self.dropped:
                message, self.dropped = f"{self.dropped} lines were not logged", 0
                record = logging.LogRecord("blogapi", logging.WARNING, "", 0, message, None, None)
                self.write_out(f"{self.formatter.format(record)}\n")

    def write_out(self, text: str) -> None:
        """Write a string to standard error, however long that takes. Drop the text if standard error is closed."""
        text = UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", mask(text))
        rest = memoryview(text.encode(errors="backslashreplace"))
        while rest:
            try:
                rest = rest[os.write(2, rest) :]
            except BlockingIOError:  # Another program that shares standard error has made it non-blocking.
                sleep(BATCH_SECONDS)
            except OSError:
                return


class JsonFormatter(logging.Formatter):
    """Formats each log record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        traceback = {"traceback": self.formatException(record.exc_info)} if record.exc_info else {}
        return json_line(record.levelno, process=record.process, message=record.getMessage(), **traceback)


class ServerLogger(Logger):
    """Sends the logs of gunicorn and of the application to standard error."""

    error_fmt = ("" if IN_JOURNAL else "%(asctime)s.%(msecs)03dZ ") + "[%(process)d] [%(levelname)s] %(message)s"
    datefmt = "%Y-%m-%dT%H:%M:%S"

    def setup(self, cfg: Any) -> None:
        logging.Formatter.converter = time.gmtime
        as_json = Config.from_environ(os.environ).log_format == "json"
        formatter = JsonFormatter() if as_json else logging.Formatter(self.error_fmt, self.datefmt)
        if not isinstance(sys.stderr, LogWriter):
            sys.stderr = LogWriter(formatter)
        super().setup(cfg)
        logger = logging.getLogger("blogapi")
        logger.handlers, logger.level = self.error_log.handlers, self.error_log.level
        for handler in logger.handlers:
            handler.setFormatter(formatter)


def now() -> str:
    """Return the current time in RFC 3339, with milliseconds."""
    seconds = time.time()
    return f"{rfc3339(seconds)[:-1]}.{int(seconds * 1000) % 1000:03d}Z"


def json_line(level: int, **fields: object) -> str:
    """Return a log line as a JSON object in ASCII. Omit fields that are None or ""."""
    common = {"time": now(), "level": logging.getLevelName(level).lower()}
    return json.dumps(common | {name: value for name, value in fields.items() if value not in (None, "")})


def open_standard_files() -> None:
    """Open /dev/null in place of standard input, output or error if they are closed."""
    while (file := os.open(os.devnull, os.O_RDWR)) < 3:  # The next files opened must not get these descriptors.
        pass
    os.close(file)
