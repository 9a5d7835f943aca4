"""Open the owner's page: the command `login`."""

import io
import os

import click
import segno

from blogapi.cli.commands import opened, show
from blogapi.config import Config, is_loopback
from blogapi.server.start import url_of_server
from blogapi.storage import keys
from blogapi.wings.owner import sessions


@click.command()
@click.option("--end", is_flag=True, help="End all sessions, and make unused links invalid.")
@click.option("--days", type=click.IntRange(1, 365), help="End the session after this many days without use.")
@click.option("--qr", is_flag=True, help="Also print the link as a QR code, for a phone.")
def login(end: bool, days: int | None, qr: bool) -> None:
    """Print a link that opens the owner's page.

    The link works once, within ten minutes. You stay signed in for twelve hours, or longer with --days or if you wish.
    """
    url = url_of_server(Config.from_environ(os.environ))
    with opened() as database:
        if end:
            database.write(sessions.end_all)
        else:
            link = database.write(sessions.add, sessions.LINK, days or 0)
            try:
                show(opening_url := f"{url}/settings/open?link={link}")
                if qr:
                    segno.make(opening_url, micro=False).terminal(code := io.StringIO(), compact=True)
                    show(code.getvalue().rstrip("\n"))
                    if is_loopback(url):
                        click.echo(f"A phone cannot open {url}: set BLOGAPI_URL to one that it can open.", err=True)
            except OSError:
                database.write(sessions.end, keys.digest_of(link))
                raise
