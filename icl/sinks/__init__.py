"""Where records are told beside the store. Nothing here changes a number; training knows nothing of it."""
