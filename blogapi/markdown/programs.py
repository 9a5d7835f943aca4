"""Describe the programs whose blogs can be imported: how to recognize and read their files.

A program's rules apply only to its own files. If no program is recognized, the rules of all programs apply.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from blogapi.documents import FIELDS

DAY = r"(\d{4})-(\d\d?)-(\d\d?)"
# File extensions
SCRIPTS = ("js", "mjs", "cjs", "ts")
DATA = ("yml", "yaml", "json")
CONFIG = ("toml", "yaml", "yml", "json")
NO_MATCH = re.compile("(?!)")
BEFORE_NAME = re.compile(rf"{DAY}-([^/]+)", re.ASCII | re.DOTALL)  # 2024-03-05-name
BEFORE_NAME_OR_ = re.compile(rf"{DAY}[-_]([^/]+)", re.ASCII | re.DOTALL)
IN_PATH = re.compile(r"(?:.*/)?(\d{4})[-/](\d\d?)[-/](\d\d?)[-_/]([^/]+)", re.ASCII | re.DOTALL)  # 2024/03/05/name

# Field names in the order in which `render` writes them
WRITTEN = sorted((name for name in FIELDS if FIELDS[name].order), key=lambda name: FIELDS[name].order)
# Other names for fields. Any program's front matter may use them; requests may use those that are not in IMPORTED.
OTHER_NAMES = {
    "status": ("draft", "published"),
    "tags": ("tag", "categories", "category"),
    "excerpt": ("description", "summary"),
    "cover_image": ("image", "cover", "featured_image", "feature_image"),
    "published_at": ("publishDate", "pubDate", "date"),
}
NAMES_OF_FIELDS = {name: (name, *OTHER_NAMES.get(name, ())) for name in WRITTEN if name != "id"}
IMPORTED = ("tag",)
PERMALINK_NAMES = ("permalink", "path", "url")  # names for a post's URL
ALIAS_NAMES = ("aliases", "alias", "redirect_from")  # names for a post's former URLs


@dataclass(frozen=True, eq=False)
class Program:
    """How to recognize a program, and how to read its files. Names in front matter and settings are lower-case here.

    A program is recognized by the first of these that exists:

    - one of its `config_files`, which must contain one of its `config_names` if it has any;
    - one of its `post_folders`;
    - front matter with its `header_form`, or with all of its `own_names`.
    """

    name: str
    config_files: tuple[str, ...] = ()
    config_names: tuple[str, ...] = ()
    own_config_files: tuple[str, ...] = ()  # `config_files` that identify the program even without `config_names`
    post_folders: tuple[str, ...] = ()
    own_names: tuple[str, ...] = ()  # names that together identify its front matter
    header_form: str = ""  # the form of its headers, a key of HEADER_FORMS
    field_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # more names for fields, best first
    flattened: tuple[str, ...] = ()  # mappings whose fields are read as if they were at the top level
    creation_dates: tuple[str, ...] = ("created",)  # names of dates that do not make a post public by themselves
    date_keywords: re.Pattern[str] = NO_MATCH  # words that a file may contain in place of a date
    tag_separator: str = ","  # in a string; " " splits only a string without commas, "" never splits
    has_linked_tags: bool = False  # whether `#tag` and `[[tag]]` are tags
    date_and_name: re.Pattern[str] = BEFORE_NAME  # captures the day and the name in a path
    not_in_names: re.Pattern[str] = NO_MATCH  # matches text to remove from file names
    index_names: tuple[str, ...] = ("index",)  # files whose posts are named after their folder
    names_have_tags: bool = False  # whether a file named `[bread] name.md` has the tag bread, as in Blot
    titles_from_names: bool = False  # whether the title of a post without one comes from its file name
    permalink_pattern: str = ""  # default pattern for the URLs of posts
    permalink_styles: dict[str, str] = field(default_factory=dict)  # name in a configuration -> pattern
    data_files: tuple[str, ...] = ()  # files with values for all posts in a folder; {} stands for the folder's name
    post_data_files: tuple[str, ...] = ()  # files with values for one post; {} stands for the post's file name
    has_asset_folders: bool = False  # whether a folder named after a post contains its images
    hides_underscore_folders: bool = False  # whether unknown folders named "_…" hide their posts
    publishes_by_date: bool = True  # whether a date makes a post public, even outside other programs' sites
    zone: str = ""  # default time zone for times without an offset
    languages: tuple[str, ...] = ()  # settings that list the languages in file names (x.fr.md)
    language_files: tuple[str, ...] = ()  # further files that list these languages

    def __reduce__(self) -> tuple[Any, ...]:
        return program_named, (self.name,)


def program_named(name: str) -> Program:
    return next((program for program in (*PROGRAMS, OURS) if program.name == name), ANY)


def files(extensions: tuple[str, ...], *names: str) -> tuple[str, ...]:
    """Return every combination of a name and an extension."""
    return tuple(f"{name}.{extension}" for name in names for extension in extensions)


JEKYLL_STYLES = {
    "date": "/:categories/:year/:month/:day/:title.html",
    "pretty": "/:categories/:year/:month/:day/:title/",
    "ordinal": "/:categories/:year/:y_day/:title.html",
    "weekdate": "/:categories/:year/W:week/:short_day/:title.html",
    "none": "/:categories/:title.html",
}
BRIDGETOWN_STYLES = {"pretty": "/:categories/:year/:month/:day/:slug/", "simple": "/:categories/:slug/"}
HUGO_CONFIGS = files(CONFIG, "hugo", "config", "config/_default/hugo", "config/_default/config")
GRAV_CONFIGS = ("config/system.yaml", "config/site.yaml")  # in the `user` folder, which is often the only one kept
NUMBERED = re.compile(r"^\d+\.(?=\D)")  # 6.name
LAST_MODIFIED = re.compile("(?i)(git )?(last modified|created)")

# If several programs are recognized, the first one wins.
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
        config_files=files(("yml", "yaml"), "bridgetown.config"),
        tag_separator=" ",
        permalink_pattern="pretty",
        permalink_styles=BRIDGETOWN_STYLES,
        data_files=files(DATA, "_defaults"),
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
        own_config_files=files(CONFIG, "hugo"),
        field_names={"cover_image": ("featuredimage", "coverimage")},
        data_files=("_index.md",),
        languages=("languages", "defaultcontentlanguage"),
        language_files=files(CONFIG, "config/_default/languages"),
    ),
    Program("Docusaurus", config_files=files(SCRIPTS, "docusaurus.config"), date_and_name=IN_PATH),
    Program("VuePress", config_files=files(SCRIPTS, ".vuepress/config", ".vitepress/config")),
    Program("Middleman", config_files=("config.rb",), not_in_names=re.compile(r"\.html$")),
    Program("MkDocs", config_files=("mkdocs.yml",), data_files=(".meta.yml",)),
    Program("Quarto", config_files=("_quarto.yml",), data_files=("_metadata.yml",)),
    Program("Lume", config_files=files(SCRIPTS, "_config"), data_files=files(DATA + SCRIPTS, "_data")),
    Program(
        "Eleventy",
        config_files=files(SCRIPTS, ".eleventy", "eleventy.config"),
        date_keywords=LAST_MODIFIED,
        data_files=(*files(("json", "yaml", "yml"), "{}"), *files(("json", *SCRIPTS), "{}.11tydata")),
        post_data_files=("{}.json", *files(("json", *SCRIPTS), "{}.11tydata")),
    ),
    Program(
        "Astro",
        config_files=files(SCRIPTS, "astro.config"),
        field_names={
            "published_at": ("pubdatetime",),
            "slug": ("postslug",),
            "cover_image": ("heroimage", "coverimage"),
        },
    ),
    Program(
        "Next.js",
        config_files=files(SCRIPTS, "next.config"),
        field_names={"published_at": ("publishedat", "publisheddate", "publishdate"), "cover_image": ("coverimage",)},
    ),
    Program("Nuxt", config_files=files(SCRIPTS, "nuxt.config"), not_in_names=NUMBERED),
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
    Program("Gatsby", config_files=files(SCRIPTS, "gatsby-config"), field_names={"cover_image": ("featuredimage",)}),
    Program("Statiq", config_files=("statiq.json",), data_files=files(DATA, "_directory")),
    Program("Nikola", config_files=("conf.py",), config_names=("site_url", "blog_email"), header_form=".."),
    Program("ABlog", config_files=("conf.py",), config_names=("blog_baseurl", "blog_path"), header_form="{post}"),
    Program("Pelican or MultiMarkdown", config_files=("pelicanconf.py",), header_form=":", names_have_tags=True),
    Program(
        "Quartz",
        config_files=files(SCRIPTS, "quartz.config"),
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
    # Programs that are recognized only by their front matter
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


def _all_names(field_name: str) -> tuple[str, ...]:
    names = [name for program in PROGRAMS for name in program.field_names.get(field_name, ())]
    return tuple(name for name in dict.fromkeys(names) if name not in NAMES_OF_FIELDS["created_at"])


ANY = Program(
    "",
    publishes_by_date=False,
    names_have_tags=True,
    field_names={name: _all_names(name) for name in NAMES_OF_FIELDS},
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
STYLES = JEKYLL_STYLES | {"simple": BRIDGETOWN_STYLES["simple"]}  # A program's own styles take precedence.


def recognized_by(header_form: str, names: Iterable[str]) -> Program:
    """Return the program with this `header_form`, or the first with all its `own_names` in `names`, or ANY."""
    lower = {name.lower() for name in names}
    has_names = (program for program in PROGRAMS if program.own_names and lower.issuperset(program.own_names))
    return BY_HEADER_FORM.get(header_form) or next(has_names, ANY)


@cache
def with_date_name(program: Program, name: str) -> Program:
    """Return a copy of the program that reads the date from this name if a file has no other date."""
    return replace(program, field_names={**program.field_names, "published_at": (name.lower(),)}, creation_dates=())
