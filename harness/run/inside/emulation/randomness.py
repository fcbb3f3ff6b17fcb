"""Emulates random number generators with that of the CPU, where the tensors are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .placement import on_cpu

if TYPE_CHECKING:
    from .device_profiles import Card


def answers(torch: Any, card: Card) -> dict[str, Any]:  # noqa: ARG001 - the same signature in every such module
    """Return replacements for `torch.Generator` and the functions of `torch.cuda` about seeds and states, by name."""
    generator = torch.default_generator
    made = torch.Generator

    def get_state(device: Any = "cuda") -> Any:  # noqa: ARG001
        return generator.get_state()

    def set_state(new_state: Any, device: Any = "cuda") -> None:  # noqa: ARG001
        generator.set_state(new_state)

    def set_states(new_states: Any) -> None:
        for state in new_states:
            generator.set_state(state)

    def manual_seed(seed: int) -> None:
        generator.manual_seed(int(seed))

    def seed() -> None:
        generator.seed()

    class GeneratorType(type):
        """Makes generators of the CPU instances of the class below."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, made)

        def __call__(cls, device: Any = "cpu") -> Any:
            return made(device=on_cpu(torch, device))

    class Generator(metaclass=GeneratorType):
        """Creates a generator of the CPU for any device."""

    return {
        "Generator": Generator,
        "cuda.default_generators": (generator,),
        "cuda.get_rng_state": get_state,
        "cuda.get_rng_state_all": lambda: [generator.get_state()],
        "cuda.set_rng_state": set_state,
        "cuda.set_rng_state_all": set_states,
        "cuda.manual_seed": manual_seed,
        "cuda.manual_seed_all": manual_seed,
        "cuda.seed": seed,
        "cuda.seed_all": seed,
        "cuda.initial_seed": lambda: generator.initial_seed(),  # noqa: PLW0108, RUF100
    }
