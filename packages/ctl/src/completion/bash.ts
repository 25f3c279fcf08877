/**
 * Completion for bash 4 and later, without the package bash-completion. The script splits the line
 * at spaces itself, since bash also splits words at "=" and ":" and would see seven words in
 * "--endpoints=http://a:1".
 */
import type { CommandPosition } from "./model.ts";

const quote = (words: readonly string[]): string => `'${words.join(" ").replaceAll("'", "'\\''")}'`;

/** The script. @param name of the program */
export function bashScript(name: string, places: readonly CommandPosition[]): string {
  const at = places.map(({ key, commands, flags, words }) => {
    const sets = [
      `commands=${quote(commands.map(({ word }) => word))}`,
      `flags=${quote(flags.flatMap(({ spellings }) => spellings))}`,
      `takes=${quote(flags.filter(({ takesValue }) => takesValue).flatMap(({ spellings }) => spellings))}`,
      `words=${quote(words)}`,
    ];
    return `    '${key}')\n      ${sets.join("\n      ")} ;;`;
  });
  const values = places.flatMap(({ key, flags }) =>
    flags
      .filter((flag) => flag.values.length > 0)
      .map(
        (flag) =>
          `    ${flag.spellings.map((one) => `'${key}:${one}'`).join("|")}) values=${quote(flag.values)} ;;`,
      ),
  );
  return `# bash completion for ${name}, made by "${name} completion bash".

# What may follow the commands of $1.
__${name}_at() {
  case "$1" in
${at.join("\n")}
    *) return 1 ;;
  esac
}

# What the value of flag $2 may be after the commands of $1.
__${name}_values() {
  values=
  case "$1:$2" in
${values.join("\n")}
    *) return 1 ;;
  esac
}

_${name}() {
  local line=\${COMP_LINE:0:COMP_POINT} cur= place= flag= open=1 i word commands flags takes words values
  local -a pieces given=()
  read -ra pieces <<<"$line"
  # A quoted value may have spaces in it.
  for word in "\${pieces[@]}"; do
    if [[ -n $cur ]]; then cur+=" $word"; else cur=$word; fi
    if [[ ( $cur == [\\"\\']* || $cur == -*=[\\"\\']* ) && $cur != *?[\\"\\'] ]]; then continue; fi
    given+=("$cur")
    cur=
  done
  if [[ -z $cur && $line != *[[:space:]] ]]; then
    cur=\${given[-1]}
    unset 'given[-1]'
  fi
  __${name}_at ''
  for ((i = 1; i < \${#given[@]}; i++)); do
    word=\${given[i]}
    flag=
    case "$word" in
      --) open=; i=\${#given[@]} ;;
      -*=*) ;;
      -*) [[ " $takes " == *" $word "* ]] && { flag=$word; i=$((i + 1)); ((i < \${#given[@]})) && flag=; } ;;
      *)
        if [[ -n $open && " $commands " == *" $word "* ]]; then
          place+="/$word"
          __${name}_at "$place"
        else
          open=
        fi ;;
    esac
  done
  if [[ -z $flag && $cur == --*=* ]]; then
    flag=\${cur%%=*}
    cur=\${cur#*=}
  fi
  COMPREPLY=()
  if [[ -n $flag ]]; then
    # Without known values the shell offers file names.
    __${name}_values "$place" "$flag" && COMPREPLY=($(compgen -W "$values" -- "$cur"))
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  else
    COMPREPLY=($(compgen -W "\${open:+$commands} $words" -- "$cur"))
  fi
}

complete -o bashdefault -o default -F _${name} ${name}
`;
}
