"""The plugin that lets workers share what collecting costs."""

import gc
import importlib.util
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.plugins.collecting import compile_share, deselects


def test_shares_compile_each_file_once(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """Together they have all files; those of tests are compiled for pytest, with their checks."""
    names = ("src/a.py", "src/b.py", "tests/conftest.py", "tests/helper.py", "tests/test_c.py")
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("def test(): assert 1 == 2\n")
    shares = [compile_share(pytestconfig, tmp_path, share, 2) for share in (0, 1)]
    assert not {*shares[0]} & {*shares[1]}
    assert {*shares[0], *shares[1]} == {tmp_path / name for name in names}

    plain = {"src/a.py", "src/b.py", "tests/helper.py"}
    for name in names:
        path = tmp_path / name
        of_pytest = rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)
        of_python = Path(importlib.util.cache_from_source(str(path)))
        assert of_python.exists() == (name in plain), name
        assert (rewrite._read_pyc(path, of_pytest) is not None) == (name not in plain), name


def test_a_changed_file_is_compiled_again(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """And one that cannot be compiled is left to its import, which says why."""
    test = tmp_path / "tests" / "test_c.py"
    test.parent.mkdir()
    compiled = rewrite.get_cache_dir(test) / (test.stem + rewrite.PYC_TAIL)
    for text in ("first = 1\n", "second = 1\n"):
        test.write_text(text)
        compile_share(pytestconfig, tmp_path, 0, 1)
        code = rewrite._read_pyc(test, compiled)
        assert code is not None
        assert text.split()[0] in code.co_names
    test.write_text("def (\n")
    compile_share(pytestconfig, tmp_path, 0, 1)
    assert rewrite._read_pyc(test, compiled) is None


def test_garbage_is_collected_during_tests() -> None:
    """What was collected with the tests is left out of it."""
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000


FAST = "not stack and not network and not browser"


@pytest.mark.parametrize(
    ("expression", "marks", "is_left_out"),
    [
        (FAST, "pytest.mark.stack", True),
        (FAST, '[pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]', True),
        (FAST, '[\n    pytest.mark.nightly,\n    pytest.mark.form("[x]"),\n]', False),
        (FAST, "[\n    pytest.mark.nightly,\n    pytest.mark.network,\n]", True),
        (FAST, 'pytest.mark.form("stack")', False),
        ("stack", "pytest.mark.stack", False),
        ("network", "pytest.mark.stack", False),
        ("not stack or nightly", "pytest.mark.stack", False),
        ("", "pytest.mark.stack", False),
    ],
)
def test_a_file_is_left_out_where_no_test_of_it_can_be_selected(
    expression: str, marks: str, is_left_out: bool
) -> None:
    """Its own marks decide, whatever others its tests may have."""
    text = f"import pytest\n\npytestmark = {marks}\n\npytest.mark.network\n"
    assert deselects(expression, text) == is_left_out


def test_a_file_without_marks_is_collected() -> None:
    """Marks of single tests deselect them one by one."""
    assert not deselects(FAST, "@pytest.mark.stack\ndef test_one(): ...\n")
