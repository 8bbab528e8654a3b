"""Labels states and actions in the user's words; bins numbers, and reads lists and policies."""
