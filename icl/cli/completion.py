"""Shell completion: verbs by the shell, nested choices by `icl list`, all other overrides by Hydra."""

from __future__ import annotations

from collections.abc import Sequence

from icl.cli.verbs import VERBS
from icl.errors import InputError, one_of

_BASH = r"""# eval "$(icl completion bash)"
_icl() {
    local verb="${COMP_WORDS[1]}" word line group found
    # The words as typed: bash itself may break them at "=".
    line="${COMP_LINE:0:COMP_POINT}"
    word="${line##* }"
    if [[ "$line" != *" "*" "* ]]; then
        found="$(compgen -W "@VERBS@" -- "$word")"
    else
        case "$verb:$word" in
            completion:*) found="$(compgen -W "bash zsh" -- "$word")" ;;
            check:check=*|train:experiment=*|figure:figure=*)
                group="${word%%=*}"
                found="/^${group}s /,/^[a-z]* (/s|^  [^ ]* \([^ ]*\) .*|$group=\1|p"
                found="$(icl list 2>/dev/null | sed -n "$found")"
                [ "$group" = experiment ] || found="$found"$'\n'"$group=all"
                found="$(compgen -W "$found" -- "$word")" ;;
            check:*|train:*|figure:*|reproduce:*|report:*|bench:*)
                line="icl ${line#*"$verb" }"
                found="$(COMP_LINE="$line" COMP_POINT="${#line}" icl "$verb" -sc query=bash 2>/dev/null)"
                case "$verb" in
                    check) found="$found $(compgen -W "check=" -- "$word")" ;;
                    train) found="${found//experiment\//experiment=}" ;;
                    figure) found="$found $(compgen -W "figure=" -- "$word")" ;;
                esac ;;
        esac
    fi
    COMPREPLY=($found)
    case "${COMPREPLY[0]}" in *=|*.|*/) compopt -o nospace 2>/dev/null ;; esac
    # What stands before the last break is already there and must not be given again.
    if [[ "$word" == *=* && "$COMP_WORDBREAKS" == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%=*}="}")
    fi
}
complete -o default -F _icl icl
"""


def completion_command(verb: str, args: Sequence[str]) -> int:
    if len(args) != 1:
        raise InputError('icl completion bash | zsh; then: eval "$(icl completion bash)"')
    shell = one_of("completion", args[0], ("bash", "zsh"))
    if shell == "zsh":
        print("autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit")
    print(_BASH.replace("@VERBS@", " ".join(VERBS)), end="")
    return 0
