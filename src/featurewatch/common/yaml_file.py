"""YAML files that people write: errors are one line, and no key may occur twice."""

from pathlib import Path
from typing import Any

import yaml

from featurewatch.common.text import quoted


class YamlError(ValueError):
    """The file cannot be read: one line that names it, and where it is wrong."""


def read(file: Path, *, typed: bool = False) -> Any:
    """The content of a file; ``typed`` as in `parse`. Raises `YamlError`."""
    try:
        content = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise YamlError(f"{file} is not YAML: it is not text") from None
    except OSError as error:
        raise YamlError(f"{file} cannot be read: {error.strerror}") from None
    return parse(content, str(file), typed=typed)


def parse(content: str, file: str, *, typed: bool = False) -> Any:
    """The content of a text: mappings, lists and strings; ``file`` is its name.

    ``typed``: numbers, times, true and null come as such. Otherwise scalars stay as they are
    written: 4.10 is a release, and not the number 4.1.

    Raises:
        YamlError: It is not YAML, a key occurs twice in a mapping, or it is nested too deep.
    """
    try:
        return yaml.load(content, _Typed if typed else _Strings)  # noqa: S506 - plain values alone
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise YamlError(f"{file} is not YAML{line}: {quoted(str(error.problem))}") from None
    except (yaml.YAMLError, ValueError) as error:  # an invalid time is a ValueError
        reason = quoted(" ".join(str(error).split()))
        raise YamlError(f"{file} is not YAML: {reason}") from None
    except (LookupError, AttributeError, TypeError, ArithmeticError):
        # yaml raises these if a tag asks for another type: !!int on an empty text.
        raise YamlError(f"{file} is not YAML: a tag does not fit its value") from None
    except RecursionError:
        raise YamlError(f"{file} is nested too deep") from None


class _Once(yaml.composer.Composer):
    """Rejects a key that occurs twice; yaml silently uses the last one.

    It checks the text, before ``<<`` merges in keys that a mapping may override.
    """

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue  # not a key that a mapping may have
            name = (key.tag, key.value)
            if name in lines:
                raise yaml.composer.ComposerError(
                    problem=f"the key {key.value} is already set in line {lines[name]}",
                    problem_mark=key.start_mark,
                )
            lines[name] = key.start_mark.line + 1
        return node


class _Strings(_Once, yaml.BaseLoader):
    pass


class _Typed(_Once, yaml.SafeLoader):
    pass
