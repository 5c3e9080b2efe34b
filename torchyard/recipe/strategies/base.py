"""Base of all strategies: the processes and samples that each takes."""

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import model_validator

from torchyard.recipe.base import RecipeOptions
from torchyard.translatable import TranslatableText

if TYPE_CHECKING:
    from torchyard.recipe import Recipe


class StrategyOptions(RecipeOptions):
    """Base of all strategies: one process for each device."""

    refused: ClassVar[dict[str, str]] = {}
    """Options of PyTorch's own wrapper that are not taken, each with the reason."""

    @model_validator(mode="before")
    @classmethod
    def _refuse(cls, given: Any) -> Any:
        for name, reason in cls.refused.items():
            if isinstance(given, dict) and name in given:
                raise ValueError(
                    TranslatableText("option-not-taken", "{name} is not taken: {reason}", name=name, reason=reason)
                )
        return given

    whole_gradients: ClassVar[bool] = True
    """Each rank that steps has all gradients, so that the ranks agree on fp16's loss scale."""
    cuts: ClassVar[bool] = False
    """Places the model's layers one by one."""

    def check(self, recipe: "Recipe") -> None:
        """Raise ValueError with the mend where other keys of the recipe do not go with it."""
        if recipe.precision == "fp16" and not self.whole_gradients:
            raise ValueError(
                TranslatableText(
                    "fp16-strategy",
                    "precision fp16 is not for strategy {strategy}: take bf16, single, dp or ddp",
                    strategy=self._name,
                )
            )
        if self.cuts and recipe.model.layered is False:
            raise ValueError(
                TranslatableText(
                    "layers",
                    "strategy {strategy} cuts the model into layers, but model {model} is no sequence of them: take "
                    "strategy: ddp or fsdp, or another model",
                    strategy=self._name,
                    model=recipe.model.name,
                )
            )

    def check_ranks(self, ranks: int) -> None:
        """Raise ValueError with the mend where so many processes, those of all nodes, cannot train."""

    @property
    def _name(self) -> str:
        return str(type(self).model_fields["name"].default)

    def processes(self, devices: int) -> int:
        """Processes on a node with so many devices (GPUs or CPU slots); raises ValueError when they do not fit."""
        return max(1, devices)

    def devices_per_process(self, there: int | None) -> int:  # noqa: ARG002
        """Devices of one process, of so many that there are for it; None: unknown, on a machine without GPUs."""
        return 1

    def pass_size(self, batch_size: int, processes: int, devices: int) -> int:  # noqa: ARG002
        """Samples of a pass when each device takes so many, by all processes on all devices of the job."""
        return batch_size * processes

    @property
    def servers_per_node(self) -> int:
        """Processes behind the others that have no device."""
        return 0

    @property
    def spans_nodes(self) -> bool:
        """True if the processes may be on several nodes."""
        return True


class OneProcess(StrategyOptions):
    """Base of strategies that run in one process."""

    def processes(self, devices: int) -> int:  # noqa: ARG002 (one, whatever there is)
        return 1

    def check_ranks(self, ranks: int) -> None:
        if ranks > 1:
            raise ValueError(
                TranslatableText(
                    "one-process",
                    "strategy {strategy} is one process, but {ranks} were started: take strategy: ddp",
                    strategy=self._name,
                    ranks=ranks,
                )
            )

    @property
    def spans_nodes(self) -> bool:
        return False
