"""From a language model's judgments to graphs."""
