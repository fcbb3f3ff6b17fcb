"""What may be imported ahead of a probe."""

from harness.probe.preload import preloadable

FILES = {
    "torch": "torch/__init__.py",
    "pkg": "pkg/__init__.py",
    "pkg.core": "pkg/core.py",
    "pkg.model": "pkg/model.py",
    "pkg.zoo": "pkg/zoo/__init__.py",
    "pkg.zoo.lion": "pkg/zoo/lion.py",
    "user": "user.py",
}
IMPORTS = {"pkg": ["pkg.core"], "pkg.model": ["torch", "pkg.core"], "user": ["pkg.model"], "pkg.zoo.lion": ["torch"]}


def test_a_module_that_no_candidate_reaches_is_loaded_ahead() -> None:
    assert preloadable(FILES, IMPORTS, {"pkg/model.py"}) == ("torch", "pkg", "pkg.core", "pkg.zoo", "pkg.zoo.lion")


def test_importers_of_a_candidate_wait_at_any_distance() -> None:
    assert preloadable(FILES, IMPORTS, {"pkg/core.py"}) == ("torch",)


def test_what_lies_in_a_package_that_may_change_waits() -> None:
    assert "pkg.zoo.lion" not in preloadable(FILES, IMPORTS, {"pkg/zoo/__init__.py"})


def test_without_candidates_all_is_loaded_in_the_order_of_the_run() -> None:
    assert preloadable(FILES, IMPORTS, set()) == tuple(FILES)


def test_a_circle_of_imports_is_no_trap() -> None:
    circle = {"a": ["b"], "b": ["a"]}
    assert preloadable({"a": "a.py", "b": "b.py", "c": "c.py"}, circle, {"a.py"}) == ("c",)
