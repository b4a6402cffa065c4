"""Shell completion: the script that a shell reads."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from ..base.answer import Answer, command
from ..base.general_options import argument
from ..completion.completing import TEXT, VARIABLE

_BASH = """\
_gapless_completion() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(VARIABLE=bash COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" TEXT="$2" "$1" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:] ]] && compopt -o nospace
    return 0
}
complete -o default -F _gapless_completion gapless
"""
_ZSH = """\
#compdef gapless
_gapless() {
    local -a lines closed open
    local line value help tab=$'\\t'
    lines=("${(@f)$(VARIABLE=zsh "${words[1]}" "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    for line in $lines; do
        value="${line%%$tab*}" help="${line#*$tab}"
        [[ $value == *[=/:] ]] && open+=("${value//:/\\\\:}${help:+:$help}") && continue
        closed+=("${value//:/\\\\:}${help:+:$help}")
    done
    if (( ${#closed} + ${#open} == 0 )); then
        _files
        return
    fi
    (( ${#closed} )) && _describe -V gapless closed
    (( ${#open} )) && _describe -V gapless open -S ''
}
if [[ ${funcstack[1]} == _gapless ]]; then
    _gapless "$@"
else
    compdef _gapless gapless
fi
"""
_FISH = """\
function __gapless_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (env VARIABLE=fish $words 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c gapless -f -k -a '(__gapless_complete)'
"""


class Shell(StrEnum):
    """Shells for which there is a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


SCRIPTS = {
    Shell.BASH: _BASH.replace("VARIABLE", VARIABLE).replace("TEXT", TEXT),
    Shell.ZSH: _ZSH.replace("VARIABLE", VARIABLE),
    Shell.FISH: _FISH.replace("VARIABLE", VARIABLE),
}

ShellArgument = Annotated[Shell, argument("SHELL", "bash, zsh or fish.")]


@command(
    "gapless tools completion bash > gapless.bash    # then: source gapless.bash",
    "gapless tools completion zsh > ~/.zfunc/_gapless",
    "gapless tools completion fish > ~/.config/fish/completions/gapless.fish",
)
def tools_completion(shell: ShellArgument) -> Answer:
    """Print the script that lets a shell complete commands, options and names; nothing is installed."""
    script = SCRIPTS[shell]
    return Answer.of("completion", {}, lambda: script, shell=shell.value, script=script)
