"""DivideShuffle inside of frameworks, a module for each. Each needs its framework, which dssync does not depend on."""
