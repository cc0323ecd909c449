"""Version of the instruction set; part of every configuration hash and program file."""

ISA_VERSION = 1
