"""Shell completion: verbs by the shell itself, overrides by Hydra, which knows the configs."""

from __future__ import annotations

from collections.abc import Sequence

from icl.cli import VERBS
from icl.errors import InputError, one_of

HYDRA_VERBS = ("train", "bench")

_BASH = """# eval "$(icl completion bash)"
_icl() {{
    local verb="${{COMP_WORDS[1]}}" word="${{COMP_WORDS[COMP_CWORD]}}"
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{verbs}" -- "$word"))
        return
    fi
    case "$verb" in
        completion) COMPREPLY=($(compgen -W "bash zsh" -- "$word")) ;;
        train|bench)
            compopt -o nospace 2>/dev/null
            local line="icl ${{COMP_LINE#*"$verb"}}"
            COMPREPLY=($(COMP_LINE="$line" COMP_POINT="${{#line}}" icl "$verb" -sc query=bash 2>/dev/null)) ;;
        check) COMPREPLY=($(compgen -W "$(icl list | sed -n 's/^  [x.] \\([^ ]*\\) .*/check=\\1/p')" -- "$word")) ;;
    esac
}}
COMP_WORDBREAKS=${{COMP_WORDBREAKS//=}}
complete -o default -F _icl icl
"""


def completion_command(args: Sequence[str]) -> int:
    if len(args) != 1:
        raise InputError('icl completion bash | zsh; then: eval "$(icl completion bash)"')
    shell = one_of("completion", args[0], ("bash", "zsh"))
    if shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    print(_BASH.format(verbs=" ".join(VERBS)), end="")
    return 0
