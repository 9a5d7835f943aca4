"""What HTML from a clipboard or a client may contain before it becomes Markdown; imports keep what their source has."""

from turbohtml import Element, Text
from turbohtml.clean import OnDisallowed, Policy, Sanitizer

# Other elements are replaced by their text.
TEXT = (
    "a abbr acronym address article aside b bdi bdo big blockquote br caption center cite code col colgroup dd del "
    "details dfn div dl dt em fieldset figcaption figure font footer h1 h2 h3 h4 h5 h6 header hgroup hr i img input "
    "ins kbd label legend li main mark nav nobr ol p pre q rp rt ruby s samp section small span strike strong sub "
    "summary sup table tbody td tfoot th thead time tr tt u ul var wbr"
)
MEDIA = "audio picture source track video"
FORMULAS = (
    "math annotation menclose merror mfenced mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot "
    "mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover semantics"
)
ATTRIBUTES = {
    "*": "align class colspan data-enlighter-language data-lang data-language datetime id lang rowspan title",
    "a": "href name",
    "audio": "controls src",
    "details": "open",
    "img": "alt src",
    "input": "checked type",
    "li": "value",
    "ol": "reversed start type",
    "source": "src type",
    "video": "controls height poster src width",
}
ADDRESSES = ("href", "src", "poster")
sanitizer = Sanitizer(
    Policy(
        tags=frozenset(f"{TEXT} {MEDIA} {FORMULAS}".split()),
        attributes={tag: frozenset(names.split()) for tag, names in ATTRIBUTES.items()},
        url_schemes=frozenset({"http", "https", "mailto", "tel"}),
        allow_fragment_urls=True,
        on_disallowed_tag=OnDisallowed.STRIP,
        remove_with_content=frozenset({"iframe", "script", "style", "svg", "template", "textarea"}),
        strip_comments=False,  # These name the languages of code.
    )
)


def without_active(tree: Element) -> tuple[Element, set[str]]:
    """Return a copy of a tree without scripts, frames, forms, and addresses that a browser could run.

    Also return the names of the elements that were dropped, or lost their address.
    """
    clean, removed = sanitizer.sanitize_report_node(tree)
    for image in clean.select("img:not([src])"):
        image.replace_with(Text(image.attr("alt") or ""))
    return clean, {removal.tag for removal in removed if removal.attribute in (None, *ADDRESSES)}
