"""The programs whose blogs are imported: how each is recognized, and what its files mean.

A rule of one program applies to no other's files. Where none is recognized, the rules of all apply.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

DAY = r"(\d{4})-(\d\d?)-(\d\d?)"
SCRIPTS = ("js", "mjs", "cjs", "ts")  # extensions
NEVER = re.compile("(?!)")
BEFORE_NAME = re.compile(rf"{DAY}-([^/]+)", re.ASCII | re.DOTALL)  # 2024-03-05-name
BEFORE_NAME_OR_ = re.compile(rf"{DAY}[-_]([^/]+)", re.ASCII | re.DOTALL)
IN_PATH = re.compile(r"(?:.*/)?(\d{4})[-/](\d\d?)[-/](\d\d?)[-_/]([^/]+)", re.ASCII | re.DOTALL)  # 2024/03/05/name

# The names of each field of a post in the front matter of every program, and in requests, but for those in IMPORTED
NAMES: dict[str, tuple[str, ...]] = {
    "title": ("title",),
    "slug": ("slug",),
    "status": ("status", "draft", "published"),
    "tags": ("tags", "tag", "categories", "category"),
    "former_slugs": ("former_slugs",),
    "excerpt": ("excerpt", "description", "summary"),
    "cover_image": ("cover_image", "image", "cover", "featured_image", "feature_image"),
    "published_at": ("published_at", "publishDate", "pubDate", "date"),
    "created_at": ("created_at",),
    "params": ("params",),
}
IMPORTED = ("tag",)
PATHS = ("permalink", "path", "url")  # names for the address of a post
ALIASES = ("aliases", "alias", "redirect_from")  # names for its older addresses


@dataclass(frozen=True, eq=False)
class Program:
    """A program. Names in front matter are in lower case."""

    name: str
    # A file of its site shows that it is this one, with one of the names `asks` in it if there are any;
    # else the folder of the posts; else these names in the front matter, or what follows a name in lines above the text
    configs: tuple[str, ...] = ()
    asks: frozenset[str] = frozenset()
    folders: tuple[str, ...] = ()
    keys: frozenset[str] = frozenset()
    header: str = ""
    names: Mapping[str, tuple[str, ...]] | None = None  # for each field, besides NAMES, best first
    nested: tuple[str, ...] = ()  # mappings whose names count like those at the top
    no_date: re.Pattern[str] = NEVER  # keywords in place of a date
    divides: str = ","  # divides tags in one string: a comma; a space, if there is no comma; "": nothing
    links_tags: bool = False  # `#tag` and `[[tag]]` are tags
    dated: re.Pattern[str] = BEFORE_NAME  # a day in the path of a file, and the rest
    ends: re.Pattern[str] = NEVER  # what is no part of the name at its end
    titles_by_name: bool = False  # the file's name is the title if there is no other
    pattern: str = ""  # the addresses of posts, unless its site has another
    styles: Mapping[str, str] | None = None  # names of patterns
    data: tuple[str, ...] = ()  # files with values for all posts of their folder; {} is its name
    post_data: tuple[str, ...] = ()  # files with values for one post; {} is its name
    assets: bool = False  # a post's images are in a folder with its name
    begun: tuple[str, ...] = ("created",)  # those of `names` for a date that publish nothing without a status
    hides_folders: bool = False  # whether folders that begin with "_" are not published, unless they are known
    zone: str = ""  # the zone of times without an offset, unless the site has another
    # Names in a configuration for the languages that can end the names of files (x.fr.md), and files of such languages
    languages: tuple[str, ...] = ()
    language_files: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return named, (self.name,)


def named(name: str) -> Program:
    """Return a program by its name."""
    return next((program for program in (*PROGRAMS, OURS) if program.name == name), ANY)


def scripts(name: str) -> tuple[str, ...]:
    """Return the names of a file in JavaScript or TypeScript."""
    return tuple(f"{name}.{extension}" for extension in SCRIPTS)


def of(*names: str) -> frozenset[str]:
    """Return a set of names."""
    return frozenset(names)


JEKYLL_STYLES = {
    "date": "/:categories/:year/:month/:day/:title.html",
    "pretty": "/:categories/:year/:month/:day/:title/",
    "ordinal": "/:categories/:year/:y_day/:title.html",
    "weekdate": "/:categories/:year/W:week/:short_day/:title.html",
    "none": "/:categories/:title.html",
}
BRIDGETOWN_STYLES = {"pretty": "/:categories/:year/:month/:day/:slug/", "simple": "/:categories/:slug/"}
HUGO_CONFIGS = tuple(
    f"{name}.{kind}"
    for name in ("hugo", "config", "config/_default/hugo", "config/_default/config")
    for kind in ("toml", "yaml", "yml", "json")
)
LAST_MODIFIED = re.compile("(?i)(git )?(last modified|created)")

# The first that is recognized counts.
PROGRAMS = (
    Program(
        "Hexo",
        configs=("_config.yml",),
        asks=of("new_post_name", "post_asset_folder", "source_dir", "render_drafts", "default_layout", "skip_render"),
        divides="",
        pattern=":year/:month/:day/:title/",
        assets=True,
        hides_folders=True,
    ),
    Program("Hexo or Octopress", folders=("source/_posts", "source/_drafts"), assets=True),
    Program(
        "Bridgetown",
        configs=("bridgetown.config.yml", "bridgetown.config.yaml"),
        divides=" ",
        pattern="pretty",
        styles=BRIDGETOWN_STYLES,
        data=("_defaults.yml", "_defaults.yaml", "_defaults.json"),
        titles_by_name=True,
    ),
    Program(
        "Jekyll",
        configs=("_config.yml",),
        folders=("_posts", "_drafts"),
        divides=" ",
        pattern="date",
        styles=JEKYLL_STYLES,
        titles_by_name=True,
        hides_folders=True,
    ),
    Program(
        "Zola",
        configs=("zola.toml", "config.toml"),
        asks=of("base_url"),
        nested=("taxonomies",),
        dated=BEFORE_NAME_OR_,
        data=("_index.md",),
        languages=("languages", "default_language"),
    ),
    Program(
        "Hugo",
        configs=HUGO_CONFIGS,
        asks=of("baseurl", "timezone"),
        names={"cover_image": ("featuredimage", "coverimage")},
        data=("_index.md",),
        languages=("languages", "defaultcontentlanguage"),
        language_files=tuple(f"config/_default/languages.{kind}" for kind in ("toml", "yaml", "yml", "json")),
    ),
    Program("Docusaurus", configs=scripts("docusaurus.config"), dated=IN_PATH),
    Program("VuePress", configs=(*scripts(".vuepress/config"), *scripts(".vitepress/config"))),
    Program("Middleman", configs=("config.rb",), ends=re.compile(r"\.html$")),
    Program("MkDocs", configs=("mkdocs.yml",), data=(".meta.yml",)),
    Program("Quarto", configs=("_quarto.yml",), data=("_metadata.yml",)),
    Program("Lume", configs=scripts("_config"), data=("_data.yml", "_data.yaml", "_data.json", *scripts("_data"))),
    Program(
        "Eleventy",
        configs=(".eleventy.js", *scripts("eleventy.config")),
        no_date=LAST_MODIFIED,
        data=("{}.json", "{}.yaml", "{}.yml", "{}.11tydata.json", *scripts("{}.11tydata")),
        post_data=("{}.json", "{}.11tydata.json", *scripts("{}.11tydata")),
    ),
    Program(
        "Astro",
        configs=scripts("astro.config"),
        names={"published_at": ("pubdatetime",), "slug": ("postslug",), "cover_image": ("heroimage", "coverimage")},
    ),
    Program(
        "Next.js",
        configs=scripts("next.config"),
        names={"published_at": ("publishedat", "publisheddate", "publishdate"), "cover_image": ("coverimage",)},
    ),
    Program("Gatsby", configs=scripts("gatsby-config"), names={"cover_image": ("featuredimage",)}),
    Program("Statiq", configs=("statiq.json",), data=("_directory.yml", "_directory.yaml", "_directory.json")),
    Program("Nikola", configs=("conf.py",), asks=of("blog_title"), header=".."),
    Program("Pelican or MultiMarkdown", configs=("pelicanconf.py",), header=":"),
    Program(
        "Logseq",
        configs=("logseq/config.edn",),
        header="::",
        names={"status": ("public",), "published_at": ("created",)},
        links_tags=True,
    ),
    Program(
        "Obsidian",
        configs=(".obsidian/app.json",),
        names={"status": ("publish", "dg-publish"), "published_at": ("created",)},
        links_tags=True,
        titles_by_name=True,
    ),
    # Those without a site
    Program(
        "Notion",
        header="#",
        names={"published_at": ("publish date", "created", "created time")},
        begun=("created", "created time"),
        ends=re.compile(" [0-9a-f]{32}$"),
    ),
    Program(
        "Hashnode",
        keys=of("cuid", "datepublished"),
        names={"published_at": ("datepublished",), "excerpt": ("seodescription",)},
    ),
    Program("Zenn", keys=of("emoji", "topics"), names={"tags": ("topics",)}, zone="Asia/Tokyo"),
    Program(
        "Dendron", keys=of("desc", "created", "updated"), names={"published_at": ("created",), "excerpt": ("desc",)}
    ),
    Program("nanoc", keys=of("kind", "created_at"), names={"published_at": ("created_at",)}, post_data=("{}.yaml",)),
    Program(
        "Bear",
        keys=of("is_page", "published_date"),
        names={"published_at": ("published_date",), "excerpt": ("meta_description",), "tags": ("all_tags",)},
    ),
)
OURS = Program("blogapi")


def _all(attribute: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for program in PROGRAMS for each in getattr(program, attribute)))


def _all_names(field: str) -> tuple[str, ...]:
    names = [name for program in PROGRAMS for name in (program.names or {}).get(field, ())]
    return tuple(name for name in dict.fromkeys(names) if name not in NAMES["created_at"])


ANY = Program(
    "",
    names={field: _all_names(field) for field in NAMES},
    nested=_all("nested"),
    no_date=LAST_MODIFIED,
    links_tags=True,
    dated=re.compile(f"{BEFORE_NAME_OR_.pattern}|{IN_PATH.pattern}", re.ASCII | re.DOTALL),
    ends=re.compile("|".join(program.ends.pattern for program in PROGRAMS if program.ends is not NEVER)),
    data=_all("data"),
    post_data=_all("post_data"),
)
BY_HEADER = {program.header: program for program in PROGRAMS if program.header}
STYLES = JEKYLL_STYLES | {"simple": BRIDGETOWN_STYLES["simple"]}  # where a program has none of this name


def by_names(names: Iterable[str]) -> Program:
    """Return the program that has all of its names among these, or ANY."""
    lower = {name.lower() for name in names}
    return next((program for program in PROGRAMS if program.keys and program.keys <= lower), ANY)


@cache
def dated_from(program: Program, name: str) -> Program:
    """Return the program with another name for the date, for files without one."""
    return replace(program, names={**(program.names or {}), "published_at": (name.lower(),)}, begun=())
