"""Random numbers come from the generator of the CPU, where the tensors are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .placement import on_cpu

if TYPE_CHECKING:
    from .device_profiles import Card


def answers(torch: Any, card: Card) -> dict[str, Any]:  # noqa: ARG001 - one shape for every module of answers
    """Answers of `torch.cuda` about seeds and states, and generators for the device."""
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
        """Lets a generator of the CPU count as one of the class below."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, made)

        def __call__(cls, device: Any = "cpu") -> Any:
            return made(device=on_cpu(torch, device))

    class Generator(metaclass=GeneratorType):
        """Makes a generator of the CPU for whatever device is asked for."""

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
