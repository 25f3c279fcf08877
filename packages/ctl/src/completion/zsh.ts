/** Completion for zsh, with the help text of each word. */
import type { Choice, CommandPosition } from "./model.ts";

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const described = (choices: readonly Choice[]): string =>
  choices.map(({ word, doc }) => quote(`${word.replaceAll(":", "\\:")}:${doc}`)).join(" ");

/** The script. @param name of the program */
export function zshScript(name: string, places: readonly CommandPosition[]): string {
  const at = places.map(({ key, commands, flags, words }) => {
    const spelled = flags.flatMap(({ spellings, doc }) => spellings.map((word) => ({ word, doc })));
    const sets = [
      // "commands" is a special parameter of zsh.
      `subcommands=(${described(commands)})`,
      `flags=(${described(spelled)})`,
      `takes=(${flags
        .filter(({ takesValue }) => takesValue)
        .flatMap(({ spellings }) => spellings)
        .join(" ")})`,
      `choices=(${words.join(" ")})`,
    ];
    return `    (${quote(key)})\n      ${sets.join("\n      ")} ;;`;
  });
  const values = places.flatMap(({ key, flags }) =>
    flags
      .filter((flag) => flag.values.length > 0)
      .map(
        (flag) =>
          `    (${flag.spellings.map((one) => quote(`${key}:${one}`)).join("|")}) values=(${flag.values.join(" ")}) ;;`,
      ),
  );
  return `#compdef ${name}
# zsh completion for ${name}, made by "${name} completion zsh".

__${name}_at() {
  case "$1" in
${at.join("\n")}
    (*) return 1 ;;
  esac
}

__${name}_values() {
  values=()
  case "$1:$2" in
${values.join("\n")}
  esac
}

_${name}() {
  local -a subcommands flags takes choices values
  local place= flag= open=1 i word cur="$words[CURRENT]"
  __${name}_at ''
  for ((i = 2; i < CURRENT; i++)); do
    word="$words[i]"
    flag=
    case "$word" in
      (--) open=; i=$CURRENT ;;
      (-*=*) ;;
      (-*) if ((\${takes[(Ie)$word]})); then flag="$word"; ((i++)); ((i < CURRENT)) && flag=; fi ;;
      (*)
        if [[ -n "$open" && -n "\${subcommands[(r)\${(b)word}:*]}" ]]; then
          place+="/$word"
          __${name}_at "$place"
        else
          open=
        fi ;;
    esac
  done
  if [[ -z "$flag" && "$cur" == --*=* ]]; then
    flag="\${cur%%=*}"
    compset -P '*='
  fi
  if [[ -n "$flag" ]]; then
    __${name}_values "$place" "$flag"
    if (($#values)); then compadd -- $values; else _files; fi
  elif [[ "$cur" == -* ]]; then
    _describe -o flag flags
  else
    [[ -n "$open" ]] && (($#subcommands)) && _describe command subcommands
    (($#choices)) && compadd -- $choices
    (($#subcommands + $#choices)) || _files
  fi
}

if [[ "$funcstack[1]" == _${name} ]]; then _${name} "$@"; else compdef _${name} ${name}; fi
`;
}
