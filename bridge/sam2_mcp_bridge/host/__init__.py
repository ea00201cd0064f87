"""The host's side in profile `station`: lines, order, deadlines. Sans-IO."""
