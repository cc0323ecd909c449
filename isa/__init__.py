"""The contract: configuration, instructions, numbers, registers, and the golden machine."""
