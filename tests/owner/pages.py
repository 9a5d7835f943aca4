"""Read the owner's page and send its forms as a browser does."""

from functools import cached_property

from bs4 import BeautifulSoup
from urllib3.filepost import encode_multipart_formdata

from blogapi.wings.owner import sessions
from blogapi.wings.owner.fields import MORE_FIELDS

NO_SESSION = "You are not signed in, or your session has ended."
SECTIONS = [f"/settings/{name}" for name in ("posts", "images", "keys", "webhooks", "tags", "sessions")]

# The form of a new post and that of the first post, each with the button that saves it
NEW, EDIT = ("/settings/posts/new", "Save draft"), ("/settings/posts/1/edit", "Save draft")
# What is typed into a form
FULL = {name: field.example for name, field in MORE_FIELDS.items()} | {
    "title": "Hello",
    "content": "First line.\n\nSecond.",
    "excerpt": "Short.",
    "tags": '"One, two", Three',
    "slug": "hi",
    "cover_image": "https://example.org/a.jpg",
    "status": "draft",
    "params": "author: Ada\nseries:\n  part: 2\n",
}


class Page:
    """A page that a client sees, and its content."""

    def __init__(self, client, answer):
        self.client = client
        self.status = answer.status_code
        self.headers = answer.headers
        self.text = answer.text

    @cached_property
    def soup(self):
        soup = BeautifulSoup(self.text, "html.parser")
        for each in soup.select(".unseen"):
            each.decompose()
        return soup

    def all(self, selector):
        """The texts of elements, with white space collapsed."""
        return [" ".join(each.text.split()) for each in self.soup.select(selector)]

    @property
    def said(self):
        """The paragraphs of the page."""
        return self.all("main p")

    @property
    def titles(self):
        return self.all(".posts a:not(.tag)")

    def form(self, label):
        """The form with this button: its URL and its current fields."""
        buttons = self.soup.select("form button, button[form]")
        button = next(each for each in buttons if " ".join(each.text.split()) == label)
        form = self.soup.find(id=button["form"]) if button.has_attr("form") else button.find_parent("form")
        fields = {button["name"]: button["value"]} if button.has_attr("value") else {}
        for each in form.select("input:not([form]), textarea, select"):
            name, is_checked = each["name"], each.has_attr("checked")
            if each.name == "select":
                chosen = each.select_one("option[selected]") or each.option
                fields[name] = chosen.get("value", chosen.text)
            elif each.name == "textarea":
                fields[name] = each.text.removeprefix("\n")
            elif each.get("type") == "checkbox" and is_checked:
                fields.setdefault(name, []).append(each["value"])
            elif each.get("type") not in ("checkbox", "radio") or (each["type"] == "radio" and is_checked):
                fields[name] = each.get("value", "")
        return form["action"], fields

    def press(self, label, **typed):
        """Press a button after typing into the form; return the page that a browser then shows."""
        action, fields = self.form(label)
        return follow(self.client, send(self.client, action, fields | typed))


def send(client, action, fields, method="POST"):
    """Send fields as a browser sends a form, with CRLF for each line break."""
    lists = {name: value if isinstance(value, list) else [value] for name, value in fields.items()}
    body, content_type = encode_multipart_formdata([(name, sent(value)) for name in lists for value in lists[name]])
    return client.open(action, method=method, data=body, content_type=content_type)


def put_copy(client, fields):
    """Send the copy of a form as the script does."""
    return send(client, f"/settings/copies/{fields['copy']}", fields, "PUT")


def sent(value):
    """A text as a browser sends it; a file is given by its name and content."""
    return value.replace("\n", "\r\n") if isinstance(value, str) else value


def follow(client, answer):
    """Return the page that a response redirects to."""
    while answer.status_code in (302, 303):
        answer = client.get(answer.headers["Location"])
    return Page(client, answer)


def view(client, path):
    return follow(client, client.get(path))


def pages(client, path, older="Older"):
    """Yield the pages of a list, following their links."""
    while path:
        page = view(client, path)
        yield page
        path = next((each["href"] for each in page.soup.find_all("a", string=older)), None)


def enter(app, days=0, browser="Firefox"):
    """A client with a session."""
    client, database = app.test_client(), app.extensions["blogapi"].database
    client.environ_base["HTTP_USER_AGENT"] = browser
    client.set_cookie("blogapi", database.write(sessions.add, sessions.SESSION, days, browser), path="/settings")
    return client


def shown(page, label="Save draft"):
    """The visible fields of the form."""
    hidden = ["to", "form_token", "preview_token", "file", "etag", "base"]
    hidden += ["copy", "number", "previous", "suggested", "draft", "caret"]
    return {name: value for name, value in page.form(label)[1].items() if name not in hidden}
