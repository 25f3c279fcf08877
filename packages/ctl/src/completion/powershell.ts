/** Completion for PowerShell 5 and later. */
import type { Choice, CommandPosition } from "./model.ts";

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`;
const table = (choices: readonly Choice[]): string =>
  `[ordered]@{${choices.map(({ word, doc }) => `${quote(word)}=${quote(doc)}`).join("; ")}}`;
const list = (words: readonly string[]): string => `@(${words.map(quote).join(", ")})`;

/** The script. @param name of the program */
export function powershellScript(name: string, places: readonly CommandPosition[]): string {
  const entries = places.map(({ key, commands, flags, words }) => {
    const withLetters = flags.flatMap(({ spellings, doc }) =>
      spellings.map((word) => ({ word, doc })),
    );
    // Keys of hash tables ignore case, but two flags may differ only in the case of their letters.
    const spelled = withLetters.filter(
      ({ word }, index) =>
        withLetters.findIndex((other) => other.word.toLowerCase() === word.toLowerCase()) === index,
    );
    const takes = flags
      .filter(({ takesValue }) => takesValue)
      .flatMap(({ spellings }) => spellings);
    const values = flags.flatMap((flag) =>
      flag.values.length === 0
        ? []
        : flag.spellings.map((one) => `${quote(one)}=${list(flag.values)}`),
    );
    return `    ${quote(key)} = @{
      commands = ${table(commands)}
      flags = ${table(spelled)}
      takes = ${list(takes)}
      values = @{${values.join("; ")}}
      words = ${list(words)}
    }`;
  });
  return `# PowerShell completion for ${name}, made by "${name} completion powershell".

Register-ArgumentCompleter -Native -CommandName ${quote(name)} -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $places = @{
${entries.join("\n")}
  }
  $before = $commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition }
  $typed = @($before | Select-Object -Skip 1 | ForEach-Object { "$_" })
  $place = ''
  $open = $true
  $flag = $null
  foreach ($word in $typed) {
    if ($null -ne $flag) { $flag = $null; continue }
    if ($word -like '-*') {
      if ($places[$place].takes -ccontains $word) { $flag = $word }
    } elseif ($open -and $places[$place].commands.Contains($word)) {
      $place = "$place/$word"
    } else {
      $open = $false
    }
  }
  $at = $places[$place]
  $choices = [ordered]@{}
  if ($null -ne $flag) {
    foreach ($value in $at.values[$flag]) { $choices[$value] = $value }
  } elseif ($wordToComplete -like '-*') {
    $choices = $at.flags
  } else {
    if ($open) { foreach ($one in $at.commands.Keys) { $choices[$one] = $at.commands[$one] } }
    foreach ($one in $at.words) { $choices[$one] = $one }
  }
  $choices.Keys | Where-Object { $_ -like "$wordToComplete*" } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $choices[$_])
  }
}
`;
}
