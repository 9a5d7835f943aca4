"""The log: what the worker, gunicorn and the application write to standard error, without keys."""

import logging
import re
from typing import Any

from gunicorn.glogging import Logger

SECRET = re.compile(r"(blog_)[A-Za-z0-9_-]{43}|(whsec_)[A-Za-z0-9+/%=]+")


def mask(text: str) -> str:
    """Replace whatever looks like a key, or the secret of a webhook."""
    return SECRET.sub(r"\1\2[masked]", text) if "blog_" in text or "whsec_" in text else text


class MaskedFormatter(logging.Formatter):
    """Formats a record without keys."""

    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))


class MaskedLogger(Logger):
    """gunicorn's log and the application's, on standard error, without keys."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(MaskedFormatter(self.error_fmt, self.datefmt))
        logging.getLogger("blogapi").handlers = self.error_log.handlers
