"""The game of craftax 1.6.1 and ways to play it, against which the engine is compared."""
