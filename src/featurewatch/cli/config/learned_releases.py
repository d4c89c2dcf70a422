"""Finds the directory with learned tables before any table is read.

Settings are loaded where a command runs, after its modules are imported, and some modules read
tables as they are imported. The one setting that decides which tables there are is therefore read
when the command line is parsed.
"""

from pathlib import Path


def choose_releases_of(file: Path | None) -> Path | None:
    """Takes ``releases.directory`` from a configuration file, if it has that; returns the file.

    Errors in the file are reported when the settings are loaded.
    """
    # A pipe can be read only once, when the settings are loaded, which refuses this setting there.
    if file is None or not file.is_file():
        return file
    try:
        text = file.read_text()
    except (OSError, ValueError):
        return file
    if "releases" not in text:
        return file  # parsing takes some milliseconds
    # Here, so that help and commands without such a file need no YAML.
    from featurewatch.common import yaml_file
    from featurewatch.kafka.releases.directory import choose_releases_directory

    try:
        content = yaml_file.read(file, typed=True)
    except yaml_file.YamlError:
        return file
    section = content.get("releases") if isinstance(content, dict) else None
    directory = section.get("directory") if isinstance(section, dict) else None
    if isinstance(directory, str) and directory:
        choose_releases_directory(Path(directory))
    return file
