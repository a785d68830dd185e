"""What the agent sees of a Craftax state: ids in the 9 x 11 cells around it, and 51 numbers.

The same facts as the game's symbolic observation (8,268 floats, one-hot), in 996 bytes, and read from the state:
the game's renderer can erase a creature that is in view when another slot of its kind is empty or off the screen.
"""

import jax.numpy as jnp
from craftax.craftax.constants import MONSTERS_KILLED_TO_CLEAR_LEVEL
from craftax.craftax.craftax_state import EnvState, Mobs
from craftax.craftax.util.game_logic_utils import is_boss_vulnerable
from jaxtyping import Array, Float, Int, UInt8

from forethought.craftax.interface import WINDOW
from forethought.craftax.success import LIGHT_THRESHOLD
from forethought.environment import Observation


def observe(state: EnvState) -> Observation:
    """Read the observation of one environment from its state.

    Returns:
        Cells, all 0 where it is dark or beyond the map, and features, equal to the last 51 numbers of the game's
        symbolic observation. Where two projectiles of one class share a cell, the larger type is shown.
    """
    return Observation(_cells(state), _features(state))


def _cells(state: EnvState) -> UInt8[Array, "9 11 8"]:
    height, width = WINDOW
    level = jnp.asarray(state.player_level)
    size = state.map.shape[-1]
    rows = state.player_position[0] + jnp.arange(height) - height // 2
    columns = state.player_position[1] + jnp.arange(width) - width // 2
    inside = ((rows >= 0) & (rows < size))[:, None] & ((columns >= 0) & (columns < size))[None, :]
    at = level, jnp.clip(rows, 0, size - 1)[:, None], jnp.clip(columns, 0, size - 1)[None, :]
    visible = inside & (state.light_map[at] > LIGHT_THRESHOLD)
    classes = (
        state.melee_mobs,
        state.passive_mobs,
        state.ranged_mobs,
        state.mob_projectiles,
        state.player_projectiles,
    )
    creatures = [_creature(8 * kind, mobs, level, rows, columns) for kind, mobs in enumerate(classes)]
    layers = jnp.stack([state.map[at], state.item_map[at], *creatures, jnp.ones_like(visible)], axis=-1)
    return (layers * visible[:, :, None]).astype(jnp.uint8)


def _creature(
    first: int, mobs: Mobs, level: Int[Array, ""], rows: Int[Array, " row"], columns: Int[Array, " column"]
) -> Int[Array, "row column"]:
    position, kind = mobs.position[level], mobs.type_id[level]
    here = (position[:, 0, None, None] == rows[:, None]) & (position[:, 1, None, None] == columns)
    shown = here & mobs.mask[level][:, None, None]
    return jnp.max(shown * (1 + first + kind)[:, None, None], axis=0)


def _features(state: EnvState) -> Float[Array, "51"]:
    carried = state.inventory
    counts = (
        carried.wood,
        carried.stone,
        carried.coal,
        carried.iron,
        carried.diamond,
        carried.sapphire,
        carried.ruby,
        carried.sapling,
        carried.torches,
        carried.arrows,
    )
    tools = (
        carried.books / 2.0,
        carried.pickaxe / 4.0,
        carried.sword / 4.0,
        state.sword_enchantment,
        state.bow_enchantment,
        carried.bow,
    )
    body = (
        state.player_health,
        state.player_food,
        state.player_drink,
        state.player_energy,
        state.player_mana,
        state.player_xp,
        state.player_dexterity,
        state.player_strength,
        state.player_intelligence,
    )
    circumstances = (
        state.light_level,
        state.is_sleeping,
        state.is_resting,
        *state.learned_spells,
        state.player_level / 10.0,
        state.monsters_killed[state.player_level] >= MONSTERS_KILLED_TO_CLEAR_LEVEL,
        is_boss_vulnerable(state),
    )

    def numbers(*values: object) -> Float[Array, " number"]:
        return jnp.stack([jnp.asarray(value, jnp.float32) for value in values])

    return jnp.concatenate(
        [
            jnp.sqrt(numbers(*counts)) / 10.0,
            numbers(*tools),
            jnp.sqrt(state.inventory.potions.astype(jnp.float32)) / 10.0,
            numbers(*body) / 10.0,
            (jnp.arange(4) == state.player_direction - 1).astype(jnp.float32),
            state.inventory.armour / 2.0,
            state.armour_enchantments.astype(jnp.float32),
            numbers(*circumstances),
        ]
    )
