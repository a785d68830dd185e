"""The rules of Craftax 1.6.1 in C++."""
