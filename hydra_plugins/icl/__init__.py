"""Parts of icl that Hydra calls: validated jobs under `-m`, a launcher, a sweeper, configs of packages.

Before it composes anything Hydra imports all but the modules whose names begin with `_`: what
`${by_scale:...}` in a config means is then known, and nothing heavy is loaded.
"""

from icl.resolver import register

register()
