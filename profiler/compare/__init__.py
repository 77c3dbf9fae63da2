"""Two runs compared: by node, in one sentence, and against limits that a build server sets."""
