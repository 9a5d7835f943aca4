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
    '<p><a id="a" href="#b">1</a></p><p><a id="b" href="#a">1</a>javascript:1</p>',
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
    ('<a href="/b" title="">a</a>', "[a](/b)"),
    (  # LibreOffice's footnotes
        '<p>May<a name="sdfootnote1anc" href="#sdfootnote1sym"><sup>1</sup></a> is cold.</p><div id="sdfootnote1">'
        '<p><a name="sdfootnote1sym" href="#sdfootnote1anc">1</a>In the <i>hills</i>.</p><p>Often.</p></div>',
        "May[^1] is cold.\n\n[^1]: In the *hills*.\n\n    Often.",
    ),
    (  # Those of Google Docs
        '<p>May<sup><a href="#ftnt1" id="ftnt_ref1">[1]</a></sup> is cold.</p><hr><!--a-->'
        '<div><p><a href="#ftnt_ref1" id="ftnt1">[1]</a>&nbsp;In the hills.</p></div>',
        "May[^1] is cold.\n\n[^1]: In the hills.",
    ),
    (  # Those of WordPress and Pandoc
        '<p>May<sup><a href="https://a.example/#n" id="r">1</a></sup> and June<sup id="s"><a href="#m">2</a></sup></p>'
        '<ol><li id="n">Cold. <a href="/#r">↩</a></li><li id="m"><p>Warm. <a href="#s">↩</a></li></ol>',
        "May[^1] and June[^2]\n\n[^1]: Cold.\n\n[^2]: Warm.",
    ),
    (  # a table of contents
        '<ul><li><a id="t" href="#s">One</a></li></ul><h2 id="s"><a href="#t">One</a></h2>',
        '- <a id="t"></a>[One](#s)\n\n## <a id="s"></a>[One](#t)',
    ),
    (
        "<p>a</p><p class=MsoNormal><b><o:p>&nbsp;</o:p></b></p><h2>&nbsp;<br></h2><div> </div><p><!--more--></p>"
        '<p id="c">&nbsp;</p><p>b&nbsp;<b>d</b><span>&nbsp;</span><a href="#c">e</a></p><pre>&nbsp;</pre>',
        'a\n\n<!--more-->\n\n<a id="c"></a>\n\nb\xa0**d**\xa0[e](#c)\n\n```\n\xa0\n```',
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


def test_harmless_html_stays():
    assert [safe_markdown_of(html)[0].strip() for html, _ in SAFE] == [markdown for _, markdown in SAFE]
