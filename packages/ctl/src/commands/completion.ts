import type { Command } from "@quorate/cli";
import { Exit, ExitCode, loadProgram } from "@quorate/cli";

const shells = ["bash", "zsh", "fish", "powershell"] as const;

/** The command that prints a program's completion script. */
export function completionCommand(name: string): Command {
  return {
    use: "completion [bash|zsh|fish|powershell]",
    short: "Prints a script that completes commands and flags in a shell",
    long: `Prints a script that completes commands, flags and their values in a shell.

Bash, for this session and for every one:
  source <(${name} completion bash)
  ${name} completion bash > /etc/bash_completion.d/${name}

Zsh (with "autoload -U compinit; compinit" in ~/.zshrc):
  ${name} completion zsh > "\${fpath[1]}/_${name}"

Fish:
  ${name} completion fish | source
  ${name} completion fish > ~/.config/fish/completions/${name}.fish

PowerShell:
  ${name} completion powershell | Out-String | Invoke-Expression`,
    words: () => shells,
    async run({ args, io, program }) {
      if (args.length !== 1)
        throw new Exit(ExitCode.error, `accepts 1 arg(s), received ${args.length}`);
      const shell = shells.find((one) => one === args[0]);
      if (shell === undefined) {
        throw new Exit(
          ExitCode.error,
          `invalid argument ${JSON.stringify(args[0])} for ${JSON.stringify(`${program.name} completion`)}`,
        );
      }
      const { completionScript } = await import("../completion/scripts.ts");
      io.stdout(completionScript(await loadProgram(program), shell));
    },
  };
}
