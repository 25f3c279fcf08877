/**
 * Completion for fish: one line per word, with the condition under which it is offered.
 */
import type { CommandPosition } from "./model.ts";

const quote = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

/** The script. @param name of the program */
export function fishScript(name: string, places: readonly CommandPosition[]): string {
  const steps = places.flatMap(({ key, commands }) => commands.map(({ word }) => `${key}/${word}`));
  const takes = places.flatMap(({ key, flags }) =>
    flags
      .filter(({ takesValue }) => takesValue)
      .flatMap(({ spellings }) => spellings.map((one) => `${key}:${one}`)),
  );
  const lines = places.flatMap(({ key, commands, flags, words }) => {
    const here = quote(`test (__${name}_place) = ${quote(`${key}.`)}`);
    return [
      ...commands.map(
        ({ word, doc }) => `complete -c ${name} -f -n ${here} -a ${word} -d ${quote(doc)}`,
      ),
      ...words.map((word) => `complete -c ${name} -f -n ${here} -a ${word}`),
      ...flags.map(({ spellings, doc, takesValue, values }) => {
        const letters = spellings
          .map((one) => (one.startsWith("--") ? `-l ${one.slice(2)}` : `-s ${one.slice(1)}`))
          .join(" ");
        const value =
          values.length > 0 ? ` -x -a ${quote(values.join(" "))}` : takesValue ? " -r" : "";
        // Flags may stand after arguments as well.
        const anyArguments = quote(`string match -q -- ${quote(`${key}.*`)} (__${name}_place)`);
        return `complete -c ${name} -n ${anyArguments} ${letters}${value} -d ${quote(doc)}`;
      }),
    ];
  });
  return `# fish completion for ${name}, made by "${name} completion fish".

set -g __${name}_steps ${steps.map(quote).join(" ")}
set -g __${name}_takes ${takes.map(quote).join(" ")}

# The commands typed so far, each after a slash, then a dot, then "args" if arguments have followed.
function __${name}_place
    set -l place ''
    set -l args ''
    set -l skip 0
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
        else if string match -q -- '-*' $word
            contains -- "$place:$word" $__${name}_takes; and set skip 1
        else if test -z "$args"; and contains -- "$place/$word" $__${name}_steps
            set place "$place/$word"
        else
            set args args
        end
    end
    echo "$place.$args"
end

${lines.join("\n")}
`;
}
