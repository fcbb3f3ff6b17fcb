"""Where the files of a wheel are in its repository."""

from harness.repository.layout import blob_id, find_layout


def _tree(**files: str) -> dict[str, str]:
    return {path: blob_id(text.encode()) for path, text in files.items()}


WHEEL = _tree(
    **{
        "pkg/__init__.py": "a",
        "pkg/sub/mod.py": "b",
        "pkg/data.json": "{}",
        "pkg/_version.py": "1",
        "pkg-1.dist-info/METADATA": "m",
    }
)


def test_the_hash_equals_that_of_git() -> None:
    assert blob_id(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_a_src_layout_is_found() -> None:
    tree = _tree(**{"src/pkg/__init__.py": "a", "src/pkg/sub/mod.py": "b", "src/pkg/data.json": "{}", "setup.py": ""})
    layout = find_layout(WHEEL, tree)
    assert layout.prefixes == {"pkg": "src/"}
    assert layout.generated == ("pkg/_version.py",)
    assert layout.changed == {}


def test_of_two_copies_the_one_with_equal_contents_is_the_package() -> None:
    tree = _tree(
        **{
            "old/pkg/__init__.py": "x",
            "old/pkg/sub/mod.py": "y",
            "libs/core/pkg/__init__.py": "a",
            "libs/core/pkg/sub/mod.py": "b",
        }
    )
    assert find_layout(WHEEL, tree).prefixes == {"pkg": "libs/core/"}


def test_changes_are_the_differences_of_a_commit() -> None:
    tag = _tree(**{"pkg/__init__.py": "a", "pkg/sub/mod.py": "b", "pkg/data.json": "{}"})
    commit = _tree(
        **{"pkg/__init__.py": "a", "pkg/sub/new.py": "c", "pkg/data.json": "{1}", "pkg/notes.md": "n", "tests/t.py": ""}
    )
    changes = find_layout(WHEEL, tag).changes(WHEEL, commit)
    assert changes == {"pkg/sub/new.py": blob_id(b"c"), "pkg/data.json": blob_id(b"{1}"), "pkg/sub/mod.py": None}


def test_a_generated_file_is_kept_from_the_wheel() -> None:
    tag = _tree(**{"pkg/__init__.py": "a"})
    assert "pkg/_version.py" not in find_layout(WHEEL, tag).changes(WHEEL, _tree(**{"pkg/__init__.py": "z"}))


def test_a_file_written_by_the_build_is_kept_only_where_the_commit_has_that_of_the_tag() -> None:
    tag = _tree(**{"pkg/__init__.py": "a", "pkg/sub/mod.py": "without version"})
    layout = find_layout(WHEEL, tag)
    assert layout.changes(WHEEL, tag) == {}
    commit = _tree(**{"pkg/__init__.py": "a", "pkg/sub/mod.py": "new"})
    assert layout.changes(WHEEL, commit)["pkg/sub/mod.py"] == blob_id(b"new")


def test_a_file_of_another_commit_is_never_kept() -> None:
    """The wheel was not built from the tag: its file is in the repository."""
    tag = _tree(**{"pkg/__init__.py": "a", "pkg/sub/mod.py": "old"})
    layout = find_layout(WHEEL, tag).with_sources(WHEEL, {blob_id(b"b")})
    assert layout.elsewhere == ("pkg/sub/mod.py",)
    assert layout.changes(WHEEL, tag)["pkg/sub/mod.py"] == blob_id(b"old")


def test_tests_missing_from_the_wheel_stay_out() -> None:
    tag = _tree(**{"pkg/__init__.py": "a", "pkg/tests/test_a.py": "t"})
    layout = find_layout(WHEEL, tag)
    assert layout.left_out == {"pkg/tests"}
    assert "pkg/tests/test_b.py" not in layout.files(_tree(**{"pkg/tests/test_b.py": "t"}))


def test_a_single_module_is_its_own_top() -> None:
    wheel = _tree(**{"six.py": "a"})
    layout = find_layout(wheel, _tree(**{"six.py": "a", "setup.py": ""}))
    assert layout.prefixes == {"six.py": ""}
    assert layout.changes(wheel, _tree(**{"six.py": "b"})) == {"six.py": blob_id(b"b")}


def test_a_wheel_of_another_project_has_no_layout() -> None:
    assert not find_layout(_tree(**{"other/x.py": "1"}), _tree(**{"pkg/y.py": "2"})).found
