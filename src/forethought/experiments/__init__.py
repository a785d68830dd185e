"""What is made of finished runs: figures and tables."""
