"""The numbers of the game that scenarios and policies use, under the names that they have in Craftax."""

from enum import IntEnum

BLOCKS = (
    *("invalid", "out_of_bounds", "grass", "water", "stone", "tree", "wood", "path", "coal", "iron", "diamond"),
    *("crafting_table", "furnace", "sand", "lava", "plant", "ripe_plant", "wall", "darkness", "wall_moss"),
    *("stalagmite", "sapphire", "ruby", "chest", "fountain", "fire_grass", "ice_grass", "gravel", "fire_tree"),
    *("ice_shrub", "enchantment_table_fire", "enchantment_table_ice", "necromancer", "grave", "grave2", "grave3"),
    "necromancer_vulnerable",
)
Block = IntEnum("Block", BLOCKS, start=0)

SOLID = (
    *(Block.stone, Block.tree, Block.coal, Block.iron, Block.diamond, Block.crafting_table, Block.furnace),
    *(Block.plant, Block.ripe_plant, Block.wall, Block.wall_moss, Block.stalagmite, Block.ruby, Block.sapphire),
    *(Block.chest, Block.fountain, Block.fire_tree, Block.enchantment_table_fire, Block.enchantment_table_ice),
    *(Block.grave, Block.grave2, Block.grave3, Block.necromancer),
)

Item = IntEnum("Item", ("none", "torch", "ladder_down", "ladder_up", "ladder_down_blocked"), start=0)

ACTIONS = (
    *("noop", "left", "right", "up", "down", "do", "sleep", "place_stone", "place_table", "place_furnace"),
    *("place_plant", "make_wood_pickaxe", "make_stone_pickaxe", "make_iron_pickaxe", "make_wood_sword"),
    *("make_stone_sword", "make_iron_sword", "rest", "descend", "ascend", "make_diamond_pickaxe"),
    *("make_diamond_sword", "make_iron_armour", "make_diamond_armour", "shoot_arrow", "make_arrow"),
    *("cast_fireball", "cast_iceball", "place_torch", "drink_potion_red", "drink_potion_green"),
    *("drink_potion_blue", "drink_potion_pink", "drink_potion_cyan", "drink_potion_yellow", "read_book"),
    *("enchant_sword", "enchant_armour", "make_torch", "level_up_dexterity", "level_up_strength"),
    *("level_up_intelligence", "enchant_bow"),
)
Action = IntEnum("Action", ACTIONS, start=0)

ACHIEVEMENTS = (
    *("collect_wood", "place_table", "eat_cow", "collect_sapling", "collect_drink", "make_wood_pickaxe"),
    *("make_wood_sword", "place_plant", "defeat_zombie", "collect_stone", "place_stone", "eat_plant"),
    *("defeat_skeleton", "make_stone_pickaxe", "make_stone_sword", "wake_up", "place_furnace", "collect_coal"),
    *("collect_iron", "collect_diamond", "make_iron_pickaxe", "make_iron_sword", "make_arrow", "make_torch"),
    *("place_torch", "make_diamond_sword", "make_iron_armour", "make_diamond_armour", "enter_gnomish_mines"),
    *("enter_dungeon", "enter_sewers", "enter_vault", "enter_troll_mines", "enter_fire_realm", "enter_ice_realm"),
    *("enter_graveyard", "defeat_gnome_warrior", "defeat_gnome_archer", "defeat_orc_solider", "defeat_orc_mage"),
    *("defeat_lizard", "defeat_kobold", "defeat_troll", "defeat_deep_thing", "defeat_pigman"),
    *("defeat_fire_elemental", "defeat_frost_troll", "defeat_ice_elemental", "damage_necromancer"),
    *("defeat_necromancer", "eat_bat", "eat_snail", "find_bow", "fire_bow", "collect_sapphire", "learn_fireball"),
    *("cast_fireball", "learn_iceball", "cast_iceball", "collect_ruby", "make_diamond_pickaxe", "open_chest"),
    *("drink_potion", "enchant_sword", "enchant_armour", "defeat_knight", "defeat_archer"),
)

BOSS_FLOOR = 8
OFFSETS = ((0, 0), (0, -1), (0, 1), (-1, 0), (1, 0))
"""The cell in front of the player, by direction: none, left, right, up, down."""
