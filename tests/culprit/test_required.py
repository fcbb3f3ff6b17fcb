"""Requirements between packages matter only after a mixture failed."""

from __future__ import annotations

from packaging.requirements import Requirement

from harness.culprit.packages import Distributions, Required


def side(**packages):
    """`packages` are (version, requirements...)."""
    return Distributions(
        {name: version for name, (version, *_) in packages.items()},
        {name: tuple(map(Requirement, needs)) for name, (_, *needs) in packages.items()},
    )


OLD = side(app=("1.0", "hub<1", "web"), hub=("0.9", "web>=1"), web=("1.0",), other=("1.0",))
NEW = side(
    app=("2.0", "hub>=1", "web"),
    hub=("1.0", "wire>=2"),
    web=("1.0",),
    other=("2.0",),
    wire=("2.1", "h12"),
    h12=("0.1",),
)


def test_nothing_is_tied_before_a_failure():
    assert Required(OLD, NEW).closed({"app"}) == {"app"}


def test_a_failure_adds_exactly_the_unmet_requirements():
    required = Required(OLD, NEW)
    assert required.learn({"app"})
    assert required.closed({"app"}) == {"app", "hub", "wire", "h12"}
    assert required.closed({"other"}) == {"other"}
    assert not required.learn({"app"})


def test_a_package_requiring_the_older_release_moves_along():
    required = Required(OLD, NEW)
    assert required.learn({"hub"})
    assert required.closed({"hub"}) == {"hub", "wire", "h12"}  # what it requires itself comes first
    assert required.learn({"hub"})
    assert required.closed({"hub"}) == {"app", "hub", "wire", "h12"}


def test_a_reverted_package_requires_its_old_dependencies():
    required = Required(NEW, OLD)
    assert required.learn({"app"})
    assert required.closed({"app"}) == {"app", "hub"}


def test_a_failure_with_all_requirements_met_adds_nothing():
    assert not Required(OLD, NEW).learn({"other"})
    assert not Required(OLD, NEW).learn({"h12"})
