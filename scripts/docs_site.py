"""A hook of mkdocs: links that leave ``docs`` lead to the repository.

On disk and in the repository's browser the documents link to code by relative paths, which the site
does not have.
"""

import os
import re
from typing import Any, Final

_LINK: Final = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Returns a page's text with links out of ``docs`` as links to ``repo_url``.

    ``page`` is the page of mkdocs and ``config`` its configuration.
    """
    folder = os.path.dirname(page.file.src_uri)

    def outside(link: re.Match[str]) -> str:
        path = os.path.normpath(os.path.join("docs", folder, link[2]))
        if path.startswith("docs/"):
            return link[0]
        return f"{link[1]}{config.repo_url.rstrip('/')}/{path}{link[3]}"

    return _LINK.sub(outside, markdown)
