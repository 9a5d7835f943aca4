"""The programs whose blogs are imported: how each is recognized, and what its files mean.

A program's rules apply only to its own files. If none is recognized, the rules of all apply.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from blogapi.documents import FIELDS

DAY = r"(\d{4})-(\d\d?)-(\d\d?)"
# Extensions of files
SCRIPTS = ("js", "mjs", "cjs", "ts")
DATA = ("yml", "yaml", "json")
CONFIG = ("toml", "yaml", "yml", "json")
NO_MATCH = re.compile("(?!)")
BEFORE_NAME = re.compile(rf"{DAY}-([^/]+)", re.ASCII | re.DOTALL)  # 2024-03-05-name
BEFORE_NAME_OR_ = re.compile(rf"{DAY}[-_]([^/]+)", re.ASCII | re.DOTALL)
IN_PATH = re.compile(r"(?:.*/)?(\d{4})[-/](\d\d?)[-/](\d\d?)[-_/]([^/]+)", re.ASCII | re.DOTALL)  # 2024/03/05/name

# Names in the order in which they are written
WRITTEN = sorted((name for name in FIELDS if FIELDS[name].place), key=lambda name: FIELDS[name].place)
# Names for a field in every program's front matter and, except for IMPORTED, in requests
OTHER_NAMES = {
    "status": ("draft", "published"),
    "tags": ("tag", "categories", "category"),
    "excerpt": ("description", "summary"),
    "cover_image": ("image", "cover", "featured_image", "feature_image"),
    "published_at": ("publishDate", "pubDate", "date"),
}
NAMES_OF_FIELDS = {name: (name, *OTHER_NAMES.get(name, ())) for name in WRITTEN if name != "id"}
IMPORTED = ("tag",)
PERMALINK_NAMES = ("permalink", "path", "url")  # names for the address of a post
ALIAS_NAMES = ("aliases", "alias", "redirect_from")  # names for its older addresses


@dataclass(frozen=True, eq=False)
class Program:
    """A program. Names in front matter and configurations are in lower case.

    It is recognized by one of its `config_files`, which has one of the `config_names` if there are any; else by one of
    the `post_folders`; else by all of its `own_names`, or by a `header_form`.
    """

    name: str
    config_files: tuple[str, ...] = ()
    config_names: tuple[str, ...] = ()
    own_config_files: tuple[str, ...] = ()  # need none of these names, because no other program has them
    post_folders: tuple[str, ...] = ()
    own_names: tuple[str, ...] = ()  # names in front matter
    header_form: str = ""  # key of HEADER_FORMS
    field_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # besides NAMES_OF_FIELDS, best first
    flattened: tuple[str, ...] = ()  # mappings whose names count like those at the top
    creation_dates: tuple[str, ...] = ("created",)  # names for the date that do not publish a post without a status
    date_keywords: re.Pattern[str] = NO_MATCH  # words that may replace a date
    tag_separator: str = ","  # in a string of tags; " ": only if it has no comma; "": it is one tag
    has_linked_tags: bool = False  # whether `#tag` and `[[tag]]` are tags
    date_and_name: re.Pattern[str] = BEFORE_NAME  # matches the day in the path of a file, and the rest
    not_in_names: re.Pattern[str] = NO_MATCH  # matches what is removed from the name of a file
    index_names: tuple[str, ...] = ("index",)  # files with these names are named after their folder
    names_have_tags: bool = False  # `[bread] name.md` has the tag bread, as in Blot
    titles_from_names: bool = False  # whether the file's name is the title if there is no other
    permalink_pattern: str = ""  # pattern of the addresses of posts, unless the site has its own
    permalink_styles: dict[str, str] = field(default_factory=dict)  # patterns by name
    data_files: tuple[str, ...] = ()  # contain values for all posts of a folder; {} is its name
    post_data_files: tuple[str, ...] = ()  # contain values for one post; {} is its name
    has_asset_folders: bool = False  # whether the images of a post are in a folder with its name
    hides_underscore_folders: bool = False  # whether unknown folders that begin with "_" are not published
    publishes_by_date: bool = True  # whether a post with a date is public; if not, a site around its folder decides
    zone: str = ""  # time zone for times without an offset, unless the site has its own
    languages: tuple[str, ...] = ()  # names in a configuration for the languages that can end file names (x.fr.md)
    language_files: tuple[str, ...] = ()  # names of files that list such languages, too

    def __reduce__(self) -> tuple[Any, ...]:
        return program_named, (self.name,)


def program_named(name: str) -> Program:
    """Return a program by its name."""
    return next((program for program in (*PROGRAMS, OURS) if program.name == name), ANY)


def files(name: str, extensions: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a file with each of some extensions."""
    return tuple(f"{name}.{extension}" for extension in extensions)


JEKYLL_STYLES = {
    "date": "/:categories/:year/:month/:day/:title.html",
    "pretty": "/:categories/:year/:month/:day/:title/",
    "ordinal": "/:categories/:year/:y_day/:title.html",
    "weekdate": "/:categories/:year/W:week/:short_day/:title.html",
    "none": "/:categories/:title.html",
}
BRIDGETOWN_STYLES = {"pretty": "/:categories/:year/:month/:day/:slug/", "simple": "/:categories/:slug/"}
HUGO_CONFIGS = (
    *(*files("hugo", CONFIG), *files("config", CONFIG)),
    *(*files("config/_default/hugo", CONFIG), *files("config/_default/config", CONFIG)),
)
GRAV_CONFIGS = ("config/system.yaml", "config/site.yaml")  # in the folder `user`, which is often the one that is kept
NUMBERED = re.compile(r"^\d+\.(?=\D)")  # 6.name
LAST_MODIFIED = re.compile("(?i)(git )?(last modified|created)")

# The first one recognized counts.
PROGRAMS = (
    Program(
        "Hexo",
        config_files=("_config.yml",),
        config_names=(
            *("new_post_name", "post_asset_folder", "source_dir", "render_drafts", "default_layout", "skip_render"),
        ),
        tag_separator="",
        permalink_pattern=":year/:month/:day/:title/",
        has_asset_folders=True,
        hides_underscore_folders=True,
    ),
    Program("Hexo or Octopress", post_folders=("source/_posts", "source/_drafts"), has_asset_folders=True),
    Program(
        "Bridgetown",
        config_files=files("bridgetown.config", ("yml", "yaml")),
        tag_separator=" ",
        permalink_pattern="pretty",
        permalink_styles=BRIDGETOWN_STYLES,
        data_files=files("_defaults", DATA),
        titles_from_names=True,
    ),
    Program(
        "Jekyll",
        config_files=("_config.yml",),
        post_folders=("_posts", "_drafts"),
        tag_separator=" ",
        permalink_pattern="date",
        permalink_styles=JEKYLL_STYLES,
        titles_from_names=True,
        hides_underscore_folders=True,
    ),
    Program(
        "Zola",
        config_files=("zola.toml", "config.toml"),
        config_names=("base_url",),
        flattened=("taxonomies",),
        date_and_name=BEFORE_NAME_OR_,
        data_files=("_index.md",),
        languages=("languages", "default_language"),
    ),
    Program(
        "Hugo",
        config_files=HUGO_CONFIGS,
        config_names=("baseurl", "timezone"),
        own_config_files=files("hugo", CONFIG),
        field_names={"cover_image": ("featuredimage", "coverimage")},
        data_files=("_index.md",),
        languages=("languages", "defaultcontentlanguage"),
        language_files=files("config/_default/languages", CONFIG),
    ),
    Program("Docusaurus", config_files=files("docusaurus.config", SCRIPTS), date_and_name=IN_PATH),
    Program("VuePress", config_files=(*files(".vuepress/config", SCRIPTS), *files(".vitepress/config", SCRIPTS))),
    Program("Middleman", config_files=("config.rb",), not_in_names=re.compile(r"\.html$")),
    Program("MkDocs", config_files=("mkdocs.yml",), data_files=(".meta.yml",)),
    Program("Quarto", config_files=("_quarto.yml",), data_files=("_metadata.yml",)),
    Program("Lume", config_files=files("_config", SCRIPTS), data_files=files("_data", DATA + SCRIPTS)),
    Program(
        "Eleventy",
        config_files=(*files(".eleventy", SCRIPTS), *files("eleventy.config", SCRIPTS)),
        date_keywords=LAST_MODIFIED,
        data_files=(*files("{}", ("json", "yaml", "yml")), *files("{}.11tydata", ("json", *SCRIPTS))),
        post_data_files=("{}.json", *files("{}.11tydata", ("json", *SCRIPTS))),
    ),
    Program(
        "Astro",
        config_files=files("astro.config", SCRIPTS),
        field_names={
            "published_at": ("pubdatetime",),
            "slug": ("postslug",),
            "cover_image": ("heroimage", "coverimage"),
        },
    ),
    Program(
        "Next.js",
        config_files=files("next.config", SCRIPTS),
        field_names={"published_at": ("publishedat", "publisheddate", "publishdate"), "cover_image": ("coverimage",)},
    ),
    Program("Nuxt", config_files=files("nuxt.config", SCRIPTS), not_in_names=NUMBERED),
    Program(
        "Grav",
        config_files=(*GRAV_CONFIGS, *(f"user/{name}" for name in GRAV_CONFIGS)),
        config_names=("taxonomies", "twig"),
        own_config_files=tuple(f"user/{name}" for name in GRAV_CONFIGS),
        post_folders=("user/pages",),
        flattened=("taxonomy",),
        not_in_names=NUMBERED,
        index_names=("index", "item", "post", "blog", "blog_item", "default", "docs"),
    ),
    Program("Harp", config_files=("harp.json",)),
    Program("Gatsby", config_files=files("gatsby-config", SCRIPTS), field_names={"cover_image": ("featuredimage",)}),
    Program("Statiq", config_files=("statiq.json",), data_files=files("_directory", DATA)),
    Program("Nikola", config_files=("conf.py",), config_names=("site_url", "blog_email"), header_form=".."),
    Program("ABlog", config_files=("conf.py",), config_names=("blog_baseurl", "blog_path"), header_form="{post}"),
    Program("Pelican or MultiMarkdown", config_files=("pelicanconf.py",), header_form=":", names_have_tags=True),
    Program(
        "Quartz",
        config_files=files("quartz.config", SCRIPTS),
        field_names={"status": ("publish",), "published_at": ("created",)},
        has_linked_tags=True,
        titles_from_names=True,
    ),
    Program(
        "Logseq",
        config_files=("logseq/config.edn",),
        publishes_by_date=False,
        header_form="::",
        field_names={"status": ("public",), "published_at": ("created",)},
        has_linked_tags=True,
    ),
    Program(
        "Obsidian",
        publishes_by_date=False,
        config_files=(".obsidian/app.json",),
        field_names={"status": ("publish", "dg-publish"), "published_at": ("created",)},
        has_linked_tags=True,
        titles_from_names=True,
    ),
    # Programs without a site
    Program(
        "Notion",
        header_form="#",
        field_names={"published_at": ("publish date", "created", "created time")},
        creation_dates=("created", "created time"),
        not_in_names=re.compile(" [0-9a-f]{32}$"),
    ),
    Program(
        "Hashnode",
        own_names=("cuid", "datepublished"),
        field_names={"published_at": ("datepublished",), "excerpt": ("seodescription",)},
    ),
    Program("Zenn", own_names=("emoji", "topics"), field_names={"tags": ("topics",)}, zone="Asia/Tokyo"),
    Program(
        "Dendron",
        own_names=("desc", "created", "updated"),
        field_names={"published_at": ("created",), "excerpt": ("desc",)},
    ),
    Program(
        "nanoc",
        own_names=("kind", "created_at"),
        field_names={"published_at": ("created_at",)},
        post_data_files=("{}.yaml",),
    ),
    Program(
        "Bear",
        own_names=("is_page", "published_date"),
        field_names={"published_at": ("published_date",), "excerpt": ("meta_description",), "tags": ("all_tags",)},
    ),
)
OURS = Program("blogapi")


def _all(attribute: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for program in PROGRAMS for value in getattr(program, attribute)))


def _all_names(field: str) -> tuple[str, ...]:
    names = [name for program in PROGRAMS for name in program.field_names.get(field, ())]
    return tuple(name for name in dict.fromkeys(names) if name not in NAMES_OF_FIELDS["created_at"])


ANY = Program(
    "",
    publishes_by_date=False,
    names_have_tags=True,
    field_names={field: _all_names(field) for field in NAMES_OF_FIELDS},
    flattened=_all("flattened"),
    date_keywords=LAST_MODIFIED,
    has_linked_tags=True,
    date_and_name=re.compile(f"{BEFORE_NAME_OR_.pattern}|{IN_PATH.pattern}", re.ASCII | re.DOTALL),
    not_in_names=re.compile(
        "|".join(program.not_in_names.pattern for program in PROGRAMS if program.not_in_names is not NO_MATCH)
    ),
    index_names=("index", "item"),
    data_files=_all("data_files"),
    post_data_files=_all("post_data_files"),
    language_files=_all("language_files"),
)
BY_HEADER_FORM = {program.header_form: program for program in PROGRAMS if program.header_form}
STYLES = JEKYLL_STYLES | {"simple": BRIDGETOWN_STYLES["simple"]}  # a program's own styles take precedence


def program_with_names(names: Iterable[str]) -> Program:
    """Return the program that has all of its names among these, or ANY."""
    lower = {name.lower() for name in names}
    has_own = (program for program in PROGRAMS if program.own_names)
    return next((program for program in has_own if lower.issuperset(program.own_names)), ANY)


@cache
def with_date_name(program: Program, name: str) -> Program:
    """Return the program with another name for the date, for files without one."""
    return replace(program, field_names={**program.field_names, "published_at": (name.lower(),)}, creation_dates=())
