"""From a recipe to everything that a run is made of."""

from dataclasses import dataclass

from torchyard.recipe import Recipe
from trainer import numerics, randomness
from trainer.data import DATA, DataSets
from trainer.data.sampler import TrainSampler
from trainer.distributed import World
from trainer.ema import Average
from trainer.models import MODELS
from trainer.objective import objective_for
from trainer.optim import OPTIMIZERS
from trainer.schedule import SCHEDULES, Factor
from trainer.strategies import STRATEGIES, Strategy, Task
from trainer.window import Correct


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Everything a run is made of."""

    recipe: Recipe
    data: DataSets
    strategy: Strategy
    factor: Factor
    sampler: TrainSampler
    average: Average | None
    correct: Correct

    @property
    def world(self) -> World:
        return self.strategy.world


def build(recipe: Recipe, world: World) -> Parts:
    """Makes the parts; weights are the same on all ranks, later chance is each rank's own."""
    numerics.switch(recipe)
    strategy = STRATEGIES[recipe.strategy.name](recipe.strategy, world)
    data = DATA[recipe.data.name](recipe.data)
    sampler = _sampler(recipe, strategy, len(data.train))  # type: ignore[arg-type]
    randomness.seed_all(recipe.seed)
    model = numerics.shaped(MODELS[recipe.model.name](recipe.model, data.shape), recipe)
    correct = Correct(objective_for(data.shape))
    task = Task(
        objective=correct.counting(),
        make_optimizer=lambda parameters: OPTIMIZERS[recipe.optim.name](recipe.optim, parameters),
        numerics=numerics.numerics(recipe, world.device),
        share_size=_pass_size(recipe, strategy) // strategy.shares.count,
        sample_shape=data.shape.sample,
        clip_norm=recipe.clip_norm,
    )
    strategy.prepare(model, task)
    strategy.seed(recipe.seed)
    return Parts(
        recipe=recipe,
        data=data,
        strategy=strategy,
        factor=SCHEDULES[recipe.schedule.name](recipe.schedule),
        sampler=sampler,
        average=None if recipe.ema_decay is None else Average(strategy.modules(), recipe.ema_decay),
        correct=correct,
    )


def _pass_size(recipe: Recipe, strategy: Strategy) -> int:
    """Samples of all shares in one pass."""
    if recipe.global_batch_size is None:
        return strategy.pass_size(recipe.batch_size)
    return recipe.global_batch_size // recipe.accumulate


def _sampler(recipe: Recipe, strategy: Strategy, samples: int) -> TrainSampler:
    return TrainSampler(
        samples=samples,
        size=_pass_size(recipe, strategy),
        shares=strategy.shares,
        accumulate=recipe.accumulate,
        drop_last=recipe.drop_last,
        seed=recipe.seed,
    )
