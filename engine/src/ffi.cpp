// XLA
