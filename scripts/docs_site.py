"""Hooks of mkdocs: links that leave ``docs`` lead to the repository, or to nothing.

On disk and in the repository's browser the documents link to code by relative paths, which the site
does not have. The repository's address is declared once, as ``Source`` of ``[project.urls]`` in
``pyproject.toml``; where that has none, the site shows the texts of such links.
"""

import os
import re
import tomllib
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).parents[1]

_LINK: Final = re.compile(r"\[([^][]*)\]\(([^)\s#:]+)((?:#[^)\s]*)?)\)")


def on_config(config: Any, **_: Any) -> Any:
    """Returns the configuration with the repository's address, if it has one."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    config.repo_url = project.get("urls", {}).get("Source")
    return config


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Returns a page's text in which no link leaves ``docs`` by a relative path.

    ``page`` is the page of mkdocs and ``config`` its configuration.
    """
    folder = os.path.dirname(page.file.src_uri)

    def outside(link: re.Match[str]) -> str:
        text, target, anchor = link.groups()
        path = os.path.normpath(os.path.join("docs", folder, target))
        if path.startswith("docs/"):
            return link[0]
        if not config.repo_url:
            return text
        return f"[{text}]({config.repo_url.rstrip('/')}/{path}{anchor})"

    return _LINK.sub(outside, markdown)
