"""HTML from a clipboard or a client becomes Markdown that runs no scripts, whichever program renders it."""

import re

from markdown_it import MarkdownIt
from turbohtml import parse_fragment

from blogapi.markdown.html import safe_markdown_of

LINK = "[x](javascript:1)"
BREAKS = "a&#10;&#10;", "a&#13;&#13;"
ADDRESSES = (
    "javascript:alert(1)",
    " JaVaScRiPt:alert(1)",
    "java&#9;script:alert(1)",
    "java&#10;script:alert(1)",
    "&#1;javascript:alert(1)",
    "&#106;avascript&colon;alert(1)",
    "vbscript:x",
    "data:text/html,<script>alert(1)</script>",
)
HOSTILE = (
    *(f'<a href="{each}">x</a>' for each in ADDRESSES),
    *(f'<a href="{each}"><h2>x</h2></a>' for each in ADDRESSES),
    *(f'<img src="{each}">' for each in ADDRESSES),
    *(
        f"<{tag} src=javascript:1 data=javascript:1 onload=x>"
        for tag in ("iframe", "object", "embed", "video", "frame")
    ),
    "<script src=https://a.example></script>",
    "<table onclick=x><tr><td rowspan=2 onclick=x><a href=javascript:1>x</a></table>",
    "<ol reversed onclick=x><li><a href=javascript:1>x</a></ol>",
    "<details ontoggle=x><summary onclick=x><a href=javascript:1>x</a></summary>y</details>",
    "<pre onclick=x><img src=x onerror=x></pre>",
    "<svg><a xlink:href=javascript:1>x</a></svg><math><mi xlink:href=javascript:1>x</mi></math>",
    "<form action=javascript:1><button formaction=javascript:1>x</button></form>",
    "<div style='background-image: url(javascript:1)'>x</div>",
    "<video><source src=javascript:1><track src=data:x></video>",
    # Text that would be Markdown
    f"<p>{LINK}</p><p>&lt;javascript:1&gt; &lt;script&gt;</p><p>[b]: javascript:1</p><p>[b]</p>",
    "<p>[b]<wbr>(javascript:1)</p><p>[c]<!-- -->: javascript:1</p><p>[c]</p>",
    "<input type=checkbox checked>(javascript:1)",
    "<p>[^1]: javascript:1</p><p>[^1]</p><p>[^2]:<br>DATA:x</p><p>[^2]</p><p>[^3]<wbr>: vbscript:x</p><p>[^3]</p>",
    f"<video controls>{LINK}</video>",
    f"<math><mtext>{LINK}</mtext></math>",
    f"<ruby>a<rp>{LINK}</rp><rp>&lt;script&gt;</rp></ruby>",
    *(f'<abbr title="{each}{LINK}">x</abbr>' for each in BREAKS),
    *(f'<a href="#{each}{LINK}">x</a><p id="{each}{LINK}">y</p>' for each in BREAKS),
    *(f"<code>{each}{LINK}</code>" for each in BREAKS),
    *(f'<table title="{each}{LINK}"><tr><td rowspan=2>x</table>' for each in BREAKS),
)
SAFE = (
    (
        '<a href="https://a">a</a> <a href="/c">c</a> <a href="mailto:d@e">d</a>',
        "[a](https://a) [c](/c) [d](mailto:d@e)",
    ),
    ("<p>[^1]: https://a.example data: none</p>", "[^1]: https://a.example data: none"),
    ("<ul><li><input type=checkbox checked> a</li></ul>", "- [x] a"),
    ('<pre><code class="language-python">a</code></pre>', "```python\na\n```"),
    ('<p>a <img src="data:image/png;base64,AA" alt="a cat"></p>', "a a cat"),
    ("<video src=https://a/b.mp4 controls></video>", '<video src="https://a/b.mp4" controls=""></video>'),
    ("<!-- more --><iframe src=https://a.example>b</iframe>", "<!--more-->"),
)


def is_live(name, value):
    """Whether an attribute can run a script."""
    return name.startswith("on") or re.match(r"[\s\0-\x1f]*((java|vb)script|data):", str(value or ""), re.IGNORECASE)


def test_no_site_runs_what_was_pasted():
    careless = MarkdownIt("commonmark")  # lets HTML through, has no footnotes
    careless.validateLink = lambda url: True
    for html in HOSTILE:
        markdown, _ = safe_markdown_of(html)
        elements = parse_fragment(careless.render(markdown)).select("*")
        assert not {each.tag for each in elements} & {"script", "iframe", "object", "embed", "svg", "form"}, html
        assert not [each.html for each in elements if any(is_live(*pair) for pair in each.attrs.items())], html


def test_what_is_harmless_stays():
    assert [safe_markdown_of(html)[0].strip() for html, _ in SAFE] == [markdown for _, markdown in SAFE]
