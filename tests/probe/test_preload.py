"""What can be imported ahead of a probe."""

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


def test_a_module_out_of_reach_of_candidates_is_preloaded() -> None:
    assert preloadable(FILES, IMPORTS, {"pkg/model.py"}) == ("torch", "pkg", "pkg.core", "pkg.zoo", "pkg.zoo.lion")


def test_direct_and_indirect_importers_of_a_candidate_are_not_preloaded() -> None:
    assert preloadable(FILES, IMPORTS, {"pkg/core.py"}) == ("torch",)


def test_modules_of_a_changing_package_are_not_preloaded() -> None:
    assert "pkg.zoo.lion" not in preloadable(FILES, IMPORTS, {"pkg/zoo/__init__.py"})


def test_without_candidates_everything_is_preloaded_in_order() -> None:
    assert preloadable(FILES, IMPORTS, set()) == tuple(FILES)


def test_circular_imports_are_handled() -> None:
    circle = {"a": ["b"], "b": ["a"]}
    assert preloadable({"a": "a.py", "b": "b.py", "c": "c.py"}, circle, {"a.py"}) == ("c",)
